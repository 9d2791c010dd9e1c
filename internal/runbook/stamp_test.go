package runbook

import (
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// stampedAndRefused plays an Evict that leaves its stamp and is then refused, which the pass that ran it cannot see on the target.
func stampedAndRefused(t *testing.T, wait bool, steps ...aiopsv1.Step) *story {
	t.Helper()
	s := newStory(t, specOf(steps...))
	s.outcome = func(order *aiopsv1.Order) Decision {
		before := s.input()
		s.runs = append(s.runs, order.ID)
		s.target.LastOrder, s.target.LastActionTime = order.ID, s.now
		s.outcome = nil
		return RefusedByAction(before, *refusal(aiopsv1.ReasonBlockedByDisruptionBudget, wait))
	}
	s.breach()
	return s
}

func TestAStampThatWasSeenLateCountsAndOpensNoGate(t *testing.T) {
	evict := step("evict", aiopsv1.ActionEvict)
	for name, wait := range map[string]bool{"a refusal that ends": true, "a refusal that does not": false} {
		t.Run(name, func(t *testing.T) {
			s := stampedAndRefused(t, wait, evict)
			s.wait(61 * time.Second)
			if got := s.task.Status; len(got.Executions) != 1 || got.Incident.Attempts != 1 || got.Incident.Pass != 2 {
				t.Fatalf("status %s, want the stamp to count", encode(got))
			}
			s.atGate = s.heal
			s.wait(10 * time.Minute)
			if len(s.runs) != 1 || s.task.Status.Order != nil {
				t.Errorf("runs %v, want none on a signal that healed before the gate", s.runs)
			}
		})
	}
	t.Run("the next step follows", func(t *testing.T) {
		s := stampedAndRefused(t, true, evict, step("restart", aiopsv1.ActionRestart))
		s.wait(361 * time.Second)
		if got := s.task.Status; len(s.runs) != 2 || got.Order.Action != "Restart" || got.Incident.Attempts != 2 {
			t.Errorf("runs %v, status %s, want Restart to follow", s.runs, encode(got))
		}
	})
}

func TestAnOrderThatMeetsTheStampOfAnEarlierOneIsNotRun(t *testing.T) {
	s := newStory(t, specOf(step("evict", aiopsv1.ActionEvict)))
	s.atGate = func() { s.target.LastOrder = s.task.Status.Order.ID; s.atGate = nil } // the cache had not shown it yet
	s.breach()
	s.wait(60 * time.Second)
	s.wantWords("+0s Breached/Holding", "+60s Acting/Ordered", "+60s warning Breached", "+60s Blocked/Interrupted", "+60s event OrderCancelled")
	if got := s.task.Status; len(s.runs) != 0 || len(got.Executions) != 1 || got.Incident.Attempts != 1 || got.History[0].Result != aiopsv1.ResultCancelled {
		t.Errorf("runs %v, status %s, want the earlier order to count and this one not to run", s.runs, encode(got))
	}
}

func TestAnActionThatSeesItsOwnStampCountsWhenRefused(t *testing.T) {
	s := recorded(t, specOf(step("evict", aiopsv1.ActionEvict), step("restart", aiopsv1.ActionRestart)))
	s.target.LastOrder = s.task.Status.Order.ID
	s.write(RefusedByAction(s.input(), *refusal(aiopsv1.ReasonForbidden, false)))
	if got := s.task.Status; len(got.Executions) != 1 || got.Incident.StepName != "restart" || got.History[0].Result != aiopsv1.ResultCancelled {
		t.Errorf("status %s, want an execution that counts", encode(got))
	}
}

func TestAStampThatNoStepOfThePlanLeftIsNotBooked(t *testing.T) {
	s := recorded(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Status.Order = nil
	s.task.Status.Incident.StepName = "ghost"
	m := newMachine(s.input())
	s.target.LastOrder = m.orderID(m.status.Incident, "ghost")
	if got := Next(s.input()).Status; len(got.Executions) != 0 {
		t.Errorf("status %s, want nothing to count", encode(got))
	}
}
