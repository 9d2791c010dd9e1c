package controller

import (
	"context"
	"fmt"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/runbook"
	"github.com/example/aiops-operator/internal/signal"
	"github.com/example/aiops-operator/internal/target"
)

// observe measures and judges, and adds the judgement to what this process has seen so far.
func (r *Reconciler) observe(ctx context.Context, p *pass) error {
	spec := p.input.Plan.Signal
	suspended := p.task.Spec.Suspend != nil && *p.task.Spec.Suspend
	if spec == nil || p.state == nil || suspended || p.state.Deleting {
		r.memory.unobserve(p.key, p.task.UID)
		r.Fleet.observed(p.key, p.ref, nil)
		r.Metrics.Unmeasured(p.key)
		return nil
	}
	reading, next := r.measure(ctx, p.task, p.input.Plan, *p.state, p.now, time.Time{})
	p.wake(next)
	before := r.memory.observation(p.key, p.input.Plan.Hash, p.state.Revision)
	judgement := runbook.Judge(*spec, reading, p.input.Plan.BreachedBefore(before, &p.task.Status))
	p.input.Observation = runbook.Observe(before, judgement, p.input.Target.Available, p.now)
	r.memory.observe(p.key, p.task.UID, p.input.Plan.Hash, p.state.Revision, p.input.Observation)
	var seen *breach
	if judgement.Verdict == aiopsv1.VerdictBreached {
		seen = breachOf(p.task, p.now)
	}
	r.Fleet.observed(p.key, p.ref, seen)
	r.Metrics.Evaluated(p.key, spec.Name, judgement.Verdict, reading.Value, reading.Known)
	return nil
}

// measure returns the reading and when it may change without any event. A polled source answers at once with its latest reading,
// and begins another measurement if that is from before the given time.
func (r *Reconciler) measure(ctx context.Context, task *aiopsv1.AITask, plan runbook.Plan, state target.State, now, notBefore time.Time) (runbook.Reading, time.Time) {
	source, found := r.Sources.Lookup(plan.Signal.Type)
	if !found {
		return runbook.Reading{Reason: aiopsv1.ReasonUnsupported, Message: fmt.Sprintf("this operator does not know the signal %s", plan.Signal.Type), At: now}, time.Time{}
	}
	request := signal.Request{Target: state, Signal: *plan.Signal, Task: task.UID, StartupGrace: plan.StartupGrace, Now: now, Since: lastAction(task)}
	if !source.Polled() {
		reading := source.Measure(ctx, request)
		return runbookReading(reading), reading.NextChange
	}
	reading, due := r.Poller.Latest(keyOf(task), source, request, plan.Interval, notBefore)
	return runbookReading(reading), due
}

func runbookReading(reading signal.Reading) runbook.Reading {
	return runbook.Reading{
		Known: reading.Known, Value: reading.Value, NoData: reading.NoData, Alive: reading.AliveChecked, Resting: reading.Resting,
		Reason: reading.Reason, Message: reading.Message, At: reading.At,
	}
}

// lastAction is when this task last acted on its target. What a window counted before that is no evidence against what is there now,
// while the action is being verified and after it was.
func lastAction(task *aiopsv1.AITask) time.Time {
	var last time.Time
	if executions := task.Status.Executions; len(executions) > 0 {
		last = executions[len(executions)-1].Time
	}
	if order := task.Status.Order; order != nil && order.ExecutedTime.Or(last).After(last) {
		last = order.ExecutedTime.Time
	}
	return last
}
