package runbook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func refusal(reason string, wait bool) *Refusal {
	return &Refusal{Problem: Problem{reason, "says " + reason}, Wait: wait}
}

// A pass that ends in refusals after something was tried leads through more than one round over the steps at one moment: the
// decision must still say what it came to.
func TestRefusalsAfterATriedStepEndExhausted(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart), step("more", aiopsv1.ActionScale), step("back", aiopsv1.ActionRollback)))
	s.refusals["more"], s.refusals["back"] = refusal(aiopsv1.ReasonOwnedByAutoscaler, false), refusal(aiopsv1.ReasonNoEarlierRevision, false)
	s.onRun = func(*aiopsv1.Order) { s.refusals["restart"] = refusal(aiopsv1.ReasonTargetPaused, false) }
	s.breach()
	s.wait(time.Hour)
	s.wantWords(
		"+0s Breached/Holding",
		"+60s Acting/Ordered", "+60s warning Breached", "+60s run Restart", "+60s Verifying/Verifying", "+60s event ActionExecuted",
		"+660s Exhausted/Exhausted", "+660s warning StepFailed", "+660s warning StepRefused",
		"+660s warning StepRefused", "+660s warning StepRefused", "+660s warning StepRefused", "+660s warning StepRefused", "+660s warning Exhausted",
	)
}

func TestARecoveryIsNamedForAsLongAsABreachWouldBelongToIt(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart), step("page", aiopsv1.ActionNotify)))
	s.onRun = func(*aiopsv1.Order) { s.heal() }
	s.breach()
	s.wait(30 * time.Minute)
	want := aiopsv1.Decision{
		Summary: "0 >= 1", Reason: aiopsv1.ReasonRecovered, DecisionTime: aiopsv1.TimePointer(start().Add(120 * time.Second)),
		Message: `Recovered: ran Restart on Deployment/web. A breach before 2026-01-01T04:02:00Z goes on at step "page"`,
	}
	if difference := cmp.Diff(&want, s.task.Status.Decision); difference != "" {
		t.Errorf("decision half an hour later (-want +got):\n%s", difference)
	}
	s.wait(time.Hour)
	if got := s.task.Status.Decision.Message; got != "Nothing to do" || s.task.Status.Incident != nil {
		t.Errorf("after the incident: message %q, incident %+v", got, s.task.Status.Incident)
	}
}

func TestABreachThatEndsByItselfIsSaidToHaveDoneSo(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.refusals["restart"] = refusal(aiopsv1.ReasonTargetPaused, false)
	s.breach()
	s.wait(2 * time.Minute)
	s.heal()
	s.wait(2 * time.Minute)
	want := `Recovered: the breach ended by itself. A breach before 2026-01-01T04:03:00Z goes on at step "restart"`
	if got := s.task.Status.Decision.Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestWithoutRecurrenceTheIncidentEndsWithItsRecovery(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Limits.RecurrenceSeconds = pointer(int32(0))
	s := newStory(t, spec)
	s.onRun = func(*aiopsv1.Order) { s.heal() }
	s.breach()
	s.wait(2 * time.Minute)
	s.wantWords("+0s Breached/Holding", "+60s Acting/Ordered", "+60s warning Breached", "+60s run Restart", "+60s Verifying/Verifying",
		"+60s event ActionExecuted", "+120s Watching/Recovered", "+120s event Recovered", "+120s Watching/Healthy")
	if s.task.Status.Incident != nil {
		t.Errorf("incident %+v, want none", s.task.Status.Incident)
	}
}

func TestEachStepWaitsForItsOwnTimeout(t *testing.T) {
	slow := step("back", aiopsv1.ActionRollback)
	slow.TimeoutSeconds = pointer(int32(100))
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart), slow, step("page", aiopsv1.ActionNotify)))
	s.refusals["restart"], s.refusals["back"] = refusal(aiopsv1.ReasonQuotaExceeded, true), refusal(aiopsv1.ReasonQuotaExceeded, true)
	s.breach()
	s.wait(15 * time.Minute)
	s.wantWords("+0s Breached/Holding", "+60s Blocked/QuotaExceeded", "+60s warning Breached", "+60s warning Blocked",
		"+660s warning StepRefused", "+760s Acting/Ordered", "+760s warning StepRefused", "+760s run Notify", "+760s Breached/ThresholdReached",
		"+760s event Notified", "+760s Blocked/Cooldown", "+760s warning Blocked")
}

func TestAStepThatWaitsIsPlannedAgainAndRunsAsSoonAsItMay(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.refusals["restart"] = refusal(aiopsv1.ReasonQuotaExceeded, true)
	s.breach()
	s.wait(70 * time.Second)
	if got := s.next; !got.Equal(start().Add(75 * time.Second)) {
		t.Errorf("looked at again at %s, want 15 s after it was refused", got)
	}
	delete(s.refusals, "restart")
	s.wait(10 * time.Second)
	s.wantWords("+0s Breached/Holding", "+60s Blocked/QuotaExceeded", "+60s warning Breached", "+60s warning Blocked",
		"+70s Acting/Ordered", "+70s run Restart", "+70s Verifying/Verifying", "+70s event ActionExecuted")
}

func TestAnExhaustedBudgetIsSaidTheSameWayUntilItIsOver(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Limits = &aiopsv1.Limits{MaxActions: pointer(int32(2)), CooldownSeconds: pointer(int32(0))}
	s := newStory(t, spec)
	for _, hours := range []int{-25, -23, -20, -10, -1} {
		s.task.Status.Executions = append(s.task.Status.Executions, *at(time.Duration(hours) * time.Hour))
	}
	s.breach()
	s.wait(14*time.Hour - time.Second)
	want := "2 actions within 86400s have run, which is all that limits.maxActions allows; the next is allowed at 2026-01-01T17:00:00Z"
	if got := s.task.Status.Decision.Message; got != want || len(s.runs) > 0 {
		t.Errorf("message %q, runs %v, want %q and none", got, s.runs, want)
	}
	s.wait(time.Second)
	if len(s.runs) != 1 {
		t.Errorf("runs %v, want one", s.runs)
	}
}
