package action

import (
	"context"
	"fmt"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

const minimumReplicas int32 = 1

// Scale sets the replicas of a Deployment or StatefulSet.
type Scale struct {
	workloads workloads
}

// NewScale returns the action Scale. live reads past the caches.
func NewScale(writer Writer, live Reader) *Scale {
	return &Scale{workloads: workloads{writer: writer, live: live}}
}

// Type is Scale.
func (*Scale) Type() aiopsv1.ActionType { return aiopsv1.ActionScale }

// Plan works out the number of replicas, within the step's bounds. It refuses where somebody else owns the number, and where the bounds leave
// nothing to do.
func (*Scale) Plan(_ context.Context, request Request) (Plan, *Refusal, error) {
	state := &request.Target
	if refusal := refuseScale(state); refusal != nil {
		return Plan{}, refusal, nil
	}
	from := state.Replicas
	if request.Order != nil && request.Order.Before != nil {
		from = request.Order.Before.Replicas
	}
	to, refusal := replicas(state.Reference, request.Step, from)
	if refusal != nil {
		return Plan{}, refusal, nil
	}
	return Plan{
		Replicas: &to,
		Message:  fmt.Sprintf("scale %s from %d to %d replicas", state.Reference, from, to),
	}, nil, nil
}

func refuseScale(state *target.State) *Refusal {
	reference := state.Reference
	switch {
	case state.Deleting:
		return refuseDeleting(state)
	case reference.Kind == "DaemonSet":
		return refuse(aiopsv1.ReasonUnsupported, "%s has a pod on every node and no replicas to set. Use another step", reference)
	case state.Autoscaler != nil:
		return refuse(aiopsv1.ReasonOwnedByAutoscaler,
			"%s sets replicas of %s; a Scale step would be undone. Raise its minReplicas, or use another step", state.Autoscaler.Summary, reference)
	case state.ReplicasAppliedBy != "":
		return refuse(aiopsv1.ReasonOwnedByGitOps,
			"spec.replicas of %s is applied by %s; a Scale step would be reverted. Scale in Git, or leave replicas out of the manifest there",
			reference, state.ReplicasAppliedBy)
	}
	return nil
}

// replicas returns how many replicas the step asks for. A bound never turns the step around: a workload that is already beyond it
// stays as it is.
func replicas(reference target.Reference, step aiopsv1.Step, from int32) (int32, *Refusal) {
	if !isComplete(step.Scale) {
		return 0, refuse(aiopsv1.ReasonInvalidSpec, "steps[%q].scale needs max, and one of by and to", step.Name)
	}
	lowest, highest := bounds(step.Scale)
	wanted := int64(from)
	if step.Scale.To != nil {
		wanted = int64(*step.Scale.To)
	} else {
		wanted += int64(*step.Scale.By)
	}
	to := int32(min(max(wanted, int64(lowest)), int64(highest))) //nolint:gosec // between two int32
	switch {
	case wanted > int64(from) && to < from:
		return 0, refuse(aiopsv1.ReasonAtLimit, "%s is at %d, above max %d of steps[%q]: raise max or remove the step", reference, from, highest, step.Name)
	case wanted < int64(from) && to > from:
		return 0, refuse(aiopsv1.ReasonAtLimit, "%s is at %d, below min %d of steps[%q]: lower min or remove the step", reference, from, lowest, step.Name)
	case to == from:
		return 0, refuse(aiopsv1.ReasonAtLimit, "%s is at %s", reference, bound(from, wanted, lowest, highest))
	}
	return to, nil
}

// isComplete says that a step has what the schema demands of it.
func isComplete(step *aiopsv1.ScaleStep) bool {
	return step != nil && step.Max != nil && (step.By != nil || step.To != nil)
}

// bounds are the fewest and the most replicas that a step sets. max counts for more than the default of min.
func bounds(step *aiopsv1.ScaleStep) (lowest, highest int32) {
	lowest = minimumReplicas
	if step.Min != nil {
		lowest = *step.Min
	}
	return min(lowest, *step.Max), *step.Max
}

// bound says what a workload is at when there is nothing to change.
func bound(from int32, wanted int64, lowest, highest int32) string {
	switch {
	case wanted > int64(from):
		return fmt.Sprintf("%d of max %d", from, highest)
	case wanted < int64(from):
		return fmt.Sprintf("%d of min %d", from, lowest)
	}
	return fmt.Sprintf("the %d replicas that the step sets", from)
}

// Run sets the number of replicas that the order recorded.
func (s *Scale) Run(ctx context.Context, request Request) (Outcome, error) {
	if err := checkOrder(request); err != nil {
		return Outcome{}, err
	}
	if request.Order.Replicas == nil {
		return Outcome{}, fmt.Errorf("scale %s: the order has no number of replicas", request.Target.Reference)
	}
	return s.workloads.apply(ctx, request, change{
		doing:   "patch " + resourceOf(request.Target.Reference),
		verb:    "scale",
		past:    "scaled",
		refusal: refuseScale(&request.Target),
		spec: func(known) []operation {
			return []operation{add("/spec/replicas", *request.Order.Replicas)}
		},
	})
}
