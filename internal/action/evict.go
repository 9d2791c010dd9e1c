package action

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// severalBudgets is how the API server says that it cannot evict a pod that more than one PodDisruptionBudget selects.
const severalBudgets = "more than one PodDisruptionBudget"

// Evict removes unhealthy pods of a workload, so that its controller makes new ones, perhaps elsewhere.
type Evict struct {
	workloads workloads
	pods      pods
}

// NewEvict returns the action Evict. live reads past the caches.
func NewEvict(writer Writer, live Reader) *Evict {
	return &Evict{workloads: workloads{writer: writer, live: live}, pods: pods{writer: writer, live: live}}
}

// Type is Evict.
func (*Evict) Type() aiopsv1.ActionType { return aiopsv1.ActionEvict }

// Plan picks the pods by UID, the longest unhealthy first. It refuses where no pod is unhealthy, and asks the API server in a dry run whether a
// PodDisruptionBudget would let any of them go.
func (e *Evict) Plan(ctx context.Context, request Request) (Plan, *Refusal, error) {
	state := &request.Target
	if refusal := refuseDeleting(state); refusal != nil {
		return Plan{}, refusal, nil
	}
	unhealthy := unhealthyPods(request)
	if len(unhealthy) == 0 {
		return Plan{}, nothingToEvict(state), nil
	}
	unhealthy = choose(request, unhealthy, mostPods(request.Step))
	plan := Plan{
		PodUIDs: uidsOf(unhealthy),
		Message: fmt.Sprintf("evict %s of %s: %s", count(len(unhealthy), "unhealthy pod"), state.Reference, list(namesOf(unhealthy))),
	}
	request.Order = &aiopsv1.Order{PodUIDs: plan.PodUIDs}
	_, refusal, err := e.candidates(ctx, request)
	if err != nil || refusal != nil {
		return Plan{}, refusal, err
	}
	return plan, nil, nil
}

// nothingToEvict says why there is no pod to remove. That ends by itself while a pod is starting, which makes it ready or unhealthy; and
// where more pods are ready than the workload counts, which means that pods and workload were not read at the same moment.
func nothingToEvict(state *target.State) *Refusal {
	ready, waiting := 0, 0
	for i := range state.Pods {
		switch {
		case state.Pods[i].Ready:
			ready++
		case !state.Pods[i].Scheduled:
			waiting++
		}
	}
	starting := len(state.Pods) - ready - waiting
	refusal := refuse(aiopsv1.ReasonNothingToEvict, "no pod of %s is unhealthy: %d ready, %d starting, %d waiting for a node",
		state.Reference, ready, starting, waiting)
	refusal.Wait = starting > 0 || ready > int(state.Available)
	return refusal
}

func mostPods(step aiopsv1.Step) int {
	most := aiopsv1.DefaultEvictMaxPods
	if step.Evict != nil && step.Evict.MaxPods != nil {
		most = *step.Evict.MaxPods
	}
	return int(min(max(most, 1), aiopsv1.MaxPodUIDs))
}

func ignoresBudget(step aiopsv1.Step) bool {
	return step.Evict != nil && step.Evict.UnhealthyPods == aiopsv1.IgnoreBudget
}

// candidates are the pods of an order as they are now.
type candidates struct {
	// unready are those that are still to be removed.
	unready []corev1.Pod
	// healthy counts those that have become ready.
	healthy int
}

// candidates finds the pods of an order that are still to be removed, or why none of them is. It writes nothing.
func (e *Evict) candidates(ctx context.Context, request Request) (candidates, *Refusal, error) {
	var found candidates
	var err error
	if found.unready, found.healthy, err = e.pods.unready(ctx, request); err != nil {
		refusal, err := refusedOr(err, "get pods", &request.Target)
		return found, refusal, err
	}
	if len(found.unready) == 0 {
		refusal := refuse(aiopsv1.ReasonNothingToEvict, "the unhealthy pods of %s have recovered or are gone", request.Target.Reference)
		refusal.Wait = true // the caches are about to say so too, and then the step is planned anew
		return found, refusal, nil
	}
	if ignoresBudget(request.Step) {
		return found, nil, nil
	}
	var refusal *Refusal
	for i := range found.unready {
		pod := &found.unready[i]
		err := e.pods.evict(ctx, pod, true)
		if err == nil {
			return found, nil, nil
		}
		if refusal = e.refusal(err, request, pod.Name); refusal == nil {
			return found, nil, fmt.Errorf("try to evict pod %s of %s: %w", pod.Name, request.Target.Reference, err)
		}
	}
	return found, refusal, nil
}

// Run stamps the workload, which is also the lock against an action of another task, and then evicts the recorded pods, one by
// one. It goes on where an earlier try ended: what is gone is done.
func (e *Evict) Run(ctx context.Context, request Request) (Outcome, error) {
	if err := checkOrder(request); err != nil {
		return Outcome{}, err
	}
	found, refusal, err := e.candidates(ctx, request)
	resumed := request.Target.LastOrder == request.Order.ID
	if err != nil || refusal != nil && !resumed {
		return Outcome{Refusal: refusal}, err
	}
	outcome, err := e.workloads.apply(ctx, request, change{
		doing:   "patch " + resourceOf(request.Target.Reference),
		refusal: refuseDeleting(&request.Target),
	})
	if err != nil || !outcome.Executed {
		return outcome, err
	}
	return e.removeAll(ctx, request, found, outcome)
}

// removeAll removes what it may. A refusal counts only if no pod of the order is gone by now, by this try or by one before it.
func (e *Evict) removeAll(ctx context.Context, request Request, found candidates, outcome Outcome) (Outcome, error) {
	var removed, pastBudget []string
	var refusal *Refusal
	for i := range found.unready {
		pod := &found.unready[i]
		deleted, err := e.removeOne(ctx, request.Step, pod)
		if err == nil {
			removed = append(removed, pod.Name)
			if deleted {
				pastBudget = append(pastBudget, pod.Name)
			}
			continue
		}
		if refusal = e.refusal(err, request, pod.Name); refusal == nil {
			return Outcome{}, fmt.Errorf("evict pod %s of %s: %w", pod.Name, request.Target.Reference, err)
		}
	}
	gone := len(request.Order.PodUIDs) - len(found.unready) - found.healthy
	if refusal != nil && len(removed) == 0 && gone == 0 {
		return Outcome{Refusal: refusal}, nil
	}
	outcome.Message = evicted(request, removed, gone, found.healthy, refusal)
	if len(pastBudget) > 0 {
		outcome.Message += fmt.Sprintf("; deleted despite a PodDisruptionBudget: %s", list(pastBudget))
	}
	return outcome, nil
}

// removeOne says whether it had to delete the pod, as no eviction was granted.
func (e *Evict) removeOne(ctx context.Context, step aiopsv1.Step, pod *corev1.Pod) (deleted bool, err error) {
	err = e.pods.evict(ctx, pod, false)
	if err != nil && ignoresBudget(step) && (keptByBudget(err) || keptBySeveral(err)) {
		return true, e.pods.remove(ctx, pod)
	}
	return false, err
}

// refusal tells a budget from everything else. A budget ends by itself when other pods recover; a pod that several budgets select
// cannot be evicted at all.
func (*Evict) refusal(err error, request Request, pod string) *Refusal {
	switch {
	case keptByBudget(err):
		refusal := refuse(aiopsv1.ReasonBlockedByDisruptionBudget,
			"a PodDisruptionBudget keeps pod %s of %s: %s. Set evict.unhealthyPods: IgnoreBudget to remove broken pods anyway",
			pod, request.Target.Reference, budgetOf(err))
		refusal.Wait = true
		return refusal
	case keptBySeveral(err):
		return refuse(aiopsv1.ReasonBlockedByDisruptionBudget,
			"several PodDisruptionBudgets select pod %s of %s, and the API server evicts no such pod. Leave one, or set evict.unhealthyPods: IgnoreBudget",
			pod, request.Target.Reference)
	}
	return refusalOf(err, "evict pods", &request.Target)
}

func keptByBudget(err error) bool {
	return apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
}

func keptBySeveral(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.Contains(status.Status().Message, severalBudgets)
}

// budgetOf is what the API server says about the budget, such as "The disruption budget web needs 2 healthy pods and has 2 currently".
func budgetOf(err error) string {
	cause, _ := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	return quote(strings.TrimSuffix(cause.Message, "."))
}

func evicted(request Request, removed []string, gone, healthy int, refusal *Refusal) string {
	parts := []string{fmt.Sprintf("evicted %s of %s", count(len(removed)+gone, "unhealthy pod"), request.Target.Reference)}
	if len(removed) > 0 {
		parts[0] += ": " + list(removed)
	}
	if healthy > 0 {
		parts = append(parts, fmt.Sprintf("%d had recovered", healthy))
	}
	if refusal != nil {
		parts = append(parts, "not all of them: "+refusal.Message)
	}
	return strings.Join(parts, "; ")
}
