package runbook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func TestTheFirstLimitThatForbidsIsSaid(t *testing.T) {
	second := time.Second
	storm := &Problem{aiopsv1.ReasonStormProtection, "many"}
	tests := map[string]struct {
		fleet      Fleet
		stamp      time.Duration // before now; 0: none
		executions []time.Duration
		limits     aiopsv1.Limits
		want       *limit
	}{
		"nothing": {},
		"busy": {fleet: Fleet{BusyTask: "other", BusyUntil: start().Add(second), Storm: storm}, stamp: second,
			want: &limit{Problem{aiopsv1.ReasonTargetBusy, `AITask "other" has an unfinished order on Deployment/web; this task waits for it`}, start().Add(second), 0}},
		"busy, and the order is overdue": {fleet: Fleet{BusyTask: "other", BusyUntil: start()},
			want: &limit{Problem{aiopsv1.ReasonTargetBusy, `AITask "other" has an unfinished order on Deployment/web; this task waits for it`}, start().Add(5 * time.Minute), 15 * second}},
		"storm": {fleet: Fleet{Storm: storm}, stamp: second, want: &limit{*storm, start().Add(10 * time.Minute), 2 * time.Minute}},
		"cooldown by the target's stamp": {stamp: 10 * second, executions: []time.Duration{time.Hour},
			want: &limit{Problem{aiopsv1.ReasonCooldown, "Next action allowed at 2026-01-01T03:04:50Z (cooldown 300s after 2026-01-01T02:59:50Z)"}, start().Add(290 * second), 0}},
		"cooldown by status": {stamp: time.Hour, executions: []time.Duration{2 * time.Hour, 10 * second},
			want: &limit{Problem{aiopsv1.ReasonCooldown, "Next action allowed at 2026-01-01T03:04:50Z (cooldown 300s after 2026-01-01T02:59:50Z)"}, start().Add(290 * second), 0}},
		"cooldown by status alone": {executions: []time.Duration{10 * second},
			want: &limit{Problem{aiopsv1.ReasonCooldown, "Next action allowed at 2026-01-01T03:04:50Z (cooldown 300s after 2026-01-01T02:59:50Z)"}, start().Add(290 * second), 0}},
		"cooldown, almost over": {stamp: 299 * second,
			want: &limit{Problem{aiopsv1.ReasonCooldown, "Next action allowed at 2026-01-01T03:00:01Z (cooldown 300s after 2026-01-01T02:55:01Z)"}, start().Add(second), 0}},
		"cooldown over": {stamp: 300 * second},
		"cooldown 0":    {stamp: second, executions: []time.Duration{0}, limits: aiopsv1.Limits{CooldownSeconds: pointer(int32(0))}},
		"a stamp as far ahead as clocks differ": {stamp: -clockTolerance,
			want: &limit{Problem{aiopsv1.ReasonCooldown, "Next action allowed at 2026-01-01T03:06:00Z (cooldown 300s after 2026-01-01T03:01:00Z)"}, start().Add(6 * time.Minute), 0}},
		"a stamp further ahead": {stamp: -clockTolerance - second},
		"budget used up": {executions: []time.Duration{25 * time.Hour, 23 * time.Hour, 22 * time.Hour, 1 * time.Hour}, limits: aiopsv1.Limits{MaxActions: pointer(int32(2))},
			want: &limit{Problem{aiopsv1.ReasonBudgetExhausted, "limits.maxActions is used up: 2 actions within 86400s. The next is allowed at 2026-01-01T05:00:00Z; raise the limit to let it run sooner"}, start().Add(2 * time.Hour), 0}},
		"budget of one": {executions: []time.Duration{time.Hour}, limits: aiopsv1.Limits{MaxActions: pointer(int32(1)), PeriodSeconds: pointer(int32(7200))},
			want: &limit{Problem{aiopsv1.ReasonBudgetExhausted, "limits.maxActions is used up: 1 action within 7200s. The next is allowed at 2026-01-01T04:00:00Z; raise the limit to let it run sooner"}, start().Add(time.Hour), 0}},
		"budget, the oldest just out": {executions: []time.Duration{24 * time.Hour, time.Hour}, limits: aiopsv1.Limits{MaxActions: pointer(int32(2))}},
		"budget left":                 {executions: []time.Duration{time.Hour}, limits: aiopsv1.Limits{MaxActions: pointer(int32(2))}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := specOf(step("restart", aiopsv1.ActionRestart))
			spec.Limits = &test.limits
			s := newStory(t, spec)
			s.fleet = test.fleet
			if test.stamp != 0 {
				s.target.LastActionTime = start().Add(-test.stamp)
			}
			for _, ago := range test.executions {
				s.task.Status.Executions = append(s.task.Status.Executions, *at(-ago))
			}
			if difference := cmp.Diff(test.want, limits(s.input(), &s.task.Status), cmp.AllowUnexported(limit{})); difference != "" {
				t.Errorf("limit (-want +got):\n%s", difference)
			}
		})
	}
}

func TestExecutionsAreARing(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	for i := range aiopsv1.MaxExecutions + 5 {
		s.task.Status.Executions = append(s.task.Status.Executions, *at(time.Duration(i-120) * time.Minute))
	}
	m := newMachine(s.input())
	m.countExecution("Restart")
	if got := m.status.Executions; len(got) != aiopsv1.MaxExecutions || !got[0].Equal(*at(-114 * time.Minute)) || !got[99].Equal(*at(0)) {
		t.Errorf("%d executions from %s to %s, want the latest 100", len(got), got[0], got[len(got)-1])
	}
}

func TestExecutionsOutsideOfThePeriodAreForgotten(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.task.Status.Executions = []aiopsv1.Time{*at(-25 * time.Hour), *at(-24 * time.Hour), *at(-time.Hour)}
	m := newMachine(s.input())
	m.countExecution("Restart")
	if difference := cmp.Diff([]aiopsv1.Time{*at(-24 * time.Hour), *at(-time.Hour), *at(0)}, m.status.Executions); difference != "" {
		t.Errorf("executions (-want +got):\n%s", difference)
	}
}

func TestAccompanyingStepsCostNoBudgetAndRepeatOncePerPass(t *testing.T) {
	s := newStory(t, specOf(step("page", aiopsv1.ActionNotify)))
	s.fleet = Fleet{BusyTask: "other", Storm: &Problem{aiopsv1.ReasonStormProtection, "many"}}
	s.task.Spec.Limits.MaxActions = pointer(int32(1))
	s.target.LastActionTime = start()
	s.breach()
	s.wait(time.Hour)
	if len(s.runs) != 3 || len(s.task.Status.Executions) != 0 || s.task.Status.Incident.Attempts != 0 || s.task.Status.Phase != aiopsv1.PhaseExhausted {
		t.Errorf("%d runs, status %s, want one in each of 3 passes, no executions, Exhausted", len(s.runs), encode(s.task.Status))
	}
}

func TestALowerCooldownHoldsAtOnce(t *testing.T) {
	spec := specOf(step("restart", aiopsv1.ActionRestart))
	spec.Limits.CooldownSeconds = pointer(int32(86400))
	s := newStory(t, spec)
	s.refusals["restart"] = refusal(aiopsv1.ReasonTargetPaused, false)
	s.breach()
	s.wait(2 * time.Minute)
	delete(s.refusals, "restart")
	s.task.Spec.Limits.CooldownSeconds = pointer(int32(120))
	s.wait(121 * time.Second)
	if len(s.runs) != 1 {
		t.Errorf("runs %v, want one within the new cooldown: %s", s.runs, encode(s.task.Status.Decision))
	}
}

func TestAWaitWithoutAKnownEndIsLookedAtSoonAndHardlyWritten(t *testing.T) {
	tests := map[string]struct {
		prepare func(*story)
		end     func(*story)
		retry   time.Duration
		most    int
	}{
		"busy":  {func(s *story) { s.fleet.BusyTask = "other" }, func(s *story) { s.fleet = Fleet{} }, waitRetry, 2},
		"storm": {func(s *story) { s.fleet.Storm = &Problem{aiopsv1.ReasonStormProtection, "many"} }, func(s *story) { s.fleet = Fleet{} }, stormRetry, 1},
		"quota": {func(s *story) { s.refusals["restart"] = refusal(aiopsv1.ReasonQuotaExceeded, true) }, func(s *story) { delete(s.refusals, "restart") }, waitRetry, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
			s.task.Spec.Steps[0].TimeoutSeconds = pointer(int32(900))
			test.prepare(s)
			s.breach()
			s.wait(2 * time.Minute)
			s.writes = 0
			s.wait(10 * time.Minute)
			if s.writes > test.most {
				t.Errorf("%d writes in 10 minutes, want at most %d", s.writes, test.most)
			}
			if promised := s.task.Status.Decision.NextAllowedTime; !promised.After(s.now) || s.next.After(s.now.Add(test.retry)) {
				t.Errorf("next allowed %s, next pass %s, want a look within %s", promised, s.next, test.retry)
			}
			test.end(s)
			s.wait(test.retry)
			if len(s.runs) != 1 {
				t.Errorf("runs %v, want the step to run soon after the wait is over", s.runs)
			}
		})
	}
}

func TestAWaitThatEndsSoonerThanPromisedSaysSo(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.fleet = Fleet{BusyTask: "other", BusyUntil: start().Add(time.Hour)}
	s.breach()
	s.wait(2 * time.Minute)
	for _, want := range []time.Duration{10 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		s.fleet.BusyUntil = start().Add(want)
		s.wait(time.Second)
		if got := s.task.Status.Decision.NextAllowedTime; !got.Equal(*at(want)) {
			t.Errorf("next allowed at %s, want %s after the start", got, want)
		}
	}
	s.fleet.BusyUntil = start().Add(20 * time.Minute)
	s.wait(time.Second)
	if got := s.task.Status.Decision.NextAllowedTime; !got.Equal(*at(5 * time.Minute)) {
		t.Errorf("next allowed at %s, want what was promised until it has passed", got)
	}
}
