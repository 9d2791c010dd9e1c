package runbook

import (
	"strings"
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// recoveredOnce plays an incident that its first step ended, 120 s after the start.
func recoveredOnce(t *testing.T) *story {
	t.Helper()
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart), step("back", aiopsv1.ActionRollback)))
	s.onRun = func(*aiopsv1.Order) { s.heal() }
	s.breach()
	s.wait(2 * time.Minute)
	if incident := s.task.Status.Incident; incident == nil || incident.RecoveredTime == nil {
		t.Fatalf("not recovered: %s", encode(s.task.Status))
	}
	s.log = nil
	return s
}

func TestABreachSoonAfterRecoveryGoesOnAtTheNextStep(t *testing.T) {
	tests := map[string]struct {
		after time.Duration
		want  []string
	}{
		"within the time": {30 * time.Minute, []string{"+1920s Breached/Holding", "+1980s Acting/Ordered", "+1980s warning Recurred",
			"+1980s run Rollback", "+1980s Verifying/Verifying", "+1980s event ActionExecuted"}},
		"begun within the time": {3600*time.Second - time.Millisecond, []string{"+3719s Breached/Holding", "+3779s Acting/Ordered", "+3779s warning Recurred",
			"+3779s run Rollback", "+3779s Verifying/Verifying", "+3779s event ActionExecuted"}},
		"at its end": {3600 * time.Second, []string{"+3720s Watching/Healthy", "+3720s Breached/Holding", "+3780s Acting/Ordered", "+3780s warning Breached",
			"+3780s run Restart", "+3780s Verifying/Verifying", "+3780s event ActionExecuted"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := recoveredOnce(t)
			s.wait(test.after)
			s.breach()
			s.wait(61 * time.Second)
			s.wantWords(test.want...)
		})
	}
}

func TestABreachThatBeganInTimeButDidNotHoldClosesTheIncident(t *testing.T) {
	s := recoveredOnce(t)
	s.wait(3590 * time.Second)
	s.breach()
	s.wait(30 * time.Second)
	if s.task.Status.Incident == nil {
		t.Errorf("the incident was closed while a breach held: %s", encode(s.task.Status))
	}
	s.heal()
	s.settle()
	if s.task.Status.Incident != nil {
		t.Errorf("the incident was not closed: %s", encode(s.task.Status))
	}
}

func TestAStaleBreachDoesNotKeepTheIncident(t *testing.T) {
	s := recoveredOnce(t)
	s.wait(2 * time.Hour)
	if s.task.Status.Incident != nil {
		t.Errorf("incident %+v, want none", s.task.Status.Incident)
	}
	s.wantWords("+3720s Watching/Healthy")
}

func TestTheRecurrenceNamesItsStep(t *testing.T) {
	s := recoveredOnce(t)
	s.wait(10 * time.Minute)
	s.breach()
	s.wait(60 * time.Second)
	want := `+780s warning Recurred: UnavailableReplicas reached 1 and has held for 60s; within 3600s of recovery, so the same incident goes on at step "back"`
	if got := s.log[2]; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestARecurrenceWithoutAPassLeftPromisesNoStep(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Limits = &aiopsv1.Limits{MaxPasses: new(int32(1))}
	s := newStory(t, spec)
	s.onRun = func(*aiopsv1.Order) { s.heal() }
	s.breach()
	s.wait(10 * time.Minute)
	if got, want := s.task.Status.Decision.Message, "Recovered: ran Restart on Deployment/web. A breach before 2026-01-01T04:02:00Z finds no pass left, and is for people"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	s.log = nil
	s.breach()
	s.wait(61 * time.Second)
	if want := "within 3600s of recovery, so the same incident goes on, and has no pass left"; !strings.Contains(strings.Join(s.log, "\n"), want) {
		t.Errorf("told %q, want %q in it", s.log, want)
	}
	if len(s.runs) != 1 || s.task.Status.Phase != aiopsv1.PhaseExhausted {
		t.Errorf("%d runs, phase %s, want 1 and Exhausted", len(s.runs), s.task.Status.Phase)
	}
}

func TestRecurrencesEndExhausted(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.onRun = func(*aiopsv1.Order) { s.heal() }
	for range 5 {
		s.breach()
		s.wait(61 * time.Second)
		s.wait(10 * time.Minute)
	}
	if len(s.runs) != 3 || s.task.Status.Phase != aiopsv1.PhaseExhausted {
		t.Errorf("%d runs, phase %s, want 3 and Exhausted", len(s.runs), s.task.Status.Phase)
	}
}
