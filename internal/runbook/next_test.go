package runbook

import (
	"testing"
	"time"

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
