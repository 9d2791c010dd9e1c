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
		Summary: "0 < 1", Reason: aiopsv1.ReasonRecovered, DecisionTime: aiopsv1.TimePointer(start().Add(120 * time.Second)),
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
	want := `Recovered: the breach ended without an action of this task. A breach before 2026-01-01T04:03:00Z goes on at step "restart"`
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
	if got := s.next; !got.Equal(start().Add(85 * time.Second)) {
		t.Errorf("looked at again at %s, want 15 s after the latest look", got)
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
	want := "limits.maxActions is used up: 2 actions within 86400s. The next is allowed at 2026-01-01T17:00:00Z; raise the limit to let it run sooner"
	if got := s.task.Status.Decision.Message; got != want || len(s.runs) > 0 {
		t.Errorf("message %q, runs %v, want %q and none", got, s.runs, want)
	}
	s.wait(time.Second)
	if len(s.runs) != 1 {
		t.Errorf("runs %v, want one", s.runs)
	}
}

func TestATaskWithoutStepsReportsAndRecovers(t *testing.T) {
	s := newStory(t, specOf())
	s.breach()
	s.wait(10 * time.Minute)
	s.heal()
	s.wait(10 * time.Minute)
	s.wantWords("+0s Breached/Holding", "+60s Breached/NoSteps", "+60s warning Breached", "+600s Breached/Recovering",
		"+660s Watching/Recovered", "+660s event Recovered")
	if got := s.task.Status.Decision.Message; got != "Recovered: the breach ended without an action of this task" {
		t.Errorf("message %q", got)
	}
}

func TestALastStepThatIsRefusedEndsTheLastPassOnce(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart), step("more", aiopsv1.ActionScale))
	spec.Limits.MaxPasses = pointer(int32(1))
	s := newStory(t, spec)
	s.refusals["more"] = refusal(aiopsv1.ReasonAtLimit, false)
	s.breach()
	s.wait(time.Hour)
	s.wantWords("+0s Breached/Holding", "+60s Acting/Ordered", "+60s warning Breached", "+60s run Restart", "+60s Verifying/Verifying", "+60s event ActionExecuted",
		"+660s Exhausted/Exhausted", "+660s warning StepFailed", "+660s warning StepRefused", "+660s warning Exhausted")
}

func TestAPassInWhichNothingCanBeRunBlocksWithoutAnAttempt(t *testing.T) {
	s := newStory(t, specOf(step("more", aiopsv1.ActionScale), step("back", aiopsv1.ActionRollback)))
	s.refusals["more"], s.refusals["back"] = refusal(aiopsv1.ReasonOwnedByAutoscaler, false), refusal(aiopsv1.ReasonNoEarlierRevision, false)
	s.breach()
	s.wait(6 * time.Hour)
	s.wantLog("+0s Breached/Holding", "+60s Blocked/NoEarlierRevision",
		"+60s warning Breached: UnavailableReplicas reached 1 and has held for 60s",
		`+60s warning StepRefused: Step "more" 1/2 (Scale): OwnedByAutoscaler: says OwnedByAutoscaler`,
		`+60s warning StepRefused: Step "back" 2/2 (Rollback): NoEarlierRevision: says NoEarlierRevision`,
		"+60s warning Blocked: NoEarlierRevision: says NoEarlierRevision")
	if got := s.task.Status; got.Incident.Pass != 1 || got.Incident.Attempts != 0 || len(got.History) != 2 {
		t.Errorf("status %s, want the first pass, no attempts and two refusals", encode(got))
	}
	delete(s.refusals, "back")
	s.wait(5 * time.Minute)
	if len(s.runs) != 1 {
		t.Errorf("runs %v, want one as soon as a step can be run", s.runs)
	}
}

func TestAShortCooldownStillPausesBetweenPassesThatAreRefused(t *testing.T) {
	spec := specOf(step("more", aiopsv1.ActionScale))
	spec.Limits.CooldownSeconds = pointer(int32(0))
	s := newStory(t, spec)
	s.refusals["more"] = refusal(aiopsv1.ReasonOwnedByAutoscaler, false)
	s.breach()
	s.wait(60 * time.Second)
	if got := s.task.Status.Decision.NextAllowedTime; !got.Equal(*at(2 * time.Minute)) {
		t.Errorf("next allowed at %s, want a minute later", got)
	}
}

func TestWhatRestsIsNotCalledBroken(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.reading = Reading{Resting: true, Reason: aiopsv1.ReasonRolloutInProgress, Message: "Deployment/web is rolling out"}
	s.wait(10 * time.Minute)
	s.wantLog("+0s Watching/RolloutInProgress")
}

func TestAnOpenIncidentWaitsForARolloutAndSaysSo(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.refusals["restart"] = refusal(aiopsv1.ReasonQuotaExceeded, true)
	s.breach()
	s.wait(65 * time.Second)
	s.log = nil
	s.reading = Reading{Resting: true, Reason: aiopsv1.ReasonRolloutInProgress, Message: "Deployment/web is rolling out"}
	s.wait(10 * time.Minute)
	s.wantWords("+65s Breached/RolloutInProgress")
	if got, want := s.task.Status.Decision.Message, "Deployment/web is rolling out; the open incident waits for that"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	s.heal()
	s.wait(2 * time.Minute)
	s.reading = Reading{Resting: true, Reason: aiopsv1.ReasonRolloutInProgress, Message: "Deployment/web is rolling out"}
	s.settle()
	if got := s.task.Status; got.Phase != aiopsv1.PhaseWatching || got.Decision.Message != "Deployment/web is rolling out" {
		t.Errorf("after the recovery %s: %q, want Watching", got.Phase, got.Decision.Message)
	}
}

func TestASignalThatGoesBlindInAnIncidentHoldsEverything(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.refusals["restart"] = refusal(aiopsv1.ReasonQuotaExceeded, true)
	s.breach()
	s.wait(65 * time.Second)
	s.blind()
	delete(s.refusals, "restart")
	s.wait(time.Hour)
	s.wantWords("+0s Breached/Holding", "+60s Blocked/QuotaExceeded", "+60s warning Breached", "+60s warning Blocked",
		"+65s Breached/SignalUnknown", "+65s warning SignalUnknown")
}

func TestABreachThatDoesNotHoldIsNoIncident(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	for range 3 {
		s.breach()
		s.wait(59 * time.Second)
		s.heal()
		s.wait(time.Second)
	}
	if s.task.Status.Incident != nil || s.events > 0 {
		t.Errorf("incident %+v, %d events, want none", s.task.Status.Incident, s.events)
	}
	if want := "UnavailableReplicas reached 1; a step is due if that holds for 60s, at 2026-01-01T03:03:00Z"; s.holding(2*time.Minute) != want {
		t.Errorf("message %q, want %q", s.holding(2*time.Minute), want)
	}
}

// holding is what a breach of this moment is called.
func (s *story) holding(offset time.Duration) string {
	s.now = start().Add(offset)
	s.observation = Observation{}
	s.breach()
	return s.decide(s.input()).Status.Decision.Message
}

func TestWhatHoldsAnIncidentBackIsSaidEvenIfTheLastWordIsLost(t *testing.T) {
	paused := func(s *story) { s.refusals["restart"] = refusal(aiopsv1.ReasonTargetPaused, false) }
	for name, test := range map[string]struct {
		prepare, lose func(*story)
		want          aiopsv1.Decision
	}{
		"it ran": {
			paused, func(s *story) { s.task.Status.History[0].Result = aiopsv1.ResultCancelled },
			aiopsv1.Decision{Reason: aiopsv1.ReasonCooldown, Message: "Next action allowed at 2026-01-01T03:06:00Z", NextAllowedTime: at(6 * time.Minute)},
		},
		"nobody knows": {
			paused, func(s *story) { s.task.Status.History = nil },
			aiopsv1.Decision{Reason: aiopsv1.ReasonCooldown, Message: "Next action allowed at 2026-01-01T03:06:00Z", NextAllowedTime: at(6 * time.Minute)},
		},
		"refused": {
			paused, func(*story) {},
			aiopsv1.Decision{Reason: aiopsv1.ReasonTargetPaused, Message: `Step "restart" was refused (TargetPaused); looked at again at 2026-01-01T03:06:00Z`, NextAllowedTime: at(6 * time.Minute)},
		},
		"withdrawn": {
			func(s *story) {
				s.outcome = func(*aiopsv1.Order) Decision {
					in := s.input()
					in.RandomID = ""
					return Withdrawn(in, Problem{aiopsv1.ReasonTargetBusy, "another was first"})
				}
			},
			func(*story) {},
			aiopsv1.Decision{Reason: aiopsv1.ReasonTargetBusy, Message: `Step "restart" was withdrawn (TargetBusy); looked at again at 2026-01-01T03:02:00Z`, NextAllowedTime: at(2*time.Minute + 830*time.Millisecond)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
			test.prepare(s)
			s.breach()
			s.wait(2 * time.Minute)
			s.task.Status.Decision = nil
			test.lose(s)
			s.settle()
			test.want.Summary, test.want.StepName, test.want.DecisionTime = "3 >= 1", "restart", at(2*time.Minute)
			if difference := cmp.Diff(&test.want, s.task.Status.Decision); difference != "" {
				t.Errorf("decision (-want +got):\n%s", difference)
			}
		})
	}
}

func TestALostIncidentBeginsAnewBehindTheSameLimit(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target.LastActionTime = start()
	s.breach()
	s.wait(2 * time.Minute)
	s.task.Status.Incident = nil
	s.settle()
	if got := s.task.Status.Decision; got.Reason != aiopsv1.ReasonCooldown || !got.DecisionTime.Equal(*at(2 * time.Minute)) {
		t.Errorf("decision %+v, want the cooldown, decided anew for another incident", got)
	}
}

func TestARequestedNotificationDuringABreachGoesOn(t *testing.T) {
	s := newStory(t, specOf(step("page", aiopsv1.ActionNotify)))
	s.breach()
	s.wait(100 * time.Second)
	s.log = nil
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(261 * time.Second)
	s.wantWords("+360s Acting/Ordered", "+360s run Notify", "+360s Breached/ThresholdReached", "+360s event Notified", "+360s Blocked/Cooldown", "+360s warning Blocked")
	if got := s.task.Status.Incident; got.Pass != 3 || got.Cause != aiopsv1.CauseIncident {
		t.Errorf("incident %+v, want its third pass", got)
	}
}
