package runbook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	// planRetry is how often a step that cannot be run as things are is looked at again at least.
	planRetry = time.Minute
	// waitRetry is how soon a step that waits for something without an event (a budget, a quota) is planned again.
	waitRetry = 15 * time.Second
	// deliverRetry is how soon a message that did not arrive is sent again: the next step waits for it.
	deliverRetry = 2 * time.Second
	// waitPromise is the time that is shown for the end of a wait that nobody knows the end of. It is looked at much sooner; what is shown
	// is written, and so must not move each time.
	waitPromise = 5 * time.Minute
	// stormRetry is how soon a step that a storm holds back is looked at again, and stormPromise what is shown: many wait, and all of
	// them write when it passes.
	stormRetry   = 2 * time.Minute
	stormPromise = 10 * time.Minute
	// withdrawBackoff keeps a withdrawn order from being written again at once.
	withdrawBackoff = 10 * time.Second
	// withdrawJitter spreads the retries of tasks that stepped back for each other.
	withdrawJitter = 5 * time.Second
	// maxDetailLength bounds the messages of history and conditions, of which there are many, in bytes: status stays below 32 KiB.
	maxDetailLength = 512
	// orderDeadline is how long a recorded order may wait at the gate.
	orderDeadline = 5 * time.Minute
	// MaxClockSkew is how far this machine's clock and the API server's may be apart while acting.
	MaxClockSkew = 30 * time.Second
)

// requestedRun begins what is said of a step that somebody asked for.
const requestedRun = "Requested run: "

// machine is one decision in the making: a copy of the status that rules change in turn.
type machine struct {
	in       Input
	status   *aiopsv1.AITaskStatus
	decision Decision

	phase       string
	reason      string
	message     string
	nextAllowed time.Time
	// passedOver is the refusal that the latest step was passed over for.
	passedOver *Problem
}

func newMachine(in Input) *machine {
	if in.Observation.Judgement.Verdict == "" {
		in.Observation.Judgement = Judgement{Verdict: aiopsv1.VerdictUnknown, Reason: aiopsv1.ReasonNotMeasured, Message: "The signal was not measured yet"}
	}
	status := in.Task.Status.DeepCopy()
	repair(in, status)
	return &machine{in: in, status: status}
}

// say sets what the status tells. The last word of a pass wins.
func (m *machine) say(phase, reason, message string) {
	m.phase, m.reason, m.message, m.nextAllowed = phase, reason, message, time.Time{}
}

// block says why a due step is not run, and until when at the latest. A time that was promised stays until it has passed, so
// that waiting for something without a known end is not written in every pass.
func (m *machine) block(problem Problem, until time.Time) {
	if incident := m.status.Incident; incident != nil && incident.Cause == aiopsv1.CauseRun && !strings.HasPrefix(problem.Message, requestedRun) {
		problem.Message = requestedRun + problem.Message
	}
	before := m.in.Task.Status.Decision
	if before != nil && before.Reason == problem.Reason && before.Message == cut(problem.Message, aiopsv1.MaxMessageLength) {
		if promised := before.NextAllowedTime.Or(m.in.Now); promised.After(m.in.Now) {
			until = earlier(until, promised)
		}
	}
	m.say(aiopsv1.PhaseBlocked, problem.Reason, problem.Message)
	m.nextAllowed = until
	m.at(until)
	if before == nil || before.Reason != problem.Reason {
		m.event(Event{Warning: true, Reason: EventBlocked, Action: "Decide", Message: problem.Reason + ": " + problem.Message})
	}
}

// at asks for another look at this time; the earliest wins.
func (m *machine) at(t time.Time) {
	if m.decision.NextTime.IsZero() || t.Before(m.decision.NextTime) {
		m.decision.NextTime = t
	}
}

func (m *machine) event(event Event) {
	event.Message = cut(event.Message, aiopsv1.MaxMessageLength)
	m.decision.Events = append(m.decision.Events, event)
}

func (m *machine) verdict() string {
	return m.in.Observation.Judgement.Verdict
}

// signalType is asked for only where there is a signal.
func (m *machine) signalType() string {
	return string(m.in.Plan.Signal.Type)
}

// stepText names a step and its place, such as: Step "back" 1/2. One that is no longer in the plan has no place.
func (m *machine) stepText(name string) string {
	if _, found := m.in.Plan.Step(name); !found {
		return fmt.Sprintf("Step %q", name)
	}
	return fmt.Sprintf("Step %q %d/%d", name, m.in.Plan.step(name)+1, len(m.in.Plan.Steps))
}

// orderID is made from what status holds, so that every process finds the same. Attempts are in it: whatever was executed, the next
// order has another ID, and the stamp of one never stands for another.
func (m *machine) orderID(incident *aiopsv1.Incident, stepName string) string {
	return m.orderIDAfter(incident, stepName, incident.Attempts)
}

func (m *machine) orderIDAfter(incident *aiopsv1.Incident, stepName string, attempts int32) string {
	return digest(m.in.Task.UID, incident.ID, incident.Pass, attempts, stepName, m.in.Plan.Hash)
}

// observedID is the same in every pass: what would have been done is told once per incident.
func (m *machine) observedID(incident *aiopsv1.Incident, stepName string) string {
	return digest(m.in.Task.UID, incident.ID, "observed", stepName, m.in.Plan.Hash)
}

// remember puts a finished order into history, once.
func (m *machine) remember(entry aiopsv1.HistoryEntry) {
	if m.remembers(entry.ID, entry.Result, entry.Reason) {
		return
	}
	entry.Message = cut(entry.Message, maxDetailLength)
	entry.EndTime = aiopsv1.TimePointer(m.in.Now)
	m.status.History = slices.Insert(m.status.History, 0, entry)
	m.status.History = m.status.History[:min(len(m.status.History), aiopsv1.MaxHistory)]
}

// remembers tells repeated tries of the same order by what came of them, so that a blocked task does not fill its own history.
func (m *machine) remembers(id, result, reason string) bool {
	if result != aiopsv1.ResultRefused && result != aiopsv1.ResultWithdrawn && result != aiopsv1.ResultObserved {
		return false
	}
	return slices.ContainsFunc(m.status.History, func(entry aiopsv1.HistoryEntry) bool {
		return entry.ID == id && entry.Result == result && entry.Reason == reason
	})
}

// endOrder moves the unfinished order into history.
func (m *machine) endOrder(result, reason, message string) {
	order := m.status.Order
	m.status.Order = nil
	m.remember(aiopsv1.HistoryEntry{
		ID: order.ID, Cause: order.Cause, StepName: order.StepName, Action: order.Action, Value: order.Value,
		StartTime: order.RecordedTime, Result: result, Reason: reason, Message: message,
	})
}

// dropOrder ends an unfinished order from outside: the task, its plan or its target is no longer what it was. An order that
// left its stamp on the target did run, even if nobody could write so before.
func (m *machine) dropOrder(problem Problem) {
	order := m.status.Order
	if order == nil {
		return
	}
	ran := order.State != aiopsv1.OrderRecorded
	if !ran && m.leftStamp(order) {
		m.countExecution(order.Action)
		ran = true
	}
	result, reason := aiopsv1.ResultWithdrawn, EventWithdrawn
	if ran {
		result, reason = aiopsv1.ResultCancelled, EventCancelled
	}
	if problem.Reason == aiopsv1.ReasonTargetReplaced {
		result = aiopsv1.ResultSuperseded
	}
	m.event(Event{Reason: reason, Action: order.Action, Message: m.stepText(order.StepName) + ": " + problem.Message})
	m.endOrder(result, problem.Reason, problem.Message)
}

func (m *machine) leftStamp(order *aiopsv1.Order) bool {
	return m.in.Target != nil && m.in.Target.LastOrder == order.ID
}

// bookStamp books an order that was withdrawn or refused and yet left its stamp, which the operator could not see at that moment. It
// is not judged, and nothing of the next order may be taken for it.
func (m *machine) bookStamp() {
	incident := m.status.Incident
	if incident == nil || m.in.Target.LastOrder != m.orderID(incident, incident.StepName) {
		return
	}
	step, found := m.in.Plan.Step(incident.StepName)
	if !found {
		return
	}
	m.event(Event{Warning: true, Reason: EventInterrupted, Action: string(step.Action),
		Message: m.stepText(step.Name) + ": an order left its stamp on the target before it was given up; it counts as executed and is not judged"})
	m.countExecution(string(step.Action))
	m.advance(false)
}

// countExecution books an action that ran. Accompanying ones are no load on the target: they use up no budget.
func (m *machine) countExecution(action string) {
	m.status.LastExecutionTime = aiopsv1.TimePointer(m.in.Now)
	if incident := m.status.Incident; incident != nil {
		incident.ExecutedInPass++
		if !aiopsv1.ActionType(action).Accompanies() {
			incident.Attempts++
		}
	}
	if aiopsv1.ActionType(action).Accompanies() {
		return
	}
	horizon := m.in.Now.Add(-m.in.Plan.Period)
	m.status.Executions = slices.DeleteFunc(m.status.Executions, func(t aiopsv1.Time) bool { return t.Before(horizon) })
	m.status.Executions = append(m.status.Executions, aiopsv1.NewTime(m.in.Now))
	m.status.Executions = m.status.Executions[max(0, len(m.status.Executions)-aiopsv1.MaxExecutions):]
}

// advance moves the incident to the step after the present one. failed says that the present one ran or waited in vain.
func (m *machine) advance(failed bool) {
	incident := m.status.Incident
	if incident == nil {
		return
	}
	incident.Cause = aiopsv1.CauseIncident
	index := m.in.Plan.step(incident.StepName)
	if failed && m.in.Plan.Steps[index].OnFailure == aiopsv1.OnFailureStop {
		m.exhaust(fmt.Sprintf("step %s and says onFailure: Stop", m.stepResult(incident.StepName)))
		return
	}
	if index+1 < len(m.in.Plan.Steps) {
		incident.StepName = m.in.Plan.Steps[index+1].Name
		return
	}
	m.endPass(failed)
}

func (m *machine) endPass(failed bool) {
	incident := m.status.Incident
	switch {
	case incident.ExecutedInPass > 0 && failed && incident.Pass >= m.in.Plan.MaxPasses:
		m.exhaust(m.triedText())
		return
	case incident.ExecutedInPass > 0:
		incident.Pass++
		incident.ExecutedInPass = 0
		incident.NotBeforeTime = aiopsv1.TimePointer(m.status.LastExecutionTime.Or(m.in.Now).Add(m.in.Plan.Cooldown))
	case incident.Attempts > 0:
		m.exhaust("no further step can be run as things are: " + m.stepResults())
		return
	default:
		incident.NotBeforeTime = aiopsv1.TimePointer(m.in.Now.Add(max(planRetry, m.in.Plan.Cooldown)))
	}
	incident.StepName = m.in.Plan.Steps[0].Name
}

// exhaust ends the incident's actions for good, and says so once.
func (m *machine) exhaust(why string) {
	incident := m.status.Incident
	if incident.Exhausted {
		return
	}
	incident.Exhausted = true
	if incident.Pass > m.in.Plan.MaxPasses { // the pass that does not come, and its first step, are not where it ended
		incident.Pass, incident.StepName = m.in.Plan.MaxPasses, m.in.Plan.Steps[len(m.in.Plan.Steps)-1].Name
	}
	m.event(Event{Warning: true, Reason: EventExhausted, Action: "Decide", Message: m.exhaustedText(why)})
	m.say(aiopsv1.PhaseExhausted, aiopsv1.ReasonExhausted, m.exhaustedText(why))
}

func (m *machine) exhaustedText(why string) string {
	return fmt.Sprintf("%s; nothing more will be done. To try again: fix the cause, then "+
		"kubectl annotate --overwrite -n %s at %s %s=%s/$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)",
		upperFirst(why), m.in.Task.Namespace, m.in.Task.Name, aiopsv1.ResetAnnotation, m.in.Task.UID)
}
