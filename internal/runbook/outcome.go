package runbook

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Execution is what came of an order that was carried out.
type Execution struct {
	After aiopsv1.TargetImage
	// Message says what was done; until then the order's says what is to be done.
	Message string
	// Interrupted says that it cannot be known whether the order was carried out.
	Interrupted bool
}

// recordedOrder returns the order that may be about to run, or nil: a result that was written already is not written again.
func (m *machine) recordedOrder() *aiopsv1.Order {
	if order := m.status.Order; order != nil && order.State == aiopsv1.OrderRecorded {
		return order
	}
	return nil
}

// Executed records that the order ran. in.Task is the task that holds the order.
func Executed(in Input, execution Execution) Decision {
	m := newMachine(in)
	order := m.recordedOrder()
	if order == nil {
		m.keep()
		return m.finish()
	}
	if execution.Message != "" {
		order.Message = cut(execution.Message, aiopsv1.MaxMessageLength)
	}
	m.countExecution(order.Action)
	if len(m.in.Plan.Steps) == 0 {
		order.State = aiopsv1.OrderVerifying // it ran, and nothing is left to judge it by
		return m.withoutSteps()
	}
	if aiopsv1.ActionType(order.Action).Accompanies() {
		m.endAccompanying(order, execution.Interrupted)
		return m.finish()
	}
	step := m.in.Plan.Steps[m.in.Plan.step(order.StepName)]
	order.State = aiopsv1.OrderVerifying
	order.ExecutedTime = aiopsv1.TimePointer(m.in.Now)
	order.DeadlineTime = aiopsv1.TimePointer(m.in.Now.Add(timeoutOf(step) + m.in.Plan.SignalWindow()))
	order.After = execution.After.DeepCopy()
	m.tellExecution(order, execution)
	m.sayVerifying(order)
	m.at(order.DeadlineTime.Time)
	return m.finish()
}

// endAccompanying ends an order that is done when done, and has failed when nobody confirmed it. Asked for while nothing is breached, it
// leaves no incident behind.
func (m *machine) endAccompanying(order *aiopsv1.Order, unconfirmed bool) {
	text := order.Message
	if unconfirmed {
		text = fmt.Sprintf("%s was tried and never confirmed", order.Action)
		m.event(Event{Warning: true, Reason: EventStepFailed, Action: order.Action, Message: fmt.Sprintf("%s: %s; %s", m.stepText(order.StepName), text, m.afterwards(order))})
		m.endOrder(aiopsv1.ResultFailed, aiopsv1.ReasonInterrupted, text)
	} else {
		m.event(Event{Reason: EventNotified, Action: order.Action, Message: m.stepText(order.StepName) + ": " + text})
		m.endOrder(aiopsv1.ResultDone, "", text)
	}
	if m.status.Incident != nil && m.requestedOnly() {
		m.endRun()
		m.weighVerdict()
		return
	}
	m.advance(unconfirmed)
	if m.phase == "" {
		m.say(aiopsv1.PhaseBreached, aiopsv1.ReasonThresholdReached, upperFirst(text))
	}
}

func (m *machine) tellExecution(order *aiopsv1.Order, execution Execution) {
	if execution.Interrupted {
		order.Reason = aiopsv1.ReasonInterrupted
		m.event(Event{Warning: true, Reason: EventInterrupted, Action: order.Action,
			Message: m.stepText(order.StepName) + ": it cannot be known whether it ran; it is verified and not run again: " + order.Message})
		order.Message = cut("it cannot be known whether this was done: "+order.Message, aiopsv1.MaxMessageLength)
		return
	}
	text := m.stepText(order.StepName) + ": " + order.Message
	if order.Cause == aiopsv1.CauseRun {
		text += ", as requested"
	}
	m.event(Event{Reason: EventActionExecuted, Action: order.Action, Message: text})
}

// Withdrawn records that the order must not run. It costs no attempt; the step is looked at again after a pause. An order that left
// its stamp did run, and counts.
func Withdrawn(in Input, problem Problem) Decision {
	m := newMachine(in)
	order := m.recordedOrder()
	if order == nil {
		m.keep()
		return m.finish()
	}
	if len(m.in.Plan.Steps) == 0 {
		return m.withoutSteps()
	}
	text := m.stepText(order.StepName) + " was not run: " + problem.Message
	if m.leftStamp(order) {
		text = m.stepText(order.StepName) + " ran and is not judged: " + problem.Message
		m.dropOrder(problem)
		m.advance(false)
	} else {
		if m.wasSent(order) {
			text = fmt.Sprintf("%s may have been delivered, though nobody confirmed it; it is not sent again (%s)", m.stepText(order.StepName), problem.Reason)
			problem.Message = text
		}
		if !m.remembers(order.ID, aiopsv1.ResultWithdrawn, problem.Reason) {
			m.event(Event{Reason: EventWithdrawn, Action: order.Action, Message: text})
		}
		m.endOrder(aiopsv1.ResultWithdrawn, problem.Reason, problem.Message)
	}
	until := m.in.Now.Add(withdrawBackoff + m.jitter())
	if m.overtaken(order, problem) {
		until = m.in.Now.Add(m.patience())
		text += untilText(until)
	}
	if incident := m.status.Incident; incident != nil {
		until = later(until, incident.NotBeforeTime.Or(until))
		incident.NotBeforeTime = aiopsv1.TimePointer(until)
	}
	m.say(aiopsv1.PhaseBlocked, problem.Reason, upperFirst(text))
	m.nextAllowed = until
	m.at(until)
	return m.finish()
}

// wasSent says that a message was sent and not confirmed. An answer such as 503 does not prove that nobody was told.
func (m *machine) wasSent(order *aiopsv1.Order) bool {
	said := m.in.Task.Status.Decision
	return aiopsv1.ActionType(order.Action).Accompanies() && said != nil && said.Reason == aiopsv1.ReasonActionFailed
}

// overtaken says that the order was withdrawn for a change that somebody made to the target. One that nobody saw, since it came while
// the action ran, is taken for one; an eviction undoes no change, so that it need not be.
func (m *machine) overtaken(order *aiopsv1.Order, problem Problem) bool {
	before, target := order.Before, m.in.Target
	if problem.Reason != aiopsv1.ReasonSuperseded || before == nil || target == nil {
		return false
	}
	unseen := target.Generation == before.Generation && order.Action != string(aiopsv1.ActionEvict)
	return unseen || m.changedByOthers(before) != ""
}

// jitter spreads the next tries of tasks that stepped back for each other, by a random ID that nobody else has.
func (m *machine) jitter() time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(m.in.RandomID)) // a hash takes everything
	return time.Duration(hash.Sum32()) % withdrawJitter
}

// RefusedByAction records that the action itself found that it cannot be run. What ends by itself is waited for, for as long as the
// step's timeout; an order that is no longer for this target is withdrawn.
func RefusedByAction(in Input, refusal Refusal) Decision {
	m := newMachine(in)
	order := m.recordedOrder()
	if order == nil {
		m.keep()
		return m.finish()
	}
	if decidedAnew(refusal.Reason) || m.leftStamp(order) || refusal.Wait && !m.waitedInVain(order, refusal.Reason) {
		return Withdrawn(in, refusal.Problem)
	}
	if len(m.in.Plan.Steps) == 0 {
		return m.withoutSteps()
	}
	if !m.remembers(order.ID, aiopsv1.ResultRefused, refusal.Reason) {
		m.event(Event{Warning: true, Reason: EventStepRefused, Action: order.Action,
			Message: fmt.Sprintf("%s (%s): %s: %s", m.stepText(order.StepName), order.Action, refusal.Reason, refusal.Message)})
	}
	m.endOrder(aiopsv1.ResultRefused, refusal.Reason, refusal.Message)
	m.advance(true)
	if m.phase == "" {
		m.say(aiopsv1.PhaseBlocked, refusal.Reason, refusal.Message)
		m.nextAllowed = m.in.Now
		if incident := m.status.Incident; incident != nil {
			m.nextAllowed = incident.NotBeforeTime.Or(m.in.Now)
		}
	}
	return m.finish()
}

// decidedAnew says that not the step is in the way, but that the target is not what the order was written for: the action came upon
// what the gate would have found a moment later.
func decidedAnew(reason string) bool {
	switch reason {
	case aiopsv1.ReasonSuperseded, aiopsv1.ReasonTargetReplaced, aiopsv1.ReasonTargetNotFound, aiopsv1.ReasonTargetDeleting:
		return true
	}
	return false
}

// waitedInVain says that the same order has met with the same refusal for as long as its step may take.
func (m *machine) waitedInVain(order *aiopsv1.Order, reason string) bool {
	step, _ := m.in.Plan.Step(order.StepName)
	return slices.ContainsFunc(m.status.History, func(entry aiopsv1.HistoryEntry) bool {
		return entry.ID == order.ID && entry.Result == aiopsv1.ResultWithdrawn && entry.Reason == reason &&
			!m.in.Now.Before(entry.EndTime.Or(m.in.Now).Add(timeoutOf(step)))
	})
}

// withoutSteps ends an order whose steps were all taken out of the spec while it ran. The next pass judges the new plan.
func (m *machine) withoutSteps() Decision {
	problem := Problem{aiopsv1.ReasonSpecChanged, "the steps were taken out of the spec while one was under way"}
	m.dropOrder(problem)
	m.status.Incident = nil
	m.say(aiopsv1.PhasePending, problem.Reason, upperFirst(problem.Message))
	m.at(m.in.Now.Add(withdrawBackoff))
	return m.finish()
}

// Held says what the recorded order waits for.
func Held(in Input, problem Problem) Decision {
	m := newMachine(in)
	m.say(aiopsv1.PhaseActing, problem.Reason, "The recorded step waits: "+problem.Message)
	m.at(m.in.Now.Add(waitRetry))
	return m.finish()
}

// Undelivered says why the recorded message may not have arrived yet. It is sent again until the order's deadline; each try that ends
// in the same way says the same, and so is not written.
func Undelivered(in Input, cause string) Decision {
	m := newMachine(in)
	order := m.recordedOrder()
	if order == nil {
		m.keep()
		return m.finish()
	}
	m.say(aiopsv1.PhaseActing, aiopsv1.ReasonActionFailed, fmt.Sprintf("%s; tried again until %s", upperFirst(cause), clock(order.DeadlineTime.Or(in.Now))))
	m.at(m.in.Now.Add(deliverRetry))
	return m.finish()
}

// keep says again what the status says.
func (m *machine) keep() {
	m.phase = m.in.Task.Status.Phase
	if decision := m.in.Task.Status.Decision; decision != nil {
		m.reason, m.message = decision.Reason, decision.Message
		m.nextAllowed = decision.NextAllowedTime.Or(time.Time{})
	}
}
