package runbook

import (
	"fmt"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// limit is one reason not to act now, and until when at the latest.
type limit struct {
	problem Problem
	until   time.Time
	// retry is how soon it is looked at again, since it may end earlier. Zero: it does not.
	retry time.Duration
}

// limited blocks the step if any limit forbids acting on the target now.
func (m *machine) limited() bool {
	hit := limits(m.in, m.status)
	if hit == nil {
		return false
	}
	m.block(hit.problem, hit.until)
	if hit.retry > 0 {
		m.at(m.in.Now.Add(hit.retry))
	}
	return true
}

// limits returns the first limit that forbids acting on the target now, or nil.
func limits(in Input, status *aiopsv1.AITaskStatus) *limit {
	for _, check := range []func(Input, *aiopsv1.AITaskStatus) *limit{busy, storm, cooldown, budget} {
		if hit := check(in, status); hit != nil {
			return hit
		}
	}
	return nil
}

func busy(in Input, _ *aiopsv1.AITaskStatus) *limit {
	if in.Fleet.BusyTask == "" {
		return nil
	}
	problem := Problem{aiopsv1.ReasonTargetBusy, fmt.Sprintf("AITask %q has an unfinished order on %s; this task waits for it", in.Fleet.BusyTask, in.Target.Summary)}
	if until := in.Fleet.BusyUntil; until.After(in.Now) {
		return &limit{problem: problem, until: until}
	}
	return &limit{problem: problem, until: in.Now.Add(waitPromise), retry: waitRetry}
}

func storm(in Input, _ *aiopsv1.AITaskStatus) *limit {
	if in.Fleet.Storm == nil {
		return nil
	}
	return &limit{problem: *in.Fleet.Storm, until: in.Now.Add(stormPromise), retry: stormRetry}
}

// cooldown counts from the later of two memories: this task's status and the target's stamp, which is written in the same
// request as the action and knows of other tasks' actions and of those that a lost status forgot.
func cooldown(in Input, status *aiopsv1.AITaskStatus) *limit {
	last := in.Target.LastActionTime
	if last.After(in.Now.Add(clockTolerance)) {
		last = time.Time{} // no replica wrote this; counted from, it would hold every action back for ever
	}
	if n := len(status.Executions); n > 0 && status.Executions[n-1].After(last) {
		last = status.Executions[n-1].Time
	}
	if last.IsZero() {
		return nil
	}
	until := last.Add(in.Plan.Cooldown)
	if !in.Now.Before(until) {
		return nil
	}
	return &limit{Problem{aiopsv1.ReasonCooldown, fmt.Sprintf("Next action allowed at %s (cooldown %s after %s)", clock(until), span(in.Plan.Cooldown), clock(last))}, until, 0}
}

func budget(in Input, status *aiopsv1.AITaskStatus) *limit {
	horizon := in.Now.Add(-in.Plan.Period)
	var recent []aiopsv1.Time
	for _, executed := range status.Executions {
		if executed.After(horizon) {
			recent = append(recent, executed)
		}
	}
	if len(recent) < in.Plan.MaxActions {
		return nil
	}
	until := recent[len(recent)-in.Plan.MaxActions].Add(in.Plan.Period)
	return &limit{Problem{aiopsv1.ReasonBudgetExhausted, fmt.Sprintf(
		"limits.maxActions is used up: %s within %s. The next is allowed at %s; raise the limit to let it run sooner",
		count(in.Plan.MaxActions, "action", "actions"), span(in.Plan.Period), clock(until))}, until, 0}
}
