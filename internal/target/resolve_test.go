package target

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// reader holds objects as the caches hold them: transformed and indexed.
func reader(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	for _, kind := range Kinds() {
		builder = builder.WithIndex(kind, targetIndex, indexValues)
	}
	for _, object := range objects {
		transformed, err := transform(object)
		if err != nil {
			t.Fatal(err)
		}
		if metadata, isMetadata := transformed.(*metav1.PartialObjectMetadata); isMetadata {
			transformed = &appsv1.ReplicaSet{ObjectMeta: metadata.ObjectMeta}
		}
		if deleted := transformed.(client.Object); deleted.GetDeletionTimestamp() != nil {
			deleted.SetFinalizers([]string{"the-fake-client-needs-one"})
		}
		builder = builder.WithRuntimeObjects(transformed.(runtime.Object))
	}
	return builder.Build()
}

func metadataOf(replicaSet *appsv1.ReplicaSet) *metav1.PartialObjectMetadata {
	out := replicaSetMetadata()
	out.ObjectMeta = replicaSet.ObjectMeta
	return out
}

func TestResolveDeployment(t *testing.T) {
	crashing := deploymentPod("web-abc-2", 20, unreadySince(21), func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "setup"}}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", RestartCount: 4,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "secret"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "OOMKilled", FinishedAt: timeAt(80), Message: "secret"}},
		}}
	})
	objects := []client.Object{
		deployment(func(d *appsv1.Deployment) {
			d.Annotations[aiopsv1.LastActionTimeAnnotation] = "2026-01-01T02:00:00.5Z"
			d.Annotations[aiopsv1.LastOrderAnnotation] = "order-1"
			d.ManagedFields = append(d.ManagedFields, managed("argocd-controller", 0, `{"f:spec":{"f:template":{"f:spec":{}}}}`))
		}),
		metadataOf(replicaSet("web-old", "old", "7", "web-uid")),
		metadataOf(replicaSet("web-abc", "abc", "8", "web-uid")),
		metadataOf(replicaSet("web-foreign", "foreign", "8", "another-uid")),
		crashing,
		deploymentPod("web-abc-1", 10),
		deploymentPod("web-abc-deleted", 10, func(p *corev1.Pod) {
			p.DeletionTimestamp = ptr.To(timeAt(50))
		}),
		deploymentPod("web-abc-failed", 10, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("web-foreign-1", 10, controlledBy("ReplicaSet", "web-foreign", "web-foreign-uid"),
			map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "foreign"}),
		&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: "by-load", Namespace: "shop"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 9,
			},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{LastScaleTime: ptr.To(timeAt(60))},
		},
	}
	want := State{
		Reference:       Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		UID:             "web-uid",
		Generation:      2,
		Settled:         true,
		Replicas:        3,
		Updated:         3,
		Ready:           3,
		Available:       3,
		Revision:        "web-abc",
		RevisionRunning: true,
		TemplateHash:    TemplateHash(ptr.To(template("web:1"))),
		Conditions:      []Condition{{Type: "Progressing", Status: "True"}},
		Pods: []Pod{
			{
				Name: "web-abc-1", UID: "web-abc-1-uid", Phase: "Running", CreationTime: at(10), Scheduled: true, Ready: true,
				ReadyTransitionTime: at(15), EverReady: true, Revision: "web-abc",
				Containers: []Container{{Name: "main", Running: true}},
			},
			{
				Name: "web-abc-2", UID: "web-abc-2-uid", Phase: "Running", CreationTime: at(20), Scheduled: true,
				ReadyTransitionTime: at(21), Revision: "web-abc",
				Containers: []Container{
					{Name: "setup", Init: true},
					{
						Name: "main", RestartCount: 4, WaitingReason: "CrashLoopBackOff", LastTerminationReason: "OOMKilled", LastTerminationTime: at(80),
						CPURequestMilli: 250, MemoryRequest: 64 << 20, MemoryLimit: 128 << 20,
					},
				},
			},
		},
		Autoscaler:        &Autoscaler{Summary: "HorizontalPodAutoscaler/by-load", MinReplicas: 1, MaxReplicas: 9, LastScaleTime: at(60)},
		TemplateAppliedBy: "argocd-controller",
		Annotated:         true,
		LastActionTime:    time.Date(2026, 1, 1, 2, 0, 0, 500_000_000, time.UTC),
		LastOrder:         "order-1",
	}
	cached := reader(t, objects...)
	live := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithReturnManagedFields().WithObjects(objects[0]).Build()
	resolver := NewResolver(cached, live)
	for name, resolve := range map[string]func(context.Context, Reference, time.Time) (State, error){
		"from the caches": resolver.Resolve, "live": resolver.ResolveLive,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(t.Context(), want.Reference, at(5000))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("State (-want +got):\n%s", diff)
			}
		})
	}
}

func controllerRevision(kind, owner, name string, number int64) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", UID: types.UID(name + "-uid"), OwnerReferences: controlledBy(kind, owner, types.UID(owner+"-uid")),
		},
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)}, Revision: number,
	}
}

func TestResolveOthers(t *testing.T) {
	daemonSet := &appsv1.DaemonSet{
		ObjectMeta: workloadMeta("agent", 0),
		Spec:       appsv1.DaemonSetSpec{Template: template("agent:1")},
		Status:     appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberReady: 1, NumberAvailable: 1},
	}
	cached := reader(t,
		statefulSet(), daemonSet,
		controllerRevision("StatefulSet", "db", "db-a", 1),
		controllerRevision("DaemonSet", "agent", "agent-1", 3),
		controllerRevision("DaemonSet", "agent", "agent-2", 2),
		pod("db-0", 10, controlledBy("StatefulSet", "db", "db-uid"), map[string]string{appsv1.ControllerRevisionHashLabelKey: "db-a"}),
		pod("agent-x", 10, controlledBy("DaemonSet", "agent", "agent-uid"), map[string]string{appsv1.ControllerRevisionHashLabelKey: "1"}),
		pod("agent-of-before", 10, controlledBy("DaemonSet", "agent", "deleted-uid"), map[string]string{appsv1.ControllerRevisionHashLabelKey: "1"}),
	)
	tests := map[string]struct {
		reference Reference
		want      State
	}{
		"StatefulSet": {
			Reference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "db"},
			State{UID: "db-uid", Ordered: true, Replicas: 3, Updated: 3, Ready: 3, Available: 3, Revision: "db-a", Pods: []Pod{{Name: "db-0", Revision: "db-a"}}},
		},
		"DaemonSet": {
			Reference{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "shop", Name: "agent"},
			State{UID: "agent-uid", Replicas: 2, Updated: 2, Ready: 1, Available: 1, Revision: "agent-1", Pods: []Pod{{Name: "agent-x", Revision: "agent-1"}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, err := NewResolver(cached, cached).Resolve(t.Context(), test.reference, at(5000))
			if err != nil {
				t.Fatal(err)
			}
			got := State{
				UID: state.UID, Ordered: state.Ordered, Replicas: state.Replicas, Updated: state.Updated, Ready: state.Ready,
				Available: state.Available, Revision: state.Revision,
			}
			for _, pod := range state.Pods {
				got.Pods = append(got.Pods, Pod{Name: pod.Name, Revision: pod.Revision})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("State (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAWorkloadThatIsBehindItsRevisionsIsReadLive: a bad release whose pods the caches have seen before the release itself.
func TestAWorkloadThatIsBehindItsRevisionsIsReadLive(t *testing.T) {
	released := func(object client.Object) client.Object {
		object.SetGeneration(3)
		switch object := object.(type) {
		case *appsv1.Deployment:
			object.Annotations[RevisionAnnotation] = "9"
		case *appsv1.StatefulSet:
			object.Status.UpdateRevision = "db-b"
		}
		return object
	}
	web := Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	db := Reference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "db"}
	daemonSet := &appsv1.DaemonSet{ObjectMeta: workloadMeta("agent", 0), Spec: appsv1.DaemonSetSpec{Template: template("agent:1")}}
	for name, test := range map[string]struct {
		reference Reference
		cached    []client.Object
		live      client.Object
		want      int64
	}{
		"Deployment": {
			web,
			[]client.Object{deployment(), metadataOf(replicaSet("web-abc", "abc", "8", "web-uid")), metadataOf(replicaSet("web-bad", "bad", "9", "web-uid"))},
			released(deployment()), 3,
		},
		"Deployment that has kept up": {
			web,
			[]client.Object{deployment(), metadataOf(replicaSet("web-abc", "abc", "8", "web-uid"))},
			released(deployment()), 2,
		},
		"StatefulSet": {
			db,
			[]client.Object{statefulSet(), controllerRevision("StatefulSet", "db", "db-a", 1), controllerRevision("StatefulSet", "db", "db-b", 2)},
			released(statefulSet()), 3,
		},
		"StatefulSet that has kept up": {
			db,
			[]client.Object{statefulSet(), controllerRevision("StatefulSet", "db", "db-a", 2), controllerRevision("StatefulSet", "db", "db-b", 1)},
			released(statefulSet()), 2,
		},
		"Deployment that is another one by now": {
			web,
			[]client.Object{deployment(), metadataOf(replicaSet("web-bad", "bad", "9", "web-uid"))},
			released(deployment(func(d *appsv1.Deployment) { d.UID = "another" })), 2,
		},
		"Deployment that can't be read": {
			web,
			[]client.Object{deployment(), metadataOf(replicaSet("web-bad", "bad", "9", "web-uid"))},
			released(statefulSet()), 2,
		},
		"StatefulSet ahead of its revisions": {
			db,
			[]client.Object{statefulSet(), controllerRevision("StatefulSet", "db", "db-b", 2)},
			released(statefulSet()), 2,
		},
		"DaemonSet": {
			Reference{APIVersion: "apps/v1", Kind: "DaemonSet", Namespace: "shop", Name: "agent"},
			[]client.Object{daemonSet, controllerRevision("DaemonSet", "agent", "agent-1", 3)},
			released(daemonSet.DeepCopy()), 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := NewResolver(reader(t, test.cached...), reader(t, test.live)).Resolve(t.Context(), test.reference, at(5000))
			if err != nil {
				t.Fatal(err)
			}
			if state.Generation != test.want {
				t.Errorf("generation %d, want %d", state.Generation, test.want)
			}
		})
	}
}

func TestResolveFindsThePodsOfALongName(t *testing.T) {
	long := strings.Repeat("a", 250)
	cut := long[:242]
	workload := deployment(func(d *appsv1.Deployment) { d.Name = long })
	owned := replicaSet(cut+"-0123456789", "0123456789", "8", "web-uid")
	owned.OwnerReferences = controlledBy("Deployment", long, "web-uid")
	cached := reader(t, workload, metadataOf(owned),
		pod("p", 10, controlledBy("ReplicaSet", owned.Name, owned.UID), map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "0123456789"}))
	reference := Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: long}
	state, err := NewResolver(cached, cached).Resolve(t.Context(), reference, at(0))
	if err != nil || len(state.Pods) != 1 || state.Pods[0].Name != "p" {
		t.Errorf("Resolve: %+v, %v, want its one pod", state.Pods, err)
	}
}

func TestResolveErrors(t *testing.T) {
	resolver := NewResolver(reader(t), reader(t))
	_, err := resolver.Resolve(t.Context(), Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "gone"}, at(0))
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("absent workload: %v, want ErrNotFound", err)
	}
	var unsupported *UnsupportedKindError
	if _, err := resolver.Resolve(t.Context(), Reference{APIVersion: "batch/v1", Kind: "Job", Name: "x"}, at(0)); !errors.As(err, &unsupported) {
		t.Errorf("Job: %v, want an UnsupportedKindError", err)
	}
}

func TestDeploymentRevision(t *testing.T) {
	revisions := []revision{{name: "web-old", number: 7}, {name: "web-abc", number: 8}}
	tests := map[string]struct {
		change deploymentOption
		want   string
	}{
		"settled":                       {func(*appsv1.Deployment) {}, "web-abc"},
		"not settled":                   {func(d *appsv1.Deployment) { d.Generation = 3 }, ""},
		"ReplicaSet not seen yet":       {func(d *appsv1.Deployment) { d.Annotations[RevisionAnnotation] = "9" }, ""},
		"no number":                     {func(d *appsv1.Deployment) { d.Annotations = nil }, ""},
		"paused, the template in force": {func(d *appsv1.Deployment) { d.Spec.Paused = true }, "web-abc"},
		"paused, a template held back":  {func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 0 }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := deploymentState(Reference{}, reduceDeployment(deployment(test.change)), surroundings{revisions: revisions}, at(0))
			if state.Revision != test.want {
				t.Errorf("Revision: %q, want %q", state.Revision, test.want)
			}
		})
	}
}

func TestRevisionRunning(t *testing.T) {
	pods := func(revisions ...string) []Pod {
		var out []Pod
		for _, revision := range revisions {
			out = append(out, Pod{Ready: true, EverReady: true, Revision: revision, CreationTime: at(-3600)})
		}
		return out
	}
	unready := Pod{Revision: "db-a"}
	staged := func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = s.Spec.Replicas }
	onDelete := func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
	tests := map[string]struct {
		set  *appsv1.StatefulSet
		pods []Pod
		want bool
	}{
		"every ready pod has it":               {statefulSet(), pods("db-a", "db-a"), true},
		"a pod of another that is not ready":   {statefulSet(updating("db-b", 2)), append(pods("db-b"), unready), true},
		"staged behind a partition":            {statefulSet(updating("db-b", 0), staged), pods("db-a", "db-a", "db-a"), false},
		"in force for some":                    {statefulSet(updating("db-b", 1), partition(2)), pods("db-a", "db-a", "db-b"), false},
		"in force where somebody deletes pods": {statefulSet(updating("db-b", 0), onDelete), pods("db-a", "db-a", "db-a"), false},
		"no pod":                               {statefulSet(), nil, false},
		"no ready pod":                         {statefulSet(), []Pod{unready}, false},
		"not known":                            {statefulSet(func(s *appsv1.StatefulSet) { s.Generation = 3 }), pods("db-a"), false},
		"pods of unknown revisions":            {statefulSet(func(s *appsv1.StatefulSet) { s.Status.UpdateRevision = "" }), pods("", ""), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := statefulSetState(Reference{}, reduceStatefulSet(test.set), surroundings{pods: test.pods}, at(5000))
			if state.RevisionRunning != test.want {
				t.Errorf("RevisionRunning of %s: %t, want %t", state.Revision, state.RevisionRunning, test.want)
			}
		})
	}
}

func TestDaemonSetRevisionRunning(t *testing.T) {
	around := surroundings{
		revisions: []revision{{name: "agent-1", number: 1}, {name: "agent-2", number: 2}},
		pods:      []Pod{{Ready: true, EverReady: true, Revision: "agent-1", CreationTime: at(-3600)}},
	}
	set := &appsv1.DaemonSet{ObjectMeta: workloadMeta("agent", 0), Spec: appsv1.DaemonSetSpec{Template: template("agent:2")}}
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	set.Status.ObservedGeneration = 2
	if state := daemonSetState(Reference{}, reduceDaemonSet(set), around, at(5000)); state.Revision != "agent-2" || state.RevisionRunning {
		t.Errorf("revision %s, running %t, want agent-2, which no pod runs", state.Revision, state.RevisionRunning)
	}
	around.pods[0].Revision = "agent-2"
	if state := daemonSetState(Reference{}, reduceDaemonSet(set), around, at(5000)); !state.RevisionRunning {
		t.Error("every pod runs agent-2, and it does not count as running")
	}
}

func TestHeldBack(t *testing.T) {
	replicas := func(number int32) statefulSetOption {
		return func(s *appsv1.StatefulSet) { s.Spec.Replicas = &number }
	}
	tests := map[string]struct {
		set  *appsv1.StatefulSet
		want bool
	}{
		"no partition":                 {statefulSet(), false},
		"no partition and no replicas": {statefulSet(replicas(0)), false},
		"a partition among the pods":   {statefulSet(partition(2)), false},
		"one as high as the replicas":  {statefulSet(partition(3)), true},
		"one above the replicas":       {statefulSet(partition(7)), true},
		"the default of one replica":   {statefulSet(partition(1), func(s *appsv1.StatefulSet) { s.Spec.Replicas = nil }), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if state := statefulSetState(Reference{}, reduceStatefulSet(test.set), surroundings{}, at(5000)); state.HeldBack != test.want {
				t.Errorf("HeldBack: %t, want %t", state.HeldBack, test.want)
			}
		})
	}
}

func TestStamp(t *testing.T) {
	tests := map[string]struct {
		text string
		want time.Time
	}{
		"past":                    {"2026-01-01T02:59:00Z", at(-60)},
		"none":                    {"", time.Time{}},
		"garbage":                 {"yesterday", time.Time{}},
		"slightly ahead":          {"2026-01-01T03:00:30Z", at(30)},
		"a future nobody reaches": {"2036-01-01T03:00:00Z", time.Time{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			meta := &metav1.ObjectMeta{Annotations: map[string]string{aiopsv1.LastActionTimeAnnotation: test.text}}
			if got := workloadState(Reference{}, meta, 0, at(0)).LastActionTime; !got.Equal(test.want) {
				t.Errorf("LastActionTime: %s, want %s", got, test.want)
			}
		})
	}
}
