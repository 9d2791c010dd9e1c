package runbook

import (
	"strings"
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// exhausted plays a breach until nothing more is done.
func exhausted(t *testing.T, spec aiopsv1.AITaskSpec) *story {
	t.Helper()
	s := newStory(t, spec)
	s.breach()
	s.wait(3 * time.Hour)
	if s.task.Status.Phase != aiopsv1.PhaseExhausted {
		t.Fatalf("not exhausted: %s", encode(s.task.Status))
	}
	if got := strings.Count(strings.Join(s.log, "\n"), "warning Exhausted"); got != 1 {
		t.Fatalf("Exhausted was said %d times: %v", got, s.log)
	}
	s.log = nil
	return s
}

func TestPassesOverStepsThatDoNotHelpEndExhausted(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart), step("page", aiopsv1.ActionNotify)))
	s.breach()
	s.wait(3 * time.Hour)
	onePass := func(at string, words ...string) (lines []string) {
		for _, word := range words {
			lines = append(lines, at+" "+word)
		}
		return lines
	}
	want := []string{"+0s Breached/Holding", "+60s Acting/Ordered", "+60s warning Breached", "+60s run Restart", "+60s Verifying/Verifying", "+60s event ActionExecuted"}
	notified := []string{"Acting/Ordered", "warning StepFailed", "run Notify", "Breached/ThresholdReached", "event Notified"}
	restarted := []string{"Acting/Ordered", "run Restart", "Verifying/Verifying", "event ActionExecuted"}
	blocked := []string{"Blocked/Cooldown", "warning Blocked"}
	want = append(want, onePass("+660s", append(notified, blocked...)...)...)
	want = append(want, onePass("+960s", restarted...)...)
	want = append(want, onePass("+1560s", append(notified, blocked...)...)...)
	want = append(want, onePass("+1860s", restarted...)...)
	want = append(want, onePass("+2460s", append(notified, "Exhausted/Exhausted", "warning Exhausted")...)...)
	last := s.log[len(s.log)-1]
	s.wantWords(want...)
	message := "+2460s warning Exhausted: 3 passes over 2 steps brought no lasting recovery: \"restart\" failed, \"page\" was delivered; nothing more will be done. To try again: fix the cause, then " +
		"kubectl annotate --overwrite -n shop at web aiops.example.com/reset=" + string(taskUID) + "/$(date -u +%Y-%m-%dT%H:%M:%SZ)"
	if last != message {
		t.Errorf("last word %q, want %q", last, message)
	}
}

func TestExhaustedIsLeftOnlyAsDocumented(t *testing.T) {
	tests := map[string]struct {
		leave func(*story)
		want  bool
	}{
		"nothing":                       {func(*story) {}, false},
		"an edit outside of the plan":   {func(s *story) { s.task.Spec.ForSeconds = pointer(int32(5)); s.task.Generation++ }, false},
		"more passes":                   {func(s *story) { s.task.Spec.Limits.MaxPasses = pointer(int32(50)) }, false},
		"a changed step":                {func(s *story) { s.task.Spec.Steps[0].TimeoutSeconds = pointer(int32(60)) }, true},
		"a changed threshold":           {func(s *story) { s.task.Spec.Threshold = pointer(int64(2)) }, true},
		"a changed mode of a step":      {func(s *story) { s.task.Spec.Steps[0].Mode = aiopsv1.ModeAuto }, false},
		"suspend":                       {func(s *story) { s.task.Spec.Suspend = pointer(true) }, true},
		"suspend: false":                {func(s *story) { s.task.Spec.Suspend = pointer(false) }, false},
		"reset":                         {func(s *story) { s.ask(aiopsv1.ResetAnnotation, 0) }, true},
		"run":                           {func(s *story) { s.ask(aiopsv1.RunAnnotation, 0) }, false},
		"recovery for recurrence":       {func(s *story) { s.heal(); s.wait(3660 * time.Second) }, true},
		"recovery for almost that long": {func(s *story) { s.heal(); s.wait(3659 * time.Second) }, false},
		"recovery with a breach in it": {func(s *story) {
			s.heal()
			s.wait(time.Hour)
			s.breach()
			s.wait(time.Second)
			s.heal()
			s.wait(time.Hour)
		}, false},
		"recovery, and then nobody sees it": {func(s *story) { s.heal(); s.wait(2 * time.Minute); s.blind(); s.wait(2 * time.Hour) }, false},
		"recovery, seen again for almost that long": {func(s *story) {
			s.heal()
			s.wait(30 * time.Minute)
			s.blind()
			s.wait(time.Minute)
			s.heal()
			s.wait(3599 * time.Second)
		}, false},
		"recovery, seen again for that long": {func(s *story) {
			s.heal()
			s.wait(30 * time.Minute)
			s.blind()
			s.wait(time.Minute)
			s.heal()
			s.wait(3600 * time.Second)
		}, true},
		"recovery of a workload that is unavailable in between": {func(s *story) {
			s.heal()
			s.wait(30 * time.Minute)
			s.target.Available = false
			s.wait(time.Minute)
			s.target.Available = true
			s.wait(3599 * time.Second)
		}, false},
		"recovery, over a restart": {func(s *story) {
			s.heal()
			s.wait(30 * time.Minute)
			s.observation = Observation{}
			s.wait(3599 * time.Second)
		}, false},
		"recovery for that long after a restart": {func(s *story) {
			s.heal()
			s.wait(30 * time.Minute)
			s.observation = Observation{}
			s.wait(3600 * time.Second)
		}, true},
		"the signal unknown": {func(s *story) { s.blind(); s.wait(24 * time.Hour) }, false},
		"another target":     {func(s *story) { s.target.UID = "another" }, true},
		"a broken configuration that is mended": {func(s *story) {
			in := s.input()
			in.SpecProblem = &Problem{aiopsv1.ReasonInvalidSpec, "no such endpoint"}
			s.write(Next(in))
		}, false},
		"a spec that was broken by hand": {func(s *story) {
			s.task.Spec.Steps[0].TimeoutSeconds = pointer(int32(60))
			in := s.input()
			in.SpecProblem = &Problem{aiopsv1.ReasonInvalidSpec, "no such endpoint"}
			s.write(Next(in))
			s.task.Spec.Steps[0].TimeoutSeconds = nil
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := exhausted(t, specOf(step("restart", aiopsv1.ActionRestart)))
			test.leave(s)
			s.settle()
			incident := s.task.Status.Incident
			if left := incident == nil || !incident.Exhausted; left != test.want {
				t.Errorf("left %t, want %t: %s", left, test.want, encode(s.task.Status))
			}
			if got := strings.Count(strings.Join(s.log, "\n"), "warning Exhausted"); got > 0 {
				t.Errorf("Exhausted was said again: %v", s.log)
			}
		})
	}
}

func TestExhaustedKeepsItsReasonThroughRecoveryAndRelapse(t *testing.T) {
	s := exhausted(t, specOf(step("restart", aiopsv1.ActionRestart)))
	why := s.task.Status.Decision.Message
	s.heal()
	s.wait(10 * time.Minute)
	if got, want := s.task.Status.Decision.Message, "Recovered without further action; leaves Exhausted at 2026-01-01T07:01:00Z if it lasts"; got != want {
		t.Errorf("recovered: message %q, want %q", got, want)
	}
	s.blind()
	s.settle()
	if got, want := s.task.Status.Decision.Message, "Recovered without further action; leaves Exhausted once it is seen to last for 3600s"; got != want {
		t.Errorf("recovered and then unknown: message %q, want %q", got, want)
	}
	s.breach()
	s.settle()
	if got := s.task.Status.Decision.Message; got != why {
		t.Errorf("relapsed: message %q, want %q", got, why)
	}
	s.task.Status.Conditions = nil
	s.heal()
	s.wait(2 * time.Minute)
	if got := conditionOf(s.task.Status.Conditions, aiopsv1.ConditionExhausted).Message; !strings.HasPrefix(got, "Nothing helped; nothing more will be done.") {
		t.Errorf("condition after its loss %q", got)
	}
}

func TestOnFailureStopEndsTheIncidentAtItsStep(t *testing.T) {
	stop := step("restart", aiopsv1.ActionRestart)
	stop.OnFailure = aiopsv1.OnFailureStop
	s := newStory(t, specOf(stop, step("page", aiopsv1.ActionNotify)))
	s.breach()
	s.wait(time.Hour)
	s.wantWords("+0s Breached/Holding", "+60s Acting/Ordered", "+60s warning Breached", "+60s run Restart", "+60s Verifying/Verifying", "+60s event ActionExecuted",
		"+660s Exhausted/Exhausted", "+660s warning StepFailed", "+660s warning Exhausted")
	if got := s.task.Status.Decision.Message; !strings.HasPrefix(got, `Step "restart" failed and says onFailure: Stop; nothing more will be done.`) {
		t.Errorf("message %q", got)
	}
}
