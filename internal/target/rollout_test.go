package target

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
)

func moving(last, deadline int) Rollout {
	return Rollout{Progressing: true, LastProgressTime: at(last), DeadlineTime: at(deadline)}
}

func stuck(last, deadline int) Rollout {
	return Rollout{Stalled: true, LastProgressTime: at(last), DeadlineTime: at(deadline)}
}

func TestDeploymentRollout(t *testing.T) {
	tests := map[string]struct {
		deployment *appsv1.Deployment
		now        int
		want       Rollout
	}{
		"finished": {deployment(), 1000, Rollout{}},
		"finished stays finished when pods fail": {
			deployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas, d.Status.ReadyReplicas = 0, 0 }), 5000, Rollout{},
		},
		"scaling up is no rollout": {
			deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](9) }), 5000, Rollout{},
		},
		"progressing": {deployment(withProgress("ReplicaSetUpdated", 100)), 400, moving(100, 700)},
		"first rollout": {
			deployment(withProgress("NewReplicaSetCreated", 100), func(d *appsv1.Deployment) {
				d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 1, 0
			}), 400, moving(100, 700),
		},
		"own deadline": {
			deployment(withProgress("ReplicaSetUpdated", 100), func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](60) }),
			159, moving(100, 160),
		},
		"stalled by our clock before the controller says so": {deployment(withProgress("ReplicaSetUpdated", 100)), 700, stuck(100, 700)},
		"stalled as the controller says":                     {deployment(withProgress("ProgressDeadlineExceeded", 900)), 1000, stuck(300, 900)},
		"stalled counts from the last progress": {
			deployment(withProgress("ProgressDeadlineExceeded", 900), func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](60) }),
			1000, stuck(840, 900),
		},
		"a new template makes the old stall history": {
			deployment(withProgress("ProgressDeadlineExceeded", 900), func(d *appsv1.Deployment) { d.ManagedFields[0].Time = ptr.To(timeAt(995)) }),
			1000, moving(995, 1595),
		},
		"no deadline is the default one": {
			deployment(withProgress("ReplicaSetUpdated", 100), func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](math.MaxInt32) }),
			700, stuck(100, 700),
		},
		"not settled": {
			deployment(func(d *appsv1.Deployment) { d.Generation = 3 }), 1000, Rollout{Progressing: true, DeadlineTime: at(1600)},
		},
		"paused": {
			deployment(withProgress("ReplicaSetUpdated", 100), func(d *appsv1.Deployment) { d.Spec.Paused = true }), 300, Rollout{},
		},
		"back to an old ReplicaSet, the condition not yet changed": {
			deployment(func(d *appsv1.Deployment) {
				d.Status.Replicas, d.Status.UpdatedReplicas = 4, 1
				d.ManagedFields[0].Time = ptr.To(timeAt(3000))
			}), 3001, moving(3000, 3600),
		},
		"no condition, complete": {
			deployment(func(d *appsv1.Deployment) { d.Status.Conditions = nil }), 5000, Rollout{},
		},
		"no condition, under way": {
			deployment(func(d *appsv1.Deployment) { d.Status.Conditions, d.Status.UpdatedReplicas = nil, 1 }), 300, moving(0, 600),
		},
		"no condition, stuck": {
			deployment(func(d *appsv1.Deployment) { d.Status.Conditions, d.Status.UpdatedReplicas = nil, 1 }), 600, stuck(0, 600),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := deploymentState(Reference{}, reduceDeployment(test.deployment), surroundings{}, at(test.now))
			if diff := cmp.Diff(test.want, state.Rollout); diff != "" {
				t.Errorf("Rollout (-want +got):\n%s", diff)
			}
		})
	}
}

type statefulSetOption func(*appsv1.StatefulSet)

func statefulSet(options ...statefulSetOption) *appsv1.StatefulSet {
	out := &appsv1.StatefulSet{
		ObjectMeta: workloadMeta("db", 0),
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](3), Template: template("db:1"),
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)},
			},
		},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
			CurrentRevision: "db-a", UpdateRevision: "db-a",
		},
	}
	for _, option := range options {
		option(out)
	}
	return out
}

func updating(to string, updated int32) statefulSetOption {
	return func(s *appsv1.StatefulSet) { s.Status.UpdateRevision, s.Status.UpdatedReplicas = to, updated }
}

func created(pods int32) statefulSetOption {
	return func(s *appsv1.StatefulSet) { s.Status.Replicas = pods }
}

func partition(ordinal int32) statefulSetOption {
	return func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = &ordinal }
}

func TestStatefulSetRollout(t *testing.T) {
	steady := Pod{Name: "db-0", CreationTime: at(-9000), Ready: true, EverReady: true, ReadyTransitionTime: at(-8995), Revision: "db-a"}
	fresh := Pod{Name: "db-2", CreationTime: at(200), Revision: "db-b"}
	tests := map[string]struct {
		set  *appsv1.StatefulSet
		pods []Pod
		now  int
		want Rollout
	}{
		"finished": {statefulSet(), []Pod{steady}, 5000, Rollout{}},
		"finished stays finished when pods fail": {
			statefulSet(func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 1 }),
			[]Pod{{CreationTime: at(-9000), EverReady: true, Revision: "db-a", ReadyTransitionTime: at(4999)}}, 5000, Rollout{},
		},
		"begun, no pod replaced yet":            {statefulSet(updating("db-b", 0)), []Pod{steady}, 100, moving(0, 600)},
		"a pod of the new revision is progress": {statefulSet(updating("db-b", 1)), []Pod{steady, fresh}, 700, moving(200, 800)},
		"so is one that became ready": {
			statefulSet(updating("db-b", 1)),
			[]Pod{steady, {CreationTime: at(200), Ready: true, EverReady: true, ReadyTransitionTime: at(300), Revision: "db-b"}}, 700, moving(300, 900),
		},
		"one that became unready is none": {
			statefulSet(updating("db-b", 1)),
			[]Pod{steady, {CreationTime: at(200), EverReady: true, ReadyTransitionTime: at(790), Revision: "db-b"}}, 800, stuck(200, 800),
		},
		"stuck": {statefulSet(updating("db-b", 1)), []Pod{steady, fresh}, 800, stuck(200, 800)},
		"all updated, the last one not ready yet": {statefulSet(updating("db-b", 3)), []Pod{fresh}, 300, moving(200, 800)},
		"partition reached":                       {statefulSet(updating("db-b", 1), partition(2)), []Pod{steady}, 100, Rollout{}},
		"partition not reached":                   {statefulSet(updating("db-b", 0), partition(2)), []Pod{steady}, 100, moving(0, 600)},
		"a partition above the replicas":          {statefulSet(updating("db-b", 0), partition(7)), []Pod{steady}, 5000, Rollout{}},
		"on delete": {
			statefulSet(updating("db-b", 0), func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
			}), []Pod{steady}, 100, Rollout{},
		},
		"not settled": {
			statefulSet(func(s *appsv1.StatefulSet) { s.Generation = 3 }), nil, 1000, Rollout{Progressing: true, DeadlineTime: at(1600)},
		},
		"first pods": {
			statefulSet(updating("db-a", 1), created(1)), []Pod{{CreationTime: at(10), Revision: "db-a"}}, 100, moving(10, 610),
		},
		"first pods that never come are no rollout to roll back": {
			statefulSet(updating("db-a", 1), created(1)), []Pod{{CreationTime: at(10), Revision: "db-a"}}, 5000, Rollout{},
		},
		"a deleted pod is no rollout": {statefulSet(updating("db-a", 2), created(2)), []Pod{steady}, 5000, Rollout{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := statefulSetState(Reference{}, reduceStatefulSet(test.set), surroundings{pods: test.pods}, at(test.now))
			if diff := cmp.Diff(test.want, state.Rollout); diff != "" {
				t.Errorf("Rollout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDaemonSetRollout(t *testing.T) {
	old := Pod{Name: "a", CreationTime: at(-9000), Ready: true, EverReady: true, Revision: "agent-1"}
	updated := Pod{Name: "b", CreationTime: at(200), Ready: true, EverReady: true, ReadyTransitionTime: at(205), Revision: "agent-2"}
	revisions := []revision{{name: "agent-1", number: 1}, {name: "agent-2", number: 2}}
	tests := map[string]struct {
		revisions []revision
		pods      []Pod
		now       int
		change    func(*appsv1.DaemonSet)
		want      Rollout
	}{
		"finished":                   {revisions, []Pod{updated}, 5000, nil, Rollout{}},
		"under way":                  {revisions, []Pod{old, updated}, 300, nil, moving(205, 805)},
		"stuck":                      {revisions, []Pod{old, updated}, 805, nil, stuck(205, 805)},
		"back to the first revision": {[]revision{{name: "agent-1", number: 3}, {name: "agent-2", number: 2}}, []Pod{old, updated}, 300, nil, moving(0, 600)},
		"revisions not known":        {nil, []Pod{old, updated}, 5000, nil, Rollout{}},
		"a pod is missing": {
			revisions, []Pod{updated}, 5000, func(s *appsv1.DaemonSet) { s.Status.UpdatedNumberScheduled, s.Status.CurrentNumberScheduled = 1, 1 }, Rollout{},
		},
		"first pods": {
			revisions[:1], []Pod{{CreationTime: at(10), Revision: "agent-1"}}, 100, nil, moving(0, 600),
		},
		"on delete": {
			revisions, []Pod{old, updated}, 300,
			func(s *appsv1.DaemonSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType }, Rollout{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.DaemonSet{
				ObjectMeta: workloadMeta("agent", 0),
				Spec:       appsv1.DaemonSetSpec{Template: template("agent:1")},
				Status:     appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberReady: 2, NumberAvailable: 2},
			}
			if test.change != nil {
				test.change(set)
			}
			state := daemonSetState(Reference{}, reduceDaemonSet(set), surroundings{pods: test.pods, revisions: test.revisions}, at(test.now))
			if diff := cmp.Diff(test.want, state.Rollout); diff != "" {
				t.Errorf("Rollout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgressDeadline(t *testing.T) {
	tests := map[string]struct {
		seconds *int32
		want    time.Duration
	}{
		"absent":      {nil, 600 * time.Second},
		"set":         {ptr.To[int32](30), 30 * time.Second},
		"a day":       {ptr.To[int32](86400), 24 * time.Hour},
		"more":        {ptr.To[int32](86401), 600 * time.Second},
		"none at all": {ptr.To[int32](math.MaxInt32), 600 * time.Second},
		"zero":        {ptr.To[int32](0), 600 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := progressDeadline(test.seconds); got != test.want {
				t.Errorf("progressDeadline: %s, want %s", got, test.want)
			}
		})
	}
}
