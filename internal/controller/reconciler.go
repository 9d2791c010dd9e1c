package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/metrics"
	"github.com/example/aiops-operator/internal/runbook"
	"github.com/example/aiops-operator/internal/signal"
	"github.com/example/aiops-operator/internal/target"
)

// Resolver reads workloads: from the caches in every pass, from the API server before an action.
type Resolver interface {
	Resolve(ctx context.Context, reference target.Reference, now time.Time) (target.State, error)
	ResolveLive(ctx context.Context, reference target.Reference, now time.Time) (target.State, error)
}

// Sources are the signal sources by type.
type Sources interface {
	Lookup(signalType aiopsv1.SignalType) (signal.Source, bool)
	Forget(task types.UID)
}

// Poller measures sources that ask outside of the caches, off the reconcile path.
type Poller interface {
	Latest(task types.NamespacedName, source signal.Source, request signal.Request, interval time.Duration, notBefore time.Time) (signal.Reading, time.Time)
	Forget(task types.NamespacedName)
}

// Actions are the actions by type.
type Actions interface {
	Lookup(actionType aiopsv1.ActionType) (action.Action, bool)
}

// Reconciler brings AITasks forward, one pass at a time. Every field is required.
type Reconciler struct {
	// Client reads from the caches and writes.
	Client client.Client
	// Live reads from the API server.
	Live     client.Reader
	Resolver Resolver
	Sources  Sources
	Poller   Poller
	Actions  Actions
	Names    runbook.Names
	Fleet    *Fleet
	Skew     *ClockSkew
	Events   events.EventRecorder
	Metrics  *metrics.Collectors
	Clock    clock.PassiveClock
	// RandomID returns an ID that no other incident has.
	RandomID func() string
	// ActionTimeout bounds one action; with the lease's renew deadline it stays below the lease's duration.
	ActionTimeout time.Duration
	// MessageTimeout bounds one accompanying action. It may be longer: what it does is no change of a workload.
	MessageTimeout time.Duration
	// Messages holds one token for each accompanying action that may be under way: a receiver that hangs never takes every worker.
	Messages chan struct{}

	memory  memory
	waker   waker
	elected atomic.Bool
}

// pass is one reconcile of one task.
type pass struct {
	key   types.NamespacedName
	now   time.Time
	task  *aiopsv1.AITask
	ref   target.Reference
	state *target.State
	input runbook.Input
	// next is when time alone changes something; zero: never.
	next time.Time
	// decision is what is reported. Nil: nothing is.
	decision *runbook.Decision
	done     bool
}

// wake asks for a next pass at this time; the earliest wins.
func (p *pass) wake(at time.Time) {
	if !at.IsZero() && (p.next.IsZero() || at.Before(p.next)) {
		p.next = at
	}
}

// Reconcile is one pass: each step may end it.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := &pass{key: request.NamespacedName, now: r.Clock.Now()}
	for _, step := range []func(context.Context, *pass) error{
		r.load,
		r.resolve,
		r.observe,
		r.standBy,
		r.decide,
		r.act,
		r.report,
	} {
		if err := step(ctx, p); err != nil {
			return ctrl.Result{}, err
		}
		if p.done {
			break
		}
	}
	return p.result(), nil
}

// shortestWait keeps a time that has just passed from spinning.
const shortestWait = time.Millisecond

func (p *pass) result() ctrl.Result {
	if p.next.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(shortestWait, p.next.Sub(p.now))}
}

// cacheWait is when a pass is tried again whose task has not yet come back from this process's own last write. The watch event
// nearly always comes first.
const cacheWait = time.Second

func (r *Reconciler) load(ctx context.Context, p *pass) error {
	task := &aiopsv1.AITask{}
	err := r.Client.Get(ctx, p.key, task)
	if apierrors.IsNotFound(err) {
		r.forget(p.key)
		p.done = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read AITask %s: %w", p.key, err)
	}
	if task.DeletionTimestamp != nil {
		r.Fleet.forget(p.key)
		p.done = true
		return nil
	}
	if r.memory.replaced(p.key, task.UID) {
		r.forget(p.key)
	}
	if r.memory.outdated(p.key, task.ResourceVersion) {
		p.wake(p.now.Add(cacheWait))
		p.done = true
		return nil
	}
	p.task = task
	p.input = runbook.Input{
		Now: p.now, Task: task, Plan: runbook.PlanOf(&task.Spec), RandomID: r.RandomID(),
		SpecProblem: runbook.Validate(&task.Spec, r.Names),
	}
	return nil
}

// forget drops everything that this process keeps about a task.
func (r *Reconciler) forget(key types.NamespacedName) {
	if uid := r.memory.forget(key); uid != "" {
		r.Sources.Forget(uid)
	}
	r.Poller.Forget(key)
	r.Fleet.forget(key)
	r.Metrics.Forget(key)
}

func (r *Reconciler) resolve(ctx context.Context, p *pass) error {
	p.ref = target.ReferenceOf(p.task.Namespace, &p.task.Spec)
	p.input.TargetSummary = p.ref.String()
	if p.input.SpecProblem != nil {
		return nil
	}
	state, err := r.Resolver.Resolve(ctx, p.ref, p.now)
	if problem := targetProblem(p.ref, err); problem != nil {
		p.input.TargetProblem = problem
		return nil
	}
	if err != nil {
		return fmt.Errorf("resolve target %s of AITask %s: %w", p.ref, p.key, err)
	}
	p.state = &state
	p.input.Target = runbookTarget(state, p.task.Status.Order)
	if state.Rollout.Progressing {
		p.wake(state.Rollout.DeadlineTime)
	}
	return nil
}

func targetProblem(ref target.Reference, err error) *runbook.Problem {
	var unsupported *target.UnsupportedKindError
	if errors.As(err, &unsupported) {
		return &runbook.Problem{Reason: aiopsv1.ReasonUnsupported, Message: unsupported.Error()}
	}
	if errors.Is(err, target.ErrNotFound) {
		return &runbook.Problem{Reason: aiopsv1.ReasonTargetNotFound, Message: fmt.Sprintf("%s does not exist in namespace %s: create it, or correct the name", ref, ref.Namespace)}
	}
	return nil
}

// runbookTarget reduces a state to what decisions look at. A cache that has not seen the order's own change is not believed to
// be available.
func runbookTarget(state target.State, order *aiopsv1.Order) *runbook.Target {
	available := state.Settled && !state.Rollout.Progressing && !state.Rollout.Stalled && state.Available >= state.Replicas
	if order != nil && order.After != nil && state.Generation < order.After.Generation {
		available = false
	}
	return &runbook.Target{
		Summary: state.Reference.String(), UID: string(state.UID), Generation: state.Generation,
		Replicas: state.Replicas, AvailablePods: state.Available, Revision: state.Revision, RevisionRunning: state.RevisionRunning, TemplateHash: state.TemplateHash,
		Deleting: state.Deleting, Available: available, Autoscaled: state.Autoscaler != nil, TemplateApplied: state.TemplateAppliedBy != "",
		LastActionTime: state.LastActionTime, LastOrder: state.LastOrder,
	}
}

// warmUpWait is how soon a process that has just been elected looks again whether it has seen every task.
const warmUpWait = 50 * time.Millisecond

// standBy ends the pass of a process that may not act yet: it has observed, and writes nothing.
func (r *Reconciler) standBy(_ context.Context, p *pass) error {
	switch {
	case !r.elected.Load():
		p.done = true
	case !r.Fleet.warm(p.now):
		p.wake(p.now.Add(warmUpWait))
		p.done = true
	}
	return nil
}

// decide asks the runbook, and plans the steps that it asks back for.
func (r *Reconciler) decide(ctx context.Context, p *pass) error {
	p.input.Fleet = r.Fleet.facts(ctx, p)
	for range len(p.input.Plan.Steps) + 1 {
		decision := runbook.Next(p.input)
		if decision.Propose == nil {
			p.decision = &decision
			p.wake(decision.NextTime)
			return nil
		}
		proposal, err := r.propose(ctx, p.task, *decision.Propose, *p.state, nil, p.now)
		if err != nil {
			return err
		}
		p.input.Proposals = append(p.input.Proposals, proposal)
	}
	return fmt.Errorf("decide AITask %s: the runbook asked for more plans than there are steps", p.key)
}

func (r *Reconciler) propose(ctx context.Context, task *aiopsv1.AITask, step aiopsv1.Step, state target.State, order *aiopsv1.Order, now time.Time) (runbook.Proposal, error) {
	act, found := r.Actions.Lookup(step.Action)
	if !found {
		return runbook.Proposal{StepName: step.Name, Refusal: &runbook.Refusal{Problem: runbook.Problem{
			Reason: aiopsv1.ReasonUnsupported, Message: fmt.Sprintf("this operator does not know the action %s", step.Action)}}}, nil
	}
	plan, refusal, err := act.Plan(ctx, action.Request{Task: task, Step: step, Target: state, Order: order, Now: now})
	if err != nil && ctx.Err() != nil {
		return runbook.Proposal{}, fmt.Errorf("plan step %q of AITask %s/%s: %w", step.Name, task.Namespace, task.Name, err)
	}
	if err != nil {
		logf.FromContext(ctx).Error(err, "Failed to plan a step", "step", step.Name)
		refusal = &action.Refusal{Reason: aiopsv1.ReasonActionFailed, Wait: true, Message: fmt.Sprintf(
			"%s could not be planned: the API server answered with an error, which the operator's log names. It is tried again until the step's timeout", step.Action)}
	}
	return runbook.Proposal{
		StepName: step.Name, Replicas: plan.Replicas, Revision: plan.Revision, PodUIDs: plan.PodUIDs, Message: plan.Message,
		Refusal: runbookRefusal(refusal),
	}, nil
}

func runbookRefusal(refusal *action.Refusal) *runbook.Refusal {
	if refusal == nil {
		return nil
	}
	return &runbook.Refusal{Problem: runbook.Problem{Reason: refusal.Reason, Message: refusal.Message}, Wait: refusal.Wait}
}

var _ reconcile.Reconciler = &Reconciler{}
