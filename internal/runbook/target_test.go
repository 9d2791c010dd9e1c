package runbook

import (
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func TestAReplacedTargetClosesTheIncidentAndIsNoSuccess(t *testing.T) {
	s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target = healthyTarget()
	s.target.UID = "another"
	s.heal()
	s.wait(time.Hour)
	s.wantLog("+60s Watching/Healthy",
		`+60s event OrderCancelled: Step "restart" 1/1: Deployment/web was deleted and created again; the incident is closed, which is not a success`,
		"+60s warning TargetReplaced: Deployment/web was deleted and created again; the incident is closed, which is not a success")
	if got := s.task.Status.History[0]; got.Result != aiopsv1.ResultSuperseded || got.Reason != aiopsv1.ReasonTargetReplaced {
		t.Errorf("history %+v, want a superseded order", got)
	}
}

func TestAnOrderEndsWithWhatItWasWrittenFor(t *testing.T) {
	suspended := func(s *story) { s.task.Spec.Suspend = pointer(true) }
	tests := map[string]struct {
		change     func(*story)
		reason     string
		phase      string
		noIncident bool
	}{
		"suspended":      {suspended, aiopsv1.ReasonSuspended, aiopsv1.PhaseSuspended, true},
		"invalid":        {func(s *story) { s.task.Spec.Threshold = pointer(int64(0)) }, aiopsv1.ReasonSpecChanged, aiopsv1.PhaseFailed, true},
		"another plan":   {func(s *story) { s.task.Spec.Threshold = pointer(int64(2)) }, aiopsv1.ReasonSpecChanged, aiopsv1.PhaseBreached, true},
		"no target":      {func(s *story) { s.target = nil }, aiopsv1.ReasonTargetNotFound, aiopsv1.PhasePending, true},
		"target going":   {func(s *story) { s.target.Deleting = true }, aiopsv1.ReasonTargetDeleting, aiopsv1.PhasePending, false},
		"another target": {func(s *story) { s.target.UID = "another" }, aiopsv1.ReasonTargetReplaced, aiopsv1.PhaseBlocked, false},
	}
	for name, test := range tests {
		for result, begin := range map[string]func(*testing.T, aiopsv1.AITaskSpec) *story{aiopsv1.ResultWithdrawn: recorded, aiopsv1.ResultCancelled: verifying} {
			t.Run(name+" "+result, func(t *testing.T) {
				s := begin(t, specOf(step("restart", aiopsv1.ActionRestart)))
				s.target.LastActionTime = s.now
				test.change(s)
				s.settle()
				want := result
				if test.reason == aiopsv1.ReasonTargetReplaced {
					want = aiopsv1.ResultSuperseded
				}
				if got := s.task.Status.History[0]; got.Result != want || got.Reason != test.reason || s.task.Status.Order != nil {
					t.Errorf("order %+v, history %+v, want it %s because of %s", s.task.Status.Order, got, want, test.reason)
				}
				if got := s.task.Status; got.Phase != test.phase || (got.Incident == nil) != test.noIncident {
					t.Errorf("phase %s, incident %+v, want %s, none %t", got.Phase, got.Incident, test.phase, test.noIncident)
				}
			})
		}
	}
}

func TestAnOrderThatEndsUnwrittenButLeftItsStampCounts(t *testing.T) {
	s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target.LastOrder = s.task.Status.Order.ID
	s.task.Spec.Suspend = pointer(true)
	s.settle()
	if got := s.task.Status; len(got.Executions) != 1 || got.History[0].Result != aiopsv1.ResultCancelled {
		t.Errorf("status %s, want one execution and a cancelled order", encode(got))
	}
}

func TestResumingStartsWithCleanCountersAndTheLimitsMemory(t *testing.T) {
	s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Spec.Suspend = pointer(true)
	s.wait(time.Minute)
	if s.task.Status.Incident != nil || s.task.Status.Signals != nil || len(s.task.Status.Executions) != 1 || s.task.Status.LastExecutionTime == nil {
		t.Errorf("suspended: %s, want no incident and the executions kept", encode(s.task.Status))
	}
	s.task.Spec.Suspend = nil
	s.wait(time.Minute)
	if got := s.task.Status; got.Incident.Pass != 1 || got.Incident.Attempts != 0 || reasonOf(&got) != aiopsv1.ReasonCooldown {
		t.Errorf("resumed: %s, want a new incident behind the old cooldown", encode(got))
	}
}

func TestAWipedStatusKeepsTheTargetsCooldown(t *testing.T) {
	s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Status = aiopsv1.AITaskStatus{}
	s.wait(299 * time.Second)
	if len(s.runs) != 1 {
		t.Errorf("%d runs within the cooldown, want the one from before", len(s.runs))
	}
	s.wait(2 * time.Second)
	if len(s.runs) != 2 {
		t.Errorf("%d runs after the cooldown, want a second one", len(s.runs))
	}
}

func TestARestartedOperatorCountsWhatItSawItself(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.wait(50 * time.Second)
	s.observation = Observation{}
	s.wait(59 * time.Second)
	if len(s.runs) != 0 {
		t.Errorf("runs %v, want none before this process saw the breach for 60 s", s.runs)
	}
	s.wait(time.Second)
	if len(s.runs) != 1 {
		t.Errorf("runs %v, want one", s.runs)
	}
}

func TestARestartInThatItCannotBeKnownKeepsHysteresis(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Threshold = nil
	spec.Signals = []aiopsv1.Signal{{Name: "memory", Type: aiopsv1.SignalMemoryUtilization, Threshold: pointer(int64(90)), RecoveryThreshold: pointer(int64(50))}}
	s := newStory(t, spec)
	s.reading = Reading{Known: true, Value: 95}
	s.wait(30 * time.Second)
	s.reading.Value = 70
	s.observation = Observation{}
	s.settle()
	if got := s.task.Status.Signals[0].Verdict; got != aiopsv1.VerdictBreached {
		t.Errorf("verdict %s after a restart, want Breached until 50", got)
	}
	s.reading.Value = 50
	s.settle()
	if got := s.task.Status.Signals[0].Verdict; got != aiopsv1.VerdictHealthy {
		t.Errorf("verdict %s at 50, want Healthy", got)
	}
}
