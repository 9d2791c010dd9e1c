package runbook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func at(offset time.Duration) *aiopsv1.Time {
	return aiopsv1.TimePointer(start().Add(offset))
}

func TestRepairDropsTimesThatAreNone(t *testing.T) {
	none := func() *aiopsv1.Time { return &aiopsv1.Time{} }
	plan := PlanOf(pointer(specOf(step("restart", aiopsv1.ActionRestart))))
	status := aiopsv1.AITaskStatus{
		LastExecutionTime: none(),
		Conditions:        []aiopsv1.Condition{{Type: "Ready", LastTransitionTime: none()}},
		Target:            &aiopsv1.TargetStatus{HealthyTime: none()},
		Signals:           []aiopsv1.SignalStatus{{Name: "a", MeasuredTime: none(), LastTransitionTime: none()}},
		Decision:          &aiopsv1.Decision{DecisionTime: none()},
		Incident:          &aiopsv1.Incident{StartTime: none(), RecoveredTime: none(), NotBeforeTime: none()},
		Order:             &aiopsv1.Order{State: aiopsv1.OrderVerifying, StepName: "restart", RecordedTime: none()},
		Executions:        []aiopsv1.Time{{}, {}},
		History:           []aiopsv1.HistoryEntry{{StartTime: none(), EndTime: none()}},
	}
	repair(Input{Now: start(), Plan: plan}, &status)
	want := aiopsv1.AITaskStatus{
		Conditions: []aiopsv1.Condition{{Type: "Ready"}},
		Target:     &aiopsv1.TargetStatus{},
		Signals:    []aiopsv1.SignalStatus{{Name: "a"}},
		Decision:   &aiopsv1.Decision{},
		Incident:   &aiopsv1.Incident{StartTime: at(0), Pass: 1},
		Order:      &aiopsv1.Order{State: aiopsv1.OrderVerifying, StepName: "restart", RecordedTime: at(0), ExecutedTime: at(0), DeadlineTime: at(10 * time.Minute)},
		History:    []aiopsv1.HistoryEntry{{}},
	}
	if difference := cmp.Diff(want, status); difference != "" {
		t.Errorf("repaired (-want +got):\n%s", difference)
	}
}

func TestRepairBringsBackTimesFromTheFuture(t *testing.T) {
	plan := PlanOf(pointer(specOf(step("restart", aiopsv1.ActionRestart))))
	filled := func(state string, late time.Duration) aiopsv1.AITaskStatus {
		return aiopsv1.AITaskStatus{
			LastExecutionTime: at(late),
			Conditions:        []aiopsv1.Condition{{LastTransitionTime: at(late)}},
			Target:            &aiopsv1.TargetStatus{HealthyTime: at(late)},
			Signals:           []aiopsv1.SignalStatus{{MeasuredTime: at(late), LastTransitionTime: at(late)}},
			Decision:          &aiopsv1.Decision{DecisionTime: at(late)},
			Incident:          &aiopsv1.Incident{Pass: 1, StartTime: at(late), RecoveredTime: at(late), NotBeforeTime: at(5*time.Minute + late)},
			Order: &aiopsv1.Order{State: state, StepName: "restart", RecordedTime: at(late), DeadlineTime: at(5*time.Minute + late),
				ExecutedTime: at(late)},
			Executions: []aiopsv1.Time{*at(late), *at(-time.Hour)},
			History:    []aiopsv1.HistoryEntry{{StartTime: at(late), EndTime: at(late)}},
		}
	}
	sorted := func(status aiopsv1.AITaskStatus) aiopsv1.AITaskStatus {
		status.Executions[0], status.Executions[1] = status.Executions[1], status.Executions[0]
		return status
	}
	tests := map[string]struct{ given, want aiopsv1.AITaskStatus }{
		"as far as two clocks may differ it stays": {filled(aiopsv1.OrderRecorded, clockTolerance), sorted(filled(aiopsv1.OrderRecorded, clockTolerance))},
		"beyond that it counts from now":           {filled(aiopsv1.OrderRecorded, clockTolerance+time.Millisecond), sorted(filled(aiopsv1.OrderRecorded, 0))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Order.ExecutedTime = test.given.Order.ExecutedTime // nobody counts from it before the order ran
			repair(Input{Now: start(), Plan: plan}, &test.given)
			if difference := cmp.Diff(test.want, test.given); difference != "" {
				t.Errorf("repaired (-want +got):\n%s", difference)
			}
		})
	}
}

// recorded plays a breach up to the moment at which the order is written.
func recorded(t *testing.T, spec aiopsv1.AITaskSpec) *story {
	t.Helper()
	s := newStory(t, spec)
	s.outcome = func(*aiopsv1.Order) Decision { return Held(s.input(), Problem{aiopsv1.ReasonClockSkew, "waits"}) }
	s.breach()
	s.wait(60 * time.Second)
	if s.task.Status.Order == nil {
		t.Fatalf("no order was recorded: %s", encode(s.task.Status))
	}
	s.outcome = nil
	s.log = nil
	return s
}

func TestAnOrderThatIsNotTheIncidentsOwnIsDropped(t *testing.T) {
	tests := map[string]func(*aiopsv1.AITaskStatus){
		"no incident":      func(status *aiopsv1.AITaskStatus) { status.Incident = nil },
		"another incident": func(status *aiopsv1.AITaskStatus) { status.Incident.ID = "other" },
		"another pass":     func(status *aiopsv1.AITaskStatus) { status.Incident.Pass = 2 },
		"another step":     func(status *aiopsv1.AITaskStatus) { status.Incident.StepName = "page" },
		"unknown step": func(status *aiopsv1.AITaskStatus) {
			status.Incident.StepName, status.Order.StepName = "ghost", "ghost"
			status.Order.ID = digest(taskUID, status.Incident.ID, status.Incident.Pass, "ghost", status.Incident.PlanHash)
		},
		"another ID": func(status *aiopsv1.AITaskStatus) { status.Order.ID = "forged" },
	}
	for name, change := range tests {
		for _, state := range []string{aiopsv1.OrderRecorded, aiopsv1.OrderVerifying} {
			t.Run(name+" "+state, func(t *testing.T) {
				s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart), step("page", aiopsv1.ActionNotify)))
				s.task.Status.Order.State = state
				s.heal()
				change(&s.task.Status)
				s.settle()
				if order := s.task.Status.Order; order != nil {
					t.Errorf("order %+v, want none", order)
				}
				if got := s.task.Status.History[0]; got.Reason != aiopsv1.ReasonSuperseded || len(s.runs) > 0 {
					t.Errorf("history %+v, runs %v, want a superseded order and no run", got, s.runs)
				}
			})
		}
	}
}

func TestAVerifyingOrderFromTheFutureEnds(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.wait(65 * time.Second)
	order := s.task.Status.Order
	order.ExecutedTime, order.DeadlineTime = at(100*365*24*time.Hour), at(100*365*24*time.Hour)
	s.log = nil
	s.wait(610 * time.Second)
	s.wantWords("+665s Acting/Ordered", "+665s warning StepFailed", "+665s run Restart", "+665s Verifying/Verifying", "+665s event ActionExecuted")
}

func TestAVerifyingOrderWithoutTimesEnds(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.wait(65 * time.Second)
	order := s.task.Status.Order
	order.ExecutedTime, order.DeadlineTime, order.RecordedTime = nil, nil, nil
	s.log = nil
	s.heal()
	s.wait(time.Minute)
	s.wantWords("+125s Watching/Recovered", "+125s event Recovered")
}

func TestAStampFromTheFutureHoldsNothingBack(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target.LastActionTime = start().Add(24 * time.Hour)
	s.breach()
	s.wait(60 * time.Second)
	if len(s.runs) != 1 {
		t.Errorf("runs %v, want one: %s", s.runs, encode(s.task.Status.Decision))
	}
}

func TestCountersBelowTheirRangeDoNotBuyMoreAttempts(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Status.Incident = &aiopsv1.Incident{ID: "i", PlanHash: PlanOf(&s.task.Spec).Hash, TargetUID: targetUID, Pass: -100, Attempts: -100, ExecutedInPass: -100}
	s.breach()
	s.wait(24 * time.Hour)
	if len(s.runs) != 3 || s.task.Status.Phase != aiopsv1.PhaseExhausted {
		t.Errorf("%d runs, phase %s, want 3 and Exhausted", len(s.runs), s.task.Status.Phase)
	}
}
