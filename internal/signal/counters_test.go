package signal

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// look is one measurement of a story: what there was, when, and what it must come to.
type moment struct {
	at     time.Duration
	pods   []target.Pod
	change func(*Request)
	want   float64
	next   time.Time
	rests  bool
}

func tell(t *testing.T, source Source, asked aiopsv1.Signal, story []moment) {
	t.Helper()
	for i, step := range story {
		made := request(workload(withPods(step.pods...)), asked)
		made.Now = at(step.at)
		if step.change != nil {
			step.change(&made)
		}
		want := value(step.want).until(step.next)
		if step.rests {
			want = resting().until(at(9 * minute))
		}
		want.At = made.Now
		t.Logf("measurement %d", i)
		expect(t, want, source.Measure(t.Context(), made))
	}
}

func restartsSignal(windowSeconds int32, container *string) aiopsv1.Signal {
	return aiopsv1.Signal{
		Type:              aiopsv1.SignalContainerRestarts,
		ContainerRestarts: &aiopsv1.ContainerRestartsSignal{WindowSeconds: window(windowSeconds), Container: container},
	}
}

func oomSignal(windowSeconds int32) aiopsv1.Signal {
	return aiopsv1.Signal{Type: aiopsv1.SignalOOMKills, OOMKills: &aiopsv1.OOMKillsSignal{WindowSeconds: window(windowSeconds)}}
}

func TestContainerRestarts(t *testing.T) {
	never := time.Time{}
	old := func(containers ...target.Container) []target.Pod { return []target.Pod{pod("a", with(containers...))} }
	born := func(ago time.Duration, containers ...target.Container) []target.Pod {
		return []target.Pod{pod("a", createdAt(at(-ago)), with(containers...))}
	}
	for name, test := range map[string]struct {
		asked aiopsv1.Signal
		story []moment
	}{
		"restarts before the window do not count": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 7, "Error", at(-11*minute)))},
		}},
		"of an old pod only the last restart is proven at first sight": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 7, "Error", at(-9*minute))), want: 1, next: at(minute)},
		}},
		"all restarts of a pod younger than the window are proven at first sight": {restartsSignal(600, nil), []moment{
			{pods: born(5*minute, ran("app", 3, "Error", at(-minute))), want: 3, next: at(5 * minute)},
		}},
		"a container that ended for the first time was not restarted": {restartsSignal(600, nil), []moment{
			{pods: old(target.Container{Name: "app", LastTerminationReason: "Error", LastTerminationTime: at(0)})},
		}},
		"every further restart counts when it is seen and until it slides out": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 0, "", never))},
			{at: minute, pods: old(ran("app", 1, "Error", at(50*second))), want: 1, next: at(11 * minute)},
			{at: 3 * minute, pods: old(ran("app", 3, "Error", at(3*minute))), want: 3, next: at(11 * minute)},
			{at: 3 * minute, pods: old(ran("app", 3, "Error", at(3*minute))), want: 3, next: at(11 * minute)},
			{at: 11 * minute, pods: old(ran("app", 3, "Error", at(3*minute))), want: 2, next: at(13 * minute)},
			{at: 13 * minute, pods: old(ran("app", 3, "Error", at(3*minute)))},
		}},
		"restarts of a pod that was deleted still count": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 0, "", never))},
			{at: minute, pods: old(ran("app", 2, "Error", at(minute))), want: 2, next: at(11 * minute)},
			{at: 2 * minute, want: 2, next: at(11 * minute)},
			{at: 3 * minute, pods: []target.Pod{pod("b", createdAt(at(2*minute)), with(ran("app", 0, "", never)))}, want: 2, next: at(11 * minute)},
			{at: 11 * minute},
		}},
		"a pod that is missing once is not counted twice": {restartsSignal(600, nil), []moment{
			{pods: born(minute, ran("app", 2, "Error", at(0))), want: 2, next: at(9 * minute)},
			{at: second, want: 2, next: at(9 * minute)},
			{at: 2 * second, pods: born(minute, ran("app", 2, "Error", at(0))), want: 2, next: at(9 * minute)},
		}},
		"a quiet pod is remembered for longer than the window": {restartsSignal(10, nil), []moment{
			{pods: old(ran("app", 5, "Error", at(-minute)))},
			{at: time.Hour, pods: old(ran("app", 6, "Error", at(time.Hour-minute))), want: 1, next: at(time.Hour + 10*second)},
		}},
		"only the named container counts": {restartsSignal(600, ptr.To("app")), []moment{
			{pods: old(ran("app", 1, "Error", at(-minute)), ran("proxy", 1, "Error", at(-minute))), want: 1, next: at(9 * minute)},
			{at: second, pods: old(ran("app", 1, "Error", at(-minute)), ran("proxy", 4, "Error", at(0))), want: 1, next: at(9 * minute)},
		}},
		"every container counts, init containers too": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 1, "Error", at(-minute)), target.Container{
				Name: "setup", Init: true, RestartCount: 2, LastTerminationReason: "Error", LastTerminationTime: at(-2 * minute),
			}), want: 2, next: at(8 * minute)},
		}},
		"nothing before the end of an action counts": {restartsSignal(600, nil), []moment{
			{pods: born(5*minute, ran("app", 3, "Error", at(-2*minute))), change: func(r *Request) { r.Since = at(-minute) }},
			{at: minute, pods: born(5*minute, ran("app", 4, "Error", at(minute))), change: func(r *Request) { r.Since = at(-minute) }, want: 1, next: at(11 * minute)},
		}},
		"restarts during a rollout are seen, though not judged": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 0, "", never))},
			{pods: old(ran("app", 2, "Error", at(0))), change: func(r *Request) { rollingOut(&r.Target) }, rests: true},
			{at: minute, pods: old(ran("app", 2, "Error", at(0))), want: 2, next: at(10 * minute)},
		}},
		"a target that was replaced starts anew": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 1, "Error", at(0))), want: 1, next: at(10 * minute)},
			{at: second, change: func(r *Request) { r.Target.UID = "another" }},
		}},
		"a termination from the future is one of now": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 7, "Error", at(time.Hour))), want: 1, next: at(10 * minute)},
		}},
		"a count that went down is no restart": {restartsSignal(600, nil), []moment{
			{pods: old(ran("app", 7, "Error", at(-time.Hour)))},
			{at: second, pods: old(ran("app", 1, "Error", at(-time.Hour)))},
			{at: 2 * second, pods: old(ran("app", 2, "Error", at(second))), want: 1, next: at(10*minute + 2*second)},
		}},
		"more than is remembered counts as that many": {restartsSignal(600, nil), []moment{
			{pods: born(minute, ran("app", 1<<30, "Error", at(0))), want: maxOccurrences, next: at(9 * minute)},
			{at: second, pods: born(minute, ran("app", 1<<30+5, "Error", at(0))), want: maxOccurrences, next: at(9 * minute)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, NewContainerRestarts(), test.asked, test.story)
		})
	}
}

func TestOOMKills(t *testing.T) {
	old := func(containers ...target.Container) []target.Pod { return []target.Pod{pod("a", with(containers...))} }
	ended := func(restarts int32, reason string, moment time.Time) target.Container {
		container := ran("app", restarts, reason, moment)
		container.Running = false
		return container
	}
	for name, story := range map[string][]moment{
		"the last end proves one kill at first sight": {
			{pods: old(ran("app", 7, "OOMKilled", at(-minute))), want: 1, next: at(9 * minute)},
		},
		"another way to end is no kill": {
			{pods: old(ran("app", 7, "Error", at(-minute)))},
			{at: second, pods: old(ran("app", 8, "Error", at(second)))},
		},
		"one kill counts once: as it ends, while it is down, and when it is up again": {
			{pods: old(ran("app", 0, "", time.Time{}))},
			{at: second, pods: old(ended(0, "OOMKilled", at(second))), want: 1, next: at(10*minute + second)},
			{at: 2 * second, pods: old(ended(0, "OOMKilled", at(second))), want: 1, next: at(10*minute + second)},
			{at: 20 * second, pods: old(ran("app", 1, "OOMKilled", at(second))), want: 1, next: at(10*minute + second)},
			{at: 30 * second, pods: old(ran("app", 1, "OOMKilled", at(second))), want: 1, next: at(10*minute + second)},
		},
		"each kill counts": {
			{pods: old(ran("app", 1, "OOMKilled", at(-minute))), want: 1, next: at(9 * minute)},
			{at: second, pods: old(ran("app", 2, "OOMKilled", at(second))), want: 2, next: at(9 * minute)},
			{at: 9 * minute, pods: old(ran("app", 2, "OOMKilled", at(second))), want: 1, next: at(10*minute + second)},
		},
		"two kills within one second of a container that was seen up between them": {
			{pods: old(ran("app", 1, "OOMKilled", at(0))), want: 1, next: at(10 * minute)},
			{at: time.Millisecond, pods: old(ran("app", 2, "OOMKilled", at(0))), want: 2, next: at(10 * minute)},
		},
		"a kill that a slow clock dates before the last look is one since then": {
			{pods: old(ran("app", 0, "", time.Time{}))},
			{at: second, pods: old(ran("app", 1, "OOMKilled", at(-time.Hour))), want: 1, next: at(10 * minute)},
		},
		"kills of a deleted pod still count, and nothing before an action does": {
			{pods: old(ran("app", 1, "OOMKilled", at(0))), want: 1, next: at(10 * minute)},
			{at: minute, want: 1, next: at(10 * minute)},
			{at: minute, change: func(r *Request) { r.Since = at(second) }},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, NewOOMKills(), oomSignal(600), story)
		})
	}
}

func TestCountersKeepTasksAndTheirSignalsApart(t *testing.T) {
	source := NewContainerRestarts()
	measure := func(task types.UID, name string, restarts int32) float64 {
		asked := request(workload(withPods(pod("a", with(ran("app", restarts, "Error", at(-time.Hour)))))), restartsSignal(600, nil))
		asked.Task, asked.Signal.Name = task, name
		return source.Measure(t.Context(), asked).Value
	}
	measure("one", "x", 1)
	measure("two", "x", 2)
	measure("one", "y", 3)
	for _, want := range []struct {
		task  types.UID
		name  string
		value float64
	}{{"one", "x", 3}, {"two", "x", 2}, {"one", "y", 1}} {
		if got := measure(want.task, want.name, 4); got != want.value {
			t.Errorf("task %s signal %s: %v, want %v", want.task, want.name, got, want.value)
		}
	}
}

func TestForgetDropsWhatIsRememberedOfATask(t *testing.T) {
	source, loops := NewContainerRestarts(), NewCrashLoopingPods()
	set := NewSet(source, loops, NewPendingPods())
	asked := request(workload(withPods(pod("a", with(ran("app", 1, "Error", at(0)))))), restartsSignal(600, nil))
	source.Measure(t.Context(), asked)
	loops.Measure(t.Context(), asked)
	set.Forget("another")
	if len(source.tasks) != 1 || len(loops.tasks) != 1 {
		t.Fatal("another task's memory was dropped")
	}
	set.Forget("task")
	if len(source.tasks) != 0 || len(loops.tasks) != 0 {
		t.Error("something is still remembered")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	source := NewContainerRestarts()
	asked := request(workload(), restartsSignal(10, nil))
	for i := range maxOccurrences + 100 { // a pod of its own in every measurement
		asked.Now = at(time.Duration(i) * time.Millisecond)
		asked.Target.Pods = []target.Pod{pod(time.Duration(i).String(), with(ran("app", 1, "Error", asked.Now)))}
		source.Measure(t.Context(), asked)
	}
	note := source.tasks["task"].notes["main"]
	if len(note.occurrences) > maxOccurrences || len(note.sightings) > maxOccurrences+1 {
		t.Errorf("%d occurrences and %d sightings are kept", len(note.occurrences), len(note.sightings))
	}
	asked.Task, asked.Now = "later", at(72*time.Hour)
	source.Measure(t.Context(), asked)
	if _, kept := source.tasks["task"]; kept {
		t.Error("a task that was not measured for days is still remembered")
	}
	for i := range 2 * maxSignalsPerTask {
		asked.Signal.Name = time.Duration(i).String()
		source.Measure(t.Context(), asked)
	}
	if notes := len(source.tasks["later"].notes); notes > maxSignalsPerTask {
		t.Errorf("%d signals of one task are remembered", notes)
	}
}

func TestCrashLoopingPods(t *testing.T) {
	one := func(container target.Container, change ...func(*target.Pod)) []target.Pod {
		return []target.Pod{pod("a", append([]func(*target.Pod){with(container)}, change...)...)}
	}
	backOff := func(restarts int32) target.Container { return waiting("app", restarts, "CrashLoopBackOff") }
	up := func(restarts int32) target.Container { return ran("app", restarts, "Error", at(0)) }
	down := func(restarts int32) target.Container {
		return target.Container{Name: "app", RestartCount: restarts, LastTerminationReason: "Error", LastTerminationTime: at(0)}
	}
	all := aiopsv1.Signal{Type: aiopsv1.SignalCrashLoopingPods}
	named := aiopsv1.Signal{Type: aiopsv1.SignalCrashLoopingPods, CrashLoopingPods: &aiopsv1.CrashLoopingPodsSignal{Container: ptr.To("app")}}
	for name, test := range map[string]struct {
		asked aiopsv1.Signal
		story []moment
	}{
		"one crash that was answered by a restart is no loop": {all, []moment{
			{pods: one(up(0))},
			{at: second, pods: one(down(0), notReady)},
			{at: 2 * second, pods: one(up(1), notReady)},
			{at: 3 * second, pods: one(up(1))},
		}},
		"the value does not flap between two crashes": {all, []moment{
			{pods: one(backOff(2), notReady), want: 1},
			{at: 20 * second, pods: one(up(3), notReady), want: 1, next: at(20*second + 5*minute)},
			{at: 21 * second, pods: one(up(3)), want: 1, next: at(30 * second)},
			{at: 22 * second, pods: one(down(3), notReady), want: 1, next: at(32 * second)},
			{at: 23 * second, pods: one(backOff(3), notReady), want: 1},
			{at: 63 * second, pods: one(target.Container{Name: "app", RestartCount: 3}, notReady), want: 1, next: at(73 * second)},
			{at: 64 * second, pods: one(up(4)), want: 1, next: at(74 * second)},
			{at: 74*second - 1, pods: one(up(4)), want: 1, next: at(74 * second)},
			{at: 74 * second, pods: one(up(4))},
			{at: 75 * second, pods: one(up(4))},
		}},
		"a container that runs without getting ready is given the longest back-off": {all, []moment{
			{pods: one(backOff(2), notReady), want: 1},
			{at: second, pods: one(up(3), notReady), want: 1, next: at(second + 5*minute)},
			{at: second + 5*minute, pods: one(up(3), notReady)},
		}},
		"an init container that came through is no loop": {all, []moment{
			{pods: one(target.Container{Name: "app", Init: true, RestartCount: 2, WaitingReason: "CrashLoopBackOff"}, notReady), want: 1},
			{at: second, pods: one(target.Container{Name: "app", Init: true, RestartCount: 3, LastTerminationReason: "Completed"}, notReady), want: 1, next: at(11 * second)},
			{at: 11 * second, pods: one(target.Container{Name: "app", Init: true, RestartCount: 3, LastTerminationReason: "Completed"}, notReady)},
		}},
		"a new pod starts anew": {all, []moment{
			{pods: one(backOff(2), notReady), want: 1},
			{at: second, pods: []target.Pod{pod("b", with(up(0)))}},
		}},
		"only the named container": {named, []moment{
			{pods: []target.Pod{pod("a", with(waiting("proxy", 3, "CrashLoopBackOff"), up(0)), notReady)}},
			{pods: one(backOff(3), notReady), want: 1},
		}},
		"a pod counts once, pods add up, and a rollout does not hide them": {all, []moment{
			{pods: []target.Pod{
				pod("a", with(backOff(1), waiting("proxy", 0, "ImagePullBackOff"))), pod("b", with(waiting("app", 0, "ErrImagePull"))), pod("c", with(up(0))),
			}, change: func(r *Request) { rollingOut(&r.Target) }, want: 2},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, NewCrashLoopingPods(), test.asked, test.story)
		})
	}
}

func TestCrashLoopingPodsKnowsWhatKeepsAContainerFromStarting(t *testing.T) {
	for reason, want := range map[string]float64{
		"CrashLoopBackOff": 1, "ImagePullBackOff": 1, "ErrImagePull": 1, "ErrImageNeverPull": 1, "InvalidImageName": 1,
		"CreateContainerConfigError": 1, "CreateContainerError": 1, "RunContainerError": 1,
		"ContainerCreating": 0, "PodInitializing": 0, "": 0,
	} {
		asked := request(workload(withPods(pod("a", with(waiting("app", 0, reason))))), aiopsv1.Signal{Type: aiopsv1.SignalCrashLoopingPods})
		expect(t, value(want), NewCrashLoopingPods().Measure(t.Context(), asked))
	}
}

func TestACountedContainerThatNoPodHasIsUnknown(t *testing.T) {
	name := "ap"
	for _, test := range []struct {
		source Source
		signal aiopsv1.Signal
	}{
		{NewContainerRestarts(), aiopsv1.Signal{ContainerRestarts: &aiopsv1.ContainerRestartsSignal{Container: &name}}},
		{NewOOMKills(), aiopsv1.Signal{OOMKills: &aiopsv1.OOMKillsSignal{Container: &name}}},
		{NewCrashLoopingPods(), aiopsv1.Signal{CrashLoopingPods: &aiopsv1.CrashLoopingPodsSignal{Container: &name}}},
	} {
		t.Run(string(test.source.Type()), func(t *testing.T) {
			pods := withPods(pod("a", with(ran("app", 0, "", time.Time{}), ran("proxy", 0, "", time.Time{}))))
			expect(t, no(aiopsv1.ReasonUnknownContainer, `No pod of Deployment/web has a container "ap": write one of app, proxy, or leave the name out`),
				test.source.Measure(t.Context(), request(workload(pods), test.signal)))
			if reading := test.source.Measure(t.Context(), request(workload(), test.signal)); !reading.Known {
				t.Errorf("without any pod to tell by: %+v, want a value", reading)
			}
		})
	}
}
