package runbook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func pointer[T any](value T) *T {
	return &value
}

// specOf is a task that watches for one missing replica and takes these steps.
func specOf(steps ...aiopsv1.Step) aiopsv1.AITaskSpec {
	return aiopsv1.AITaskSpec{TargetDeployment: pointer("web"), Threshold: pointer(int64(1)), Steps: steps, Limits: &aiopsv1.Limits{}}
}

func step(name string, action aiopsv1.ActionType) aiopsv1.Step {
	out := aiopsv1.Step{Name: name, Action: action}
	if action == aiopsv1.ActionScale {
		out.Scale = &aiopsv1.ScaleStep{By: pointer(int32(1)), Max: pointer(int32(6))}
	}
	return out
}

// wantLog compares what was told since the story began, or since the last time this was asked.
func (s *story) wantLog(want ...string) {
	s.t.Helper()
	if difference := cmp.Diff(want, s.log); difference != "" {
		s.t.Errorf("story (-want +got):\n%s", difference)
	}
	s.log = nil
}

// wantWords compares only the beginnings: up to the first colon.
func (s *story) wantWords(want ...string) {
	s.t.Helper()
	var got []string
	for _, line := range s.log {
		word, _, _ := strings.Cut(line, ":")
		got = append(got, word)
	}
	if difference := cmp.Diff(want, got); difference != "" {
		s.t.Errorf("story (-want +got):\n%s\n%s", difference, strings.Join(s.log, "\n"))
	}
	s.log = nil
}

func TestABadReleaseIsRolledBackAndRecoveryIsProven(t *testing.T) {
	s := newStory(t, specOf(step("back", aiopsv1.ActionRollback), step("page", aiopsv1.ActionNotify)))
	s.wait(10 * time.Second)
	s.breach()
	s.wait(65 * time.Second)
	message := s.task.Status.Decision.Message
	s.heal()
	s.wait(2 * time.Hour)
	s.wantLog(
		"+0s Watching/Healthy",
		"+10s Breached/Holding",
		"+70s Acting/Ordered",
		"+70s warning Breached: UnavailableReplicas reached 1 and has held for 60s",
		"+70s run Rollback",
		"+70s Verifying/Verifying",
		`+70s event ActionExecuted: Step "back" 1/2: ran Rollback on Deployment/web`,
		"+135s Watching/Recovered",
		"+135s event Recovered: Recovered in 65s: signal healthy for 60s, 3/3 pods available",
		"+3735s Watching/Healthy",
	)
	want := `Ran Rollback on Deployment/web. Recovery must hold for 60s; step "back" 1/2 gives up at 2026-01-01T03:11:10Z, then step "page" (Notify) follows`
	if difference := cmp.Diff(want, message); difference != "" {
		t.Errorf("message while verifying (-want +got):\n%s", difference)
	}
}
