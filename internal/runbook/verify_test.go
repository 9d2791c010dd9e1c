package runbook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// verifying plays a breach up to the moment at which the restart has run.
func verifying(t *testing.T, spec aiopsv1.AITaskSpec) *story {
	t.Helper()
	s := newStory(t, spec)
	s.breach()
	s.wait(60 * time.Second)
	if order := s.task.Status.Order; order == nil || order.State != aiopsv1.OrderVerifying {
		t.Fatalf("nothing is verified: %s", encode(s.task.Status))
	}
	s.log = nil
	return s
}

func TestRecoveryThatBeganInTimeMayFinish(t *testing.T) {
	s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.wait(590 * time.Second)
	s.heal()
	s.wait(20 * time.Second)
	want := &aiopsv1.Decision{
		Summary: "0 < 1", Reason: aiopsv1.ReasonRecovering, StepName: "restart", DecisionTime: at(660 * time.Second), NextAllowedTime: at(710 * time.Second),
		Message: `Ran Restart on Deployment/web. The time of step "restart" 1/1 is up, but recovery has begun and is proven at 2026-01-01T03:11:50Z if it holds`,
	}
	if difference := cmp.Diff(want, s.task.Status.Decision); difference != "" {
		t.Errorf("decision after the deadline (-want +got):\n%s", difference)
	}
	s.wait(time.Minute)
	s.wantWords("+660s Verifying/Recovering", "+710s Watching/Recovered", "+710s event Recovered")
}

func TestRecoveryThatBreaksAfterTheDeadlineIsAFailure(t *testing.T) {
	for name, broken := range map[string]func(*story){"breached": (*story).breach, "unknown": (*story).blind,
		"workload unavailable": func(s *story) { s.target.Available = false }} {
		t.Run(name, func(t *testing.T) {
			s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
			s.wait(590 * time.Second)
			s.heal()
			s.wait(20 * time.Second)
			broken(s)
			s.settle()
			if got := s.task.Status.History[0]; got.Result != aiopsv1.ResultFailed || got.Message != "no recovery within 600s after: ran Restart on Deployment/web" {
				t.Errorf("history %+v, want a failure", got)
			}
		})
	}
}

func TestUnknownNeverProvesRecovery(t *testing.T) {
	s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.heal()
	s.wait(50 * time.Second)
	s.blind()
	s.wait(5 * time.Second)
	s.heal()
	s.wait(59 * time.Second)
	s.wantWords("+110s warning SignalUnknown")
	s.wait(2 * time.Second)
	s.wantWords("+175s Watching/Recovered", "+175s event Recovered")
}

func TestRecoveryCountsFromTheActionOnly(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.wait(time.Hour)
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(59 * time.Second)
	s.wantWords("+0s Watching/Healthy", "+3600s Acting/Ordered", "+3600s run Restart", "+3600s Verifying/Verifying", "+3600s event ActionExecuted")
	s.wait(2 * time.Second)
	s.wantWords("+3660s Watching/Recovered", "+3660s event Recovered")
}

func TestAnUnavailableWorkloadIsNoRecovery(t *testing.T) {
	s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.heal()
	s.target.Available = false
	s.wait(601 * time.Second)
	s.wantWords("+660s Breached/Recovering", "+660s warning StepFailed")
}

func TestTheSignalsWindowIsAddedToTheStepsTime(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Threshold = nil
	spec.Signals = []aiopsv1.Signal{{Name: "queue", Type: aiopsv1.SignalPrometheus, Threshold: pointer(int64(1)),
		Prometheus: &aiopsv1.PrometheusSignal{Query: "up", WindowSeconds: pointer(int32(300))}}}
	s := newStory(t, spec)
	s.breach()
	in := s.input()
	in.SpecProblem = nil
	s.task.Status.Incident = &aiopsv1.Incident{ID: "i", Pass: 1, StepName: "restart", PlanHash: in.Plan.Hash, TargetUID: targetUID}
	s.task.Status.Order = &aiopsv1.Order{StepName: "restart", State: aiopsv1.OrderRecorded, Action: "Restart", ID: digest(taskUID, "i", int32(1), int32(0), "restart", in.Plan.Hash)}
	got := Executed(in, Execution{After: in.Target.Image()}).Status.Order.DeadlineTime
	if !got.Equal(*at(900 * time.Second)) {
		t.Errorf("deadline %s, want 600 s and the window of 300 s from now", got)
	}
}

func TestTheCacheThatHasNotSeenTheActionIsNotJudged(t *testing.T) {
	s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.heal()
	s.target.Generation--
	s.target.TemplateHash = "hash-7"
	s.wait(599 * time.Second)
	if s.task.Status.Order == nil || len(s.log) > 0 {
		t.Errorf("judged on an old view: %v", s.log)
	}
	s.breach()
	s.wait(2 * time.Second)
	if got := s.task.Status.History[0]; got.Result != aiopsv1.ResultFailed {
		t.Errorf("history %+v, want a failure at the deadline", got)
	}
}

func TestPeoplesChangesCancelAndOthersDoNot(t *testing.T) {
	tests := map[string]struct {
		change func(*Target)
		want   string
	}{
		"template by a person": {func(target *Target) { target.Generation++; target.TemplateHash = "new" },
			"the pod template of Deployment/web was changed by someone else; the step is not judged"},
		"template by GitOps": {change: func(target *Target) { target.Generation++; target.TemplateHash = "new"; target.TemplateApplied = true }},
		"replicas by a person": {func(target *Target) { target.Generation++; target.Replicas = 9 },
			"replicas of Deployment/web were changed by someone else; the step is not judged"},
		"replicas by an autoscaler": {change: func(target *Target) { target.Generation++; target.Replicas = 9; target.Autoscaled = true }},
		"template under an autoscaler": {func(target *Target) { target.Generation++; target.TemplateHash = "new"; target.Autoscaled = true },
			"the pod template of Deployment/web was changed by someone else; the step is not judged"},
		"replicas under GitOps": {func(target *Target) { target.Generation++; target.Replicas = 9; target.TemplateApplied = true },
			"replicas of Deployment/web were changed by someone else; the step is not judged"},
		"pods of a DaemonSet by its nodes": {change: func(target *Target) { target.Replicas = 9 }},
		"something else in its spec":       {change: func(target *Target) { target.Generation++ }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart), step("page", aiopsv1.ActionNotify)))
			s.heal()
			test.change(s.target)
			s.settle()
			if test.want == "" {
				if s.task.Status.Order == nil {
					t.Errorf("the order was ended: %+v", s.task.Status.History)
				}
				return
			}
			want := aiopsv1.HistoryEntry{
				ID: s.runs[0], Cause: aiopsv1.CauseIncident, StepName: "restart", Action: "Restart", Result: aiopsv1.ResultCancelled,
				Reason: aiopsv1.ReasonSuperseded, Message: test.want, Value: "3", StartTime: at(time.Minute), EndTime: at(time.Minute),
			}
			if difference := cmp.Diff(want, s.task.Status.History[0]); difference != "" {
				t.Errorf("history (-want +got):\n%s", difference)
			}
			if incident := s.task.Status.Incident; incident.RecoveredTime != nil || incident.StepName != "page" {
				t.Errorf("incident %+v, want it to be open at the next step: cancelled is not success", incident)
			}
		})
	}
}

func TestTheMessageSaysWhatFollows(t *testing.T) {
	restart, page := step("restart", aiopsv1.ActionRestart), step("page", aiopsv1.ActionNotify)
	stop := restart
	stop.OnFailure = aiopsv1.OnFailureStop
	tests := map[string]struct {
		steps []aiopsv1.Step
		pass  int32
		want  string
	}{
		"another step": {[]aiopsv1.Step{restart, page}, 1, `step "page" (Notify) follows`},
		"another pass": {[]aiopsv1.Step{page, restart}, 2, `pass 3 of 3 begins with step "page"`},
		"nothing":      {[]aiopsv1.Step{page, restart}, 3, "nothing more is done"},
		"stop":         {[]aiopsv1.Step{stop, page}, 1, "nothing more is done"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(test.steps...))
			m := newMachine(s.input())
			m.status.Incident = &aiopsv1.Incident{Pass: test.pass}
			if got := m.afterwards(&aiopsv1.Order{StepName: "restart"}); got != test.want {
				t.Errorf("afterwards %q, want %q", got, test.want)
			}
		})
	}
}
