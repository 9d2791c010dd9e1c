package runbook

import (
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Problem is a typed reason with a message that says what to do about it.
type Problem struct {
	Reason  string
	Message string
}

// Target is the workload, reduced to what decisions look at.
type Target struct {
	Summary       string
	UID           string
	Generation    int64
	Replicas      int32
	AvailablePods int32
	Revision      string
	TemplateHash  string
	// RevisionRunning says that there are ready pods and that all of them were made from Revision.
	RevisionRunning bool
	Deleting        bool
	// Available says that every wanted pod is available and no rollout is under way.
	Available bool
	// Autoscaled says that something else sets replicas.
	Autoscaled bool
	// TemplateApplied says that a GitOps tool sets the pod template.
	TemplateApplied bool
	LastActionTime  time.Time
	LastOrder       string
}

// Image returns the target as orders record it.
func (t Target) Image() aiopsv1.TargetImage {
	return aiopsv1.TargetImage{UID: t.UID, Generation: t.Generation, Replicas: t.Replicas, Revision: t.Revision, TemplateHash: t.TemplateHash}
}

// Fleet is what other tasks mean for this one.
type Fleet struct {
	// BusyTask names another task with an unfinished order on the same target. Empty: none.
	BusyTask string
	// BusyUntil is when that order is over at the latest.
	BusyUntil time.Time
	// Storm holds every action back while many targets are breached at once. Nil: it does not.
	Storm *Problem
}

// Proposal is what planning a step came to: the absolute values of an order, or a refusal.
type Proposal struct {
	StepName string
	Replicas *int32
	Revision string
	PodUIDs  []string
	// Message says what is to be done, such as: restart Deployment/web.
	Message string

	Refusal *Refusal
}

// Refusal is a typed reason why a step cannot or must not be run now.
type Refusal struct {
	Problem
	// Wait says that the reason ends by itself: the step waits. Otherwise the next step takes its turn.
	Wait bool
}

// Input is everything a decision depends on.
type Input struct {
	Now  time.Time
	Task *aiopsv1.AITask
	Plan Plan
	// SpecProblem says that the spec can't work as it is.
	SpecProblem *Problem
	// Target is the workload; nil when there is none, and TargetProblem says why.
	Target        *Target
	TargetProblem *Problem
	// TargetSummary names the target that the spec refers to, such as Deployment/web, where there is none. Empty: it is not known.
	TargetSummary string
	Observation   Observation
	Fleet         Fleet
	// Proposals are the steps that were planned in this pass. Next asks for one more when it needs it.
	Proposals []Proposal
	// RandomID becomes the ID of an incident that begins in this pass.
	RandomID string
}

func (in Input) proposal(stepName string) *Proposal {
	for i := range in.Proposals {
		if in.Proposals[i].StepName == stepName {
			return &in.Proposals[i]
		}
	}
	return nil
}

// Event is something that happened, to be told once, after the status that says so was written.
type Event struct {
	Warning bool
	Reason  string
	Action  string
	Message string
}

// Reasons of events.
const (
	EventBreached       = "Breached"
	EventRecovered      = "Recovered"
	EventRecurred       = "Recurred"
	EventActionExecuted = "ActionExecuted"
	EventNotified       = "Notified"
	EventObserved       = "Observed"
	EventStepFailed     = "StepFailed"
	EventStepRefused    = "StepRefused"
	EventBlocked        = "Blocked"
	EventWithdrawn      = "OrderWithdrawn"
	EventCancelled      = "OrderCancelled"
	EventInterrupted    = "OrderInterrupted"
	EventTargetReplaced = "TargetReplaced"
	EventExhausted      = "Exhausted"
	EventReset          = "Reset"
	EventRequestRefused = "RequestRefused"
	EventInvalidSpec    = "InvalidSpec"
	EventSignalUnknown  = "SignalUnknown"

	EventThresholdUnreachable = "ThresholdUnreachable"
)

// Decision is the next status and what is to be done beside writing it.
type Decision struct {
	// Status is the status to be. Equal to the present one: nothing is written.
	Status aiopsv1.AITaskStatus
	// Propose asks for the plan of a step; decide again with it before anything is written.
	Propose *aiopsv1.Step
	// Execute says that the recorded order is due: pass it through the gate, then run it.
	Execute bool
	// Events are told after the status was written.
	Events []Event
	// NextTime is the exact time at which time alone changes the decision. Zero: never.
	NextTime time.Time
}
