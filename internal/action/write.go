package action

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// FieldOwner is the field manager of every write to a workload.
const FieldOwner = "aiops-operator"

// maxAttempts bounds how often one Run tries a write again because of somebody else's unrelated write.
const maxAttempts = 3

// stampLayout is RFC 3339 to the millisecond, so that two restarts within a second are two templates.
const stampLayout = "2006-01-02T15:04:05.000Z07:00"

// Writer is what actions write to the cluster with.
type Writer interface {
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
	Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error
	SubResource(name string) client.SubResourceClient
}

// Reader is what actions read past the caches with.
type Reader = client.Reader

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func test(path string, value any) operation { return operation{Op: "test", Path: path, Value: value} }
func add(path string, value any) operation  { return operation{Op: "add", Path: path, Value: value} }

// known is what a patch has to know about the object it is made for, beyond its precondition.
type known struct {
	annotated         bool
	templateAnnotated bool
	lastOrder         string
}

// change is what an action writes to a workload.
type change struct {
	// doing names it for people, as in "the operator may not <doing>".
	doing string
	// verb begins the message of the order, and past that of its outcome. Empty: the action tells its outcome itself.
	verb, past string
	// refusal is why the change must not be made on the target as it is now. Nil: nothing speaks against it.
	refusal *Refusal
	// annotations are set on the workload beside the stamps.
	annotations map[string]string
	// spec returns the operations on spec. Nil: the stamps are all there is.
	spec func(known) []operation
}

// workloads writes to workloads: each order once, and only to the workload that it was made for.
type workloads struct {
	writer Writer
	live   Reader
}

// apply carries out the change of an order with one JSON patch. The patch holds its own precondition: UID and generation as the
// order recorded them, and the stamp of the action before. So it succeeds for one of several orders at the same moment, and for
// none if anyone changed the workload. In the same write it leaves the order's ID and the time, which prove it after a crash.
func (w workloads) apply(ctx context.Context, request Request, change change) (Outcome, error) {
	if err := checkOrder(request); err != nil {
		return Outcome{}, err
	}
	outcome, err := w.applyOnce(ctx, request, change)
	if outcome.Executed {
		outcome.Message = done(request.Order, change.verb, change.past)
	}
	return outcome, err
}

func (w workloads) applyOnce(ctx context.Context, request Request, change change) (Outcome, error) {
	order, state := request.Order, &request.Target
	if state.LastOrder == order.ID {
		return Outcome{Executed: true, After: state.Image()}, nil
	}
	if change.refusal != nil {
		return Outcome{Refusal: change.refusal}, nil
	}
	now := known{annotated: state.Annotated, templateAnnotated: state.TemplateAnnotated, lastOrder: state.LastOrder}
	for range maxAttempts {
		outcome, next, err := w.attempt(ctx, request, change, now)
		if err != nil || outcome.Executed || outcome.Refusal != nil {
			return outcome, err
		}
		now = next
	}
	return Outcome{}, fmt.Errorf("%s %s: others wrote to it at the same time, %d times", change.doing, state.Reference, maxAttempts)
}

// attempt writes once. Without a finished outcome and without an error, it returns what the next attempt has to know.
func (w workloads) attempt(ctx context.Context, request Request, change change, now known) (Outcome, known, error) {
	object, err := w.patch(ctx, request, change, now)
	if err == nil {
		return Outcome{Executed: true, After: target.ImageOf(object)}, now, nil
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
		outcome, err := w.failed(err, change, &request.Target)
		return outcome, now, err
	}
	outcome, next, readErr := w.inspect(ctx, request, now)
	if readErr != nil || outcome.Executed || outcome.Refusal != nil {
		return outcome, next, readErr
	}
	if next == now && apierrors.IsInvalid(err) {
		outcome, err = w.failed(err, change, &request.Target)
		return outcome, now, err
	}
	return Outcome{}, next, nil
}

// done tells what an order was recorded to do as what was done: of the target as it was, whatever it looks like by now. What an operator
// of an earlier version recorded was told so from the start.
func done(order *aiopsv1.Order, verb, past string) string {
	if facts, found := strings.CutPrefix(order.Message, verb+" "); found {
		return past + " " + facts
	}
	return order.Message
}

// checkOrder guards against a caller that would have an action run without a recorded precondition.
func checkOrder(request Request) error {
	if order := request.Order; order == nil || order.ID == "" || order.Before == nil {
		return fmt.Errorf("act on %s: there is no order with a precondition", request.Target.Reference)
	}
	return nil
}

func (w workloads) failed(err error, change change, state *target.State) (Outcome, error) {
	if refusal := refusalOf(err, change.doing, state); refusal != nil {
		return Outcome{Refusal: refusal}, nil
	}
	return Outcome{}, fmt.Errorf("%s %s: %w", change.doing, state.Reference, err)
}

// patch writes once and returns the workload as the API server answered with it.
func (w workloads) patch(ctx context.Context, request Request, change change, now known) (client.Object, error) {
	object, err := request.Target.Reference.NewObject()
	if err != nil {
		return nil, err
	}
	operations := []operation{
		test("/metadata/uid", request.Order.Before.UID),
		test("/metadata/generation", request.Order.Before.Generation),
	}
	if change.spec != nil {
		operations = append(operations, change.spec(now)...)
	}
	operations = append(operations, stamps(request, change.annotations, now)...)
	content, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	err = w.writer.Patch(ctx, object, client.RawPatch(types.JSONPatchType, content), client.FieldOwner(FieldOwner))
	return object, err
}

// stamps sets our annotations. A workload without any gets the map too, but only while it has none: replacing the map would lose
// what somebody else adds at the same time.
func stamps(request Request, more map[string]string, now known) []operation {
	annotations := map[string]string{
		aiopsv1.LastActionTimeAnnotation: request.Now.UTC().Format(stampLayout),
		aiopsv1.LastOrderAnnotation:      request.Order.ID,
	}
	for key, value := range more {
		annotations[key] = value
	}
	if !now.annotated {
		return []operation{test("/metadata/annotations", nil), add("/metadata/annotations", annotations)}
	}
	var before any
	if now.lastOrder != "" {
		before = now.lastOrder
	}
	operations := []operation{test(annotationPath("/metadata", aiopsv1.LastOrderAnnotation), before)}
	for key, value := range annotations {
		operations = append(operations, add(annotationPath("/metadata", key), value))
	}
	return operations
}

// annotationPath is the JSON pointer (RFC 6901) of an annotation below an object's or a template's metadata.
func annotationPath(metadata, key string) string {
	return metadata + "/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// inspect finds out from the API server why a patch was rejected. It returns a finished outcome, or what the patch has to know to succeed.
func (w workloads) inspect(ctx context.Context, request Request, tried known) (Outcome, known, error) {
	state := &request.Target
	object, err := w.read(ctx, state.Reference)
	if apierrors.IsNotFound(err) {
		return Outcome{Refusal: refuse(aiopsv1.ReasonTargetNotFound, "%s does not exist any more", state.Reference)}, known{}, nil
	}
	if err != nil {
		return Outcome{}, known{}, err
	}
	before, annotations := request.Order.Before, object.GetAnnotations()
	now := known{
		annotated:         len(annotations) > 0,
		templateAnnotated: target.HasTemplateAnnotations(object),
		lastOrder:         annotations[aiopsv1.LastOrderAnnotation],
	}
	switch {
	case string(object.GetUID()) != before.UID:
		return Outcome{Refusal: refuse(aiopsv1.ReasonTargetReplaced, "%s was deleted and created again after the order was recorded", state.Reference)}, now, nil
	case now.lastOrder == request.Order.ID:
		return Outcome{Executed: true, After: target.ImageOf(object)}, now, nil
	case object.GetGeneration() != before.Generation:
		return Outcome{Refusal: refuse(aiopsv1.ReasonSuperseded, "%s was changed after the order was recorded", state.Reference)}, now, nil
	case now.lastOrder != tried.lastOrder:
		return Outcome{Refusal: refuse(aiopsv1.ReasonSuperseded, "another action was executed on %s after the order was recorded", state.Reference)}, now, nil
	}
	return Outcome{}, now, nil
}

func (w workloads) read(ctx context.Context, reference target.Reference) (client.Object, error) {
	object, err := reference.NewObject()
	if err != nil {
		return nil, err
	}
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, fmt.Errorf("read %s: %w", reference, err)
	}
	return object, nil
}
