package check

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func TestReport(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	tests := map[string]struct {
		err   error
		state v1alpha3.State
		want  []string
	}{
		"nothing wrong": {nil, v1alpha3.PassState, nil},
		"one finding":   {errors.New("a"), v1alpha3.FailState, []string{"a"}},
		"several findings": {errors.Join(errors.New("a"), errors.Join(errors.New("b"), nil, fmt.Errorf("c: %w", errors.New("d")))),
			v1alpha3.FailState, []string{"a", "b", "c: d"}},
		"not judged": {unmet("install it"), v1alpha3.ErrorState, []string{"install it"}},
		"not judged, and another problem": {errors.Join(unmet("install it"), errors.New("clean up")),
			v1alpha3.ErrorState, []string{"install it", "clean up"}},
		"no rights": {explain(fmt.Errorf("list pods: %w", forbidden), Environment{Namespace: "here"}), v1alpha3.ErrorState, []string{
			"the ServiceAccount of the scorecard lacks a right: apply test/scorecard/rbac.yaml and run `operator-sdk scorecard --namespace aiops-scorecard " +
				"--service-account scorecard` (this runs in namespace here): list pods: pods is forbidden: no"}},
		"no rights, and it was said which": {explain(unmet("bind it: %w", forbidden), Environment{}), v1alpha3.ErrorState, []string{"bind it: pods is forbidden: no"}},
		"no API": {explain(fmt.Errorf("list: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "AITask"}}), Environment{}), v1alpha3.ErrorState, []string{
			"the cluster does not know the kind AITask: " + installFirst + ": list: no matches for kind \"AITask\" in group \"\""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
			s := newStage(Environment{Clock: clocktesting.NewFakePassiveClock(now)})
			s.logf("Looked at %d tasks", 2)
			want := []v1alpha3.TestResult{{Name: "name", State: test.state, Errors: test.want,
				Log: "03:04:05.006 Looked at 2 tasks", CreationTimestamp: metav1.NewTime(now)}}
			if diff := cmp.Diff(want, report("name", s, test.err).Results); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func task(edit func(*aiopsv1.AITask)) *aiopsv1.AITask {
	out := &aiopsv1.AITask{}
	out.Generation, out.Status.ObservedGeneration = 2, 2
	out.Status.Phase = aiopsv1.PhaseWatching
	out.Status.Conditions = []aiopsv1.Condition{
		{Type: aiopsv1.ConditionReady, Status: "True", Reason: aiopsv1.ReasonAccepted, ObservedGeneration: 2},
		{Type: aiopsv1.ConditionBreached, Status: "False"},
	}
	edit(out)
	return out
}

func TestUnhealthy(t *testing.T) {
	tests := map[string]struct {
		edit func(*aiopsv1.AITask)
		want string
	}{
		"healthy":    {func(*aiopsv1.AITask) {}, ""},
		"not seen":   {func(t *aiopsv1.AITask) { t.Generation = 3 }, "the operator has not looked at it"},
		"not ready":  {func(t *aiopsv1.AITask) { t.Status.Conditions[0].Status = "False" }, `phase "Watching", Ready "False", Breached "False"`},
		"breached":   {func(t *aiopsv1.AITask) { t.Status.Conditions[1].Status = "True" }, `phase "Watching", Ready "True", Breached "True"`},
		"not judged": {func(t *aiopsv1.AITask) { t.Status.Conditions = t.Status.Conditions[:1] }, `phase "Watching", Ready "True", Breached ""`},
		"pending": {func(t *aiopsv1.AITask) {
			t.Status.Phase, t.Status.Decision = aiopsv1.PhasePending, &aiopsv1.Decision{Reason: "TargetNotFound", Message: "create it"}
		}, `phase "Pending", Ready "True", Breached "False", TargetNotFound: create it`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, unhealthy(task(test.edit))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func restarted(edit func(*appsv1.Deployment)) *appsv1.Deployment {
	out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", Generation: 3, Annotations: map[string]string{aiopsv1.LastOrderAnnotation: "order"}}}
	out.Spec.Template.Annotations = map[string]string{restartedAt: "2026-01-01T00:00:00Z"}
	edit(out)
	return out
}

func TestRestartedOnce(t *testing.T) {
	tests := map[string]struct {
		edit  func(*appsv1.Deployment)
		order *aiopsv1.Order
		want  string
	}{
		"once":              {func(*appsv1.Deployment) {}, &aiopsv1.Order{ID: "order"}, ""},
		"not at all":        {func(d *appsv1.Deployment) { d.Generation = 2 }, &aiopsv1.Order{ID: "order"}, "Deployment web was changed 0 times, not once"},
		"twice":             {func(d *appsv1.Deployment) { d.Generation = 4 }, &aiopsv1.Order{ID: "order"}, "Deployment web was changed 2 times, not once"},
		"changed otherwise": {func(d *appsv1.Deployment) { d.Spec.Template.Annotations = nil }, &aiopsv1.Order{ID: "order"}, "Deployment web was changed, but not restarted"},
		"by another order":  {func(*appsv1.Deployment) {}, &aiopsv1.Order{ID: "other"}, "Deployment web does not carry the order of the AITask"},
		"by no order":       {func(d *appsv1.Deployment) { d.Annotations = nil }, nil, "Deployment web does not carry the order of the AITask"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, restartedOnce(2, restarted(test.edit), test.order)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiscontinued(t *testing.T) {
	order := &aiopsv1.Order{ID: "order", State: aiopsv1.OrderVerifying}
	executed := func(more func(*aiopsv1.AITask)) func(*aiopsv1.AITask) {
		return func(t *aiopsv1.AITask) {
			t.Status.Executions = []aiopsv1.Time{{}}
			more(t)
		}
	}
	ended := func(id, result string) func(*aiopsv1.AITask) {
		return executed(func(t *aiopsv1.AITask) { t.Status.History = []aiopsv1.HistoryEntry{{ID: id, Result: result}} })
	}
	const said = `phase "Watching", Ready "True", Breached "False"`
	tests := map[string]struct {
		before *aiopsv1.Order
		edit   func(*aiopsv1.AITask)
		want   string
	}{
		"still proving":          {order, executed(func(t *aiopsv1.AITask) { t.Status.Order = order }), ""},
		"proven":                 {order, ended("order", aiopsv1.ResultRecovered), ""},
		"proven not to help":     {order, ended("order", aiopsv1.ResultFailed), "the order order is lost: " + said},
		"proven, another":        {order, ended("other", aiopsv1.ResultRecovered), "the order order is lost: " + said},
		"gone":                   {order, executed(func(*aiopsv1.AITask) {}), "the order order is lost: " + said},
		"about to run once more": {order, executed(func(t *aiopsv1.AITask) { t.Status.Order = &aiopsv1.Order{ID: "order", State: aiopsv1.OrderRecorded} }), "the order order is lost: " + said},
		"run twice":              {order, func(t *aiopsv1.AITask) { t.Status.Executions = []aiopsv1.Time{{}, {}} }, "2 steps were executed: " + said},
		"none before":            {nil, executed(func(*aiopsv1.AITask) {}), "there was no open order before: nothing is shown"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, discontinued(test.before, task(test.edit))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSucceeds(t *testing.T) {
	old := []string{"manager-5f4-b3b3b", "manager-5f4-a1a1a"}
	tests := map[string]struct {
		now, before string
		want        bool
	}{
		"a new pod of the same ReplicaSet":    {"manager-5f4-x2x2x_1", "manager-5f4-a1a1a_2", true},
		"a pod of a new ReplicaSet":           {"manager-7b9-x2x2x_1", "manager-5f4-a1a1a_2", true},
		"the same":                            {"manager-5f4-a1a1a_2", "manager-5f4-a1a1a_2", false},
		"the same pod, started again":         {"manager-5f4-a1a1a_3", "manager-5f4-a1a1a_2", false},
		"another of the old pods":             {"manager-5f4-b3b3b_1", "manager-5f4-a1a1a_2", false},
		"nobody":                              {"", "manager-5f4-a1a1a_2", false},
		"somebody new, where nobody was":      {"manager-5f4-x2x2x_2", "", true},
		"an old pod, where nobody was":        {"manager-5f4-a1a1a_2", "", false},
		"another process on the same machine": {"host_1", "host_2", true},
		"the same process on a machine":       {"host_1", "host_1", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := succeeds(test.now, test.before, old); got != test.want {
				t.Errorf("succeeds() = %t, want %t", got, test.want)
			}
		})
	}
}

func pod(name string, ready corev1.ConditionStatus) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: ready}}}}
}

func TestLeaderLast(t *testing.T) {
	pods := []corev1.Pod{pod("a", corev1.ConditionTrue), pod("b", corev1.ConditionTrue), pod("c", corev1.ConditionTrue)}
	for holder, want := range map[string][]string{
		"a_1":    {"b", "c", "a"},
		"b_1":    {"a", "c", "b"},
		"host_1": {"a", "b", "c"},
		"":       {"a", "b", "c"},
	} {
		t.Run(holder, func(t *testing.T) {
			if diff := cmp.Diff(want, leaderLast(pods, holder)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIncomplete(t *testing.T) {
	kept, replacement := pod("kept", corev1.ConditionTrue), pod("new", corev1.ConditionTrue)
	ending := pod("ending", corev1.ConditionTrue)
	ending.DeletionTimestamp = &metav1.Time{}
	const lacks = "2 pods wanted, 1 others ready"
	tests := map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"replaced":                             {[]corev1.Pod{kept, replacement}, ""},
		"replaced, while an old one ends":      {[]corev1.Pod{kept, replacement, ending}, ""},
		"not yet made":                         {[]corev1.Pod{kept}, lacks},
		"not yet ready":                        {[]corev1.Pod{kept, pod("new", corev1.ConditionFalse)}, lacks},
		"without a status":                     {[]corev1.Pod{kept, {ObjectMeta: metav1.ObjectMeta{Name: "new"}}}, lacks},
		"still there":                          {[]corev1.Pod{kept, pod("evicted", corev1.ConditionTrue)}, lacks},
		"one of those that are left is ending": {[]corev1.Pod{ending, replacement}, lacks},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, incomplete(test.pods, 2, "evicted")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRemains(t *testing.T) {
	tests := map[string]struct {
		edit    func(*appsv1.Deployment)
		allowed []string
		want    string
	}{
		"documented stamps":   {func(*appsv1.Deployment) {}, documentedStamps(), ""},
		"stamps of no action": {func(*appsv1.Deployment) {}, nil, "Deployment web: it keeps the annotation aiops.example.com/last-order"},
		"others' annotations": {func(d *appsv1.Deployment) { d.Annotations["example.com/team"] = "a" }, documentedStamps(), ""},
		"replaced":            {func(d *appsv1.Deployment) { d.UID = "2" }, documentedStamps(), "Deployment web: it was replaced or changed"},
		"changed":             {func(d *appsv1.Deployment) { d.Generation++ }, documentedStamps(), "Deployment web: it was replaced or changed"},
		"held and labelled": {func(d *appsv1.Deployment) {
			d.Finalizers, d.Labels = []string{"a/b"}, map[string]string{"a": "b"}
		}, documentedStamps(), `Deployment web: it has the finalizers ["a/b"], its labels changed`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, remains(restarted(func(*appsv1.Deployment) {}), restarted(test.edit), test.allowed)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	one := int32(1)
	deployment := func(status appsv1.DeploymentStatus) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: &one}, Status: status}
	}
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &one}, Status: appsv1.StatefulSetStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}}
	daemons := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 2}}
	const none = ""
	for name, test := range map[string]struct{ got, want string }{
		"available":     {unavailable(deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1})), none},
		"not seen yet":  {unavailable(deployment(appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1})), "1 pods wanted, 1 there, 1 of the newest template, 1 available"},
		"an old pod":    {unavailable(deployment(appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1})), "1 pods wanted, 2 there, 1 of the newest template, 1 available"},
		"a StatefulSet": {unavailable(set), none},
		"a DaemonSet":   {unavailable(daemons), "3 pods wanted, 3 there, 3 of the newest template, 2 available"},
		"another kind":  {unavailable(&corev1.Pod{}), none},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
