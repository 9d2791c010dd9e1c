package signal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// at is the present of every test that does not say another one.
func at(offset time.Duration) time.Time {
	return time.Date(2026, time.January, 1, 3, 0, 0, 0, time.UTC).Add(offset)
}

const (
	second = time.Second
	minute = time.Minute
)

func workload(change ...func(*target.State)) target.State {
	state := target.State{
		Reference: target.Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		UID:       "target",
		Settled:   true,
		Replicas:  3,
		Available: 3,
	}
	for _, apply := range change {
		apply(&state)
	}
	return state
}

func rollingOut(state *target.State) {
	state.Rollout = target.Rollout{Progressing: true, LastProgressTime: at(-minute), DeadlineTime: at(9 * minute)}
}

func stalled(state *target.State) {
	state.Rollout = target.Rollout{Stalled: true, LastProgressTime: at(-10 * minute), DeadlineTime: at(0)}
}

func unsettled(state *target.State) {
	state.Settled = false
}

func withPods(pods ...target.Pod) func(*target.State) {
	return func(state *target.State) { state.Pods = pods }
}

// pod is a ready pod that was created an hour ago.
func pod(name string, change ...func(*target.Pod)) target.Pod {
	made := target.Pod{
		Name: name, UID: types.UID("uid-" + name), Phase: "Running", CreationTime: at(-time.Hour),
		Scheduled: true, Ready: true, EverReady: true, ReadyTransitionTime: at(-time.Hour),
	}
	for _, apply := range change {
		apply(&made)
	}
	return made
}

func createdAt(moment time.Time) func(*target.Pod) {
	return func(pod *target.Pod) { pod.CreationTime = moment }
}

func neverReady(pod *target.Pod) {
	pod.Ready, pod.EverReady = false, false
}

func notReady(pod *target.Pod) {
	pod.Ready = false
}

func pending(pod *target.Pod) {
	pod.Phase = "Pending"
	neverReady(pod)
}

func with(containers ...target.Container) func(*target.Pod) {
	return func(pod *target.Pod) { pod.Containers = containers }
}

// ran is a running container that ended restarts times, the last time at ended, for a reason.
func ran(name string, restarts int32, reason string, ended time.Time) target.Container {
	return target.Container{Name: name, Running: true, RestartCount: restarts, LastTerminationReason: reason, LastTerminationTime: ended}
}

func waiting(name string, restarts int32, reason string) target.Container {
	return target.Container{Name: name, RestartCount: restarts, WaitingReason: reason}
}

func request(state target.State, asked aiopsv1.Signal) Request {
	asked.Name = "main"
	return Request{Target: state, Signal: asked, Task: "task", Now: at(0)}
}

func value(number float64) Reading {
	return Reading{Known: true, Value: number, At: at(0)}
}

// until is a reading whose value may change at a moment.
func (r Reading) until(moment time.Time) Reading {
	r.NextChange = moment
	return r
}

func resting() Reading {
	return Reading{
		Resting: true, Reason: aiopsv1.ReasonRolloutInProgress, At: at(0),
		Message: "Deployment/web is rolling out: judgement rests until the rollout has finished or stalled",
	}
}

func no(reason, message string) Reading {
	return Reading{Reason: reason, Message: message, At: at(0)}
}

func expect(t *testing.T, want, got Reading) {
	t.Helper()
	if difference := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); difference != "" {
		t.Errorf("reading (-want +got):\n%s", difference)
	}
}

func window(seconds int32) *int32 { return ptr.To(seconds) }
