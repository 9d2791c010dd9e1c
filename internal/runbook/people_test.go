package runbook

import (
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// edit changes the pod template as a person does.
func (s *story) edit() {
	s.target.Generation++
	s.target.TemplateHash = "somebody's change"
}

func TestAPersonsChangeIsLeftTheTimeToHelp(t *testing.T) {
	tests := map[string]struct {
		forSeconds int32
		after      func(*story)
		want       []string
	}{
		"still breached": {after: func(*story) {}, want: []string{
			"+460s Blocked/Superseded", "+460s warning OrderCancelled", "+460s warning Blocked",
			"+760s Acting/Ordered", "+760s run Rollback", "+760s Verifying/Verifying", "+760s event ActionExecuted"}},
		"still breached, and forSeconds is longer than the cooldown": {forSeconds: 400, after: func(*story) {}, want: []string{
			"+800s Blocked/Superseded", "+800s warning OrderCancelled", "+800s warning Blocked",
			"+1200s Acting/Ordered", "+1200s run Rollback", "+1200s Verifying/Verifying", "+1200s event ActionExecuted"}},
		"healed": {after: (*story).heal, want: []string{
			"+460s Blocked/Superseded", "+460s warning OrderCancelled", "+460s warning Blocked",
			"+460s Breached/Recovering", "+520s Watching/Recovered", "+520s event Recovered"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := specOf(step("restart", aiopsv1.ActionRestart), step("back", aiopsv1.ActionRollback))
			wait := 460 * time.Second
			if test.forSeconds > 0 {
				spec.ForSeconds = &test.forSeconds
				wait = 2 * time.Duration(test.forSeconds) * time.Second
			}
			s := newStory(t, spec)
			s.breach()
			s.wait(wait) // the restart did not help, and the cooldown is over
			s.log = nil
			s.edit()
			s.settle()
			test.after(s)
			s.wait(401 * time.Second)
			s.wantWords(test.want...)
		})
	}
}

func TestAYieldSaysWhomItWaitsForAndUntilWhen(t *testing.T) {
	s := verifying(t, specOf(step("restart", aiopsv1.ActionRestart), step("back", aiopsv1.ActionRollback)))
	s.wait(400 * time.Second)
	s.edit()
	s.settle()
	want := "The pod template of Deployment/web was changed by someone else; nothing is done until 2026-01-01T03:12:40Z, and then only if the signal is still breached"
	decision := s.task.Status.Decision
	if decision.Reason != aiopsv1.ReasonSuperseded || decision.Message != want || !decision.NextAllowedTime.Equal(*at(760 * time.Second)) {
		t.Errorf("decision %+v, want Superseded: %s", decision, want)
	}
}

// A cooldown that is under way when the change comes counts from the action; the change's own time counts from the change.
func TestAYieldEndsNoLongerPause(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	s := verifying(t, spec)
	s.edit()
	s.wait(299 * time.Second)
	if len(s.runs) != 1 || reasonOf(&s.task.Status) != aiopsv1.ReasonSuperseded {
		t.Errorf("runs %v, status %s, want it to wait for somebody's change", s.runs, encode(s.task.Status))
	}
}

func TestAnOrderThatAChangeOvertookWaitsAsLong(t *testing.T) {
	restart, evict := step("act", aiopsv1.ActionRestart), step("act", aiopsv1.ActionEvict)
	image := func(*story) {}
	edited := (*story).edit
	scaled := func(s *story) { s.target.Generation++; s.target.Replicas++ }
	tests := map[string]struct {
		step   aiopsv1.Step
		change func(*story)
		reason string
		long   bool
	}{
		"a person's template":             {restart, edited, aiopsv1.ReasonSuperseded, true},
		"a person's replicas":             {restart, scaled, aiopsv1.ReasonSuperseded, true},
		"a person's change of an Evict":   {evict, edited, aiopsv1.ReasonSuperseded, true},
		"a change while the action ran":   {restart, image, aiopsv1.ReasonSuperseded, true},
		"other pods of an Evict":          {evict, image, aiopsv1.ReasonSuperseded, false},
		"an autoscaler's replicas":        {restart, func(s *story) { scaled(s); s.target.Autoscaled = true }, aiopsv1.ReasonSuperseded, false},
		"a GitOps tool's template":        {restart, func(s *story) { edited(s); s.target.TemplateApplied = true }, aiopsv1.ReasonSuperseded, false},
		"another task's order":            {restart, edited, aiopsv1.ReasonTargetBusy, false},
		"an order without an image":       {restart, func(s *story) { s.task.Status.Order.Before = nil; edited(s) }, aiopsv1.ReasonSuperseded, false},
		"a target that is not there":      {restart, func(s *story) { s.target = nil }, aiopsv1.ReasonSuperseded, false},
		"the signal healthy, and changed": {restart, edited, aiopsv1.ReasonSignalHealthy, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := recorded(t, specOf(test.step))
			test.change(s)
			decision := Withdrawn(s.input(), Problem{test.reason, "says so"})
			until := decision.Status.Decision.NextAllowedTime.Sub(s.now)
			if long := until == 300*time.Second; long != test.long || !long && until >= withdrawBackoff+withdrawJitter {
				t.Errorf("next allowed in %s, want the cooldown: %t", until, test.long)
			}
			want := `Step "act" 1/1 was not run: says so`
			if test.long {
				want += "; nothing is done until 2026-01-01T03:06:00Z, and then only if the signal is still breached"
			}
			if got := decision.Status.Decision.Message; got != want {
				t.Errorf("message %q, want %q", got, want)
			}
		})
	}
}

func TestAPersonsChangeIsLeftSomeTimeByATaskThatActsAtOnce(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart), step("back", aiopsv1.ActionRollback))
	spec.ForSeconds, spec.Limits.CooldownSeconds = pointer(int32(0)), pointer(int32(0))
	t.Run("verifying", func(t *testing.T) {
		s := newStory(t, spec)
		s.breach()
		s.wait(time.Second)
		s.log = nil
		s.edit()
		s.wait(11 * time.Second)
		s.wantWords("+1s Blocked/Superseded", "+1s warning OrderCancelled", "+1s warning Blocked",
			"+11s Acting/Ordered", "+11s run Rollback", "+11s Verifying/Verifying", "+11s event ActionExecuted")
	})
	t.Run("recorded", func(t *testing.T) {
		s := newStory(t, spec)
		s.atGate = func() { s.edit(); s.atGate = nil }
		s.breach()
		s.wait(11 * time.Second)
		s.wantWords("+0s Acting/Ordered", "+0s warning Breached", "+0s Blocked/Superseded", "+0s event OrderWithdrawn",
			"+10s Acting/Ordered", "+10s run Restart", "+10s Verifying/Verifying", "+10s event ActionExecuted")
	})
}
