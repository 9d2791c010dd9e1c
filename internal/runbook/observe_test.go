package runbook

import (
	"strings"
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func TestModeObserveRecordsEachStepOncePerIncident(t *testing.T) {
	observed := step("restart", aiopsv1.ActionRestart)
	observed.Mode = aiopsv1.ModeObserve
	tests := map[string]struct {
		spec aiopsv1.AITaskSpec
		want map[string]int
	}{
		"the whole task": {func() aiopsv1.AITaskSpec {
			spec := specOf(step("restart", aiopsv1.ActionRestart), step("back", aiopsv1.ActionRollback))
			spec.Mode = aiopsv1.ModeObserve
			return spec
		}(), map[string]int{"event Observed": 1, "s run ": 0}},
		"one step of it": {specOf(observed, step("page", aiopsv1.ActionNotify)), map[string]int{"event Observed": 1, "s run Notify": 3, "s run Restart": 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, test.spec)
			s.breach()
			s.wait(3 * time.Hour)
			all := strings.Join(s.log, "\n")
			for word, want := range test.want {
				if got := strings.Count(all, word); got != want {
					t.Errorf("%q told %d times, want %d:\n%s", word, got, want, all)
				}
			}
		})
	}
}

func TestWhatIsOnlyObservedIsSaidForAsLongAsTheBreachLasts(t *testing.T) {
	spec := specOf(step("more", aiopsv1.ActionScale))
	spec.Mode = aiopsv1.ModeObserve
	s := newStory(t, spec)
	s.breach()
	s.wait(3 * time.Hour)
	s.wantLog("+0s Breached/Holding", "+60s Breached/Observed", "+60s warning Breached: UnavailableReplicas reached 1 and has held for 60s",
		`+60s event Observed: Step "more" 1/1: Mode Observe: would scale Deployment/web from 3 to 4 replicas`)
	if got := s.task.Status.Decision.Message; got != "Mode Observe: would scale Deployment/web from 3 to 4 replicas" {
		t.Errorf("message %q", got)
	}
}

func TestModeObserveSaysWhatWouldBeRefused(t *testing.T) {
	spec := specOf(step("more", aiopsv1.ActionScale))
	spec.Mode = aiopsv1.ModeObserve
	s := newStory(t, spec)
	s.refusals["more"] = refusal(aiopsv1.ReasonOwnedByAutoscaler, false)
	s.breach()
	s.wait(2 * time.Minute)
	if got, want := s.task.Status.Decision.Message, "Mode Observe: Scale would be refused, OwnedByAutoscaler: says OwnedByAutoscaler"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestLeavingModeObserveRunsTheStepOfTheSameIncident(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Mode = aiopsv1.ModeObserve
	s := newStory(t, spec)
	s.breach()
	s.wait(10 * time.Minute)
	incident := s.task.Status.Incident.ID
	s.task.Spec.Mode = aiopsv1.ModeAuto
	s.settle()
	if s.task.Status.Incident.ID != incident || len(s.runs) != 1 {
		t.Errorf("incident %+v, runs %v, want one run in incident %s", s.task.Status.Incident, s.runs, incident)
	}
}
