package runbook

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// conditionsOf reduces conditions to one line each.
func (s *story) conditions() map[string]string {
	out := map[string]string{}
	for _, condition := range s.task.Status.Conditions {
		out[condition.Type] = condition.Status + " " + condition.Reason + ": " + condition.Message
	}
	return out
}

func TestTheWholeStatusOfATaskThatWatches(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.reading.At = start().Add(-3 * time.Second)
	s.settle()
	condition := func(kind, reason, message string) aiopsv1.Condition {
		return aiopsv1.Condition{Type: kind, Status: "True", ObservedGeneration: 1, LastTransitionTime: at(0), Reason: reason, Message: message}
	}
	no := func(condition aiopsv1.Condition) aiopsv1.Condition {
		condition.Status = "False"
		return condition
	}
	want := aiopsv1.AITaskStatus{
		ObservedGeneration: 1, Phase: aiopsv1.PhaseWatching,
		Conditions: []aiopsv1.Condition{
			condition("Ready", "Accepted", "Watching Deployment/web by UnavailableReplicas"),
			condition("TargetFound", "TargetFound", "Deployment/web exists"),
			condition("SignalAvailable", "Measured", "UnavailableReplicas is measured"),
			no(condition("Breached", "Healthy", "UnavailableReplicas is on the healthy side of 1")),
			no(condition("Remediating", "Idle", "No step is under way")),
		},
		Target: &aiopsv1.TargetStatus{Summary: "Deployment/web", UID: targetUID, Revision: "web-8"},
		Signals: []aiopsv1.SignalStatus{{Name: "default", Verdict: "Healthy", Value: "0", MeasuredTime: at(-3 * time.Second), Threshold: ">= 1", Reason: "Healthy",
			LastTransitionTime: at(0)}},
		Decision: &aiopsv1.Decision{Summary: "0 < 1", Reason: "Healthy", Message: "Nothing to do", DecisionTime: at(0)},
	}
	if difference := cmp.Diff(want, s.task.Status); difference != "" {
		t.Errorf("status (-want +got):\n%s", difference)
	}
	s.wait(time.Hour)
	want.Target.HealthyRevision, want.Target.HealthyTime = "web-8", at(time.Minute)
	if difference := cmp.Diff(want, s.task.Status); difference != "" {
		t.Errorf("an hour later (-want +got):\n%s", difference)
	}
	if s.writes != 2 {
		t.Errorf("%d writes, want 2: the first verdict and the proof of the revision", s.writes)
	}
}

func TestConditionsSayWhatIsKnown(t *testing.T) {
	tests := map[string]struct {
		spec    func(*aiopsv1.AITaskSpec)
		prepare func(*story)
		want    map[string]string
	}{
		"verifying": {prepare: func(s *story) { s.breach(); s.wait(65 * time.Second) }, want: map[string]string{
			"Ready": "True Accepted: Watching Deployment/web by UnavailableReplicas", "TargetFound": "True TargetFound: Deployment/web exists",
			"SignalAvailable": "True Measured: UnavailableReplicas is measured",
			"Breached":        "True ThresholdReached: UnavailableReplicas reached 1 and has held for 60s",
			"Remediating":     `True Verifying: Step "restart" 1/1 (Restart) was applied; waiting for recovery`,
		}},
		"a new breach while verifying has not held": {prepare: func(s *story) {
			s.breach()
			s.wait(65 * time.Second)
			s.heal()
			s.settle()
			s.breach()
			s.wait(59 * time.Second)
		},
			want: map[string]string{
				"Ready": "True Accepted: Watching Deployment/web by UnavailableReplicas", "TargetFound": "True TargetFound: Deployment/web exists",
				"SignalAvailable": "True Measured: UnavailableReplicas is measured",
				"Breached":        "True Holding: UnavailableReplicas reached 1",
				"Remediating":     `True Verifying: Step "restart" 1/1 (Restart) was applied; waiting for recovery`,
			}},
		"holding": {prepare: func(s *story) { s.breach() }, want: map[string]string{
			"Ready": "True Accepted: Watching Deployment/web by UnavailableReplicas", "TargetFound": "True TargetFound: Deployment/web exists",
			"SignalAvailable": "True Measured: UnavailableReplicas is measured", "Breached": "True Holding: UnavailableReplicas reached 1",
			"Remediating": "False Idle: No step is under way",
		}},
		"unknown": {prepare: (*story).blind, want: map[string]string{
			"Ready": `False Timeout: Prometheus "default" did not answer in 10s`, "TargetFound": "True TargetFound: Deployment/web exists",
			"SignalAvailable": `False Timeout: Prometheus "default" did not answer in 10s`,
			"Breached":        `Unknown Timeout: Prometheus "default" did not answer in 10s`, "Remediating": "False Idle: No step is under way",
		}},
		"not yet measured": {prepare: func(s *story) { s.reading = Reading{Reason: aiopsv1.ReasonNotMeasured, Message: "later"} }, want: map[string]string{
			"Ready": "Unknown NotMeasured: later", "TargetFound": "True TargetFound: Deployment/web exists",
			"SignalAvailable": "Unknown NotMeasured: later", "Breached": "Unknown NotMeasured: later", "Remediating": "False Idle: No step is under way",
		}},
		"not observed": {prepare: func(s *story) { s.reading = Reading{Reason: aiopsv1.ReasonNotObserved, Message: "later"} }, want: map[string]string{
			"Ready": "Unknown NotObserved: later", "TargetFound": "True TargetFound: Deployment/web exists",
			"SignalAvailable": "Unknown NotObserved: later", "Breached": "Unknown NotObserved: later", "Remediating": "False Idle: No step is under way",
		}},
		"resting": {prepare: func(s *story) {
			s.reading = Reading{Resting: true, Reason: aiopsv1.ReasonRolloutInProgress, Message: "rolling out"}
		}, want: map[string]string{
			"Ready": "Unknown RolloutInProgress: rolling out", "TargetFound": "True TargetFound: Deployment/web exists",
			"SignalAvailable": "Unknown RolloutInProgress: rolling out", "Breached": "Unknown RolloutInProgress: rolling out",
			"Remediating": "False Idle: No step is under way",
		}},
		"no target": {prepare: func(s *story) { s.target = nil }, want: map[string]string{
			"Ready":       "False TargetNotFound: Deployment/web does not exist in namespace shop",
			"TargetFound": "False TargetNotFound: Deployment/web does not exist in namespace shop", "Remediating": "False Idle: No step is under way",
		}},
		"target going": {prepare: func(s *story) { s.target.Deleting = true }, want: map[string]string{
			"Ready": "False TargetDeleting: Deployment/web is being deleted", "TargetFound": "False TargetDeleting: Deployment/web is being deleted",
			"Remediating": "False Idle: No step is under way",
		}},
		"suspended": {spec: func(spec *aiopsv1.AITaskSpec) { spec.Suspend = pointer(true) }, want: map[string]string{
			"Ready": "True Accepted: Suspended; the spec is accepted and Deployment/web exists", "TargetFound": "True TargetFound: Deployment/web exists",
			"Remediating": "False Idle: No step is under way",
		}},
		"invalid": {spec: func(spec *aiopsv1.AITaskSpec) { spec.Threshold = pointer(int64(0)) }, want: map[string]string{
			"Ready": "False AlwaysBreached: threshold: AtLeast 0 is always reached, since UnavailableReplicas is never below 0: write 1 or more",
		}},
		"unreachable": {spec: func(spec *aiopsv1.AITaskSpec) { spec.Threshold = pointer(int64(4)) }, want: map[string]string{
			"Ready":       "False ThresholdUnreachable: threshold 4 can never be reached: Deployment/web has 3 replicas. Write 3 or less",
			"TargetFound": "True TargetFound: Deployment/web exists", "SignalAvailable": "True Measured: UnavailableReplicas is measured",
			"Breached": "False Healthy: UnavailableReplicas is on the healthy side of 4", "Remediating": "False Idle: No step is under way",
		}},
		"unreachable, and resting": {spec: func(spec *aiopsv1.AITaskSpec) { spec.Threshold = pointer(int64(4)) }, prepare: func(s *story) {
			s.reading = Reading{Resting: true, Reason: aiopsv1.ReasonRolloutInProgress, Message: "rolling out"}
		}, want: map[string]string{
			"Ready":       "False ThresholdUnreachable: threshold 4 can never be reached: Deployment/web has 3 replicas. Write 3 or less",
			"TargetFound": "True TargetFound: Deployment/web exists", "SignalAvailable": "Unknown RolloutInProgress: rolling out",
			"Breached": "Unknown RolloutInProgress: rolling out", "Remediating": "False Idle: No step is under way",
		}},
		"nothing to judge": {spec: func(spec *aiopsv1.AITaskSpec) { spec.Threshold, spec.Steps = nil, nil }, want: map[string]string{
			"Ready": "True Accepted: Watching Deployment/web", "TargetFound": "True TargetFound: Deployment/web exists",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := specOf(step("restart", aiopsv1.ActionRestart))
			if test.spec != nil {
				test.spec(&spec)
			}
			s := newStory(t, spec)
			if test.prepare != nil {
				test.prepare(s)
			}
			s.settle()
			if difference := cmp.Diff(test.want, s.conditions()); difference != "" {
				t.Errorf("conditions (-want +got):\n%s", difference)
			}
		})
	}
}

// TestARolloutProvesNothingAboutTheSource: while judgement rests nothing is read, so Ready and SignalAvailable stay what the last
// reading made them, and nobody who waits for Ready goes on because of a rollout.
func TestARolloutProvesNothingAboutTheSource(t *testing.T) {
	const resting = "Unknown RolloutInProgress: Deployment/web is rolling out"
	tests := map[string]struct {
		before    func(*story)
		meanwhile func(*story)
		ready     string
		available string
	}{
		"never looked at": {ready: resting, available: resting},
		"the first measurement was under way": {
			before: func(s *story) {
				s.reading = Reading{Reason: aiopsv1.ReasonNotMeasured, Message: "The first measurement has not finished yet"}
			},
			ready: resting, available: resting,
		},
		"measured": {
			before: func(*story) {},
			ready:  "True Accepted: Watching Deployment/web by UnavailableReplicas", available: "True Measured: UnavailableReplicas is measured",
		},
		"never answered": {
			before: (*story).blind,
			ready:  `False Timeout: Prometheus "default" did not answer in 10s`, available: `False Timeout: Prometheus "default" did not answer in 10s`,
		},
		"measured by another spec": {
			before: func(*story) {},
			meanwhile: func(s *story) {
				s.task.Generation++
				s.task.Spec.ForSeconds = pointer(int32(5))
			},
			ready: resting, available: resting,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
			if test.before != nil {
				test.before(s)
				s.wait(time.Hour)
			}
			if test.meanwhile != nil {
				test.meanwhile(s)
			}
			s.reading = Reading{Resting: true, Reason: aiopsv1.ReasonRolloutInProgress, Message: "Deployment/web is rolling out"}
			s.writes, s.events = 0, 0
			s.wait(time.Hour)
			if got := s.conditions()["Ready"]; got != test.ready {
				t.Errorf("Ready %q, want %q", got, test.ready)
			}
			if got := s.conditions()["SignalAvailable"]; got != test.available {
				t.Errorf("SignalAvailable %q, want %q", got, test.available)
			}
			if s.writes != 1 || s.events != 0 {
				t.Errorf("%d writes and %d events in an hour of rolling out, want 1 and 0", s.writes, s.events)
			}
			s.heal()
			s.settle()
			if got, want := s.conditions()["Ready"], "True Accepted: Watching Deployment/web by UnavailableReplicas"; got != want {
				t.Errorf("Ready %q after the rollout, want %q", got, want)
			}
		})
	}
}

func TestTheConditionOfARecordedOrder(t *testing.T) {
	s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart)))
	want := `True Ordered: Step "restart" 1/1 (Restart) is about to run`
	if got := s.conditions()["Remediating"]; got != want {
		t.Errorf("condition %q, want %q", got, want)
	}
}

func TestConditionsKeepTheTimeOfTheirTransition(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.settle()
	s.now = s.now.Add(time.Minute)
	s.task.Generation = 2
	s.task.Spec.ForSeconds = pointer(int32(5))
	s.breach()
	s.settle()
	ready, breached := conditionOf(s.task.Status.Conditions, "Ready"), conditionOf(s.task.Status.Conditions, "Breached")
	if !ready.LastTransitionTime.Equal(*at(0)) || ready.ObservedGeneration != 2 {
		t.Errorf("Ready %+v, want the time of its transition and the new generation", ready)
	}
	if !breached.LastTransitionTime.Equal(*at(time.Minute)) {
		t.Errorf("Breached %+v, want the time of its own transition", breached)
	}
	if conditionOf(s.task.Status.Conditions, "Other") != nil {
		t.Error("a condition that is not there was found")
	}
}

func TestAValueThatMovesIsWrittenNowAndThenAndOnlyUnderABreach(t *testing.T) {
	s := newStory(t, specOf())
	change := func(number float64) string {
		s.reading = Reading{Known: true, Value: number}
		s.settle()
		return s.task.Status.Decision.Summary
	}
	after := func(passed time.Duration) string {
		s.wait(passed)
		return s.task.Status.Decision.Summary
	}
	s.target.Replicas = 100
	s.task.Spec.Threshold = pointer(int64(10))
	change(1)
	s.wait(2 * time.Minute) // until the revision is proven
	if got := change(2) + ", " + after(time.Hour); got != "1 < 10, 1 < 10" {
		t.Errorf("while healthy: %s, want the value of the verdict's change", got)
	}
	if got := change(11) + ", " + change(12) + ", " + after(9*time.Second) + ", " + after(time.Second); got != "11 >= 10, 11 >= 10, 11 >= 10, 12 >= 10" {
		t.Errorf("while holding: %s, want the new value after ten seconds", got)
	}
	s.reading = Reading{Known: true, Value: 13}
	if got := after(50 * time.Second); got != "13 >= 10" {
		t.Errorf("with the incident: %s, want the value of the moment", got)
	}
	if got := change(14) + ", " + after(10*time.Second); got != "13 >= 10, 14 >= 10" && got != "14 >= 10, 14 >= 10" {
		t.Errorf("in an incident: %s, want the new value within ten seconds", got)
	}
}

func TestAStatusThatIsWrittenAnywayShowsTheLatestValue(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.reading = Reading{Known: true, Value: 3}
	s.settle()
	s.reading = Reading{Known: true, Value: 2}
	s.now = s.now.Add(time.Second)
	s.task.Spec.Limits = &aiopsv1.Limits{CooldownSeconds: pointer(int32(1))}
	s.task.Generation++
	s.settle()
	if got := s.task.Status.Signals[0].Value + " " + s.task.Status.Decision.Summary; got != "2 2 >= 1" {
		t.Errorf("value and summary %q, want those of the pass that was written", got)
	}
}

func TestASignalThatGoesSilentIsToldOnce(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.settle()
	s.blind()
	s.wait(time.Hour)
	s.heal()
	s.settle()
	s.wantLog("+0s Watching/Healthy", "+0s Pending/Timeout", `+0s warning SignalUnknown: Timeout: Prometheus "default" did not answer in 10s`,
		"+3600s Watching/Healthy")
	if got := s.task.Status.Signals[0]; got.Value != "0" || !got.LastTransitionTime.Equal(*at(time.Hour)) {
		t.Errorf("signal %+v", got)
	}
}

func TestAnUnknownValueIsNotShownAsTheLastOne(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.settle()
	s.blind()
	s.settle()
	want := aiopsv1.SignalStatus{Name: "default", Verdict: "Unknown", Threshold: ">= 1", Reason: "Timeout",
		Message: `Prometheus "default" did not answer in 10s`, LastTransitionTime: at(0)}
	if difference := cmp.Diff(want, s.task.Status.Signals[0]); difference != "" {
		t.Errorf("signal (-want +got):\n%s", difference)
	}
	if got := s.task.Status.Decision.Summary; got != "unknown >= 1" {
		t.Errorf("summary %q", got)
	}
}

func TestAnInvalidSpecIsToldOncePerMessage(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Spec.Threshold = pointer(int64(0))
	s.wait(time.Hour)
	s.task.Spec.Threshold = pointer(int64(-1))
	s.wait(time.Hour)
	s.wantWords("+0s Failed/AlwaysBreached", "+0s warning InvalidSpec", "+3600s warning InvalidSpec")
	if s.task.Status.Signals != nil {
		t.Errorf("signals %+v, want none", s.task.Status.Signals)
	}
}

// TestAThresholdOutOfReachIsToldOnce: such a task looks healthy and would never act.
func TestAThresholdOutOfReachIsToldOnce(t *testing.T) {
	restart := func(s *story) { s.observation = Observation{} }
	edit := func(threshold int64) func(*story) {
		return func(s *story) {
			s.task.Generation++
			s.task.Spec.Threshold = pointer(threshold)
		}
	}
	replicas := func(number int32) func(*story) {
		return func(s *story) { s.target.Replicas, s.target.AvailablePods = number, number }
	}
	const first = "+0s warning ThresholdUnreachable: threshold 5 can never be reached: Deployment/web has 3 replicas. Write 3 or less"
	tests := map[string]struct {
		threshold int64
		// then happens an hour later.
		then []func(*story)
		want []string
	}{
		"from the start":                        {5, nil, []string{first}},
		"within reach":                          {3, nil, nil},
		"the operator is restarted":             {5, []func(*story){restart}, []string{first}},
		"fewer replicas than before":            {5, []func(*story){replicas(2)}, []string{first}},
		"enough replicas":                       {5, []func(*story){replicas(5)}, []string{first}},
		"something else of the spec is changed": {5, []func(*story){edit(5)}, []string{first}},
		"a threshold that is no better": {5, []func(*story){edit(4)}, []string{first,
			"+3600s warning ThresholdUnreachable: threshold 4 can never be reached: Deployment/web has 3 replicas. Write 3 or less"}},
		"no longer within reach": {3, []func(*story){replicas(2)}, []string{
			"+3600s warning ThresholdUnreachable: threshold 3 can never be reached: Deployment/web has 2 replicas. Write 2 or less"}},
		"once more out of reach": {5, []func(*story){replicas(5), replicas(4)}, []string{first,
			"+7200s warning ThresholdUnreachable: threshold 5 can never be reached: Deployment/web has 4 replicas. Write 4 or less"}},
		"invalid for good": {-1, nil, []string{
			"+0s warning InvalidSpec: signals[\"default\"].threshold: AtMost -1 is never reached, since UnavailableReplicas is never below 0: write 0 or more"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := specOf(step("restart", aiopsv1.ActionRestart))
			spec.Threshold = pointer(test.threshold)
			if test.threshold < 0 {
				spec.Threshold, spec.Signals = nil, []aiopsv1.Signal{{Name: "default", Type: aiopsv1.SignalUnavailableReplicas,
					Comparison: aiopsv1.ComparisonAtMost, Threshold: pointer(test.threshold)}}
			}
			s := newStory(t, spec)
			s.wait(time.Hour)
			for _, happens := range test.then {
				happens(s)
				s.wait(time.Hour)
			}
			got := slices.DeleteFunc(s.log, func(line string) bool { return !strings.Contains(line, " warning ") })
			if difference := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); difference != "" {
				t.Errorf("told (-want +got):\n%s", difference)
			}
		})
	}
}

func TestTheTargetsStatusBelongsToOneTarget(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.wait(2 * time.Minute)
	s.target.Revision = ""
	s.settle()
	if got := s.task.Status.Target; got.Revision != "web-8" || got.HealthyRevision != "web-8" {
		t.Errorf("with the revision not known: %+v, want it kept", got)
	}
	s.target = nil
	s.settle()
	if got := s.task.Status.Target; got == nil || got.UID != targetUID {
		t.Errorf("without a target: %+v, want it kept", got)
	}
	s.target = healthyTarget()
	s.target.UID, s.target.Revision = "another", "web-1"
	s.settle()
	want := &aiopsv1.TargetStatus{Summary: "Deployment/web", UID: "another", Revision: "web-1"}
	if difference := cmp.Diff(want, s.task.Status.Target); difference != "" {
		t.Errorf("with another target (-want +got):\n%s", difference)
	}
}

func TestAMissingTargetIsNamedAndNothingIsKnownOfIt(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.wait(2 * time.Minute)
	s.target = nil
	in := s.input()
	tests := map[string]struct {
		summary string
		before  *aiopsv1.TargetStatus
		want    *aiopsv1.TargetStatus
	}{
		"the same one":       {"Deployment/web", s.task.Status.Target, s.task.Status.Target},
		"another one":        {"Deployment/shop", s.task.Status.Target, &aiopsv1.TargetStatus{Summary: "Deployment/shop"}},
		"the first one":      {"Deployment/web", nil, &aiopsv1.TargetStatus{Summary: "Deployment/web"}},
		"one without a name": {"", s.task.Status.Target, s.task.Status.Target},
		"a long name":        {strings.Repeat("x", 600), nil, &aiopsv1.TargetStatus{Summary: strings.Repeat("x", 509) + "..."}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in.Task = s.task.DeepCopy()
			in.Task.Status.Target = test.before.DeepCopy()
			in.TargetSummary = test.summary
			if difference := cmp.Diff(test.want, Next(in).Status.Target); difference != "" {
				t.Errorf("target (-want +got):\n%s", difference)
			}
		})
	}
}

func TestARevisionIsProvenHealthyOnlyByHealthThatLasts(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.wait(59 * time.Second)
	if got := s.task.Status.Target.HealthyRevision; got != "" {
		t.Errorf("proven after 59 s: %q", got)
	}
	s.wait(time.Second)
	s.target.Revision = "web-9"
	s.breach()
	s.wait(10 * time.Minute)
	s.heal()
	s.target.Available = false
	s.wait(10 * time.Minute)
	if got := s.task.Status.Target; got.Revision != "web-9" || got.HealthyRevision != "web-8" || !got.HealthyTime.Equal(*at(time.Minute)) {
		t.Errorf("target %+v, want web-8 to be the one proven", got)
	}
}

func TestNoDataIsNotCalledAValue(t *testing.T) {
	signal := aiopsv1.Signal{Name: "queue", Type: aiopsv1.SignalPrometheus, Threshold: pointer(int64(5)), Prometheus: &aiopsv1.PrometheusSignal{Query: "q"}}
	for verdict, want := range map[aiopsv1.NoDataVerdict]string{
		aiopsv1.NoDataBreached: "True Holding: Prometheus answered with no data, which noData calls Breached",
		aiopsv1.NoDataHealthy:  "False Healthy: Prometheus answered with no data, which noData calls Healthy",
	} {
		signal.NoData = verdict
		s := newStory(t, aiopsv1.AITaskSpec{TargetDeployment: pointer("web"), Signals: []aiopsv1.Signal{signal}})
		s.reading = Reading{NoData: true, Alive: true, Reason: aiopsv1.ReasonNoData}
		in := s.input()
		in.SpecProblem = nil
		s.task.Status = Next(in).Status
		if got := s.conditions()["Breached"]; got != want {
			t.Errorf("noData %s: condition %q, want %q", verdict, got, want)
		}
	}
}

func TestABreachWithoutForSecondsDoesNotClaimToHaveHeld(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.ForSeconds = pointer(int32(0))
	s := newStory(t, spec)
	s.breach()
	s.settle()
	if got, want := s.log[1], "+0s warning Breached: UnavailableReplicas reached 1"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestATaskThatWasNeverMeasuredSaysSo(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	in := s.input()
	in.Observation = Observation{}
	status := Next(in).Status
	if status.Phase != aiopsv1.PhasePending || reasonOf(&status) != aiopsv1.ReasonNotMeasured || status.Signals[0].Verdict != aiopsv1.VerdictUnknown {
		t.Errorf("status %s, want Pending and NotMeasured", encode(status))
	}
}

func TestARevisionThatNoPodRunsIsNotProven(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target.RevisionRunning = false
	s.wait(time.Hour)
	if got := s.task.Status.Target.HealthyRevision; got != "" {
		t.Errorf("proven without a pod: %q", got)
	}
	s.target.RevisionRunning = true
	s.settle()
	if got := s.task.Status.Target.HealthyRevision; got != "web-8" {
		t.Errorf("proven with a pod: %q, want web-8", got)
	}
}

func TestWhatANewerOperatorWroteIsKept(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.settle()
	foreign := aiopsv1.Condition{Type: "BackupHealthy", Status: "True", Reason: "Fresh", LastTransitionTime: at(0), Unknown: `{"severity":"Low"}`}
	status := &s.task.Status
	status.Conditions = append([]aiopsv1.Condition{foreign}, status.Conditions...)
	for i := range status.Conditions {
		status.Conditions[i].Unknown = `{"severity":"Low"}`
	}
	status.Signals[0].Unknown = `{"window":300}`
	status.History = []aiopsv1.HistoryEntry{{ID: "1", Result: "Undone", Unknown: `{"by":"jane"}`}}

	s.breach()
	s.wait(2 * time.Minute)

	for _, condition := range s.task.Status.Conditions {
		if condition.Unknown != `{"severity":"Low"}` {
			t.Errorf("condition %s has unknown fields %q", condition.Type, condition.Unknown)
		}
	}
	kept := conditionOf(s.task.Status.Conditions, "BackupHealthy")
	if kept == nil {
		t.Fatal("the condition BackupHealthy is gone")
	}
	if difference := cmp.Diff(foreign, *kept); difference != "" {
		t.Errorf("condition BackupHealthy (-want +got):\n%s", difference)
	}
	if got := s.task.Status.Signals[0]; got.Verdict != aiopsv1.VerdictBreached || got.Unknown != `{"window":300}` {
		t.Errorf("signal %+v, want Breached with its unknown fields", got)
	}
	history := s.task.Status.History
	if got := history[len(history)-1]; got.ID != "1" || got.Unknown != `{"by":"jane"}` {
		t.Errorf("oldest entry of history %+v, want 1 with its unknown fields", got)
	}
}

func TestForeignConditionsLeaveRoomForOnesOwn(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	for i := range aiopsv1.MaxConditions {
		s.task.Status.Conditions = append(s.task.Status.Conditions, aiopsv1.Condition{Type: "Foreign" + strings.Repeat("x", i), Status: "True"})
	}
	s.settle()
	if got := len(s.task.Status.Conditions); got != aiopsv1.MaxConditions {
		t.Errorf("%d conditions, want %d", got, aiopsv1.MaxConditions)
	}
	if conditionOf(s.task.Status.Conditions, aiopsv1.ConditionReady) == nil {
		t.Error("there is no condition Ready")
	}
}
