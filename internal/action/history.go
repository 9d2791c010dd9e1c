package action

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// revision is a pod template that a workload has had.
type revision struct {
	// name is that of the ReplicaSet or ControllerRevision that holds the template.
	name string
	// number grows with each change of the template; a revision that was returned to has a new one.
	number   int64
	template corev1.PodTemplateSpec
}

// String is number and images, such as "8 (shop/checkout:2.4.1)".
func (r *revision) String() string {
	return fmt.Sprintf("%d (%s)", r.number, imagesOf(&r.template))
}

// history reads the revisions of workloads past the caches, which hold no templates.
type history struct {
	live Reader
}

// of returns the revisions that the workload controls, in no order.
func (h history) of(ctx context.Context, object client.Object) ([]revision, error) {
	var selector *metav1.LabelSelector
	switch object := object.(type) {
	case *appsv1.Deployment:
		selector = object.Spec.Selector
	case *appsv1.StatefulSet:
		selector = object.Spec.Selector
	case *appsv1.DaemonSet:
		selector = object.Spec.Selector
	}
	labels, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of %s: %w", object.GetName(), err)
	}
	options := []client.ListOption{client.InNamespace(object.GetNamespace()), client.MatchingLabelsSelector{Selector: labels}}
	if _, isDeployment := object.(*appsv1.Deployment); isDeployment {
		return h.replicaSets(ctx, object, options)
	}
	return h.controllerRevisions(ctx, object, options)
}

func (h history) replicaSets(ctx context.Context, owner client.Object, options []client.ListOption) ([]revision, error) {
	var list appsv1.ReplicaSetList
	if err := h.live.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list the ReplicaSets of Deployment/%s: %w", owner.GetName(), err)
	}
	var revisions []revision
	for i := range list.Items {
		item := &list.Items[i]
		if metav1.IsControlledBy(item, owner) {
			revisions = append(revisions, revision{
				name: item.Name, number: target.RevisionNumber(item.Annotations), template: *replicaSetTemplate(item),
			})
		}
	}
	return revisions, nil
}

// replicaSetTemplate is the Deployment's template that a ReplicaSet was made from: its own without the label that tells
// ReplicaSets apart.
func replicaSetTemplate(replicaSet *appsv1.ReplicaSet) *corev1.PodTemplateSpec {
	template := replicaSet.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return template
}

func (h history) controllerRevisions(ctx context.Context, owner client.Object, options []client.ListOption) ([]revision, error) {
	var list appsv1.ControllerRevisionList
	if err := h.live.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list the ControllerRevisions of %s: %w", owner.GetName(), err)
	}
	var revisions []revision
	for i := range list.Items {
		item := &list.Items[i]
		if !metav1.IsControlledBy(item, owner) {
			continue
		}
		content, err := controllerRevisionTemplate(item)
		if err != nil {
			return nil, err
		}
		found := revision{name: item.Name, number: item.Revision}
		if err := json.Unmarshal(content, &found.template); err != nil {
			return nil, fmt.Errorf("decode the template of ControllerRevision %s: %w", item.Name, err)
		}
		revisions = append(revisions, found)
	}
	return revisions, nil
}

// controllerRevisionTemplate takes the template out of the strategic merge patch that a ControllerRevision holds.
func controllerRevisionTemplate(item *appsv1.ControllerRevision) (json.RawMessage, error) {
	var data struct {
		Spec struct {
			Template map[string]json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(item.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("decode ControllerRevision %s: %w", item.Name, err)
	}
	if len(data.Spec.Template) == 0 {
		return nil, fmt.Errorf("decode ControllerRevision %s: it holds no pod template", item.Name)
	}
	delete(data.Spec.Template, "$patch")
	content, err := json.Marshal(data.Spec.Template)
	if err != nil {
		return nil, fmt.Errorf("encode the template of ControllerRevision %s: %w", item.Name, err)
	}
	return content, nil
}

// template returns the template of an order's revision in the form in which it is written. Nil without an error: the revision does not
// exist any more, or belongs to another workload.
func (h history) template(ctx context.Context, reference target.Reference, order *aiopsv1.Order) (any, error) {
	key := client.ObjectKey{Namespace: reference.Namespace, Name: order.Revision}
	owner := &metav1.ObjectMeta{UID: types.UID(order.Before.UID)}
	if reference.Kind == "Deployment" {
		var replicaSet appsv1.ReplicaSet
		if found, err := h.get(ctx, key, &replicaSet, owner); err != nil || !found {
			return nil, err
		}
		return replicaSetTemplate(&replicaSet), nil
	}
	var controllerRevision appsv1.ControllerRevision
	if found, err := h.get(ctx, key, &controllerRevision, owner); err != nil || !found {
		return nil, err
	}
	return controllerRevisionTemplate(&controllerRevision)
}

func (h history) get(ctx context.Context, key client.ObjectKey, object client.Object, owner *metav1.ObjectMeta) (bool, error) {
	err := h.live.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read revision %s: %w", key.Name, err)
	}
	return metav1.IsControlledBy(object, owner), nil
}

// split finds the revision in force among a workload's revisions: the one that its controller names, else the newest with the workload's own
// template. Nil while its controller has not recorded it. The others are those that would change something: a restart leaves a revision of
// its own behind, and going back to it, or from it to the one before, brings nothing but another restart.
func split(object client.Object, revisions []revision, named string) (current *revision, others []revision) {
	inForce := []*corev1.PodTemplateSpec{templateOf(object)}
	if at := indexOf(revisions, named); at >= 0 {
		inForce = append(inForce, &revisions[at].template)
	}
	for i := range revisions {
		found := &revisions[i]
		same := func(template *corev1.PodTemplateSpec) bool { return sameButForRestart(template, &found.template) }
		if !slices.ContainsFunc(inForce, same) {
			others = append(others, *found)
			continue
		}
		if current == nil || current.name != named && (found.name == named || found.number > current.number) {
			current = found
		}
	}
	return current, others
}

// indexOf returns -1 where no revision has the name.
func indexOf(revisions []revision, name string) int {
	return slices.IndexFunc(revisions, func(found revision) bool { return found.name == name })
}

// sameButForRestart says that two templates make the same pods: at most the time of a restart tells them apart.
func sameButForRestart(a, b *corev1.PodTemplateSpec) bool {
	return equality.Semantic.DeepEqual(withoutRestart(a), withoutRestart(b))
}

// withoutRestart returns a copy to compare, which shares everything but the annotations.
func withoutRestart(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	out := *template
	out.Annotations = maps.Clone(template.Annotations)
	delete(out.Annotations, restartedAt)
	return &out
}

// inForce names the revision that the workload's controller makes pods from, if the state speaks of this very object.
func inForce(state *target.State, object client.Object) string {
	if object.GetUID() != state.UID || object.GetGeneration() != state.Generation {
		return ""
	}
	return state.Revision
}

func templateOf(object client.Object) *corev1.PodTemplateSpec {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Template
	case *appsv1.StatefulSet:
		return &object.Spec.Template
	case *appsv1.DaemonSet:
		return &object.Spec.Template
	}
	return nil
}

// describe is the revision in force, for people.
func describe(object client.Object, current *revision) string {
	if current != nil {
		return current.String()
	}
	return fmt.Sprintf("not yet recorded (%s)", imagesOf(templateOf(object)))
}
