// Package action does. One file per action; each plans (what exactly would be done, as absolute values, or a typed refusal) and
// runs (does exactly that, once, with its precondition inside the write). It decides nothing: whether and when is the runbook's.
package action

import (
	"context"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// Plan is what an action would do to a target: absolute values, the same whenever it is made from the same target and step.
type Plan struct {
	// Replicas is what a Scale sets.
	Replicas *int32
	// Revision is where a Rollback goes to.
	Revision string
	// PodUIDs are the pods that an Evict removes, or that a Rollback frees.
	PodUIDs []string
	// Message says what is to be done, as "roll back Deployment/checkout from revision 8 (shop/checkout:2.4.1) to 7 (shop/checkout:2.4.0)".
	Message string
}

// Refusal is a typed reason why an action cannot or must not be run on the target as it is.
type Refusal struct {
	// Reason is one of the refusal reasons of api/v1.
	Reason string
	// Message says what to do about it.
	Message string
	// Wait says that the refusal ends by itself (a budget, a quota): the step waits. Otherwise the step cannot help as things are.
	Wait bool
}

// Request is what an action is asked to plan or to run.
type Request struct {
	Task   *aiopsv1.AITask
	Step   aiopsv1.Step
	Target target.State
	// Order is the recorded order; nil while planning.
	Order *aiopsv1.Order
	Now   time.Time
}

// Outcome is what came of running an order. Exactly one of the three holds: Executed, Refusal, or an error from Run that says
// that nothing is known and the same order must be tried again.
type Outcome struct {
	// Executed says that the order was carried out, now or by an earlier try that left its stamp.
	Executed bool
	// After is the target right after the action.
	After aiopsv1.TargetImage
	// Refusal says that nothing was done and why.
	Refusal *Refusal
	// Message says what was done, as "rolled back Deployment/checkout from revision 8 (shop/checkout:2.4.1) to 7 (shop/checkout:2.4.0)".
	Message string
}

// Action is one way to act on a target. Safe for concurrent use.
type Action interface {
	Type() aiopsv1.ActionType
	// Plan reads whatever it needs and writes nothing.
	Plan(ctx context.Context, request Request) (Plan, *Refusal, error)
	// Run carries out request.Order exactly once, however often it is called for the same order.
	Run(ctx context.Context, request Request) (Outcome, error)
}
