package runbook

import (
	"strings"
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func (s *story) message() string {
	return s.task.Status.Decision.Message
}

func TestWhatCameOfEachStepIsSaidWhenNothingHelped(t *testing.T) {
	restart, back, page := step("restart", aiopsv1.ActionRestart), step("back", aiopsv1.ActionRollback), step("page", aiopsv1.ActionNotify)
	refused := map[string]*Refusal{"back": refusal(aiopsv1.ReasonNoEarlierRevision, false)}
	tests := map[string]struct {
		spec     aiopsv1.AITaskSpec
		refusals map[string]*Refusal
		passes   int32
		// later are refusals that begin after the first pass.
		later map[string]*Refusal
		want  string
		pass  int32
		step  string
	}{
		"tried, refused and told": {spec: specOf(restart, back, page), refusals: refused, passes: 1, pass: 1, step: "page",
			want: `1 pass over 3 steps brought no lasting recovery: "restart" failed, "back" was refused (NoEarlierRevision), "page" was delivered; `},
		"nothing could be done": {spec: specOf(back, page), refusals: refused, passes: 1, pass: 1, step: "page",
			want: `Nothing could be done to the workload: "back" was refused (NoEarlierRevision), "page" was delivered; `},
		"tried before, and nothing is left": {spec: specOf(restart, back), refusals: refused, passes: 2, pass: 2, step: "back",
			later: map[string]*Refusal{"restart": refusal(aiopsv1.ReasonTargetPaused, false), "back": refused["back"]},
			want:  `No further step can be run as things are: "restart" was refused (TargetPaused), "back" was refused (NoEarlierRevision); `},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, test.spec)
			s.task.Spec.Limits = &aiopsv1.Limits{MaxPasses: &test.passes}
			if test.refusals != nil {
				s.refusals = test.refusals
			}
			s.breach()
			if test.later != nil {
				s.onRun = func(*aiopsv1.Order) { s.refusals = test.later }
			}
			s.wait(4 * time.Hour)
			if got := s.message(); !strings.HasPrefix(got, test.want) {
				t.Errorf("message %q, want it to begin with %q", got, test.want)
			}
			if got := s.task.Status.Incident; got.Pass != test.pass || got.StepName != test.step || s.task.Status.Decision.StepName != test.step {
				t.Errorf("pass %d, step %q (decision: %q), want the last ones: %d, %q", got.Pass, got.StepName, s.task.Status.Decision.StepName, test.pass, test.step)
			}
		})
	}
}

func TestTheNextPassSaysWhichItIs(t *testing.T) {
	s := newStory(t, specOf(step("page", aiopsv1.ActionNotify)))
	s.breach()
	s.wait(2 * time.Minute)
	if want := `Pass 2 of 3 begins at 2026-01-01T03:06:00Z with step "page", 300s after the last one`; s.message() != want {
		t.Errorf("message %q, want %q", s.message(), want)
	}
}

func TestARequestedRunThatWaitsSaysThatItWasRequestedOnce(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.target.LastActionTime = start()
	s.now = start().Add(time.Second)
	s.ask(aiopsv1.RunAnnotation, 0)
	s.settle()
	s.wait(time.Minute)
	if want := "Requested run: Next action allowed at 2026-01-01T03:05:00Z (cooldown 300s after 2026-01-01T03:00:00Z)"; s.message() != want {
		t.Errorf("message %q, want %q", s.message(), want)
	}
	s.onRun = func(*aiopsv1.Order) { s.heal() }
	s.wait(time.Hour)
	if got := strings.Join(s.log, "\n"); !strings.Contains(got, "ran Restart on Deployment/web, as requested") {
		t.Errorf("the log does not say that the run was requested:\n%s", got)
	}
}

func TestAHeldBackRequestKeepsItsWords(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.ask(aiopsv1.RunAnnotation, 0)
	s.atGate = func() { s.fleet = Fleet{BusyTask: "other"} }
	s.settle()
	s.wait(2 * time.Second)
	if strings.Count(s.message(), requestedRun) != 1 {
		t.Errorf("message %q, want it to say once that the run was requested", s.message())
	}
}

func TestRecoveryUnderWayNamesWhenItIsBelieved(t *testing.T) {
	s := newStory(t, specOf())
	s.breach()
	s.wait(2 * time.Minute)
	s.heal()
	s.settle()
	if got := s.task.Status.Decision.NextAllowedTime; got == nil || !got.Equal(*at(3 * time.Minute)) {
		t.Errorf("next time %v, want when recovery has held", got)
	}
	s.target.Available = false
	s.settle()
	if got := s.task.Status.Decision.NextAllowedTime; got != nil {
		t.Errorf("next time %s while the workload is not available, want none", got)
	}
}

func TestExhaustedDoesNotKeepTheWordsOfAnotherReason(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.breach()
	s.settle()
	s.task.Status.Incident = &aiopsv1.Incident{ID: "i", StartTime: at(0), Pass: 1, StepName: "restart", PlanHash: PlanOf(&s.task.Spec).Hash, TargetUID: targetUID, Exhausted: true}
	s.task.Status.Decision = &aiopsv1.Decision{Reason: aiopsv1.ReasonCooldown, Message: "words of before"}
	s.settle()
	if got := s.message(); !strings.HasPrefix(got, "Nothing helped; nothing more will be done") {
		t.Errorf("message %q, want that of Exhausted", got)
	}
}

func TestTheLastStepThatFailsUnseenEndsTheIncident(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Spec.Limits = &aiopsv1.Limits{MaxPasses: pointer(int32(1))}
	s.breach()
	s.wait(2 * time.Minute)
	s.blind()
	s.wait(time.Hour)
	if got := s.task.Status.Phase; got != aiopsv1.PhaseExhausted {
		t.Errorf("phase %s after the last step failed while nobody could see the signal, want Exhausted", got)
	}
}

func TestAStepThatSaysStopIsNamedAsTheLast(t *testing.T) {
	restart := step("restart", aiopsv1.ActionRestart)
	restart.OnFailure = aiopsv1.OnFailureStop
	s := newStory(t, specOf(restart, step("page", aiopsv1.ActionNotify)))
	s.task.Spec.Limits = &aiopsv1.Limits{MaxPasses: pointer(int32(1))}
	s.breach()
	s.wait(time.Hour)
	if got := s.task.Status.Decision.StepName; got != "restart" {
		t.Errorf("step %q, want restart: it was the last one that had its turn", got)
	}
}

func TestModeObserveGoesOnSayingWhatItWouldHaveDone(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Spec.Mode = aiopsv1.ModeObserve
	s.breach()
	s.wait(2 * time.Minute)
	want := s.message()
	if !strings.HasPrefix(want, "Mode Observe: would ") {
		t.Fatalf("message %q", want)
	}
	s.blind()
	s.settle()
	s.breach()
	s.wait(2 * time.Minute)
	if got := s.message(); got != want {
		t.Errorf("message %q after the signal was unknown for a moment, want %q", got, want)
	}
}

func TestWhatWasObservedIsNotMistakenForWhatWasRun(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Spec.Mode = aiopsv1.ModeObserve
	s.breach()
	s.wait(2 * time.Minute)
	s.task.Spec.Mode = aiopsv1.ModeAuto
	s.wait(11 * time.Minute)
	s.task.Spec.Mode = aiopsv1.ModeObserve
	s.wait(20 * time.Minute)
	if len(s.runs) == 0 || !strings.HasPrefix(s.message(), "Mode Observe: would ") {
		t.Errorf("message %q after %d runs, want what was observed", s.message(), len(s.runs))
	}
}
