package runbook

import (
	"fmt"
	"strconv"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Execution is what came of an order that was carried out.
type Execution struct {
	After aiopsv1.TargetImage
	// Message says what was done, when the plan's own message does not.
	Message string
	// Interrupted says that it cannot be known whether the order was carried out.
	Interrupted bool
}

// Executed records that the order ran. in.Task is the task that holds the order.
func Executed(in Input, execution Execution) Decision {
	m := newMachine(in)
	order := m.status.Order
	if order == nil {
		m.keep()
		return m.finish()
	}
	if execution.Message != "" {
		order.Message = cut(execution.Message, aiopsv1.MaxMessageLength)
	}
	m.countExecution(order.Action)
	if accompanying(aiopsv1.ActionType(order.Action)) {
		m.event(Event{Reason: EventNotified, Action: order.Action, Message: m.stepText(order.StepName) + ": " + order.Message})
		m.endOrder(aiopsv1.ResultDone, "", order.Message)
		m.advance(false)
		if m.phase == "" {
			m.say(aiopsv1.PhaseBreached, aiopsv1.ReasonThresholdReached, upperFirst(order.Message))
		}
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

func (m *machine) tellExecution(order *aiopsv1.Order, execution Execution) {
	if execution.Interrupted {
		order.Reason = aiopsv1.ReasonInterrupted
		m.event(Event{Warning: true, Reason: EventInterrupted, Action: order.Action,
			Message: m.stepText(order.StepName) + ": it cannot be known whether it ran; it is verified and not run again: " + order.Message})
		return
	}
	m.event(Event{Reason: EventActionExecuted, Action: order.Action, Message: m.stepText(order.StepName) + ": " + order.Message})
}

// Withdrawn records that the order must not run. It costs no attempt; the step is looked at again after a pause.
func Withdrawn(in Input, problem Problem) Decision {
	m := newMachine(in)
	order := m.status.Order
	if order == nil {
		m.keep()
		return m.finish()
	}
	text := m.stepText(order.StepName) + " was not run: " + problem.Message
	if !m.remembers(order.ID, aiopsv1.ResultWithdrawn, problem.Reason) {
		m.event(Event{Reason: EventWithdrawn, Action: order.Action, Message: text})
	}
	m.endOrder(aiopsv1.ResultWithdrawn, problem.Reason, problem.Message)
	until := m.in.Now.Add(withdrawBackoff + m.jitter())
	if m.status.Incident != nil {
		m.status.Incident.NotBeforeTime = aiopsv1.TimePointer(until)
	}
	m.say(aiopsv1.PhaseBlocked, problem.Reason, upperFirst(text))
	m.nextAllowed = until
	m.at(until)
	return m.finish()
}

// jitter spreads the next tries of tasks that stepped back for each other, by a random ID that nobody else has.
func (m *machine) jitter() time.Duration {
	number, err := strconv.ParseUint(digest(m.in.RandomID)[:8], 16, 64)
	if err != nil {
		return 0
	}
	return time.Duration(number) * time.Nanosecond % withdrawJitter
}

// RefusedByAction records that the action itself found that it cannot be run.
func RefusedByAction(in Input, refusal Refusal) Decision {
	if refusal.Wait {
		return Withdrawn(in, refusal.Problem)
	}
	m := newMachine(in)
	order := m.status.Order
	if order == nil {
		m.keep()
		return m.finish()
	}
	m.event(Event{Warning: true, Reason: EventStepRefused, Action: order.Action,
		Message: fmt.Sprintf("%s (%s): %s: %s", m.stepText(order.StepName), order.Action, refusal.Reason, refusal.Message)})
	m.endOrder(aiopsv1.ResultRefused, refusal.Reason, refusal.Message)
	m.advance(true)
	if m.phase == "" {
		m.say(aiopsv1.PhaseBlocked, refusal.Reason, refusal.Message)
	}
	return m.finish()
}

// Held says what the recorded order waits for.
func Held(in Input, problem Problem) Decision {
	m := newMachine(in)
	m.say(aiopsv1.PhaseActing, problem.Reason, "The recorded step waits: "+problem.Message)
	m.at(m.in.Now.Add(waitRetry))
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
