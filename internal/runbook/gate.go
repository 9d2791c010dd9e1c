package runbook

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Gate is everything that is read again, from the API server and the source, right before a recorded order is run.
type Gate struct {
	// Input holds the task and the target as the API server has them now, a fresh observation, and the step planned anew.
	Input
	// TaskUID and Order are what this pass set out with.
	TaskUID types.UID
	Order   aiopsv1.Order
	// Untried says that this process wrote the order and has not yet handed it to its action, so that it cannot have run.
	Untried bool
	// ClockSkew is the API server's clock minus this machine's.
	ClockSkew time.Duration
}

// Passage is what the gate came to.
type Passage string

// The passages.
const (
	PassageRun       Passage = "Run"       // run it
	PassageAbandon   Passage = "Abandon"   // it is not this pass's order any more: do nothing
	PassageHold      Passage = "Hold"      // not now; keep the order and ask again
	PassageWithdraw  Passage = "Withdraw"  // it must not run; it costs no attempt
	PassageRefuse    Passage = "Refuse"    // the step can't be run as things are; the next one takes its turn
	PassageInterrupt Passage = "Interrupt" // nobody can know whether it ran: verify, never repeat
)

// Pass says whether the order may run now. The checks stand in the order of their certainty; the first that objects decides.
func Pass(gate Gate) (Passage, Problem) {
	for _, check := range []func(Gate) (Passage, Problem){
		checkOrder, checkTask, checkTarget, checkStamp, checkImage, checkClock, checkVerdict, checkLimits, checkProposal, checkDeadline,
	} {
		if passage, problem := check(gate); passage != "" {
			return passage, problem
		}
	}
	return PassageRun, Problem{}
}

func checkOrder(gate Gate) (Passage, Problem) {
	live := gate.Task.Status.Order
	if gate.Task.UID != gate.TaskUID || gate.Task.DeletionTimestamp != nil || live == nil ||
		live.ID != gate.Order.ID || live.State != aiopsv1.OrderRecorded {
		return PassageAbandon, Problem{}
	}
	return "", Problem{}
}

// checkTask looks at what people may have changed since the order was written. An edit outside of the plan changes nothing here.
func checkTask(gate Gate) (Passage, Problem) {
	suspend := gate.Task.Spec.Suspend
	step := gate.Plan.Steps
	switch {
	case gate.SpecProblem != nil || gate.Order.PlanHash != gate.Plan.Hash || len(step) == 0:
		return PassageWithdraw, Problem{aiopsv1.ReasonSpecChanged, "target, signals or steps were changed before the step ran"}
	case suspend != nil && *suspend:
		return PassageWithdraw, Problem{aiopsv1.ReasonSuspended, "the task was suspended before the step ran"}
	case gate.Plan.mode(step[gate.Plan.step(gate.Order.StepName)]) == aiopsv1.ModeObserve:
		return PassageWithdraw, Problem{aiopsv1.ReasonObserved, "the mode was set to Observe before the step ran"}
	}
	return "", Problem{}
}

func checkTarget(gate Gate) (Passage, Problem) {
	switch {
	case gate.Target == nil:
		return PassageWithdraw, *gate.TargetProblem
	case gate.Order.Before == nil || gate.Target.UID != gate.Order.Before.UID:
		return PassageWithdraw, Problem{aiopsv1.ReasonTargetReplaced, gate.Target.Summary + " was deleted and created again before the step ran"}
	case gate.Target.Deleting:
		return PassageWithdraw, Problem{aiopsv1.ReasonTargetDeleting, gate.Target.Summary + " is being deleted"}
	}
	return "", Problem{}
}

// checkStamp lets an order pass that already left its stamp: running it again only finishes or confirms it. An order that cannot have
// run meets with the stamp of an earlier one that had the same ID, since the operator had not seen that stamp when it gave it up.
func checkStamp(gate Gate) (Passage, Problem) {
	switch {
	case gate.Target.LastOrder != gate.Order.ID:
		return "", Problem{}
	case gate.Untried:
		return PassageWithdraw, Problem{aiopsv1.ReasonInterrupted, "an earlier order of this step left its stamp on the target"}
	}
	return PassageRun, Problem{}
}

// checkImage compares the target with the one that was judged. An order that cannot have run is superseded; one that may have is
// not run again.
func checkImage(gate Gate) (Passage, Problem) {
	before := gate.Order.Before
	if aiopsv1.ActionType(gate.Order.Action).Accompanies() || (gate.Target.Generation == before.Generation && gate.Target.TemplateHash == before.TemplateHash) {
		return "", Problem{}
	}
	if gate.Untried || aiopsv1.ActionType(gate.Order.Action) == aiopsv1.ActionEvict {
		return PassageWithdraw, Problem{aiopsv1.ReasonSuperseded, gate.Target.Summary + " was changed before the step ran; acting would undo that change"}
	}
	if hit := busy(gate.Input, &gate.Task.Status); hit != nil {
		// The other order explains the change. It ran on the workload as it was before ours, so ours has not run.
		return PassageWithdraw, hit.problem
	}
	return PassageInterrupt, Problem{aiopsv1.ReasonInterrupted, gate.Target.Summary + " was changed, and it cannot be known whether by this step: it is verified and not run again"}
}

func checkClock(gate Gate) (Passage, Problem) {
	if skew := gate.ClockSkew.Abs(); skew > MaxClockSkew {
		return gate.hold(Problem{aiopsv1.ReasonClockSkew, fmt.Sprintf("the operator's clock and the API server's are more than %s apart; nothing is done until they agree", span(MaxClockSkew))})
	}
	return "", Problem{}
}

// checkVerdict measures again: a workload that healed in the meantime is left alone, and so is one that nobody can see.
func checkVerdict(gate Gate) (Passage, Problem) {
	if gate.Order.Cause == aiopsv1.CauseRun {
		return "", Problem{}
	}
	judgement := gate.Observation.Judgement
	switch judgement.Verdict {
	case aiopsv1.VerdictBreached:
		return "", Problem{}
	case aiopsv1.VerdictHealthy:
		return PassageWithdraw, Problem{aiopsv1.ReasonSignalHealthy, "the signal was healthy again before the step ran"}
	}
	return gate.hold(Problem{aiopsv1.ReasonSignalUnknown, "the signal cannot be read right now, and nothing is done on missing data: " + judgement.Reason})
}

func checkLimits(gate Gate) (Passage, Problem) {
	if aiopsv1.ActionType(gate.Order.Action).Accompanies() {
		return "", Problem{}
	}
	if hit := limits(gate.Input, &gate.Task.Status); hit != nil {
		return PassageWithdraw, hit.problem
	}
	return "", Problem{}
}

// checkProposal derives the order from the spec once more: status is not trusted with what is done.
func checkProposal(gate Gate) (Passage, Problem) {
	proposal := gate.proposal(gate.Order.StepName)
	switch {
	case proposal == nil:
		return gate.hold(Problem{aiopsv1.ReasonNotObserved, "the step could not be planned again"})
	case proposal.Refusal != nil:
		return PassageRefuse, proposal.Refusal.Problem
	case string(gate.Plan.Steps[gate.Plan.step(gate.Order.StepName)].Action) != gate.Order.Action,
		!sameNumber(proposal.Replicas, gate.Order.Replicas), proposal.Revision != gate.Order.Revision, !slices.Equal(proposal.PodUIDs, gate.Order.PodUIDs):
		return PassageWithdraw, Problem{aiopsv1.ReasonSuperseded, "the step would now do something else than what was recorded"}
	}
	return "", Problem{}
}

// checkDeadline gives up what waited for too long, be it for an operator that was down: it answers a breach that nobody watched since.
// Without a stamp and without a change of the target it has not run; of a step that leaves neither, nobody knows.
func checkDeadline(gate Gate) (Passage, Problem) {
	switch {
	case gate.Now.Before(gate.Order.DeadlineTime.Or(gate.Now)):
		return "", Problem{}
	case aiopsv1.ActionType(gate.Order.Action).Accompanies() && !gate.Untried:
		return PassageInterrupt, Problem{aiopsv1.ReasonInterrupted, "it waited for too long, and it cannot be known whether it was carried out"}
	}
	return PassageWithdraw, Problem{aiopsv1.ReasonRequestExpired, fmt.Sprintf("it waited for longer than %s; the signal is judged anew", span(orderDeadline))}
}

// Refusal returns the refusal that the step, planned anew, met with, or nil.
func (gate Gate) Refusal() *Refusal {
	if proposal := gate.proposal(gate.Order.StepName); proposal != nil {
		return proposal.Refusal
	}
	return nil
}

// hold keeps the order until its deadline.
func (gate Gate) hold(problem Problem) (Passage, Problem) {
	if gate.Now.Before(gate.Order.DeadlineTime.Or(gate.Now)) {
		return PassageHold, problem
	}
	return PassageWithdraw, problem
}

func sameNumber(a, b *int32) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
