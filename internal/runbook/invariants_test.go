package runbook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// The tests of this file are the pure part of the invariants in docs/architecture.md, by their numbers. I1 stands with judging.

// TestInvariantI2NoActionWithoutARecordedOrder: Next asks for an order to be run only when the status it was given holds it.
func TestInvariantI2NoActionWithoutARecordedOrder(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.settle()
	s.now = s.now.Add(time.Minute)
	decision := s.decide(s.input())
	if decision.Execute || decision.Status.Order == nil || decision.Status.Order.State != aiopsv1.OrderRecorded {
		t.Fatalf("the pass that decides: execute %t, order %+v, want an order that is only recorded", decision.Execute, decision.Status.Order)
	}
	again := s.decide(s.input())
	if again.Execute {
		t.Error("the order was not written, and yet it is to be run")
	}
	s.task.Status = decision.Status
	if got := s.decide(s.input()); !got.Execute || got.Status.Order.ID != decision.Status.Order.ID {
		t.Errorf("the pass after it: execute %t, order %+v, want that order to be run", got.Execute, got.Status.Order)
	}
}

// TestInvariantI3OneUnfinishedOrderPerTarget: a task with an unfinished order writes no other one, and one that sees another
// task's order waits, before it writes its own and at the gate.
func TestInvariantI3OneUnfinishedOrderPerTarget(t *testing.T) {
	t.Run("of one task", func(t *testing.T) {
		s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart)))
		first := s.task.Status.Order.ID
		for range 60 {
			s.wait(9 * time.Second)
			if got := s.task.Status.Order; got == nil || got.ID != first || got.State != aiopsv1.OrderVerifying {
				t.Fatalf("%s: order %+v, want %s until it is finished", s.clock(), got, first)
			}
		}
	})
	t.Run("of two tasks, before the order is written", func(t *testing.T) {
		s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
		s.fleet = Fleet{BusyTask: "other", BusyUntil: start().Add(5 * time.Minute)}
		s.breach()
		s.wait(299 * time.Second)
		if s.task.Status.Order != nil || reasonOf(&s.task.Status) != aiopsv1.ReasonTargetBusy {
			t.Errorf("status %s, want Blocked by TargetBusy", encode(s.task.Status))
		}
	})
	t.Run("of two tasks, at the gate", func(t *testing.T) {
		s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
		s.atGate = func() { s.fleet = Fleet{BusyTask: "other", BusyUntil: start().Add(5 * time.Minute)} }
		s.breach()
		s.wait(2 * time.Minute)
		if len(s.runs) > 0 || s.task.Status.Order != nil {
			t.Errorf("runs %v, order %+v, want the order to be withdrawn", s.runs, s.task.Status.Order)
		}
	})
}

// TestInvariantI5AQuietSystemWritesNothing: in whatever state nothing happens, a day of passes writes nothing.
func TestInvariantI5AQuietSystemWritesNothing(t *testing.T) {
	restart := step("restart", aiopsv1.ActionRestart)
	tests := map[string]func(*story){
		"healthy":   func(*story) {},
		"unknown":   (*story).blind,
		"suspended": func(s *story) { s.task.Spec.Suspend = pointer(true) },
		"invalid":   func(s *story) { s.task.Spec.Threshold = pointer(int64(0)) },
		"no target": func(s *story) { s.target = nil },
		"deleting":  func(s *story) { s.target.Deleting = true },
		"observing": func(s *story) { s.task.Spec.Mode = aiopsv1.ModeObserve; s.breach() },
		"exhausted": func(s *story) { s.task.Spec.Steps[0].OnFailure = aiopsv1.OnFailureStop; s.breach() },
		"no steps":  func(s *story) { s.task.Spec.Steps = nil; s.breach() },
		"changing value": func(s *story) {
			s.target.Replicas = 100
			s.task.Spec.Threshold = pointer(int64(50))
		},
		"recovering": func(s *story) {
			s.breach()
			s.wait(2 * time.Minute)
			s.heal()
			s.target.Available = false
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(restart))
			prepare(s)
			s.wait(3 * time.Hour)
			s.writes, s.events = 0, 0
			for hour := range 24 {
				if name == "changing value" {
					s.reading.Value = float64(hour)
				}
				s.wait(time.Hour)
			}
			if s.writes > 0 || s.events > 0 {
				t.Errorf("%d writes and %d events in a day: %v", s.writes, s.events, s.log[len(s.log)-1])
			}
		})
	}
}

// TestInvariantI7AttemptsAreBounded: however the steps fail, an incident has at most maxPasses times its steps, and ends
// Exhausted, said once.
func TestInvariantI7AttemptsAreBounded(t *testing.T) {
	for passes := int32(1); passes <= 4; passes++ {
		for steps := 1; steps <= 4; steps++ {
			t.Run(fmt.Sprintf("%d passes over %d steps", passes, steps), func(t *testing.T) {
				spec := specOf()
				for i := range steps {
					spec.Steps = append(spec.Steps, step(fmt.Sprintf("step-%d", i), aiopsv1.ActionRestart))
				}
				spec.Limits = &aiopsv1.Limits{MaxPasses: &passes, MaxActions: pointer(int32(100)), CooldownSeconds: pointer(int32(0))}
				s := newStory(t, spec)
				s.breach()
				s.wait(24 * time.Hour)
				if got, want := len(s.runs), int(passes)*steps; got != want {
					t.Errorf("%d runs, want %d", got, want)
				}
				if got := strings.Count(strings.Join(s.log, "\n"), "warning Exhausted"); got != 1 || s.task.Status.Phase != aiopsv1.PhaseExhausted {
					t.Errorf("phase %s, Exhausted said %d times, want once", s.task.Status.Phase, got)
				}
			})
		}
	}
}

// TestInvariantI12StatusStaysUnder32KiB: every text at its longest, in the letters that JSON makes longest, every list full.
func TestInvariantI12StatusStaysUnder32KiB(t *testing.T) {
	for name, letter := range map[string]string{"plain": "x", "escaped": "<", "quoted": `"`, "control": "\x01", "not text": "\xff", "wide": "😀"} {
		t.Run(name, func(t *testing.T) {
			long := strings.Repeat(letter, 5000)
			status := longestStatus(t, long)
			encoded, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			if len(encoded) > maxStatusBytes {
				t.Errorf("%d bytes, want at most %d", len(encoded), maxStatusBytes)
			}
			if len(status.History) != aiopsv1.MaxHistory || len(status.Executions) != aiopsv1.MaxExecutions {
				t.Errorf("%d history entries, %d executions: the rings are not full", len(status.History), len(status.Executions))
			}
		})
	}
}

// longestStatus is what a task comes to whose every text is too long: an incident with an order under way, behind a full history.
func longestStatus(t *testing.T, long string) aiopsv1.AITaskStatus {
	t.Helper()
	name := strings.Repeat("n", 63)
	spec := specOf(step(name, aiopsv1.ActionEvict), step("other", aiopsv1.ActionEvict))
	s := newStory(t, spec)
	s.target.Summary, s.target.Revision = long, strings.Repeat("r", 512)
	s.target.UID, s.target.TemplateHash = strings.Repeat("u", 128), strings.Repeat("h", 64)
	for i := range aiopsv1.MaxExecutions {
		s.task.Status.Executions = append(s.task.Status.Executions, *at(time.Duration(i-200) * time.Minute))
	}
	s.task.Status.Requests = &aiopsv1.RequestStatus{}
	s.annotate(aiopsv1.RunAnnotation, long)
	s.annotate(aiopsv1.ResetAnnotation, long)
	plan := PlanOf(&s.task.Spec)
	incident := &aiopsv1.Incident{
		ID: strings.Repeat("i", 64), StartTime: at(0), Pass: 1000000, StepName: name, Cause: strings.Repeat("c", 64), Attempts: 999999,
		ExecutedInPass: 999999, PlanHash: plan.Hash, TargetUID: s.target.UID, NotBeforeTime: at(0), Exhausted: true,
	}
	s.task.Status.Incident = incident
	m := newMachine(s.input())
	for i := range aiopsv1.MaxHistory + 1 {
		m.remember(aiopsv1.HistoryEntry{ID: strings.Repeat("i", 64), Cause: strings.Repeat("c", 64), StepName: name, Action: strings.Repeat("a", 64), Value: strings.Repeat("9", 64),
			Result: aiopsv1.ResultFailed, Reason: strings.Repeat("r", i), Message: long, StartTime: at(0)})
	}
	if got := len(m.status.History); got != aiopsv1.MaxHistory {
		t.Errorf("%d history entries after one more than %d", got, aiopsv1.MaxHistory)
	}
	image := s.target.Image()
	m.status.Order = &aiopsv1.Order{
		ID: m.orderID(incident, name), Cause: incident.Cause, StepName: name, Action: strings.Repeat("a", 64), State: aiopsv1.OrderVerifying,
		Reason: strings.Repeat("r", 128), Message: cut(long, aiopsv1.MaxMessageLength), PlanHash: plan.Hash, Value: strings.Repeat("9", 64),
		RecordedTime: at(0), ExecutedTime: at(0), DeadlineTime: at(time.Minute), Before: &image, After: &image, Replicas: pointer(int32(10000)),
		Revision: strings.Repeat("r", 512),
	}
	for range aiopsv1.MaxPodUIDs {
		m.status.Order.PodUIDs = append(m.status.Order.PodUIDs, strings.Repeat("p", 128))
	}
	s.task.Status = *m.status
	in := s.input()
	in.Observation.Judgement = Judgement{Verdict: aiopsv1.VerdictUnknown, Reading: Reading{}, Summary: "unknown >= 1", Reason: long, Message: long}
	return Next(in).Status
}

// TestInvariantI13EveryRefusalSaysWhyAndUntilWhen: whatever blocks a step that is due, the decision holds a reason, a message
// and a next time, and the pass asks to be woken.
func TestInvariantI13EveryRefusalSaysWhyAndUntilWhen(t *testing.T) {
	tests := map[string]struct {
		prepare func(*story)
		reason  string
	}{
		"busy target":          {func(s *story) { s.fleet.BusyTask = "other"; s.fleet.BusyUntil = s.now.Add(time.Hour) }, aiopsv1.ReasonTargetBusy},
		"busy target, overdue": {func(s *story) { s.fleet.BusyTask = "other" }, aiopsv1.ReasonTargetBusy},
		"storm":                {func(s *story) { s.fleet.Storm = &Problem{aiopsv1.ReasonStormProtection, "37 of 80"} }, aiopsv1.ReasonStormProtection},
		"cooldown":             {func(s *story) { s.target.LastActionTime = s.now }, aiopsv1.ReasonCooldown},
		"budget": {func(s *story) {
			s.task.Spec.Limits.CooldownSeconds, s.task.Spec.Limits.MaxActions = pointer(int32(0)), pointer(int32(1))
			s.task.Status.Executions = []aiopsv1.Time{*at(-time.Hour)}
		}, aiopsv1.ReasonBudgetExhausted},
		"refusal that ends":      {func(s *story) { s.refusals["restart"] = refusal(aiopsv1.ReasonQuotaExceeded, true) }, aiopsv1.ReasonQuotaExceeded},
		"refusal that does not":  {func(s *story) { s.refusals["restart"] = refusal(aiopsv1.ReasonTargetPaused, false) }, aiopsv1.ReasonTargetPaused},
		"withdrawn at the gate":  {func(s *story) { s.atGate = func() { s.target.Generation++ } }, aiopsv1.ReasonSuperseded},
		"refused by the action":  {func(s *story) { s.refuseRunning(false) }, aiopsv1.ReasonForbidden},
		"to wait, by the action": {func(s *story) { s.refuseRunning(true) }, aiopsv1.ReasonForbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
			test.prepare(s)
			s.breach()
			s.wait(60 * time.Second)
			decision := s.task.Status.Decision
			if s.task.Status.Phase != aiopsv1.PhaseBlocked || decision.Reason != test.reason || decision.Message == "" {
				t.Errorf("%s/%s: %q, want Blocked/%s and a message", s.task.Status.Phase, decision.Reason, decision.Message, test.reason)
			}
			if !decision.NextAllowedTime.Or(time.Time{}).After(s.now) || s.next.IsZero() || s.next.After(decision.NextAllowedTime.Add(time.Second)) {
				t.Errorf("next allowed %v, next pass %s, want both to come", decision.NextAllowedTime, s.next)
			}
		})
	}
}

// refuseRunning lets every order meet with a refusal when it is run.
func (s *story) refuseRunning(wait bool) {
	s.outcome = func(*aiopsv1.Order) Decision {
		return RefusedByAction(s.input(), *refusal(aiopsv1.ReasonForbidden, wait))
	}
}
