package runbook

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	// requestLifetime is how long a run or reset annotation may be answered.
	requestLifetime = 10 * time.Minute
	// maxRequestLength bounds what status keeps of an answered annotation, in bytes.
	maxRequestLength = 256
)

// Next decides. The rules are asked in order; the first that settles the matter ends the pass.
func Next(in Input) Decision {
	m := newMachine(in)
	for _, rule := range []func() bool{
		m.refuseSpec,
		m.rest,
		m.followPlan,
		m.answerReset,
		m.findTarget,
		m.answerRun,
		m.settleOrder,
		m.followRecovery,
		m.stayExhausted,
		m.weighVerdict,
		m.takeStep,
	} {
		if rule() {
			break
		}
	}
	return m.finish()
}

// refuseSpec stops a task whose spec can't work, until the spec changes.
func (m *machine) refuseSpec() bool {
	problem := m.in.SpecProblem
	if problem == nil {
		return false
	}
	m.dropOrder(Problem{aiopsv1.ReasonSpecChanged, "the spec is no longer valid"})
	if incident := m.status.Incident; incident != nil && incident.PlanHash != m.in.Plan.Hash {
		m.status.Incident = nil // else only the operator's configuration changed: the incident goes on when it is mended
	}
	m.say(aiopsv1.PhaseFailed, problem.Reason, problem.Message)
	return true
}

// rest does nothing while the task is suspended. Resuming starts with clean counters; the limits' memory stays.
func (m *machine) rest() bool {
	if suspend := m.in.Task.Spec.Suspend; suspend == nil || !*suspend {
		return false
	}
	m.dropOrder(Problem{aiopsv1.ReasonSuspended, "the task was suspended"})
	m.status.Incident = nil
	m.refuseRun()
	m.say(aiopsv1.PhaseSuspended, aiopsv1.ReasonSuspended, "spec.suspend is true: nothing is judged and nothing is done")
	return true
}

// followPlan ends an incident whose target, signals or steps are no longer those that it began with, and an order that is not its
// own: status may have been restored from elsewhere or written by hand.
func (m *machine) followPlan() bool {
	if incident := m.status.Incident; incident != nil && incident.PlanHash != m.in.Plan.Hash {
		m.dropOrder(Problem{aiopsv1.ReasonSpecChanged, "target, signals or steps were changed"})
		m.status.Incident = nil
	}
	if order := m.status.Order; order != nil && !m.ordered(order) {
		m.dropOrder(Problem{aiopsv1.ReasonSuperseded, "the order is not one of this incident"})
	}
	return false
}

func (m *machine) ordered(order *aiopsv1.Order) bool {
	incident := m.status.Incident
	if _, found := m.in.Plan.Step(order.StepName); !found || incident == nil || incident.StepName != order.StepName {
		return false
	}
	attempts := incident.Attempts
	if order.State != aiopsv1.OrderRecorded {
		attempts-- // it was counted when it had run
	}
	return order.ID == m.orderIDAfter(incident, order.StepName, attempts)
}

func (m *machine) answerReset() bool {
	value := m.in.Task.Annotations[aiopsv1.ResetAnnotation]
	if m.status.Requests != nil && m.answered(value, m.status.Requests.Reset) || value == "" {
		return false
	}
	m.requests().Reset = cut(value, maxRequestLength)
	if problem := m.requestProblem(aiopsv1.ResetAnnotation, value); problem != "" {
		m.event(Event{Warning: true, Reason: EventRequestRefused, Action: "Reset", Message: problem})
		return false
	}
	m.dropOrder(Problem{aiopsv1.ReasonSpecChanged, "the task was reset"})
	m.status.Incident = nil
	m.event(Event{Reason: EventReset, Action: "Reset", Message: "The incident was forgotten on request; the steps begin anew"})
	return false
}

// refuseRun answers a request that is made while the task is suspended: resuming must not act on it by surprise.
func (m *machine) refuseRun() {
	value := m.in.Task.Annotations[aiopsv1.RunAnnotation]
	if m.status.Requests != nil && m.answered(value, m.status.Requests.Run) || value == "" {
		return
	}
	m.requests().Run = cut(value, maxRequestLength)
	m.event(Event{Warning: true, Reason: EventRequestRefused, Action: "Run", Message: "the task is suspended: resume it first, then ask again"})
}

// answerRun stands behind the target's own rules: a request waits for a target that is not there, and is not lost with an
// incident that these rules end.
func (m *machine) answerRun() bool {
	m.expireRun()
	value := m.in.Task.Annotations[aiopsv1.RunAnnotation]
	if m.status.Requests != nil && m.answered(value, m.status.Requests.Run) || value == "" {
		return false
	}
	m.requests().Run = cut(value, maxRequestLength)
	if problem := m.runProblem(value); problem != "" {
		m.event(Event{Warning: true, Reason: EventRequestRefused, Action: "Run", Message: problem})
		return false
	}
	if incident := m.status.Incident; incident == nil || incident.RecoveredTime != nil {
		m.openIncident()
	}
	m.status.Incident.Cause = aiopsv1.CauseRun
	return false
}

func (m *machine) runProblem(value string) string {
	problem := m.requestProblem(aiopsv1.RunAnnotation, value)
	incident := m.status.Incident
	switch {
	case problem != "":
		return problem
	case len(m.in.Plan.Steps) == 0:
		return "there is no step to run: set action or steps"
	case m.alreadyRan(value):
		return "an action ran on the target after this request was made; ask again if it is still wanted"
	case incident != nil && incident.Exhausted:
		return "the task is Exhausted: reset it first with the annotation " + aiopsv1.ResetAnnotation
	case m.status.Order != nil:
		return "an order is under way; ask again when it is finished"
	}
	return ""
}

// expireRun ends a requested run that limits or refusals held back for as long as a request is valid.
func (m *machine) expireRun() {
	incident := m.status.Incident
	if incident == nil || incident.Cause != aiopsv1.CauseRun || m.status.Order != nil {
		return
	}
	asked, err := requestTime(m.requests().Run)
	expiry := asked.Add(requestLifetime)
	if err == nil && m.in.Now.Before(expiry) {
		m.at(expiry)
		return
	}
	m.event(Event{Warning: true, Reason: EventRequestRefused, Action: "Run", Message: fmt.Sprintf("%s: the run could not begin within %s of the request; ask again if it is still wanted",
		aiopsv1.ReasonRequestExpired, span(requestLifetime))})
	m.endRun()
}

// endRun ends a requested run that came to nothing. The incident that was opened for it alone goes with it: nothing was broken, so
// nothing will have recovered.
func (m *machine) endRun() {
	incident := m.status.Incident
	incident.Cause = aiopsv1.CauseIncident
	asked, err := requestTime(m.requests().Run)
	opened := err != nil || !incident.StartTime.Or(m.in.Now).Before(asked.Add(-MaxClockSkew))
	if opened && incident.Attempts == 0 && !m.breachHeld() {
		m.status.Incident = nil
	}
}

// alreadyRan guards against a request that is read again after status was lost: the target remembers.
func (m *machine) alreadyRan(value string) bool {
	asked, err := requestTime(value)
	return err == nil && m.in.Target.LastActionTime.After(asked)
}

func (m *machine) requests() *aiopsv1.RequestStatus {
	if m.status.Requests == nil {
		m.status.Requests = &aiopsv1.RequestStatus{}
	}
	return m.status.Requests
}

// answered says that a request was answered already: it is the latest one, or was made no later than that. Status remembers only the
// latest; were an earlier one that comes back answered, and remembered in its place, the later one could come back as well.
func (m *machine) answered(value, latest string) bool {
	if cut(value, maxRequestLength) == latest {
		return true
	}
	asked, err := requestTime(value)
	before, latestErr := requestTime(latest)
	uid, _, _ := strings.Cut(latest, "/")
	if err != nil || latestErr != nil || uid != string(m.in.Task.UID) || before.Sub(m.in.Now) > MaxClockSkew {
		return false // the latest one was refused, and says nothing about when this one was made
	}
	return !asked.After(before)
}

// requestProblem says why a request is not answered, or nothing.
func (m *machine) requestProblem(annotation, value string) string {
	uid, _, _ := strings.Cut(value, "/")
	asked, err := requestTime(value)
	switch {
	case err != nil:
		return fmt.Sprintf("the value of %s is not understood: write %s/<RFC 3339 time>", annotation, m.in.Task.UID)
	case uid != string(m.in.Task.UID):
		return fmt.Sprintf("the value of %s names another object: this task's UID is %s", annotation, m.in.Task.UID)
	case m.in.Now.Sub(asked) >= requestLifetime:
		return fmt.Sprintf("the request of %s is older than %s: write it again with the present time", clock(asked), span(requestLifetime))
	case asked.Sub(m.in.Now) > MaxClockSkew:
		return fmt.Sprintf("the request of %s is from the future: write it again with the present time", clock(asked))
	}
	return ""
}

func requestTime(value string) (time.Time, error) {
	_, text, _ := strings.Cut(value, "/")
	return time.Parse(time.RFC3339, text)
}

// findTarget ends what was under way on a workload that is gone, going, or not the same any more.
func (m *machine) findTarget() bool {
	if m.in.Target == nil {
		problem := *m.in.TargetProblem
		m.dropOrder(problem)
		m.status.Incident = nil
		m.say(aiopsv1.PhasePending, problem.Reason, problem.Message)
		return true
	}
	incident := m.status.Incident
	if incident != nil && incident.TargetUID != m.in.Target.UID {
		problem := Problem{aiopsv1.ReasonTargetReplaced, m.in.Target.Summary + " was deleted and created again; the incident is closed, which is not a success"}
		m.dropOrder(problem)
		m.status.Incident = nil
		m.event(Event{Warning: true, Reason: EventTargetReplaced, Action: "Resolve", Message: upperFirst(problem.Message)})
	}
	if m.in.Target.Deleting {
		problem := Problem{aiopsv1.ReasonTargetDeleting, m.in.Target.Summary + " is being deleted"}
		m.dropOrder(problem)
		m.say(aiopsv1.PhasePending, problem.Reason, problem.Message)
		return true
	}
	return false
}

// settleOrder brings the unfinished order on its way: to the gate, or to its proof.
func (m *machine) settleOrder() bool {
	order := m.status.Order
	if order == nil {
		m.bookStamp()
		return false
	}
	if order.State != aiopsv1.OrderRecorded {
		return m.verify(order)
	}
	m.decision.Execute = true
	m.say(aiopsv1.PhaseActing, aiopsv1.ReasonOrdered, fmt.Sprintf("%s (%s) is recorded and about to run", m.stepText(order.StepName), order.Action))
	m.at(m.in.Now.Add(waitRetry))
	return true
}

// followRecovery closes an incident step by step: recovered when the signal was healthy and the workload available for
// recoverySeconds, forgotten when that has lasted for recurrenceSeconds.
func (m *machine) followRecovery() bool {
	incident := m.status.Incident
	if incident == nil {
		return false
	}
	if incident.RecoveredTime == nil {
		if m.recovered(time.Time{}) && incident.Cause != aiopsv1.CauseRun {
			m.markRecovered()
		}
		return false
	}
	if incident.Exhausted {
		m.leaveExhausted()
		return false
	}
	end := incident.RecoveredTime.Add(m.in.Plan.Recurrence)
	switch since := m.in.Observation.BreachedSince; {
	case m.in.Now.Before(end):
		m.at(end)
	case since.IsZero() || !since.Before(end): // else the breach that is holding began in time
		m.status.Incident = nil
	}
	return false
}

// leaveExhausted closes an exhausted incident once this process has seen recovery last for recurrenceSeconds without a break. What
// nobody saw did not last: after an Unknown, or a restart, it is seen anew.
func (m *machine) leaveExhausted() {
	if m.verdict() == aiopsv1.VerdictBreached {
		m.status.Incident.RecoveredTime = nil
		return
	}
	end := m.leavesExhausted()
	switch {
	case end.IsZero():
	case m.in.Now.Before(end):
		m.at(end)
	default:
		m.status.Incident = nil
	}
}

// leavesExhausted is when recovery has lasted for long enough, if it lasts. Zero: it is not seen now.
func (m *machine) leavesExhausted() time.Time {
	since := m.in.Observation.RecoveringSince
	if since.IsZero() {
		return time.Time{}
	}
	return later(since, m.status.Incident.RecoveredTime.Or(since)).Add(m.in.Plan.Recurrence)
}

// recovered says whether recovery has held, not counting anything before the given time; if it is holding, it asks to be woken
// when that will be proof.
func (m *machine) recovered(notBefore time.Time) bool {
	since := m.in.Observation.RecoveringSince
	if since.IsZero() {
		return false
	}
	if since.Before(notBefore) {
		since = notBefore
	}
	proof := since.Add(m.in.Plan.Recovery)
	if m.in.Now.Before(proof) {
		m.at(proof)
		return false
	}
	return true
}

func (m *machine) markRecovered() {
	incident := m.status.Incident
	incident.RecoveredTime = aiopsv1.TimePointer(m.in.Now)
	incident.NotBeforeTime = nil
	if m.in.Plan.Recurrence > 0 { // else the pass that follows this write closes it
		m.at(m.in.Now.Add(m.in.Plan.Recurrence))
	}
	lasted := m.in.Now.Sub(incident.StartTime.Or(m.in.Now))
	m.event(Event{Reason: EventRecovered, Action: "Verify", Message: fmt.Sprintf("Recovered in %s: signal healthy for %s, %d/%d pods available",
		span(lasted), span(m.in.Plan.Recovery), m.in.Target.AvailablePods, m.in.Target.Replicas)})
}

// recoveredText says how the incident ended, for as long as a new breach would still belong to it.
func (m *machine) recoveredText(how string) string {
	incident := m.status.Incident
	if incident == nil || incident.StepName == "" {
		return "Recovered: " + how
	}
	return fmt.Sprintf("Recovered: %s. A breach before %s %s", how, clock(incident.RecoveredTime.Add(m.in.Plan.Recurrence)),
		m.goesOnText("finds no pass left, and is for people"))
}

// passesUsed says that the incident has had all its passes: a breach that still belongs to it is answered by no step.
func (m *machine) passesUsed() bool {
	return m.status.Incident.Pass > m.in.Plan.MaxPasses
}

func (m *machine) stayExhausted() bool {
	incident := m.status.Incident
	if incident == nil || !incident.Exhausted {
		return false
	}
	if incident.RecoveredTime != nil {
		when := "once it is seen to last for " + span(m.in.Plan.Recurrence)
		if end := m.leavesExhausted(); !end.IsZero() {
			when = fmt.Sprintf("at %s if it lasts", clock(end))
		}
		m.say(aiopsv1.PhaseExhausted, aiopsv1.ReasonRecovered, "Recovered without further action; leaves Exhausted "+when)
		return true
	}
	if m.phase != aiopsv1.PhaseExhausted {
		m.say(aiopsv1.PhaseExhausted, aiopsv1.ReasonExhausted, m.whyExhausted())
	}
	return true
}

// weighVerdict goes on to the steps only when the breach has held for long enough, or when a run was asked for.
func (m *machine) weighVerdict() bool {
	if incident := m.status.Incident; incident != nil && incident.RecoveredTime == nil && incident.Cause == aiopsv1.CauseRun {
		return false
	}
	if m.in.Plan.Signal == nil {
		m.say(aiopsv1.PhaseRunning, aiopsv1.ReasonNothingToJudge, "Neither threshold nor signals are set: nothing is judged")
		return true
	}
	switch m.verdict() {
	case aiopsv1.VerdictBreached:
		return m.weighBreach()
	case aiopsv1.VerdictHealthy:
		m.weighHealthy()
	default:
		m.weighUnknown()
	}
	return true
}

func (m *machine) weighHealthy() {
	incident := m.status.Incident
	if incident != nil && incident.RecoveredTime == nil {
		m.say(aiopsv1.PhaseBreached, aiopsv1.ReasonRecovering, fmt.Sprintf("%s is healthy again; recovery must hold for %s with the workload available, and nothing is done meanwhile",
			m.signalType(), span(m.in.Plan.Recovery)))
		if since := m.in.Observation.RecoveringSince; !since.IsZero() {
			m.nextAllowed = since.Add(m.in.Plan.Recovery)
		}
		return
	}
	if incident != nil {
		m.say(aiopsv1.PhaseWatching, aiopsv1.ReasonRecovered, m.recoveredText(m.howRecovered()))
		return
	}
	if problem := ThresholdProblem(m.in.Plan, *m.in.Target); problem != nil {
		m.say(aiopsv1.PhaseWatching, problem.Reason, problem.Message)
		return
	}
	m.say(aiopsv1.PhaseWatching, aiopsv1.ReasonHealthy, "Nothing to do")
}

func (m *machine) weighUnknown() {
	judgement := m.in.Observation.Judgement
	incident := m.status.Incident
	switch {
	case judgement.Reading.Resting && incident != nil && incident.RecoveredTime == nil:
		m.say(aiopsv1.PhaseBreached, judgement.Reason, judgement.Message+"; the open incident waits for that")
	case judgement.Reading.Resting:
		m.say(aiopsv1.PhaseWatching, judgement.Reason, judgement.Message)
	case incident != nil && incident.RecoveredTime == nil:
		m.say(aiopsv1.PhaseBreached, aiopsv1.ReasonSignalUnknown, judgement.Message)
	default:
		m.say(aiopsv1.PhasePending, judgement.Reason, judgement.Message)
	}
}

func (m *machine) weighBreach() bool {
	due := m.in.Observation.BreachedSince.Add(m.in.Plan.For)
	if m.in.Now.Before(due) {
		m.say(aiopsv1.PhaseBreached, aiopsv1.ReasonHolding, fmt.Sprintf("%s; a step is due if that holds for %s, at %s",
			m.reachedText(), span(m.in.Plan.For), clock(due)))
		m.nextAllowed = due
		m.at(due)
		return true
	}
	if m.status.Incident == nil {
		m.openIncident()
		m.event(Event{Warning: true, Reason: EventBreached, Action: "Judge", Message: m.breachText()})
	}
	if m.status.Incident.RecoveredTime != nil {
		m.status.Incident.RecoveredTime = nil
		m.event(Event{Warning: true, Reason: EventRecurred, Action: "Judge", Message: fmt.Sprintf("%s; within %s of recovery, so the same incident %s",
			m.breachText(), span(m.in.Plan.Recurrence), m.goesOnText("goes on, and has no pass left"))})
	}
	return false
}

// goesOnText says where a breach takes the incident, or that it takes it nowhere.
func (m *machine) goesOnText(nowhere string) string {
	if m.passesUsed() {
		return nowhere
	}
	return fmt.Sprintf("goes on at step %q", m.status.Incident.StepName)
}

func (m *machine) breachText() string {
	if m.in.Plan.For == 0 {
		return m.reachedText()
	}
	return fmt.Sprintf("%s and has held for %s", m.reachedText(), span(m.in.Plan.For))
}

// reachedText says why the verdict is Breached, and healthyText why it is Healthy. No data is not called a value.
func (m *machine) reachedText() string {
	if !m.in.Observation.Judgement.Reading.Known {
		return m.signalType() + " answered with no data, which noData calls Breached"
	}
	return m.signalType() + " reached " + m.thresholdText()
}

func (m *machine) healthyText() string {
	if !m.in.Observation.Judgement.Reading.Known {
		return m.signalType() + " answered with no data, which noData calls Healthy"
	}
	return m.signalType() + " is on the healthy side of " + m.thresholdText()
}

func (m *machine) thresholdText() string {
	return strconv.FormatInt(*m.in.Plan.Signal.Threshold, 10)
}

func (m *machine) openIncident() {
	m.status.Incident = &aiopsv1.Incident{
		ID: cut(m.in.RandomID, 64), StartTime: aiopsv1.TimePointer(m.in.Now), Pass: 1, PlanHash: m.in.Plan.Hash,
		TargetUID: m.in.Target.UID, Cause: aiopsv1.CauseIncident,
	}
	if len(m.in.Plan.Steps) > 0 {
		m.status.Incident.StepName = m.in.Plan.Steps[0].Name
	}
}
