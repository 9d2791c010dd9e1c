package runbook

import (
	"fmt"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// takeStep orders the incident's step, or says what is in the way. Steps that can't be run as things are, or are only
// observed, are passed over; each pass over the steps is bounded.
func (m *machine) takeStep() bool {
	if len(m.in.Plan.Steps) == 0 {
		m.say(aiopsv1.PhaseBreached, aiopsv1.ReasonNoSteps, "There are no steps: the breach is only reported. Set action or steps to have something done")
		return true
	}
	// The rest of this pass over the steps, and at most one whole pass more before it is said that nothing can be run.
	for range 2*len(m.in.Plan.Steps) + 1 {
		if m.tryStep() {
			break
		}
		if !m.breachHeld() {
			return m.weighVerdict() // a requested run speaks for one step only
		}
	}
	return true
}

func (m *machine) breachHeld() bool {
	return m.verdict() == aiopsv1.VerdictBreached && !m.in.Now.Before(m.in.Observation.BreachedSince.Add(m.in.Plan.For))
}

// tryStep returns false when the step was passed over and the next one is to be tried.
func (m *machine) tryStep() bool {
	incident := m.status.Incident
	step := m.in.Plan.Steps[m.in.Plan.step(incident.StepName)]
	incident.StepName = step.Name
	if m.spent() || m.heldBack() {
		return true
	}
	observing := m.in.Plan.mode(step) == aiopsv1.ModeObserve
	if observing && m.remembers(m.observedID(incident, step.Name), aiopsv1.ResultObserved, aiopsv1.ReasonObserved) {
		return m.passObserved(m.observedText(step.Name))
	}
	if !observing && !step.Action.Accompanies() && m.limited() {
		return true
	}
	proposal := m.in.proposal(step.Name)
	if proposal == nil {
		m.decision.Propose = &step
		return true
	}
	if observing {
		return m.observe(step, *proposal)
	}
	if proposal.Refusal != nil {
		return m.refuse(step, *proposal.Refusal)
	}
	m.record(step, *proposal)
	return true
}

// spent says that the incident's passes are used up.
func (m *machine) spent() bool {
	if m.passesUsed() {
		m.exhaust(m.triedText())
	}
	return m.status.Incident.Exhausted
}

// heldBack keeps the incident quiet until the time that an earlier pass set.
func (m *machine) heldBack() bool {
	incident := m.status.Incident
	until := incident.NotBeforeTime.Or(time.Time{})
	if !m.in.Now.Before(until) {
		incident.NotBeforeTime = nil
		return false
	}
	problem := m.waitsFor(until)
	previous := m.in.Task.Status.Decision
	switch {
	case m.passedOver != nil:
		problem = *m.passedOver
	case previous != nil && m.in.Task.Status.Phase == aiopsv1.PhaseBlocked && previous.NextAllowedTime != nil && previous.NextAllowedTime.Equal(*incident.NotBeforeTime):
		problem = Problem{previous.Reason, previous.Message}
	}
	m.block(problem, until)
	return true
}

// waitsFor says why nothing is done until then.
func (m *machine) waitsFor(until time.Time) Problem {
	incident := m.status.Incident
	if incident.ExecutedInPass == 0 && incident.Pass > 1 {
		return Problem{aiopsv1.ReasonCooldown, fmt.Sprintf("Pass %d of %d begins at %s with step %q, %s after the last one", incident.Pass, m.in.Plan.MaxPasses,
			clock(until), incident.StepName, span(m.in.Plan.Cooldown))}
	}
	newest := m.latest(func(aiopsv1.HistoryEntry) bool { return true })
	if newest != nil && (newest.Result == aiopsv1.ResultRefused || newest.Result == aiopsv1.ResultWithdrawn) { // what did not run does not cool down
		return Problem{newest.Reason, fmt.Sprintf("Step %s; looked at again at %s", m.stepResult(newest.StepName), clock(until))}
	}
	return Problem{aiopsv1.ReasonCooldown, fmt.Sprintf("Next action allowed at %s", clock(until))}
}

// observe records what would have been done.
func (m *machine) observe(step aiopsv1.Step, proposal Proposal) bool {
	incident := m.status.Incident
	text := fmt.Sprintf("Mode Observe: would %s", proposal.Message)
	if proposal.Refusal != nil {
		text = fmt.Sprintf("Mode Observe: %s would be refused, %s: %s", step.Action, proposal.Refusal.Reason, proposal.Refusal.Message)
	}
	m.remember(aiopsv1.HistoryEntry{
		ID: m.observedID(incident, step.Name), Cause: incident.Cause, StepName: step.Name, Action: string(step.Action),
		Result: aiopsv1.ResultObserved, Reason: aiopsv1.ReasonObserved, Message: text, Value: m.value(), StartTime: aiopsv1.TimePointer(m.in.Now),
	})
	m.event(Event{Reason: EventObserved, Action: string(step.Action), Message: m.stepText(step.Name) + ": " + text})
	return m.passObserved(text)
}

// passObserved stays at the step when nothing is ever run, and goes on to a step that is when there is one.
func (m *machine) passObserved(text string) bool {
	if m.requestedOnly() {
		m.endRun()
		return false
	}
	m.status.Incident.Cause = aiopsv1.CauseIncident
	if m.in.Plan.observesOnly() {
		m.say(aiopsv1.PhaseBreached, aiopsv1.ReasonObserved, text)
		return true
	}
	m.passedOver = &Problem{aiopsv1.ReasonObserved, text}
	m.advance(false)
	return false
}

// refuse waits for a refusal that ends by itself, for as long as the step's timeout, and passes the step over for any other.
func (m *machine) refuse(step aiopsv1.Step, refusal Refusal) bool {
	if refusal.Wait {
		since := m.waitingSince(refusal.Reason)
		end := since.Add(timeoutOf(step))
		if m.in.Now.Before(end) {
			m.block(refusal.Problem, end)
			m.at(m.in.Now.Add(waitRetry))
			return true
		}
	}
	incident := m.status.Incident
	id := m.orderID(incident, step.Name)
	if !m.remembers(id, aiopsv1.ResultRefused, refusal.Reason) {
		m.event(Event{Warning: true, Reason: EventStepRefused, Action: string(step.Action),
			Message: fmt.Sprintf("%s (%s): %s: %s", m.stepText(step.Name), step.Action, refusal.Reason, refusal.Message)})
	}
	m.remember(aiopsv1.HistoryEntry{
		ID: id, Cause: incident.Cause, StepName: step.Name, Action: string(step.Action), Result: aiopsv1.ResultRefused,
		Reason: refusal.Reason, Message: refusal.Message, Value: m.value(), StartTime: aiopsv1.TimePointer(m.in.Now),
	})
	if m.requestedOnly() {
		m.endRun()
		return false
	}
	m.passedOver = &refusal.Problem
	m.advance(true)
	return false
}

// waitingSince is since when the present step has met with this reason.
func (m *machine) waitingSince(reason string) time.Time {
	if decision := m.status.Decision; decision != nil && decision.Reason == reason && m.sameStep() {
		return decision.DecisionTime.Or(m.in.Now)
	}
	return m.in.Now
}

// sameStep says that the status that was found speaks of the same step of the same incident.
func (m *machine) sameStep() bool {
	before, after := m.in.Task.Status.Incident, m.status.Incident
	if before == nil || after == nil {
		return before == after
	}
	return before.ID == after.ID && before.StepName == after.StepName
}

// requestedOnly says that the step is not due by the signal: somebody asked for it.
func (m *machine) requestedOnly() bool {
	return m.status.Incident.Cause == aiopsv1.CauseRun && !m.breachHeld()
}

// record writes the order ahead: nothing is run in the pass that decides it.
func (m *machine) record(step aiopsv1.Step, proposal Proposal) {
	incident := m.status.Incident
	before := m.in.Target.Image()
	m.status.Order = &aiopsv1.Order{
		ID: m.orderID(incident, step.Name), Cause: incident.Cause, StepName: step.Name, Action: string(step.Action),
		State: aiopsv1.OrderRecorded, PlanHash: m.in.Plan.Hash, Value: m.value(), Message: cut(proposal.Message, aiopsv1.MaxMessageLength),
		RecordedTime: aiopsv1.TimePointer(m.in.Now), DeadlineTime: aiopsv1.TimePointer(m.in.Now.Add(orderDeadline)),
		Before: &before, Replicas: proposal.Replicas, Revision: proposal.Revision, PodUIDs: proposal.PodUIDs,
	}
	m.say(aiopsv1.PhaseActing, aiopsv1.ReasonOrdered, fmt.Sprintf("%s (%s) is recorded and about to run", m.stepText(step.Name), step.Action))
	m.at(m.in.Now.Add(waitRetry))
}

func (m *machine) value() string {
	reading := m.in.Observation.Judgement.Reading
	if !reading.Known {
		return ""
	}
	return cut(FormatValue(reading.Value), aiopsv1.MaxValueLength)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
