package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/runbook"
)

func TestAnOutcomeIsForgottenOnceItIsWritten(t *testing.T) {
	var m memory
	key := taskKey(0)
	m.setOutcome(key, "order", action.Outcome{Executed: true})
	if got := m.outcomeOf(key, "another"); got != nil {
		t.Errorf("the outcome of another order = %v", got)
	}
	if got := m.outcomeOf(key, "order"); got == nil || !got.Executed {
		t.Errorf("before it is written: outcome = %v", got)
	}
	m.wrote(key, "7")
	if got := m.outcomeOf(key, "order"); got != nil {
		t.Errorf("an order that is recorded again under the same ID meets the outcome of before: %v", got)
	}
}

func TestACacheThatShowsWhatWasReplacedIsBehind(t *testing.T) {
	var m memory
	key := taskKey(0)
	if m.outdated(key, "7") {
		t.Error("a task that was never written is taken for outdated")
	}
	m.wrote(key, "7")
	for version, want := range map[string]bool{"7": true, "8": false} {
		if got := m.outdated(key, version); got != want {
			t.Errorf("outdated(%s) = %v, want %v", version, got, want)
		}
	}
}

func TestObservationsBelongToOnePlanAndRecoveryToOneRevision(t *testing.T) {
	since := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	breached := true
	seen := runbook.Observation{BreachedSince: since, RecoveringSince: since, KnownBreached: &breached}
	moved := seen
	moved.RecoveringSince = time.Time{}
	tests := []struct {
		name, plan, revision string
		want                 runbook.Observation
	}{
		{"the same", "plan", "web-1", seen},
		{"another revision", "plan", "web-2", moved},
		{"another plan", "other", "web-1", runbook.Observation{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m memory
			m.observe(taskKey(0), "uid", "plan", "web-1", seen)
			if diff := cmp.Diff(test.want, m.observation(taskKey(0), test.plan, test.revision)); diff != "" {
				t.Errorf("observation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestANameThatBelongsToAnotherObjectNowIsNoticed(t *testing.T) {
	var m memory
	key := taskKey(0)
	if m.replaced(key, "first") {
		t.Error("a name that was never seen counts as replaced")
	}
	m.unobserve(key, "first")
	for uid, want := range map[types.UID]bool{"first": false, "second": true} {
		if got := m.replaced(key, uid); got != want {
			t.Errorf("replaced(%s) = %v, want %v", uid, got, want)
		}
	}
	if got := m.forget(key); got != "first" {
		t.Errorf("forget = %q, want the UID that sources know the task by", got)
	}
	if m.replaced(key, "second") {
		t.Error("a forgotten name counts as replaced")
	}
}
