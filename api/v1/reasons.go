package v1

// Phases: a one-word summary of conditions and decision, for people and columns. The set is open.
const (
	PhaseRunning   = "Running"   // nothing to judge
	PhasePending   = "Pending"   // nothing is known yet: target absent or signal not measured
	PhaseWatching  = "Watching"  // judged healthy
	PhaseBreached  = "Breached"  // threshold reached; holding, observing only, or an incident waits for recovery, a rollout or a reading
	PhaseBlocked   = "Blocked"   // a step is due and refused; decision says why and until when
	PhaseActing    = "Acting"    // an order is recorded and about to run
	PhaseVerifying = "Verifying" // an action ran; recovery is being proven
	PhaseExhausted = "Exhausted" // nothing helped; people are needed
	PhaseSuspended = "Suspended" // spec.suspend
	PhaseFailed    = "Failed"    // the spec can never work as it is
)

// Verdicts of a signal. Unknown never starts an action and never proves recovery.
const (
	VerdictBreached = "Breached"
	VerdictHealthy  = "Healthy"
	VerdictUnknown  = "Unknown"
)

// Condition types. A condition that does not apply to a task is absent.
const (
	ConditionReady           = "Ready"           // spec accepted, target found, signal readable; a breach never touches it
	ConditionTargetFound     = "TargetFound"     // the target exists
	ConditionSignalAvailable = "SignalAvailable" // the signal answers with a value
	ConditionBreached        = "Breached"        // the threshold is reached (True), is not (False), or nobody knows (Unknown)
	ConditionRemediating     = "Remediating"     // an order is unfinished
	ConditionExhausted       = "Exhausted"       // nothing helped; nothing more will be done
)

// ConditionTypes returns the condition types that this version of the operator writes. It leaves others alone.
func ConditionTypes() []string {
	return []string{
		ConditionReady, ConditionTargetFound, ConditionSignalAvailable, ConditionBreached, ConditionRemediating, ConditionExhausted,
	}
}

// Reasons of conditions and of status.decision.
const (
	ReasonAccepted         = "Accepted"
	ReasonInvalidSpec      = "InvalidSpec"
	ReasonNothingToJudge   = "NothingToJudge"
	ReasonTargetFound      = "TargetFound"
	ReasonMeasured         = "Measured"
	ReasonThresholdReached = "ThresholdReached"
	ReasonHealthy          = "Healthy"
	ReasonHolding          = "Holding"
	ReasonRecovering       = "Recovering"
	ReasonRecovered        = "Recovered"
	ReasonSuspended        = "Suspended"
	ReasonObserved         = "Observed"
	ReasonNoSteps          = "NoSteps"
	ReasonOrdered          = "Ordered"
	ReasonVerifying        = "Verifying"
	ReasonExhausted        = "Exhausted"
	ReasonIdle             = "Idle"
)

// Reasons why a signal is Unknown. Each is a typed outcome of one measurement; none of them is ever a number.
const (
	ReasonNotMeasured       = "NotMeasured"
	ReasonNoData            = "NoData"
	ReasonFilterQuery       = "FilterQuery"
	ReasonNotANumber        = "NotANumber"
	ReasonManySamples       = "ManySamples"
	ReasonPartialAnswer     = "PartialAnswer"
	ReasonQueryRejected     = "QueryRejected"
	ReasonUnauthorized      = "Unauthorized"
	ReasonServerError       = "ServerError"
	ReasonUnreachable       = "Unreachable"
	ReasonTimeout           = "Timeout"
	ReasonMalformedAnswer   = "MalformedAnswer"
	ReasonAnswerTooLarge    = "AnswerTooLarge"
	ReasonStale             = "Stale"
	ReasonUnknownEndpoint   = "UnknownEndpoint"
	ReasonNoRequests        = "NoRequests"
	ReasonNoMetrics         = "NoMetrics"
	ReasonConditionAbsent   = "ConditionAbsent"
	ReasonRolloutInProgress = "RolloutInProgress"
	ReasonNotObserved       = "NotObserved"
	ReasonUnknownContainer  = "UnknownContainer"
)

// Reasons why a step that is due is not run now: the typed refusals. Each comes with a message that says what to do and
// with the time of the next try.
const (
	ReasonTargetNotFound            = "TargetNotFound"
	ReasonTargetDeleting            = "TargetDeleting"
	ReasonTargetReplaced            = "TargetReplaced"
	ReasonTargetPaused              = "TargetPaused"
	ReasonTargetBusy                = "TargetBusy"
	ReasonOwnedByAutoscaler         = "OwnedByAutoscaler"
	ReasonOwnedByGitOps             = "OwnedByGitOps"
	ReasonNoEarlierRevision         = "NoEarlierRevision"
	ReasonNothingToEvict            = "NothingToEvict"
	ReasonAtLimit                   = "AtLimit"
	ReasonBlockedByDisruptionBudget = "BlockedByDisruptionBudget"
	ReasonQuotaExceeded             = "QuotaExceeded"
	ReasonForbidden                 = "Forbidden"
	ReasonUnsupported               = "Unsupported"
	ReasonCooldown                  = "Cooldown"
	ReasonBudgetExhausted           = "BudgetExhausted"
	ReasonStormProtection           = "StormProtection"
	ReasonSignalUnknown             = "SignalUnknown"
	ReasonSignalHealthy             = "SignalHealthy"
	ReasonSpecChanged               = "SpecChanged"
	ReasonSuperseded                = "Superseded"
	ReasonAlwaysBreached            = "AlwaysBreached"
	ReasonThresholdUnreachable      = "ThresholdUnreachable"
	ReasonClockSkew                 = "ClockSkew"
	ReasonActionFailed              = "ActionFailed"
	ReasonInterrupted               = "Interrupted"
	ReasonRequestExpired            = "RequestExpired"
)

// Causes of an order.
const (
	CauseIncident = "Incident" // the signal was breached for long enough
	CauseRun      = "Run"      // somebody asked for it with RunAnnotation
)

// States of an order.
const (
	OrderRecorded  = "Recorded"  // written ahead; may or may not have run
	OrderVerifying = "Verifying" // ran; recovery is being proven
)

// Results of an order, in status.history.
const (
	ResultRecovered  = "Recovered"  // ran, and the signal and the workload recovered
	ResultFailed     = "Failed"     // ran, or could not be run, and did not help
	ResultDone       = "Done"       // an accompanying step was done
	ResultObserved   = "Observed"   // would have run; mode Observe
	ResultRefused    = "Refused"    // cannot be run as things are; the next step took its turn
	ResultWithdrawn  = "Withdrawn"  // recorded but not run: the gate found that it must not
	ResultCancelled  = "Cancelled"  // ran, but somebody changed the workload or the task before it was judged
	ResultSuperseded = "Superseded" // the target is not the one that was judged
)
