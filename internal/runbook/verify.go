package runbook

import (
	"cmp"
	"fmt"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// verify waits for proof that an executed order helped. It worked when the signal recovered and stayed so for recoverySeconds, and
// the workload was available all that time; anything else by the deadline is a failed attempt. A recovery that has begun by
// then may finish.
func (m *machine) verify(order *aiopsv1.Order) bool {
	m.sayVerifying(order)
	deadline := order.DeadlineTime.Or(m.in.Now)
	if order.After != nil && m.in.Target.Generation < order.After.Generation && m.in.Now.Before(deadline) {
		m.at(deadline)
		return true // the cache has not seen the action yet
	}
	if change := m.changedByOthers(order.After); change != "" {
		m.yield(order, change)
		return false
	}
	if m.recovered(order.ExecutedTime.Or(m.in.Now)) {
		m.endOrder(aiopsv1.ResultRecovered, cmp.Or(order.Reason, aiopsv1.ReasonRecovered), order.Message)
		m.advance(false)
		m.markRecovered()
		m.say(aiopsv1.PhaseWatching, aiopsv1.ReasonRecovered, m.recoveredText(order.Message))
		return true
	}
	if m.in.Now.Before(deadline) {
		m.at(deadline)
		return true
	}
	if !m.in.Observation.RecoveringSince.IsZero() {
		m.sayLateProof(order)
		return true // the proof under way began in time
	}
	m.fail(order)
	return false
}

func (m *machine) fail(order *aiopsv1.Order) {
	step := m.in.Plan.Steps[m.in.Plan.step(order.StepName)]
	text := "no recovery within " + span(timeoutOf(step)+m.in.Plan.SignalWindow())
	m.event(Event{Warning: true, Reason: EventStepFailed, Action: order.Action, Message: fmt.Sprintf("%s: %s; %s", m.stepText(order.StepName), text, m.afterwards(order))})
	m.endOrder(aiopsv1.ResultFailed, order.Reason, text+" after: "+order.Message)
	m.advance(true)
}

// yield cancels an order that somebody's change overtook, and gives that change the time to help.
func (m *machine) yield(order *aiopsv1.Order, change string) {
	text := change + "; the step is not judged"
	m.event(Event{Warning: true, Reason: EventCancelled, Action: order.Action, Message: m.stepText(order.StepName) + ": " + text})
	m.endOrder(aiopsv1.ResultCancelled, aiopsv1.ReasonSuperseded, text)
	m.advance(false)
	if incident := m.status.Incident; incident != nil {
		until := later(m.in.Now.Add(m.patience()), incident.NotBeforeTime.Or(m.in.Now))
		incident.NotBeforeTime = aiopsv1.TimePointer(until)
		m.passedOver = &Problem{aiopsv1.ReasonSuperseded, upperFirst(change) + untilText(until)}
	}
}

// patience is how long a change that somebody else made to the target is left to help: a breach must hold for that long again. It is
// never nothing, also where a task acts at once.
func (m *machine) patience() time.Duration {
	return max(m.in.Plan.For, m.in.Plan.Cooldown, withdrawBackoff)
}

func untilText(until time.Time) string {
	return fmt.Sprintf("; nothing is done until %s, and then only if the signal is still breached", clock(until))
}

// changedByOthers says what people changed on the target since the image was taken, or nothing. An autoscaler's replicas and a
// GitOps tool's template are no decision of people's.
func (m *machine) changedByOthers(since *aiopsv1.TargetImage) string {
	target := m.in.Target
	if since == nil || target.Generation <= since.Generation {
		return "" // nobody changed its spec: a DaemonSet's replicas follow the nodes
	}
	if target.TemplateHash != since.TemplateHash && !target.TemplateApplied {
		return fmt.Sprintf("the pod template of %s was changed by someone else", target.Summary)
	}
	if target.Replicas != since.Replicas && !target.Autoscaled {
		return fmt.Sprintf("replicas of %s were changed by someone else", target.Summary)
	}
	return ""
}

func (m *machine) sayVerifying(order *aiopsv1.Order) {
	deadline := order.DeadlineTime.Or(m.in.Now)
	m.say(aiopsv1.PhaseVerifying, aiopsv1.ReasonVerifying, fmt.Sprintf("%s. Recovery must hold for %s; %s gives up at %s, then %s",
		upperFirst(order.Message), span(m.in.Plan.Recovery), lowerStep(m.stepText(order.StepName)), clock(deadline), m.afterwards(order)))
	m.nextAllowed = deadline
}

// sayLateProof says that time is up, and yet nothing is given up.
func (m *machine) sayLateProof(order *aiopsv1.Order) {
	proof := later(m.in.Observation.RecoveringSince, order.ExecutedTime.Or(time.Time{})).Add(m.in.Plan.Recovery)
	m.say(aiopsv1.PhaseVerifying, aiopsv1.ReasonRecovering, fmt.Sprintf("%s. The time of %s is up, but recovery has begun and is proven at %s if it holds",
		upperFirst(order.Message), lowerStep(m.stepText(order.StepName)), clock(proof)))
	m.nextAllowed = proof
}

// afterwards says what follows if the step does not help.
func (m *machine) afterwards(order *aiopsv1.Order) string {
	steps := m.in.Plan.Steps
	index := m.in.Plan.step(order.StepName)
	pass := int32(1)
	if m.status.Incident != nil {
		pass = m.status.Incident.Pass
	}
	switch {
	case steps[index].OnFailure == aiopsv1.OnFailureStop:
		return "nothing more is done"
	case index+1 < len(steps):
		return fmt.Sprintf("step %q (%s) follows", steps[index+1].Name, steps[index+1].Action)
	case pass < m.in.Plan.MaxPasses:
		return fmt.Sprintf("pass %d of %d begins with step %q", pass+1, m.in.Plan.MaxPasses, steps[0].Name)
	}
	return "nothing more is done"
}

func lowerStep(text string) string {
	return "s" + text[1:]
}
