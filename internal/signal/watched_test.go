package signal

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// sources is one of each, with a request that every one of them understands.
func sources(t *testing.T) (Set, map[aiopsv1.SignalType]aiopsv1.Signal) {
	t.Helper()
	prometheus, err := NewPrometheus(PrometheusEndpoint{Name: "default", URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	usage := usageReader{}
	set := NewSet(
		NewUnavailableReplicas(), NewContainerRestarts(), NewCrashLoopingPods(), NewOOMKills(), NewPendingPods(), NewRolloutStalled(),
		NewCondition(), NewCPUUtilization(usage), NewMemoryUtilization(usage), prometheus,
	)
	signals := map[aiopsv1.SignalType]aiopsv1.Signal{}
	for kind := range set.sources {
		signals[kind] = aiopsv1.Signal{Type: kind}
	}
	signals[aiopsv1.SignalCondition] = aiopsv1.Signal{Type: aiopsv1.SignalCondition, Condition: &aiopsv1.ConditionSignal{Type: "Available", Status: "False"}}
	signals[aiopsv1.SignalPrometheus] = aiopsv1.Signal{Type: aiopsv1.SignalPrometheus, Prometheus: &aiopsv1.PrometheusSignal{Query: "up"}}
	return set, signals
}

func TestJudgementRestsWhileARolloutProgressesAndNoLonger(t *testing.T) {
	set, signals := sources(t)
	always := map[aiopsv1.SignalType]bool{
		aiopsv1.SignalCrashLoopingPods: true, aiopsv1.SignalPendingPods: true, aiopsv1.SignalRolloutStalled: true,
	}
	for kind, asked := range signals {
		source, _ := set.Lookup(kind)
		for name, test := range map[string]struct {
			state target.State
			want  Reading
			rests bool
		}{
			"progressing":        {workload(rollingOut), resting().until(at(9 * minute)), true},
			"not yet observed":   {workload(unsettled), resting(), true},
			"stalled":            {workload(stalled), Reading{}, false},
			"no rollout":         {workload(), Reading{}, false},
			"stalled, unsettled": {workload(stalled, unsettled), resting().until(at(0)), true},
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				got := source.Measure(t.Context(), request(test.state, asked))
				if rests := test.rests && !always[kind]; got.Resting != rests {
					t.Fatalf("resting is %v, want %v: %+v", got.Resting, rests, got)
				} else if rests {
					expect(t, test.want, got)
				}
			})
		}
	}
}

func TestPolledSaysWhoMustNotBeAskedBecauseOfAnEvent(t *testing.T) {
	set, signals := sources(t)
	for kind := range signals {
		source, _ := set.Lookup(kind)
		want := kind == aiopsv1.SignalPrometheus || kind == aiopsv1.SignalCPUUtilization || kind == aiopsv1.SignalMemoryUtilization
		if source.Polled() != want {
			t.Errorf("%s: polled is %v, want %v", kind, source.Polled(), want)
		}
	}
}

func TestSetDoesNotKnowWhatANewerDefinitionAllows(t *testing.T) {
	set, _ := sources(t)
	if source, found := set.Lookup("Logs"); found || source != nil {
		t.Errorf("found %v", source)
	}
	if _, found := (Set{}).Lookup(aiopsv1.SignalCondition); found {
		t.Error("the zero set found something")
	}
}

func TestAValueThatIsNoFiniteNumberIsNoValue(t *testing.T) {
	for _, number := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		expect(t, no(aiopsv1.ReasonNotANumber, "The value is not a finite number"), known(Request{Now: at(0)}, number))
	}
}

func TestMessagesAreBoundedAndStayReadable(t *testing.T) {
	long := unknown(Request{}, aiopsv1.ReasonNoData, "%s", strings.Repeat("é", aiopsv1.MaxMessageLength)).Message
	if len(long) > aiopsv1.MaxMessageLength || !utf8.ValidString(long) {
		t.Errorf("%d bytes, readable: %v", len(long), utf8.ValidString(long))
	}
	if odd := unknown(Request{}, aiopsv1.ReasonNoData, "a%s", strings.Repeat("é", aiopsv1.MaxMessageLength)).Message; !utf8.ValidString(odd) {
		t.Error("a character was cut in two")
	}
}

func TestParametersThatAdmissionWouldRefuseAreUnknown(t *testing.T) {
	set, _ := sources(t)
	for kind, member := range map[aiopsv1.SignalType]string{aiopsv1.SignalCondition: "condition", aiopsv1.SignalPrometheus: "prometheus"} {
		source, _ := set.Lookup(kind)
		got := source.Measure(t.Context(), request(workload(), aiopsv1.Signal{Type: kind}))
		expect(t, no(aiopsv1.ReasonInvalidSpec, "A signal of type "+string(kind)+" needs "+member), got)
	}
}

func TestUnavailableReplicas(t *testing.T) {
	scaled := func(moment time.Time) func(*target.State) {
		return func(state *target.State) { state.Autoscaler = &target.Autoscaler{LastScaleTime: moment} }
	}
	available := func(available int32) func(*target.State) {
		return func(state *target.State) { state.Available = available }
	}
	young := pod("young", neverReady, createdAt(at(-20*second)))
	older := pod("older", neverReady, createdAt(at(-40*second)))
	broken := pod("broken", notReady, createdAt(at(-20*second)))
	for name, test := range map[string]struct {
		state target.State
		grace time.Duration
		want  Reading
	}{
		"all available":                       {workload(), 0, value(0)},
		"more available than desired":         {workload(available(5)), 0, value(0)},
		"some missing":                        {workload(available(1)), 0, value(2)},
		"all missing during a stalled change": {workload(available(0), stalled), 0, value(3)},
		"young, without grace":                {workload(available(1), withPods(pod("a"), young, older)), 0, value(2)},
		"inside the grace": {
			workload(available(1), withPods(pod("a"), young, older)), minute, value(0).until(at(20 * second)),
		},
		"one of two inside the grace": {
			workload(available(1), withPods(pod("a"), young, older)), 30 * second, value(1).until(at(10 * second)),
		},
		"exactly at the end of the grace": {
			workload(available(1), withPods(pod("a"), young, older)), 20 * second, value(2),
		},
		"was ready once": {workload(available(2), withPods(pod("a"), pod("b"), broken)), minute, value(1)},
		"not created, without autoscaler": {
			workload(available(1), withPods(pod("a"))), minute, value(2),
		},
		"asked for by an autoscaler, not created yet": {
			workload(available(1), withPods(pod("a")), scaled(at(-10*second))), 0, value(0).until(at(50 * second)),
		},
		"asked for by an autoscaler, starting": {
			workload(available(1), withPods(pod("a"), young, older), scaled(at(-45*second))), 0, value(0).until(at(15 * second)),
		},
		"asked for by an autoscaler in two steps": {
			workload(available(1), withPods(pod("a"), young, older), scaled(at(-10*second))), 0, value(0).until(at(20 * second)),
		},
		"asked for by an autoscaler, with a longer grace": {
			workload(available(1), withPods(pod("a"), young, older), scaled(at(-90*second))), 2 * minute, value(0).until(at(80 * second)),
		},
		"an autoscaler's last step is over": {
			workload(available(1), withPods(pod("a"), young), scaled(at(-minute))), 0, value(2),
		},
		"an autoscaler does not excuse what broke": {
			workload(available(2), withPods(pod("a"), pod("b"), broken), scaled(at(-10*second))), 0, value(1),
		},
		"an autoscaler that never scaled": {
			workload(available(1), withPods(pod("a")), scaled(time.Time{})), 0, value(2),
		},
		"more excused than missing": {
			workload(available(2), withPods(pod("a"), young, older)), minute, value(0).until(at(20 * second)),
		},
		"a pod from the future is in its grace no longer than the grace": {
			workload(available(2), withPods(pod("a"), pod("b"), pod("c", neverReady, createdAt(at(time.Hour))))), minute, value(0).until(at(minute)),
		},
		"an autoscaler from the future": {
			workload(available(2), withPods(pod("a"), pod("b")), scaled(at(time.Hour))), 0, value(0).until(at(minute)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request(test.state, aiopsv1.Signal{Type: aiopsv1.SignalUnavailableReplicas})
			asked.StartupGrace = test.grace
			expect(t, test.want, NewUnavailableReplicas().Measure(t.Context(), asked))
		})
	}
}

func TestPendingPods(t *testing.T) {
	pods := withPods(
		pod("a"),
		pod("b", pending, createdAt(at(-30*second))),
		pod("c", pending, createdAt(at(-2*minute))),
		pod("d", pending, createdAt(at(-10*minute))),
	)
	for name, test := range map[string]struct {
		window *int32
		since  time.Time
		want   Reading
	}{
		"default window":                     {nil, time.Time{}, value(2).until(at(90 * second))},
		"no window":                          {window(0), time.Time{}, value(3)},
		"longer window":                      {window(300), time.Time{}, value(1).until(at(3 * minute))},
		"an action does not make it younger": {nil, at(-second), value(2).until(at(90 * second))},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request(workload(pods), aiopsv1.Signal{
				Type: aiopsv1.SignalPendingPods, PendingPods: &aiopsv1.PendingPodsSignal{WindowSeconds: test.window},
			})
			asked.Since = test.since
			expect(t, test.want, NewPendingPods().Measure(t.Context(), asked))
		})
	}
}

func TestRolloutStalled(t *testing.T) {
	moved := func(ago time.Duration) func(*target.State) {
		return func(state *target.State) { state.Rollout.Progressing, state.Rollout.LastProgressTime = true, at(-ago) }
	}
	for name, test := range map[string]struct {
		state      target.State
		comparison aiopsv1.Comparison
		threshold  *int64
		recovery   *int64
		want       Reading
	}{
		"no rollout":               {workload(), "", ptr.To[int64](60), nil, value(0)},
		"moving":                   {workload(moved(20 * second)), "", ptr.To[int64](60), nil, value(20).until(at(40 * second))},
		"fraction of a second":     {workload(moved(1500 * time.Millisecond)), "", ptr.To[int64](60), nil, value(1.5).until(at(58500 * time.Millisecond))},
		"exactly at the threshold": {workload(moved(minute)), "", ptr.To[int64](60), nil, value(60)},
		"beyond the threshold":     {workload(moved(2 * minute)), "", ptr.To[int64](60), nil, value(120)},
		"stalled":                  {workload(stalled), "", ptr.To[int64](900), nil, value(600).until(at(5 * minute))},
		"without a threshold":      {workload(stalled), "", nil, nil, value(600)},
		"unreachable threshold":    {workload(stalled), "", ptr.To[int64](1<<53 - 1), nil, value(600)},
		"from the future":          {workload(moved(-minute)), "", ptr.To[int64](60), nil, value(0).until(at(minute))},
		"at most, about to leave the threshold": {
			workload(moved(minute)), aiopsv1.ComparisonAtMost, ptr.To[int64](60), nil, value(60).until(at(time.Millisecond)),
		},
		"at most, about to recover": {
			workload(moved(70 * second)), aiopsv1.ComparisonAtMost, ptr.To[int64](60), ptr.To[int64](90), value(70).until(at(20 * second)),
		},
		"when it moved is not known": {
			workload(func(state *target.State) { state.Rollout.Progressing = true }), "", ptr.To[int64](60), nil,
			Reading{
				Resting: true, Reason: aiopsv1.ReasonNotObserved, At: at(0),
				Message: "When the rollout of Deployment/web last moved is not known yet",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request(test.state, aiopsv1.Signal{
				Type: aiopsv1.SignalRolloutStalled, Comparison: test.comparison, Threshold: test.threshold, RecoveryThreshold: test.recovery,
			})
			expect(t, test.want, NewRolloutStalled().Measure(t.Context(), asked))
		})
	}
}

func TestCondition(t *testing.T) {
	conditions := func(conditions ...target.Condition) target.State {
		return workload(func(state *target.State) { state.Conditions = conditions })
	}
	absent := no(aiopsv1.ReasonConditionAbsent, `Deployment/web has no condition "Available"`)
	absent.NoData = true
	for name, test := range map[string]struct {
		state  target.State
		status aiopsv1.ConditionStatus
		want   Reading
	}{
		"has the status":       {conditions(target.Condition{Type: "Progressing", Status: "True"}, target.Condition{Type: "Available", Status: "False"}), "False", value(1)},
		"has another status":   {conditions(target.Condition{Type: "Available", Status: "True"}), "False", value(0)},
		"is Unknown, asked so": {conditions(target.Condition{Type: "Available", Status: "Unknown"}), "Unknown", value(1)},
		"is absent":            {conditions(target.Condition{Type: "Progressing", Status: "True"}), "False", absent},
	} {
		t.Run(name, func(t *testing.T) {
			asked := aiopsv1.Signal{Type: aiopsv1.SignalCondition, Condition: &aiopsv1.ConditionSignal{Type: "Available", Status: test.status}}
			expect(t, test.want, NewCondition().Measure(t.Context(), request(test.state, asked)))
		})
	}
}
