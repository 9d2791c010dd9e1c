package runbook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func TestAResultThatWasWrittenIsNotCountedAgain(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.wait(65 * time.Second)
	problem := Problem{aiopsv1.ReasonSuperseded, "late"}
	for name, decision := range map[string]Decision{
		"Executed":        Executed(s.input(), Execution{After: s.target.Image()}),
		"Withdrawn":       Withdrawn(s.input(), problem),
		"RefusedByAction": RefusedByAction(s.input(), Refusal{Problem: problem}),
		"Undelivered":     Undelivered(s.input(), "late"),
	} {
		if difference := cmp.Diff(s.task.Status, decision.Status); difference != "" || len(decision.Events) > 0 {
			t.Errorf("%s changed the status (-before +after):\n%s\nevents %+v", name, difference, decision.Events)
		}
	}
	s.task.Status = aiopsv1.AITaskStatus{Phase: aiopsv1.PhaseWatching}
	if got := Executed(s.input(), Execution{}).Status; got.Phase != aiopsv1.PhaseWatching || got.LastExecutionTime != nil {
		t.Errorf("a wiped status became %s", encode(got))
	}
}

func TestAWithdrawnOrderThatLeftItsStampCountsAsExecuted(t *testing.T) {
	s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart), step("page", aiopsv1.ActionNotify)))
	s.target.LastOrder = s.task.Status.Order.ID // it ran, and the process died before it could say so
	s.task.Spec.Mode = aiopsv1.ModeObserve
	s.settle()
	if got := len(s.task.Status.Executions); got != 1 || s.task.Status.LastExecutionTime == nil {
		t.Errorf("%d executions, last %v, want one", got, s.task.Status.LastExecutionTime)
	}
	want := aiopsv1.Incident{
		ID: s.task.Status.Incident.ID, StartTime: at(time.Minute), Pass: 1, StepName: "page", Cause: aiopsv1.CauseIncident, Attempts: 1, ExecutedInPass: 1,
		PlanHash: PlanOf(&s.task.Spec).Hash, TargetUID: targetUID, NotBeforeTime: s.task.Status.Decision.NextAllowedTime,
	}
	if difference := cmp.Diff(&want, s.task.Status.Incident); difference != "" {
		t.Errorf("incident (-want +got):\n%s", difference)
	}
	if got := s.task.Status.History[0]; got.Result != aiopsv1.ResultCancelled {
		t.Errorf("history %+v, want a cancelled order", got)
	}
}

func TestAWithdrawalKeepsALongerPause(t *testing.T) {
	s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target.LastOrder = s.task.Status.Order.ID
	s.task.Spec.Mode = aiopsv1.ModeObserve
	s.settle()
	if got := s.task.Status.Decision.NextAllowedTime; !got.Equal(*at(6 * time.Minute)) {
		t.Errorf("next allowed at %s, want the end of the cooldown", got)
	}
}

func TestAnActionThatWaitsIsGivenUpAtTheStepsTimeout(t *testing.T) {
	s := newStory(t, specOf(step("evict", aiopsv1.ActionEvict), step("restart", aiopsv1.ActionRestart)))
	blocked := refusal(aiopsv1.ReasonBlockedByDisruptionBudget, true)
	s.outcome = func(order *aiopsv1.Order) Decision {
		if order.Action == string(aiopsv1.ActionEvict) {
			return RefusedByAction(s.input(), *blocked)
		}
		return Executed(s.input(), Execution{After: s.target.Image()})
	}
	s.breach()
	s.wait(659 * time.Second)
	if got := s.task.Status; got.Incident.StepName != "evict" || got.Incident.Attempts != 0 || len(got.History) != 1 {
		t.Errorf("while it waits: %s", encode(got))
	}
	s.log = nil
	s.wait(30 * time.Second)
	if got := s.task.Status; got.Incident.StepName != "restart" || got.Incident.Attempts != 1 {
		t.Errorf("after the step's timeout: %s", encode(got))
	}
	if got := s.task.Status.History[0]; got.Result != aiopsv1.ResultRefused || got.Reason != aiopsv1.ReasonBlockedByDisruptionBudget {
		t.Errorf("history %+v, want a refusal", got)
	}
}

func TestAnActionsRefusalIsToldOnceAndNamesItsNextTime(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.outcome = func(*aiopsv1.Order) Decision {
		return RefusedByAction(s.input(), *refusal(aiopsv1.ReasonForbidden, false))
	}
	s.breach()
	s.wait(30 * time.Minute)
	told := 0
	for _, line := range s.log {
		if strings.Contains(line, `StepRefused: Step "restart" 1/1 (Restart): Forbidden: says Forbidden`) {
			told++
		}
	}
	if told != 1 || len(s.task.Status.History) != 1 || s.task.Status.Incident.Attempts != 0 {
		t.Errorf("told %d times, history %+v: %v", told, s.task.Status.History, s.log)
	}
}

// TestAnOrderSaysWhatIsToBeDoneUntilItIsDone: whoever reads a recorded order must not take it for one that ran.
func TestAnOrderSaysWhatIsToBeDoneUntilItIsDone(t *testing.T) {
	for action, want := range map[aiopsv1.ActionType][]string{
		aiopsv1.ActionRestart: {"run Restart on Deployment/web", "ran Restart on Deployment/web"},
		aiopsv1.ActionScale:   {"scale Deployment/web from 3 to 4 replicas", "scaled Deployment/web from 3 to 4 replicas"},
		aiopsv1.ActionNotify:  {"run Notify on Deployment/web", "ran Notify on Deployment/web"},
	} {
		t.Run(string(action), func(t *testing.T) {
			s := recorded(t, specOf(step("first", action)))
			got := []string{s.task.Status.Order.Message}
			s.settle()
			if action.Accompanies() {
				got = append(got, s.task.Status.History[0].Message)
			} else {
				got = append(got, s.task.Status.Order.Message)
			}
			if difference := cmp.Diff(want, got); difference != "" {
				t.Errorf("recorded and carried out (-want +got):\n%s", difference)
			}
		})
	}
}

func TestWhatTheActionSaysReplacesThePlansWords(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.outcome = func(*aiopsv1.Order) Decision {
		return Executed(s.input(), Execution{After: s.target.Image(), Message: strings.Repeat("x", 2000)})
	}
	s.breach()
	s.wait(60 * time.Second)
	if got, want := s.task.Status.Order.Message, strings.Repeat("x", aiopsv1.MaxMessageLength-3)+"..."; got != want {
		t.Errorf("message %q, want the action's own, cut", got)
	}
}

func TestAnOrderWhoseIncidentIsGoneStillEnds(t *testing.T) {
	withoutIncident := func(t *testing.T, action aiopsv1.ActionType) *story {
		s := recorded(t, specOf(step("first", action)))
		s.task.Status.Incident = nil
		return s
	}
	tests := map[string]func(*story) Decision{
		aiopsv1.ResultDone:    func(s *story) Decision { return Executed(s.input(), Execution{}) },
		aiopsv1.ResultRefused: func(s *story) Decision { return RefusedByAction(s.input(), *refusal(aiopsv1.ReasonForbidden, false)) },
		aiopsv1.ResultWithdrawn: func(s *story) Decision {
			return Withdrawn(s.input(), Problem{aiopsv1.ReasonSuperseded, "it was changed"})
		},
	}
	for want, end := range tests {
		t.Run(want, func(t *testing.T) {
			decision := end(withoutIncident(t, aiopsv1.ActionNotify))
			if got := decision.Status; got.Order != nil || got.History[0].Result != want || got.Incident != nil || got.Decision.Message == "" {
				t.Errorf("status %s, want the order to end as %s", encode(got), want)
			}
			if got := decision.Status; got.Phase == aiopsv1.PhaseBlocked && got.Decision.NextAllowedTime == nil {
				t.Errorf("blocked without a next time: %s", encode(got))
			}
		})
	}
	s := withoutIncident(t, aiopsv1.ActionRestart)
	if got := Executed(s.input(), Execution{After: s.target.Image()}).Status; got.Order.State != aiopsv1.OrderVerifying {
		t.Errorf("order %+v, want it to be verified", got.Order)
	}
}

func TestAMessageThatMayHaveArrivedIsNotSaidNotToHaveRun(t *testing.T) {
	healed := Problem{aiopsv1.ReasonSignalHealthy, "the signal was healthy again before the step ran"}
	for name, test := range map[string]struct {
		sent bool
		want string
	}{
		"sent":     {true, `Step "note" 1/1 may have been delivered, though nobody confirmed it; it is not sent again (SignalHealthy)`},
		"not sent": {false, `Step "note" 1/1 was not run: the signal was healthy again before the step ran`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(step("note", aiopsv1.ActionNotify)))
			s.outcome = func(*aiopsv1.Order) Decision {
				if test.sent {
					return Undelivered(s.input(), "receiver answered with status 503")
				}
				return Held(s.input(), Problem{aiopsv1.ReasonSignalUnknown, "later"})
			}
			s.breach()
			s.wait(70 * time.Second)
			decision := Withdrawn(s.input(), healed)
			if got := decision.Events[0].Message; got != test.want || decision.Status.Decision.Message != test.want {
				t.Errorf("told %q and said %q, want %q", got, decision.Status.Decision.Message, test.want)
			}
		})
	}
}

func TestOrdersThatStepBackForEachOtherComeBackAtDifferentTimes(t *testing.T) {
	until := func(randomID string) time.Time {
		s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart)))
		in := s.input()
		in.RandomID = randomID
		decision := Withdrawn(in, Problem{aiopsv1.ReasonTargetBusy, "another was first"})
		if decision.NextTime.Before(s.now.Add(withdrawBackoff)) || !decision.NextTime.Before(s.now.Add(withdrawBackoff+withdrawJitter)) {
			t.Errorf("next pass at %s, want 10 to 15 s later", decision.NextTime)
		}
		return decision.NextTime
	}
	if one, other := until("a"), until("b"); one.Equal(other) {
		t.Errorf("both come back at %s", one)
	}
}

// TestAMessageThatDoesNotArriveSaysSo also proves I5 for it: trying again is not worth a write, and another cause is.
func TestAMessageThatDoesNotArriveSaysSo(t *testing.T) {
	s := newStory(t, specOf(step("note", aiopsv1.ActionNotify)))
	cause, tries := `receiver "default" cannot be connected to`, 0
	s.outcome = func(*aiopsv1.Order) Decision {
		tries++
		return Undelivered(s.input(), cause)
	}
	s.breach()
	s.wait(70 * time.Second)
	message := func() string { return s.task.Status.Decision.Message }
	if want := `Receiver "default" cannot be connected to; tried again until 2026-01-01T03:06:00Z`; message() != want || s.task.Status.Phase != aiopsv1.PhaseActing {
		t.Errorf("%s %q, want Acting %q", s.task.Status.Phase, message(), want)
	}
	s.writes, tries = 0, 0
	s.wait(time.Minute)
	if tries < 20 || s.writes != 0 {
		t.Errorf("%d tries and %d writes in a minute with one cause, want one each 2s and none", tries, s.writes)
	}
	cause = `receiver "default" answered with status 503`
	s.wait(time.Minute)
	if want := `Receiver "default" answered with status 503; tried again until 2026-01-01T03:06:00Z`; message() != want || s.writes != 1 {
		t.Errorf("%q after %d writes, want %q after 1", message(), s.writes, want)
	}
	s.outcome = nil
	s.wait(10 * time.Second)
	if len(s.runs) != 1 || s.task.Status.History[0].Result != aiopsv1.ResultDone {
		t.Errorf("runs %v, history %s, want it delivered once", s.runs, encode(s.task.Status.History))
	}
}

func TestAHeldOrderSaysWhatItWaitsFor(t *testing.T) {
	s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.skew = time.Hour
	s.settle()
	want := &aiopsv1.Decision{
		Summary: "3 >= 1", Reason: aiopsv1.ReasonClockSkew, StepName: "restart", DecisionTime: at(time.Minute),
		Message: "The recorded step waits: the operator's clock and the API server's are more than 30s apart; nothing is done until they agree",
	}
	if difference := cmp.Diff(want, s.task.Status.Decision); difference != "" || s.task.Status.Phase != aiopsv1.PhaseActing {
		t.Errorf("phase %s, decision (-want +got):\n%s", s.task.Status.Phase, difference)
	}
	if !s.next.Equal(start().Add(75 * time.Second)) {
		t.Errorf("next pass at %s, want 15 s later", s.next)
	}
}

func TestANotificationThatNobodyConfirmedHasFailed(t *testing.T) {
	page, stop := step("page", aiopsv1.ActionNotify), step("page", aiopsv1.ActionNotify)
	stop.OnFailure = aiopsv1.OnFailureStop
	restart := step("restart", aiopsv1.ActionRestart)
	tests := map[string]struct {
		steps []aiopsv1.Step
		want  []string
	}{
		"and the next step follows": {[]aiopsv1.Step{page, restart}, []string{
			"+60s Breached/ThresholdReached", `+60s warning StepFailed: Step "page" 1/2: Notify was tried and never confirmed; step "restart" (Restart) follows`}},
		"and says onFailure Stop": {[]aiopsv1.Step{stop, restart}, []string{
			"+60s Exhausted/Exhausted", `+60s warning StepFailed: Step "page" 1/2: Notify was tried and never confirmed; nothing more is done`,
			`+60s warning Exhausted: Step "page" failed and says onFailure: Stop; nothing more will be done. To try again: fix the cause, then ` +
				"kubectl annotate --overwrite -n shop at web aiops.example.com/reset=" + string(taskUID) + "/$(date -u +%Y-%m-%dT%H:%M:%SZ)"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := recorded(t, specOf(test.steps...))
			s.write(Executed(s.input(), Execution{After: s.target.Image(), Interrupted: true}))
			s.wantLog(test.want...)
			want := aiopsv1.HistoryEntry{
				ID: s.task.Status.History[0].ID, Cause: aiopsv1.CauseIncident, StepName: "page", Action: "Notify", Result: aiopsv1.ResultFailed, Value: "3",
				Reason: aiopsv1.ReasonInterrupted, Message: "Notify was tried and never confirmed", StartTime: at(time.Minute), EndTime: at(time.Minute),
			}
			if difference := cmp.Diff(want, s.task.Status.History[0]); difference != "" {
				t.Errorf("history (-want +got):\n%s", difference)
			}
		})
	}
}

func TestARequestedNotificationThatNobodyConfirmedLeavesNoIncident(t *testing.T) {
	s := newStory(t, specOf(step("page", aiopsv1.ActionNotify)))
	s.outcome = func(*aiopsv1.Order) Decision {
		return Executed(s.input(), Execution{After: s.target.Image(), Interrupted: true})
	}
	s.ask(aiopsv1.RunAnnotation, 0)
	s.wait(time.Hour)
	s.wantWords("+0s Acting/Ordered", "+0s Watching/Healthy", "+0s warning StepFailed")
	if got := s.task.Status; got.Incident != nil || got.History[0].Result != aiopsv1.ResultFailed {
		t.Errorf("status %s, want a failed step and no incident", encode(got))
	}
}

func TestAnOrderThatTheActionFoundOvertakenIsDecidedAnew(t *testing.T) {
	for _, reason := range []string{aiopsv1.ReasonSuperseded, aiopsv1.ReasonTargetReplaced, aiopsv1.ReasonTargetNotFound, aiopsv1.ReasonTargetDeleting} {
		t.Run(reason, func(t *testing.T) {
			stop := step("restart", aiopsv1.ActionRestart)
			stop.OnFailure = aiopsv1.OnFailureStop
			s := recorded(t, specOf(stop, step("back", aiopsv1.ActionRollback)))
			s.write(RefusedByAction(s.input(), *refusal(reason, false)))
			s.wantWords("+60s Blocked/"+reason, "+60s event OrderWithdrawn")
			if got := s.task.Status; got.History[0].Result != aiopsv1.ResultWithdrawn || got.Incident.StepName != "restart" || got.Incident.Exhausted {
				t.Errorf("status %s, want the same step to be decided anew", encode(got))
			}
			s.wait(301 * time.Second)
			if len(s.runs) != 1 {
				t.Errorf("runs %v, want the step to run after a pause", s.runs)
			}
		})
	}
}

func TestAnOrderEndsWithoutTheStepsItCameFrom(t *testing.T) {
	tests := map[string]struct {
		stamped bool
		end     func(Input) Decision
		result  string
		count   int
	}{
		"executed":                {end: func(in Input) Decision { return Executed(in, Execution{}) }, result: aiopsv1.ResultCancelled, count: 1},
		"executed, and stamped":   {stamped: true, end: func(in Input) Decision { return Executed(in, Execution{}) }, result: aiopsv1.ResultCancelled, count: 1},
		"withdrawn":               {end: func(in Input) Decision { return Withdrawn(in, Problem{aiopsv1.ReasonSpecChanged, "x"}) }, result: aiopsv1.ResultWithdrawn},
		"withdrawn, but stamped":  {stamped: true, end: func(in Input) Decision { return Withdrawn(in, Problem{aiopsv1.ReasonSpecChanged, "x"}) }, result: aiopsv1.ResultCancelled, count: 1},
		"refused":                 {end: func(in Input) Decision { return RefusedByAction(in, *refusal(aiopsv1.ReasonForbidden, false)) }, result: aiopsv1.ResultWithdrawn},
		"refused, and would wait": {end: func(in Input) Decision { return RefusedByAction(in, *refusal(aiopsv1.ReasonForbidden, true)) }, result: aiopsv1.ResultWithdrawn},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart)))
			if test.stamped {
				s.target.LastOrder = s.task.Status.Order.ID
			}
			s.task.Spec.Steps = nil
			s.write(test.end(s.input()))
			if got := s.task.Status; got.Order != nil || got.Incident != nil || got.History[0].Result != test.result || len(got.Executions) != test.count {
				t.Errorf("status %s, want no order and no incident, the order %s, %d executions", encode(got), test.result, test.count)
			}
			if got := s.log[len(s.log)-1]; !strings.Contains(got, `: Step "restart": the steps were taken out of the spec`) {
				t.Errorf("told %q, want why the order ended", got)
			}
			s.settle()
			if got := s.task.Status; got.Phase != aiopsv1.PhaseBreached {
				t.Errorf("the pass after it says %s, want the new plan to be judged", got.Phase)
			}
		})
	}
}
