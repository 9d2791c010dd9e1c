package runbook

import (
	"reflect"
	"slices"
	"strconv"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// finish turns what the rules said into the status to be. What did not change keeps its bytes, so that nothing is written.
func (m *machine) finish() Decision {
	if m.decision.Propose == nil {
		m.status.ObservedGeneration = m.in.Task.Generation
		m.status.Phase = m.phase
		m.reportTarget()
		m.reportSignal()
		m.reportDecision()
		m.reportConditions()
		m.refreshValue()
	}
	m.decision.Status = *m.status
	return m.decision
}

func (m *machine) judging() bool {
	return m.in.Plan.Signal != nil && m.in.Target != nil && !m.in.Target.Deleting &&
		m.phase != aiopsv1.PhaseSuspended && m.phase != aiopsv1.PhaseFailed
}

func (m *machine) reportTarget() {
	target := m.in.Target
	if target == nil {
		m.reportMissingTarget()
		return
	}
	if m.status.Target == nil || m.status.Target.UID != target.UID {
		m.status.Target = &aiopsv1.TargetStatus{}
	}
	out := m.status.Target
	out.Summary, out.UID = cut(target.Summary, 512), target.UID
	if target.Revision != "" {
		out.Revision = cut(target.Revision, 512)
	}
	if m.judging() {
		m.proveRevision(out)
	}
}

// reportMissingTarget names the target that is looked for. What is known of another one is not known of it.
func (m *machine) reportMissingTarget() {
	summary := cut(m.in.TargetSummary, 512)
	if summary == "" || m.status.Target != nil && m.status.Target.Summary == summary {
		return
	}
	m.status.Target = &aiopsv1.TargetStatus{Summary: summary}
}

// proveRevision notes the revision in force as healthy once it has been so for recoverySeconds: where a Rollback goes to. One that no
// pod runs is not.
func (m *machine) proveRevision(out *aiopsv1.TargetStatus) {
	if m.in.Target.Revision == "" || !m.in.Target.RevisionRunning || out.HealthyRevision == out.Revision {
		return
	}
	if m.recovered(time.Time{}) {
		out.HealthyRevision, out.HealthyTime = out.Revision, aiopsv1.TimePointer(m.in.Now)
	}
}

// reportSignal writes the value with a changed verdict or reason, and once per interval while an incident is open.
func (m *machine) reportSignal() {
	if !m.judging() {
		m.status.Signals = nil
		return
	}
	judgement := m.in.Observation.Judgement
	next := aiopsv1.SignalStatus{
		Name: m.in.Plan.Signal.Name, Verdict: judgement.Verdict, Value: m.value(), Threshold: thresholdOf(*m.in.Plan.Signal),
		Reason: cut(judgement.Reason, aiopsv1.MaxReasonLength), Message: cut(judgement.Message, aiopsv1.MaxMessageLength),
	}
	if next.Value != "" {
		next.MeasuredTime = aiopsv1.TimePointer(first(judgement.Reading.At, m.in.Now))
	}
	next.LastTransitionTime = aiopsv1.TimePointer(m.in.Now)
	if len(m.status.Signals) == 1 && m.status.Signals[0].Name == next.Name {
		before := m.status.Signals[0]
		next.Unknown = before.Unknown
		if before.Verdict == next.Verdict {
			next.LastTransitionTime = before.LastTransitionTime
		}
		if m.keepsValue(before, next) {
			next.Value, next.MeasuredTime = before.Value, before.MeasuredTime
		}
	}
	m.status.Signals = []aiopsv1.SignalStatus{next}
}

func (m *machine) keepsValue(before, next aiopsv1.SignalStatus) bool {
	if before.Verdict != next.Verdict || before.Reason != next.Reason || before.Threshold != next.Threshold || before.Message != next.Message {
		return false
	}
	if before.Value == next.Value || m.quiet() {
		return true
	}
	due := before.MeasuredTime.Or(time.Time{}).Add(min(m.in.Plan.Interval, valueRefresh))
	if m.in.Now.Before(due) {
		m.at(due)
		return true
	}
	return false
}

// valueRefresh is how often a value that moves under a breach is written at most.
const valueRefresh = 10 * time.Second

// quiet says that nothing is breached and no incident is open: then a value that moves is not worth a write.
func (m *machine) quiet() bool {
	incident := m.status.Incident
	return (incident == nil || incident.RecoveredTime != nil) && m.verdict() != aiopsv1.VerdictBreached
}

// refreshValue shows the latest value where the status is written anyway.
func (m *machine) refreshValue() {
	if len(m.status.Signals) != 1 || m.value() == "" || m.status.Signals[0].Value == m.value() || reflect.DeepEqual(m.in.Task.Status, *m.status) {
		return
	}
	m.status.Signals[0].Value = m.value()
	m.status.Signals[0].MeasuredTime = aiopsv1.TimePointer(first(m.in.Observation.Judgement.Reading.At, m.in.Now))
	m.status.Decision.Summary = m.summary()
}

func (m *machine) reportDecision() {
	next := &aiopsv1.Decision{
		Reason: cut(m.reason, aiopsv1.MaxReasonLength), Message: cut(m.message, aiopsv1.MaxMessageLength),
		Summary: m.summary(), DecisionTime: aiopsv1.TimePointer(m.in.Now),
	}
	next.StepName = m.stepInQuestion()
	if !m.nextAllowed.IsZero() {
		next.NextAllowedTime = aiopsv1.TimePointer(m.nextAllowed)
	}
	if before := m.status.Decision; before != nil && before.Reason == next.Reason && before.DecisionTime != nil && m.sameStep() {
		next.DecisionTime = before.DecisionTime
	}
	m.status.Decision = next
}

// stepInQuestion is the step that is under way or held back, or the last one of an exhausted incident. A step that only would come
// next is none.
func (m *machine) stepInQuestion() string {
	switch {
	case m.status.Order != nil:
		return m.status.Order.StepName
	case m.status.Incident != nil && (m.phase == aiopsv1.PhaseBlocked || m.phase == aiopsv1.PhaseExhausted):
		return m.status.Incident.StepName
	}
	return ""
}

// summary shows the value that status holds, not the latest one: both change together.
func (m *machine) summary() string {
	if len(m.status.Signals) == 0 {
		return ""
	}
	signal := m.status.Signals[0]
	if signal.Value == "" {
		return m.in.Observation.Judgement.Summary
	}
	value, err := strconv.ParseFloat(signal.Value, 64)
	if err != nil {
		return signal.Value + " " + signal.Threshold
	}
	return signal.Value + " " + relationOf(*m.in.Plan.Signal, value, signal.Verdict == aiopsv1.VerdictBreached)
}

func (m *machine) reportConditions() {
	conditions := []aiopsv1.Condition{m.readyCondition()}
	if m.phase != aiopsv1.PhaseFailed {
		conditions = append(conditions, m.targetCondition())
	}
	if m.judging() {
		conditions = append(conditions, m.signalCondition(), m.breachedCondition())
	}
	if len(m.in.Plan.Steps) > 0 && m.phase != aiopsv1.PhaseFailed {
		conditions = append(conditions, m.remediatingCondition())
	}
	if incident := m.status.Incident; incident != nil && incident.Exhausted {
		conditions = append(conditions, condition(aiopsv1.ConditionExhausted, "True", aiopsv1.ReasonExhausted, m.whyExhausted()))
	}
	for i := range conditions {
		conditions[i].ObservedGeneration = m.in.Task.Generation
		conditions[i].LastTransitionTime = m.transitionTime(conditions[i])
		if before := conditionOf(m.status.Conditions, conditions[i].Type); before != nil {
			conditions[i].Unknown = before.Unknown
		}
	}
	m.tellConditions(conditions)
	foreign := foreignConditions(m.status.Conditions)
	m.status.Conditions = append(conditions, foreign[:min(len(foreign), aiopsv1.MaxConditions-len(conditions))]...)
}

// foreignConditions are those of somebody else, such as a newer operator that this one took the place of.
func foreignConditions(conditions []aiopsv1.Condition) []aiopsv1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c aiopsv1.Condition) bool {
		return slices.Contains(aiopsv1.ConditionTypes(), c.Type)
	})
}

// whyExhausted is what was said when the incident became so, whatever is said now.
func (m *machine) whyExhausted() string {
	if m.reason == aiopsv1.ReasonExhausted {
		return m.message
	}
	if before := conditionOf(m.in.Task.Status.Conditions, aiopsv1.ConditionExhausted); before != nil && before.Message != "" {
		return before.Message
	}
	return m.exhaustedText("nothing helped")
}

func (m *machine) transitionTime(next aiopsv1.Condition) *aiopsv1.Time {
	if before := conditionOf(m.status.Conditions, next.Type); before != nil && before.Status == next.Status && before.LastTransitionTime != nil {
		return before.LastTransitionTime
	}
	return aiopsv1.TimePointer(m.in.Now)
}

// tellConditions tells of a spec that stopped being valid, of a threshold that cannot be reached and of a signal that went silent.
func (m *machine) tellConditions(conditions []aiopsv1.Condition) {
	ready := conditionOf(conditions, aiopsv1.ConditionReady)
	before := conditionOf(m.in.Task.Status.Conditions, aiopsv1.ConditionReady)
	if m.phase == aiopsv1.PhaseFailed && (before == nil || before.Message != ready.Message) {
		m.event(Event{Warning: true, Reason: EventInvalidSpec, Action: "Validate", Message: ready.Message})
	}
	if m.phase != aiopsv1.PhaseFailed && becameUnreachable(before, ready) {
		m.event(Event{Warning: true, Reason: EventThresholdUnreachable, Action: "Validate", Message: ready.Message})
	}
	signal := conditionOf(conditions, aiopsv1.ConditionSignalAvailable)
	before = conditionOf(m.in.Task.Status.Conditions, aiopsv1.ConditionSignalAvailable)
	if signal != nil && signal.Status == "False" && (before == nil || before.Status != "False") {
		m.event(Event{Warning: true, Reason: EventSignalUnknown, Action: "Measure", Message: signal.Reason + ": " + signal.Message})
	}
}

// becameUnreachable says that the threshold was not known to be out of reach, or that the spec was changed and it still is. That the
// target has another number of replicas, and still too few, is no news.
func becameUnreachable(before, ready *aiopsv1.Condition) bool {
	if ready.Reason != aiopsv1.ReasonThresholdUnreachable {
		return false
	}
	return before == nil || before.Reason != ready.Reason || before.ObservedGeneration != ready.ObservedGeneration && before.Message != ready.Message
}

func (m *machine) readyCondition() aiopsv1.Condition {
	switch {
	case m.phase == aiopsv1.PhaseFailed:
		return condition(aiopsv1.ConditionReady, "False", m.reason, m.message)
	case m.in.Target == nil || m.in.Target.Deleting:
		problem := m.targetCondition()
		return condition(aiopsv1.ConditionReady, "False", problem.Reason, problem.Message)
	}
	if m.judging() {
		if problem := ThresholdProblem(m.in.Plan, *m.in.Target); problem != nil {
			return condition(aiopsv1.ConditionReady, "False", problem.Reason, problem.Message)
		}
		if signal := m.signalCondition(); signal.Status != "True" {
			return condition(aiopsv1.ConditionReady, signal.Status, signal.Reason, signal.Message)
		}
	}
	text := "Watching " + m.in.Target.Summary
	if m.in.Plan.Signal != nil {
		text += " by " + m.signalType()
	}
	if m.phase == aiopsv1.PhaseSuspended {
		text = "Suspended; the spec is accepted and " + m.in.Target.Summary + " exists"
	}
	return condition(aiopsv1.ConditionReady, "True", aiopsv1.ReasonAccepted, text)
}

func (m *machine) targetCondition() aiopsv1.Condition {
	switch {
	case m.in.Target == nil:
		return condition(aiopsv1.ConditionTargetFound, "False", m.in.TargetProblem.Reason, m.in.TargetProblem.Message)
	case m.in.Target.Deleting:
		return condition(aiopsv1.ConditionTargetFound, "False", aiopsv1.ReasonTargetDeleting, m.in.Target.Summary+" is being deleted")
	}
	return condition(aiopsv1.ConditionTargetFound, "True", aiopsv1.ReasonTargetFound, m.in.Target.Summary+" exists")
}

// signalCondition speaks of the source, not of the verdict: one that has, by the signal's own words, a meaningful silence is
// available.
func (m *machine) signalCondition() aiopsv1.Condition {
	judgement := m.in.Observation.Judgement
	switch {
	case judgement.Reading.Resting:
		return m.unreadCondition()
	case judgement.Verdict != aiopsv1.VerdictUnknown:
		return condition(aiopsv1.ConditionSignalAvailable, "True", aiopsv1.ReasonMeasured, m.signalType()+" is measured")
	case judgement.Reason == aiopsv1.ReasonNotMeasured || judgement.Reason == aiopsv1.ReasonNotObserved:
		return condition(aiopsv1.ConditionSignalAvailable, "Unknown", judgement.Reason, judgement.Message)
	}
	return condition(aiopsv1.ConditionSignalAvailable, "False", judgement.Reason, judgement.Message)
}

// unreadCondition is what the last reading said of the source, since a rollout proves nothing about it. What another spec's signal
// said is not known of this one.
func (m *machine) unreadCondition() aiopsv1.Condition {
	before := conditionOf(m.status.Conditions, aiopsv1.ConditionSignalAvailable)
	if before == nil || before.Status == "Unknown" || before.ObservedGeneration != m.in.Task.Generation {
		judgement := m.in.Observation.Judgement
		return condition(aiopsv1.ConditionSignalAvailable, "Unknown", judgement.Reason, judgement.Message)
	}
	return condition(aiopsv1.ConditionSignalAvailable, before.Status, before.Reason, before.Message)
}

func (m *machine) breachedCondition() aiopsv1.Condition {
	judgement := m.in.Observation.Judgement
	switch judgement.Verdict {
	case aiopsv1.VerdictBreached:
		if !m.breachHeld() {
			m.at(m.in.Observation.BreachedSince.Add(m.in.Plan.For))
			return condition(aiopsv1.ConditionBreached, "True", aiopsv1.ReasonHolding, m.reachedText())
		}
		return condition(aiopsv1.ConditionBreached, "True", aiopsv1.ReasonThresholdReached, m.breachText())
	case aiopsv1.VerdictHealthy:
		return condition(aiopsv1.ConditionBreached, "False", aiopsv1.ReasonHealthy, m.healthyText())
	}
	return condition(aiopsv1.ConditionBreached, "Unknown", judgement.Reason, judgement.Message)
}

func (m *machine) remediatingCondition() aiopsv1.Condition {
	order := m.status.Order
	switch {
	case order == nil:
		return condition(aiopsv1.ConditionRemediating, "False", aiopsv1.ReasonIdle, "No step is under way")
	case order.State == aiopsv1.OrderRecorded:
		return condition(aiopsv1.ConditionRemediating, "True", aiopsv1.ReasonOrdered, m.stepText(order.StepName)+" ("+order.Action+") is about to run")
	}
	return condition(aiopsv1.ConditionRemediating, "True", aiopsv1.ReasonVerifying, m.stepText(order.StepName)+" ("+order.Action+") was applied; waiting for recovery")
}

func condition(kind, status, reason, message string) aiopsv1.Condition {
	return aiopsv1.Condition{Type: kind, Status: status, Reason: cut(reason, aiopsv1.MaxReasonLength), Message: cut(message, maxDetailLength)}
}

func conditionOf(conditions []aiopsv1.Condition, kind string) *aiopsv1.Condition {
	index := slices.IndexFunc(conditions, func(c aiopsv1.Condition) bool { return c.Type == kind })
	if index < 0 {
		return nil
	}
	return &conditions[index]
}
