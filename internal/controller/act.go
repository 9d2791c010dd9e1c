package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/runbook"
	"github.com/example/aiops-operator/internal/target"
)

// targetUIDField is the selectable field by which the API server finds the tasks of one target.
const targetUIDField = "status.target.uid"

// act passes a recorded order through the gate and runs it. Nothing else in the operator changes a workload.
func (r *Reconciler) act(ctx context.Context, p *pass) error {
	if !p.decision.Execute {
		return nil
	}
	gate, err := r.openGate(ctx, p)
	if err != nil || p.done {
		return err
	}
	passage, problem := runbook.Pass(*gate)
	logf.FromContext(ctx).V(1).Info("Passed the gate", "order", gate.Order.ID, "passage", passage, "reason", problem.Reason)
	var decision runbook.Decision
	switch passage {
	case runbook.PassageAbandon:
		p.done = true // whoever changed the order caused an event
		return nil
	case runbook.PassageHold:
		decision = runbook.Held(gate.Input, problem)
	case runbook.PassageWithdraw:
		decision = runbook.Withdrawn(gate.Input, problem)
	case runbook.PassageRefuse:
		decision = runbook.RefusedByAction(gate.Input, *gate.Refusal())
	case runbook.PassageInterrupt:
		decision = runbook.Executed(gate.Input, runbook.Execution{After: gate.Target.Image(), Interrupted: true})
	default:
		decision, err = r.run(ctx, p, gate)
	}
	if err != nil {
		return err
	}
	p.task, p.decision = gate.Task, &decision
	p.next = decision.NextTime
	return nil
}

// openGate reads the task, its target and the other tasks of the target from the API server, measures again and plans again.
func (r *Reconciler) openGate(ctx context.Context, p *pass) (*runbook.Gate, error) {
	live := &aiopsv1.AITask{}
	if err := r.Live.Get(ctx, p.key, live); err != nil {
		p.done = apierrors.IsNotFound(err)
		return nil, client.IgnoreNotFound(wrap("read", p, err))
	}
	gate := &runbook.Gate{
		Input: runbook.Input{Now: p.now, Task: live, Plan: runbook.PlanOf(&live.Spec), RandomID: p.input.RandomID,
			SpecProblem: runbook.Validate(&live.Spec, r.Names), Observation: p.input.Observation},
		TaskUID: p.task.UID, Order: *p.task.Status.Order,
		Untried: r.memory.isUntried(p.key, p.task.Status.Order.ID), ClockSkew: r.Skew.Get(),
	}
	ref := target.ReferenceOf(live.Namespace, &live.Spec)
	state, err := r.Resolver.ResolveLive(ctx, ref, p.now)
	if gate.TargetProblem = targetProblem(ref, err); gate.TargetProblem != nil {
		return gate, nil
	}
	if err != nil {
		return nil, wrap("resolve the target of", p, err)
	}
	p.state = &state
	gate.Target = runbookTarget(state, live.Status.Order)
	return gate, r.askAgain(ctx, p, gate)
}

// askAgain fills in the gate what costs a question: other tasks, the signal, the step's plan.
func (r *Reconciler) askAgain(ctx context.Context, p *pass, gate *runbook.Gate) error {
	if gate.SpecProblem != nil || gate.Plan.Hash != gate.Order.PlanHash {
		return nil // it is withdrawn anyway
	}
	fleet, err := r.others(ctx, p, gate)
	if err != nil {
		return err
	}
	gate.Fleet = fleet
	if gate.Plan.Signal != nil && gate.Order.Cause != aiopsv1.CauseRun {
		reading, due := r.measure(ctx, gate.Task, gate.Plan, *p.state, p.now, gate.Order.RecordedTime.Or(p.now))
		if !reading.Resting && reading.At.Before(gate.Order.RecordedTime.Or(p.now)) {
			p.wake(due) // the poller tells when the answer is there
			p.done = true
			return nil
		}
		judgement := runbook.Judge(*gate.Plan.Signal, reading, runbook.BreachedBefore(p.input.Observation, &gate.Task.Status))
		gate.Observation = runbook.Observe(p.input.Observation, judgement, gate.Target.Available, p.now)
	}
	step, found := gate.Plan.Step(gate.Order.StepName)
	if !found {
		return nil
	}
	proposal, err := r.propose(ctx, gate.Task, step, *p.state, &gate.Order, p.now)
	gate.Proposals = []runbook.Proposal{proposal}
	return err
}

// others asks the API server for tasks with an unfinished order on the same target. Each task writes its own order before it
// asks, so of two at least one sees the other; whoever sees another steps back.
func (r *Reconciler) others(ctx context.Context, p *pass, gate *runbook.Gate) (runbook.Fleet, error) {
	fleet := runbook.Fleet{Storm: r.Fleet.storm(p.now)}
	tasks := &aiopsv1.AITaskList{}
	err := r.Live.List(ctx, tasks, client.InNamespace(p.key.Namespace), client.MatchingFields{targetUIDField: gate.Target.UID})
	if err != nil {
		return fleet, wrap("list the other tasks on the target of", p, err)
	}
	fleet.BusyTask, fleet.BusyUntil = busyTask(tasks.Items, gate.Task.Name, gate.Target.UID)
	return fleet, nil
}

// run hands the order to its action. What came of it is remembered until it is written, so that a failed write repeats the write
// alone.
func (r *Reconciler) run(ctx context.Context, p *pass, gate *runbook.Gate) (runbook.Decision, error) {
	outcome := r.memory.outcomeOf(p.key, gate.Order.ID)
	if outcome == nil {
		step, _ := gate.Plan.Step(gate.Order.StepName)
		act, found := r.Actions.Lookup(step.Action)
		if !found {
			return runbook.Decision{}, fmt.Errorf("run order %s of AITask %s: action %s is not known", gate.Order.ID, p.key, step.Action)
		}
		r.memory.setUntried(p.key, "")
		bounded, cancel := context.WithTimeout(ctx, r.ActionTimeout)
		defer cancel()
		result, err := act.Run(bounded, action.Request{Task: gate.Task, Step: step, Target: *p.state, Order: gate.Task.Status.Order, Now: p.now})
		if err != nil {
			return r.unknownOutcome(p, gate, err)
		}
		r.memory.setOutcome(p.key, gate.Order.ID, result)
		outcome = &result
	}
	gate.Now = r.Clock.Now()
	p.now = gate.Now
	if outcome.Refusal != nil {
		return runbook.RefusedByAction(gate.Input, *runbookRefusal(outcome.Refusal)), nil
	}
	return runbook.Executed(gate.Input, runbook.Execution{After: outcome.After, Message: outcome.Message}), nil
}

// unknownOutcome tries the same order again until its deadline; after that it is verified and never repeated.
func (r *Reconciler) unknownOutcome(p *pass, gate *runbook.Gate, err error) (runbook.Decision, error) {
	if p.now.Before(gate.Order.DeadlineTime.Or(p.now)) {
		return runbook.Decision{}, wrap("run order "+gate.Order.ID+" of", p, err)
	}
	return runbook.Executed(gate.Input, runbook.Execution{After: gate.Target.Image(), Interrupted: true}), nil
}

func wrap(doing string, p *pass, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s AITask %s: %w", doing, p.key, err)
}
