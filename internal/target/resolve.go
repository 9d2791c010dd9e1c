package target

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resolver reads the state of workloads. Safe for concurrent use.
type Resolver struct {
	cached client.Reader
	live   client.Reader
}

// NewResolver returns a Resolver that reads from caches made with [ByObject] and [IndexFields], and from the API server.
func NewResolver(cached, live client.Reader) *Resolver {
	return &Resolver{cached: cached, live: live}
}

// Resolve reads the workload's state from the caches. Where these have seen a newer revision of the workload than the workload itself, as
// they may for a moment, it is read from the API server: what its pods do would else be held against a template that made none of them.
// Resolve returns ErrNotFound, wrapped, for a workload that does not exist, and an *UnsupportedKindError for a kind that is none.
func (r *Resolver) Resolve(ctx context.Context, reference Reference, now time.Time) (State, error) {
	object, around, err := r.read(ctx, r.cached, reference)
	if err != nil {
		return State{}, err
	}
	if around.outrun(object) {
		// Where it can't be read, or is another one by now, the caches are about to say so, too.
		if newer, err := get(ctx, r.live, reference); err == nil && newer.GetUID() == object.GetUID() {
			object = newer
		}
	}
	return stateOf(reference, object, around, now), nil
}

// ResolveLive reads the workload itself from the API server, and its pods, revisions and autoscaler from the caches. Errors as for Resolve.
func (r *Resolver) ResolveLive(ctx context.Context, reference Reference, now time.Time) (State, error) {
	object, around, err := r.read(ctx, r.live, reference)
	if err != nil {
		return State{}, err
	}
	return stateOf(reference, object, around, now), nil
}

func (r *Resolver) read(ctx context.Context, reader client.Reader, reference Reference) (client.Object, surroundings, error) {
	object, err := get(ctx, reader, reference)
	if err != nil {
		return nil, surroundings{}, err
	}
	around, err := r.surroundings(ctx, reference, object.GetUID())
	return object, around, err
}

func get(ctx context.Context, reader client.Reader, reference Reference) (client.Object, error) {
	object, err := reference.NewObject()
	if err != nil {
		return nil, err
	}
	// What is read is only looked at, so the caches need not copy it. A reader without a cache ignores the option.
	err = reader.Get(ctx, client.ObjectKeyFromObject(object), object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s in namespace %s: %w", reference, reference.Namespace, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s in namespace %s: %w", reference, reference.Namespace, err)
	}
	return object, nil
}

func stateOf(reference Reference, object client.Object, around surroundings, now time.Time) State {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return deploymentState(reference, reduceDeployment(object), around, now)
	case *appsv1.StatefulSet:
		return statefulSetState(reference, reduceStatefulSet(object), around, now)
	case *appsv1.DaemonSet:
		return daemonSetState(reference, reduceDaemonSet(object), around, now)
	}
	return State{} // NewObject makes no others
}

// surroundings are the objects around a workload.
type surroundings struct {
	revisions  []revision
	pods       []Pod
	autoscaler *Autoscaler
}

// revision is a ReplicaSet or ControllerRevision of the workload.
type revision struct {
	name   string
	uid    types.UID
	number int64
}

// outrun says that there is a newer revision than the one that the workload names as its newest. A DaemonSet names none.
func (s surroundings) outrun(object client.Object) bool {
	var named int64
	switch object := object.(type) {
	case *appsv1.Deployment:
		named = RevisionNumber(object.Annotations)
	case *appsv1.StatefulSet:
		index := slices.IndexFunc(s.revisions, func(r revision) bool { return r.name == object.Status.UpdateRevision })
		if index < 0 {
			return false
		}
		named = s.revisions[index].number
	default:
		return false
	}
	return slices.ContainsFunc(s.revisions, func(r revision) bool { return r.number > named })
}

func (r *Resolver) surroundings(ctx context.Context, reference Reference, uid types.UID) (surroundings, error) {
	var around surroundings
	var err error
	controllers := map[types.UID]bool{uid: true}
	prefixes := []string{reference.Name}
	if reference.Kind == kindDeployment {
		around.revisions, prefixes, err = r.replicaSets(ctx, reference, uid)
		for _, replicaSet := range around.revisions {
			controllers[replicaSet.uid] = true
		}
	} else {
		around.revisions, err = r.controllerRevisions(ctx, reference, uid)
	}
	if err != nil {
		return around, err
	}
	for _, prefix := range prefixes {
		var pods corev1.PodList
		if err := r.list(ctx, Reference{Kind: reference.Kind, Namespace: reference.Namespace, Name: prefix}, &pods); err != nil {
			return around, err
		}
		around.pods = append(around.pods, podStates(pods.Items, controllers)...)
	}
	around.autoscaler, err = r.autoscaler(ctx, reference)
	return around, err
}

// list reads from the caches what belongs to a workload.
func (r *Resolver) list(ctx context.Context, reference Reference, into client.ObjectList) error {
	err := r.cached.List(ctx, into, client.InNamespace(reference.Namespace),
		client.MatchingFields{targetIndex: reference.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the %T of %s in namespace %s: %w", into, reference, reference.Namespace, err)
	}
	return nil
}

// replicaSets returns the Deployment's ReplicaSets, and the names under which their pods are indexed: the Deployment's own, but for names so
// long that the controller had to cut them.
func (r *Resolver) replicaSets(ctx context.Context, reference Reference, uid types.UID) ([]revision, []string, error) {
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: appsVersion, Kind: kindReplicaSet + "List"}}
	if err := r.list(ctx, reference, &list); err != nil {
		return nil, nil, err
	}
	revisions := make([]revision, 0, len(list.Items))
	prefixes := []string{reference.Name}
	for i := range list.Items {
		item := &list.Items[i]
		if !metav1.IsControlledBy(item, &metav1.ObjectMeta{UID: uid}) {
			continue
		}
		revisions = append(revisions, revision{name: item.Name, uid: item.UID, number: RevisionNumber(item.Annotations)})
		prefix := item.Name[:max(strings.LastIndex(item.Name, "-"), 0)]
		if prefix != "" && prefix != prefixes[len(prefixes)-1] && strings.HasPrefix(reference.Name, prefix) {
			prefixes = append(prefixes, prefix)
		}
	}
	return revisions, prefixes, nil
}

// RevisionNumber reads the number that the Deployment controller gave a ReplicaSet, or that of the Deployment. 0 when there is none.
func RevisionNumber(annotations map[string]string) int64 {
	number, err := strconv.ParseInt(annotations[RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

func (r *Resolver) controllerRevisions(ctx context.Context, reference Reference, uid types.UID) ([]revision, error) {
	var list appsv1.ControllerRevisionList
	if err := r.list(ctx, reference, &list); err != nil {
		return nil, err
	}
	revisions := make([]revision, 0, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		if metav1.IsControlledBy(item, &metav1.ObjectMeta{UID: uid}) {
			revisions = append(revisions, revision{name: item.Name, uid: item.UID, number: item.Revision})
		}
	}
	return revisions, nil
}

func (r *Resolver) autoscaler(ctx context.Context, reference Reference) (*Autoscaler, error) {
	var list autoscalingv2.HorizontalPodAutoscalerList
	if err := r.list(ctx, reference, &list); err != nil || len(list.Items) == 0 {
		return nil, err
	}
	item := &list.Items[0]
	autoscaler := &Autoscaler{Summary: "HorizontalPodAutoscaler/" + item.Name, MinReplicas: 1, MaxReplicas: item.Spec.MaxReplicas}
	if item.Spec.MinReplicas != nil {
		autoscaler.MinReplicas = *item.Spec.MinReplicas
	}
	if item.Status.LastScaleTime != nil {
		autoscaler.LastScaleTime = item.Status.LastScaleTime.UTC()
	}
	return autoscaler, nil
}

func (s surroundings) into(state *State) {
	state.Pods = s.pods
	state.Autoscaler = s.autoscaler
}

func deploymentState(reference Reference, deployment *appsv1.Deployment, around surroundings, now time.Time) State {
	state := workloadState(reference, &deployment.ObjectMeta, deployment.Status.ObservedGeneration, now)
	around.into(&state)
	state.Paused = deployment.Spec.Paused
	state.Replicas = orOne(deployment.Spec.Replicas)
	state.Updated = deployment.Status.UpdatedReplicas
	state.Ready = deployment.Status.ReadyReplicas
	state.Available = deployment.Status.AvailableReplicas
	state.Conditions = conditionsOf(deployment.Status.Conditions, func(c *appsv1.DeploymentCondition) (string, corev1.ConditionStatus) {
		return string(c.Type), c.Status
	})
	// The number on the Deployment is that of the template in force once the controller has seen it, unless it holds a paused one back.
	number := RevisionNumber(deployment.Annotations)
	if state.Settled && number > 0 && (!state.Paused || state.Updated >= state.Replicas) {
		state.Revision = revisionByNumber(around.revisions, number)
	}
	state.RevisionRunning = runs(state.Pods, state.Revision)
	state.Rollout = deploymentRollout(deployment, &state, parseTime(deployment.Annotations[templateTimeKey]), now)
	return state
}

func revisionByNumber(revisions []revision, number int64) string {
	for _, revision := range revisions {
		if revision.number == number {
			return revision.name
		}
	}
	return ""
}

func statefulSetState(reference Reference, set *appsv1.StatefulSet, around surroundings, now time.Time) State {
	state := workloadState(reference, &set.ObjectMeta, set.Status.ObservedGeneration, now)
	around.into(&state)
	state.OnDelete = set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	partition := partitionOf(set)
	state.HeldBack = partition > 0 && partition >= orOne(set.Spec.Replicas)
	state.Ordered = set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
	state.Replicas = orOne(set.Spec.Replicas)
	state.Updated = set.Status.UpdatedReplicas
	state.Ready = set.Status.ReadyReplicas
	state.Available = set.Status.AvailableReplicas
	state.Conditions = conditionsOf(set.Status.Conditions, func(c *appsv1.StatefulSetCondition) (string, corev1.ConditionStatus) {
		return string(c.Type), c.Status
	})
	if state.Settled {
		state.Revision = set.Status.UpdateRevision
	}
	state.RevisionRunning = runs(state.Pods, state.Revision)
	state.Rollout = statefulSetRollout(set, &state, parseTime(set.Annotations[templateTimeKey]), now)
	return state
}

func daemonSetState(reference Reference, set *appsv1.DaemonSet, around surroundings, now time.Time) State {
	state := workloadState(reference, &set.ObjectMeta, set.Status.ObservedGeneration, now)
	around.into(&state)
	state.OnDelete = set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	state.Replicas = set.Status.DesiredNumberScheduled
	state.Updated = set.Status.UpdatedNumberScheduled
	state.Ready = set.Status.NumberReady
	state.Available = set.Status.NumberAvailable
	state.Conditions = conditionsOf(set.Status.Conditions, func(c *appsv1.DaemonSetCondition) (string, corev1.ConditionStatus) {
		return string(c.Type), c.Status
	})
	if state.Settled {
		state.Revision = newestRevision(around.revisions)
	}
	state.RevisionRunning = runs(state.Pods, state.Revision)
	state.Rollout = daemonSetRollout(set, &state, parseTime(set.Annotations[templateTimeKey]), now)
	return state
}

// runs says that there are ready pods, all of this revision.
func runs(pods []Pod, revision string) bool {
	ready := 0
	for i := range pods {
		if !pods[i].Ready {
			continue
		}
		if pods[i].Revision != revision {
			return false
		}
		ready++
	}
	return revision != "" && ready > 0
}

// newestRevision is the one in force, whether its template is new or one that was returned to: the controller numbers it anew.
func newestRevision(revisions []revision) string {
	var newest revision
	for _, revision := range revisions {
		if revision.number > newest.number {
			newest = revision
		}
	}
	return newest.name
}

func orOne(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
