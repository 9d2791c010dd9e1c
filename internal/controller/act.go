package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if passage != runbook.PassageAbandon && r.memory.outcomeOf(p.key, gate.Order.ID) != nil {
		passage = runbook.PassageRun // it ran; all that is missing is the record
	}
	logf.FromContext(ctx).V(1).Info("Passed the gate", "order", gate.Order.ID, "passage", passage, "reason", problem.Reason)
	decision, err := r.follow(ctx, p, gate, passage, problem)
	if err != nil || p.done {
		return err
	}
	p.task, p.decision = gate.Task, &decision
	p.next = decision.NextTime
	return nil
}

// follow does what the gate came to.
func (r *Reconciler) follow(ctx context.Context, p *pass, gate *runbook.Gate, passage runbook.Passage, problem runbook.Problem) (runbook.Decision, error) {
	switch passage {
	case runbook.PassageAbandon:
		p.done = true // whoever changed the order caused an event
		return runbook.Decision{}, nil
	case runbook.PassageHold:
		return runbook.Held(gate.Input, problem), nil
	case runbook.PassageWithdraw:
		if err := r.lookForStamp(ctx, p, gate); err != nil {
			return runbook.Decision{}, err
		}
		return runbook.Withdrawn(gate.Input, problem), nil
	case runbook.PassageRefuse:
		return r.refused(ctx, p, gate, *gate.Refusal())
	case runbook.PassageInterrupt:
		return runbook.Executed(gate.Input, runbook.Execution{After: gate.Target.Image(), Interrupted: true}), nil
	case runbook.PassageRun:
		return r.run(ctx, p, gate)
	}
	return runbook.Decision{}, fmt.Errorf("follow the gate of AITask %s: passage %q is not known", p.key, passage)
}

func (r *Reconciler) refused(ctx context.Context, p *pass, gate *runbook.Gate, refusal runbook.Refusal) (runbook.Decision, error) {
	if err := r.lookForStamp(ctx, p, gate); err != nil {
		return runbook.Decision{}, err
	}
	return runbook.RefusedByAction(gate.Input, refusal), nil
}

// lookForStamp reads the target once more before it is written that an order did not run. Another operator that believes to be the leader
// may have run it while the gate was open, and what that changed, such as a signal that is healthy again, is then what speaks against the
// order. An action leaves its stamp before anything else of it can be seen.
func (r *Reconciler) lookForStamp(ctx context.Context, p *pass, gate *runbook.Gate) error {
	if gate.Target == nil || gate.Target.LastOrder == gate.Order.ID {
		return nil
	}
	state, err := r.Resolver.ResolveLive(ctx, p.ref, p.now)
	if targetProblem(p.ref, err) != nil {
		return nil // nothing is left that could bear a stamp
	}
	if err == nil && state.LastOrder == gate.Order.ID {
		p.state, gate.Target = &state, runbookTarget(state, gate.Task.Status.Order)
	}
	return wrap("resolve the target of", p, err)
}

// openGate reads the task, its target and the other tasks of the target from the API server, measures again and plans again.
func (r *Reconciler) openGate(ctx context.Context, p *pass) (*runbook.Gate, error) {
	now := r.readAgain(ctx, p)
	if now.taskErr != nil {
		p.done = apierrors.IsNotFound(now.taskErr)
		return nil, client.IgnoreNotFound(wrap("read", p, now.taskErr))
	}
	live := &now.task
	gate := &runbook.Gate{
		Input: runbook.Input{Now: p.now, Task: live, Plan: runbook.PlanOf(&live.Spec), RandomID: p.input.RandomID, TargetSummary: p.input.TargetSummary,
			SpecProblem: runbook.Validate(&live.Spec, r.Names), Observation: p.input.Observation},
		TaskUID: p.task.UID, Order: *p.task.Status.Order,
		Untried: r.memory.isUntried(p.key, p.task.Status.Order.ID), ClockSkew: r.Skew.Get(),
	}
	if gate.TargetProblem = targetProblem(p.ref, now.targetErr); gate.TargetProblem != nil {
		return gate, nil
	}
	if now.targetErr != nil {
		return nil, wrap("resolve the target of", p, now.targetErr)
	}
	p.state = &now.target
	gate.Target = runbookTarget(now.target, live.Status.Order)
	if gate.SpecProblem != nil || gate.Plan.Hash != gate.Order.PlanHash {
		return gate, nil // it is withdrawn anyway, and the target may be another one
	}
	if now.othersErr != nil {
		return nil, wrap("list the other tasks on the target of", p, now.othersErr)
	}
	gate.Fleet = runbook.Fleet{Storm: r.Fleet.storm(p.now)}
	gate.Fleet.BusyTask, gate.Fleet.BusyUntil = busyTask(now.others.Items, live.Name, gate.Target.UID)
	return gate, r.judgeAgain(ctx, p, gate)
}

// again is what the API server says right before an order is run.
type again struct {
	task   aiopsv1.AITask
	target target.State
	others aiopsv1.AITaskList

	taskErr, targetErr, othersErr error
}

// readAgain asks all questions at once: what they need is that the order was written before, and the answer to one does not
// change another. Nothing that happens in between escapes the action, whose own write holds its precondition.
func (r *Reconciler) readAgain(ctx context.Context, p *pass) *again {
	out := &again{}
	var asking sync.WaitGroup
	asking.Go(func() { out.taskErr = r.Live.Get(ctx, p.key, &out.task) })
	asking.Go(func() { out.target, out.targetErr = r.Resolver.ResolveLive(ctx, p.ref, p.now) })
	asking.Go(func() { out.othersErr = r.listOthers(ctx, p, &out.others) })
	asking.Wait()
	return out
}

// listOthers asks the API server for tasks on the target that the order was recorded for. Each task writes its own order before it
// asks, and asks for nothing older than that: of two, at least the one that wrote later sees the other, and whoever sees another steps
// back. So the API server may answer from memory, without asking its own storage how late it is.
func (r *Reconciler) listOthers(ctx context.Context, p *pass, into *aiopsv1.AITaskList) error {
	before := p.task.Status.Order.Before
	if before == nil {
		return nil // the gate lets no order without a target pass
	}
	return r.Live.List(ctx, into, client.InNamespace(p.key.Namespace), client.MatchingFields{targetUIDField: before.UID},
		&client.ListOptions{Raw: &metav1.ListOptions{
			ResourceVersion: p.task.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}})
}

// judgeAgain measures and plans once more, on what was just read.
func (r *Reconciler) judgeAgain(ctx context.Context, p *pass, gate *runbook.Gate) error {
	if gate.Plan.Signal != nil && gate.Order.Cause != aiopsv1.CauseRun {
		reading, due := r.measure(ctx, gate.Task, gate.Plan, *p.state, p.now, gate.Order.RecordedTime.Or(p.now))
		if !reading.Resting && reading.At.Before(gate.Order.RecordedTime.Or(p.now)) {
			p.wake(due) // the poller tells when the answer is there
			p.done = true
			return nil
		}
		judgement := runbook.Judge(*gate.Plan.Signal, reading, gate.Plan.BreachedBefore(p.input.Observation, &gate.Task.Status))
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
		result, err := r.runBounded(ctx, p, act, action.Request{Task: gate.Task, Step: step, Target: *p.state, Order: gate.Task.Status.Order, Now: p.now})
		if p.done {
			return runbook.Decision{}, nil
		}
		if err != nil {
			return r.unknownOutcome(ctx, p, gate, err)
		}
		r.memory.setOutcome(p.key, gate.Order.ID, result)
		outcome = &result
	}
	gate.Now = r.Clock.Now()
	p.now = gate.Now
	if outcome.Refusal != nil {
		return r.refused(ctx, p, gate, *runbookRefusal(outcome.Refusal))
	}
	return runbook.Executed(gate.Input, runbook.Execution{After: outcome.After, Message: outcome.Message}), nil
}

// messageWait is when an accompanying action that found no token is tried again.
const messageWait = time.Second

// runBounded runs an action within its time. It ends the pass without running an accompanying action for which there is no token.
func (r *Reconciler) runBounded(ctx context.Context, p *pass, act action.Action, request action.Request) (action.Outcome, error) {
	timeout := r.ActionTimeout
	if act.Type().Accompanies() {
		select {
		case r.Messages <- struct{}{}:
			defer func() { <-r.Messages }()
		default:
			p.wake(p.now.Add(messageWait))
			p.done = true
			return action.Outcome{}, nil
		}
		timeout = r.MessageTimeout
	}
	r.memory.setUntried(p.key, "")
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return act.Run(bounded, request)
}

// unknownOutcome tries the same order again until its deadline; after that it is verified and never repeated.
func (r *Reconciler) unknownOutcome(ctx context.Context, p *pass, gate *runbook.Gate, err error) (runbook.Decision, error) {
	if !p.now.Before(gate.Order.DeadlineTime.Or(p.now)) {
		return runbook.Executed(gate.Input, runbook.Execution{After: gate.Target.Image(), Interrupted: true}), nil
	}
	if undelivered, ok := errors.AsType[*action.UndeliveredError](err); ok {
		return undeliveredDecision(ctx, gate, undelivered), nil
	}
	return runbook.Decision{}, wrap("run order "+gate.Order.ID+" of", p, err)
}

// undeliveredDecision says on the task what keeps a message from its receiver, and in the log whenever that is something new.
func undeliveredDecision(ctx context.Context, gate *runbook.Gate, undelivered *action.UndeliveredError) runbook.Decision {
	decision := runbook.Undelivered(gate.Input, undelivered.Error())
	if said := gate.Task.Status.Decision; said == nil || said.Message != decision.Status.Decision.Message {
		logf.FromContext(ctx).Error(undelivered, "Failed to deliver a message, which is sent again until the order's deadline", "order", gate.Order.ID)
	}
	return decision
}

func wrap(doing string, p *pass, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s AITask %s: %w", doing, p.key, err)
}
