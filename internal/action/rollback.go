package action

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// RolledBackFromAnnotation on a target names the revision that a Rollback last left. A later Rollback does not return to it only because
// it is the one before: two revisions that both fail would take turns for ever.
const RolledBackFromAnnotation = "aiops.example.com/rolled-back-from"

// Rollback puts an earlier pod template of a workload into force again.
type Rollback struct {
	workloads workloads
	pods      pods
	history   history
}

// NewRollback returns the action Rollback. live reads past the caches.
func NewRollback(writer Writer, live Reader) *Rollback {
	return &Rollback{
		workloads: workloads{writer: writer, live: live},
		pods:      pods{writer: writer, live: live},
		history:   history{live: live},
	}
}

// Type is Rollback.
func (*Rollback) Type() aiopsv1.ActionType { return aiopsv1.ActionRollback }

func refuseRollback(state *target.State) *Refusal {
	if refusal := refuseTemplate(state); refusal != nil {
		return refusal
	}
	if state.TemplateAppliedBy != "" {
		return refuse(aiopsv1.ReasonOwnedByGitOps,
			"spec.template of %s is applied by %s; a rollback would be reverted. Roll back in Git, or use Notify",
			state.Reference, state.TemplateAppliedBy)
	}
	return nil
}

// Plan reads the workload's revisions past the caches and picks the newest one that was proven healthy, else the newest before the one in force.
func (r *Rollback) Plan(ctx context.Context, request Request) (Plan, *Refusal, error) {
	state := &request.Target
	if refusal := refuseRollback(state); refusal != nil {
		return Plan{}, refusal, nil
	}
	object, err := r.workloads.read(ctx, state.Reference)
	if err != nil {
		refusal, err := refusedOr(err, "get "+resourceOf(state.Reference), state)
		return Plan{}, refusal, err
	}
	revisions, err := r.history.of(ctx, object)
	if err != nil {
		refusal, err := refusedOr(err, "list "+revisionsOf(state.Reference), state)
		return Plan{}, refusal, err
	}
	current, others := split(object, revisions, inForce(state, object))
	goal := pick(current, others, healthyRevision(request.Task), object.GetAnnotations()[RolledBackFromAnnotation])
	if goal == nil {
		return Plan{}, noEarlierRevision(state.Reference, current, len(others)), nil
	}
	plan := Plan{
		Revision: goal.name,
		Message:  fmt.Sprintf("roll back %s from revision %s to %s", state.Reference, describe(object, current), goal),
	}
	if state.Ordered && current != nil {
		plan.PodUIDs = uidsOf(choose(request, unreadyOf(state, others), aiopsv1.MaxPodUIDs))
	}
	return plan, nil, nil
}

func noEarlierRevision(reference target.Reference, current *revision, others int) *Refusal {
	switch {
	case others > 0 && current != nil:
		return refuse(aiopsv1.ReasonNoEarlierRevision,
			"%s runs revision %s, and the only ones left are newer or were rolled back from. Deploy a version that works, or use another step", reference, current)
	default:
		return refuse(aiopsv1.ReasonNoEarlierRevision,
			"%s has no other revision to go back to. Raise its revisionHistoryLimit if old ones are removed too soon, or use another step", reference)
	}
}

func healthyRevision(task *aiopsv1.AITask) string {
	if task == nil || task.Status.Target == nil {
		return ""
	}
	return task.Status.Target.HealthyRevision
}

// pick chooses where to go back to; nil: nowhere. The revision that was proven healthy is the best choice, even if it is the newer
// one. Without it, it is the newest before the one in force, except what a rollback has left already.
func pick(current *revision, others []revision, healthy, left string) *revision {
	if at := indexOf(others, healthy); at >= 0 {
		return &others[at]
	}
	var best *revision
	for i := range others {
		other := &others[i]
		if current != nil && other.number >= current.number || isLeft(other, others, left) {
			continue
		}
		if best == nil || other.number > best.number {
			best = other
		}
	}
	return best
}

// isLeft says that a rollback has left the revision, or one that differs from it by a restart alone.
func isLeft(revision *revision, all []revision, left string) bool {
	if revision.name == left {
		return true
	}
	at := indexOf(all, left)
	return at >= 0 && sameButForRestart(&all[at].template, &revision.template)
}

// unreadyOf returns the pods that are not ready and were made from the content in force: restarted or not, but of none of the others.
func unreadyOf(state *target.State, others []revision) []target.Pod {
	var unready []target.Pod
	for i := range state.Pods {
		if pod := &state.Pods[i]; !pod.Ready && pod.Revision != "" && indexOf(others, pod.Revision) < 0 {
			unready = append(unready, *pod)
		}
	}
	return unready
}

// Run puts the template of the recorded revision into force.
func (r *Rollback) Run(ctx context.Context, request Request) (Outcome, error) {
	if err := checkOrder(request); err != nil {
		return Outcome{}, err
	}
	outcome, err := r.writeTemplate(ctx, request)
	if err != nil || !outcome.Executed || len(request.Order.PodUIDs) == 0 {
		return outcome, err
	}
	return r.pods.free(ctx, request, outcome)
}

func (r *Rollback) writeTemplate(ctx context.Context, request Request) (Outcome, error) {
	state := &request.Target
	change := change{
		doing:   "patch " + resourceOf(state.Reference),
		verb:    "roll back",
		past:    "rolled back",
		refusal: refuseRollback(state),
	}
	if state.LastOrder == request.Order.ID || change.refusal != nil {
		return r.workloads.apply(ctx, request, change)
	}
	template, err := r.history.template(ctx, state.Reference, request.Order)
	if err != nil {
		refusal, err := refusedOr(err, "get "+revisionsOf(state.Reference), state)
		return Outcome{Refusal: refusal}, err
	}
	if template == nil {
		return Outcome{Refusal: refuse(aiopsv1.ReasonNoEarlierRevision, "revision %s of %s does not exist any more",
			request.Order.Revision, state.Reference)}, nil
	}
	if left := request.Order.Before.Revision; left != "" {
		change.annotations = map[string]string{RolledBackFromAnnotation: left}
	}
	change.spec = func(known) []operation {
		return []operation{{Op: "replace", Path: "/spec/template", Value: template}}
	}
	return r.workloads.apply(ctx, request, change)
}

// imagesOf names a template's images: the first one, and how many more there are.
func imagesOf(template *corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) == 0 {
		return "no image"
	}
	text := quote(template.Spec.Containers[0].Image)
	if more := len(template.Spec.Containers) - 1; more > 0 {
		text = fmt.Sprintf("%s and %d more", text, more)
	}
	return text
}
