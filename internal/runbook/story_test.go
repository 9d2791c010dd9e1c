package runbook

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	taskUID   = types.UID("3f0c2c1e-0000-4000-8000-000000000001")
	targetUID = "3f0c2c1e-0000-4000-8000-00000000000a"
	// maxStatusBytes is invariant I12.
	maxStatusBytes = 32 << 10
	// maxPassesAtOnce bounds how many passes may follow each other before nothing changes any more.
	maxPassesAtOnce = 40
)

// start is when every story begins.
func start() time.Time {
	return time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
}

// story plays whole incidents: it does with each decision what the controller does, over time that only the story moves.
type story struct {
	t    testing.TB
	now  time.Time
	task *aiopsv1.AITask
	// target is the workload. Nil: there is none.
	target *Target
	// reading is what the signal says from now on.
	reading Reading
	fleet   Fleet
	skew    time.Duration
	// refusals are what planning a step comes to, by step; without one it succeeds.
	refusals map[string]*Refusal
	// outcome replaces what happens when an order is run. Nil: it is carried out.
	outcome func(order *aiopsv1.Order) Decision
	// onRun is called when an order was carried out, to let it help or not.
	onRun func(order *aiopsv1.Order)
	// crash says that the process dies before it writes. Nil: it never does.
	crash func() bool
	// atGate is called after an order was recorded and before the gate is asked.
	atGate func()

	observation Observation
	planHash    string
	next        time.Time
	incidents   int
	untried     string
	// log tells the story: changes of phase or reason, events, and what was run.
	log []string
	// runs are the IDs of the orders that were handed to their action, in turn.
	runs   []string
	writes int
	events int
	// decision is the latest one.
	decision Decision
}

// newStory begins with a healthy Deployment of three replicas and a task that was never looked at.
func newStory(t testing.TB, spec aiopsv1.AITaskSpec) *story {
	t.Helper()
	return &story{
		t: t, now: start(), task: taskOf(spec), target: healthyTarget(), reading: Reading{Known: true},
		refusals: map[string]*Refusal{},
	}
}

func taskOf(spec aiopsv1.AITaskSpec) *aiopsv1.AITask {
	return &aiopsv1.AITask{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: taskUID, Generation: 1},
		Spec:       spec,
	}
}

func healthyTarget() *Target {
	return &Target{
		Summary: "Deployment/web", UID: targetUID, Generation: 7, Replicas: 3, AvailablePods: 3, Revision: "web-8", RevisionRunning: true,
		TemplateHash: "hash-7", Available: true,
	}
}

// breach lets the signal show a value that is one.
func (s *story) breach() {
	s.reading = Reading{Known: true, Value: 3}
	if s.target != nil {
		s.target.Available, s.target.AvailablePods = false, 0
	}
}

// heal lets the signal and the workload be healthy again.
func (s *story) heal() {
	s.reading = Reading{Known: true, Value: 0}
	if s.target != nil {
		s.target.Available, s.target.AvailablePods = true, s.target.Replicas
	}
}

// blind lets the signal be unknown.
func (s *story) blind() {
	s.reading = Reading{Reason: aiopsv1.ReasonTimeout, Message: `Prometheus "default" did not answer in 10s`}
}

// input observes and gathers what a decision needs, as the controller does at the start of a pass.
func (s *story) input() Input {
	plan := PlanOf(&s.task.Spec)
	in := Input{
		Now: s.now, Task: s.task, Plan: plan, Fleet: s.fleet, RandomID: fmt.Sprintf("incident-%d", s.incidents),
		SpecProblem: Validate(&s.task.Spec, Names{Receivers: []string{"default"}}),
	}
	s.incidents++
	if s.target == nil {
		in.TargetProblem = &Problem{aiopsv1.ReasonTargetNotFound, "Deployment/web does not exist in namespace shop"}
	} else {
		target := *s.target
		in.Target = &target
	}
	if s.planHash != plan.Hash {
		s.observation, s.planHash = Observation{}, plan.Hash
	}
	suspended := s.task.Spec.Suspend != nil && *s.task.Spec.Suspend
	if plan.Signal == nil || in.Target == nil || in.Target.Deleting || suspended {
		s.observation = Observation{}
		return in
	}
	judgement := Judge(*plan.Signal, s.reading, plan.BreachedBefore(s.observation, &s.task.Status))
	s.observation = Observe(s.observation, judgement, in.Target.Available, s.now)
	in.Observation = s.observation
	return in
}

// plan is what the step would do, as its action plans it.
func (s *story) plan(step aiopsv1.Step, order *aiopsv1.Order) Proposal {
	proposal := Proposal{StepName: step.Name, Refusal: s.refusals[step.Name], Message: "run " + string(step.Action) + " on " + s.target.Summary}
	switch step.Action {
	case aiopsv1.ActionScale:
		from := s.target.Replicas
		if order != nil && order.Before != nil {
			from = order.Before.Replicas
		}
		to := min(from+number(step.Scale.By, 0), number(step.Scale.Max, 0))
		proposal.Replicas = &to
		proposal.Message = fmt.Sprintf("scale %s from %d to %d replicas", s.target.Summary, from, to)
	case aiopsv1.ActionRollback:
		proposal.Revision = "web-7"
	case aiopsv1.ActionEvict:
		proposal.PodUIDs = []string{"pod-1"}
	}
	return proposal
}

// decide asks the runbook as the controller does, proposing what it asks for.
func (s *story) decide(in Input) Decision {
	s.t.Helper()
	for range len(in.Plan.Steps) + 1 {
		decision := Next(in)
		if decision.Propose == nil {
			return decision
		}
		in.Proposals = append(in.Proposals, s.plan(*decision.Propose, nil))
	}
	s.t.Fatalf("%s: Next asked for more plans than there are steps", s.clock())
	return Decision{}
}

// pass is one reconcile. It says whether the status was written.
func (s *story) pass() bool {
	s.t.Helper()
	in := s.input()
	decision := s.decide(in)
	if decision.Execute {
		decision = s.act(in)
	}
	s.check(decision)
	s.next, s.decision = decision.NextTime, decision
	if s.crash != nil && s.crash() {
		s.observation, s.untried = Observation{}, ""
		return true
	}
	if reflect.DeepEqual(decision.Status, s.task.Status) {
		return false
	}
	s.write(decision)
	return true
}

// act passes the recorded order through the gate, and runs it.
func (s *story) act(in Input) Decision {
	s.t.Helper()
	order := in.Task.Status.Order.DeepCopy()
	if s.atGate != nil {
		s.atGate()
		in = s.input()
	}
	gate := Gate{Input: in, TaskUID: s.task.UID, Order: *order, Untried: s.untried == order.ID, ClockSkew: s.skew}
	if step, found := in.Plan.Step(order.StepName); found && s.target != nil {
		gate.Proposals = []Proposal{s.plan(step, order)}
	}
	passage, problem := Pass(gate)
	switch passage {
	case PassageAbandon:
		return Decision{Status: s.task.Status, NextTime: s.now.Add(time.Second)}
	case PassageHold:
		return Held(gate.Input, problem)
	case PassageWithdraw:
		return Withdrawn(gate.Input, problem)
	case PassageRefuse:
		return RefusedByAction(gate.Input, *gate.Refusal())
	case PassageInterrupt:
		return Executed(gate.Input, Execution{After: s.target.Image(), Interrupted: true})
	}
	s.untried = ""
	if s.outcome != nil {
		return s.outcome(order)
	}
	return s.carryOut(gate, order)
}

// carryOut does to the target what the order says, once.
func (s *story) carryOut(gate Gate, order *aiopsv1.Order) Decision {
	if s.target.LastOrder != order.ID {
		s.runs = append(s.runs, order.ID)
		s.tell("run " + order.Action)
		if !aiopsv1.ActionType(order.Action).Accompanies() {
			s.stamp(order)
		}
		if s.onRun != nil {
			s.onRun(order)
		}
	}
	return Executed(gate.Input, Execution{After: s.target.Image(), Message: inPast(order.Message)})
}

// inPast tells what an order is to do as what was done.
func inPast(message string) string {
	verb, facts, _ := strings.Cut(message, " ")
	return map[string]string{"run": "ran", "scale": "scaled"}[verb] + " " + facts
}

// stamp changes the target as the order's action does.
func (s *story) stamp(order *aiopsv1.Order) {
	s.target.LastOrder, s.target.LastActionTime = order.ID, s.now
	switch aiopsv1.ActionType(order.Action) {
	case aiopsv1.ActionScale:
		s.target.Replicas = *order.Replicas
		s.target.Generation++
	case aiopsv1.ActionRestart, aiopsv1.ActionRollback:
		s.target.Generation++
		s.target.TemplateHash = "hash-" + order.ID
	}
}

// write stores the decision's status and tells its events.
func (s *story) write(decision Decision) {
	before := s.task.Status
	s.task.Status = *decision.Status.DeepCopy()
	s.writes++
	if order := decision.Status.Order; order != nil && order.State == aiopsv1.OrderRecorded && (before.Order == nil || before.Order.ID != order.ID) {
		s.untried = order.ID
	}
	if phase, reason := before.Phase, reasonOf(&before); phase != decision.Status.Phase || reason != reasonOf(&decision.Status) {
		s.tell(decision.Status.Phase + "/" + reasonOf(&decision.Status))
	}
	for _, event := range decision.Events {
		sign := "event "
		if event.Warning {
			sign = "warning "
		}
		s.events++
		s.tell(sign + event.Reason + ": " + event.Message)
	}
}

func reasonOf(status *aiopsv1.AITaskStatus) string {
	if status.Decision == nil {
		return ""
	}
	return status.Decision.Reason
}

func (s *story) tell(text string) {
	s.log = append(s.log, s.clock()+" "+text)
}

func (s *story) clock() string {
	return fmt.Sprintf("+%s", span(s.now.Sub(start())))
}

// settle lets passes follow each other until nothing changes, and then checks that it is quiet.
func (s *story) settle() {
	s.t.Helper()
	for range maxPassesAtOnce {
		if !s.pass() {
			s.checkQuiet()
			return
		}
	}
	s.t.Fatalf("%s: status was still written after %d passes at one moment, at last as %s", s.clock(), maxPassesAtOnce, encode(s.task.Status))
}

// wait moves time on, with a pass at every moment that the decisions ask for, and one at the end.
func (s *story) wait(duration time.Duration) {
	s.t.Helper()
	end := s.now.Add(duration)
	s.settle()
	for range 100000 {
		if s.next.IsZero() || !s.next.Before(end) {
			s.now = end
			s.settle()
			return
		}
		s.now = s.next
		s.settle()
	}
	s.t.Fatalf("%s: passes do not end", s.clock())
}

// check looks at what must hold for every decision.
func (s *story) check(decision Decision) {
	s.t.Helper()
	if decision.Execute {
		s.t.Fatalf("%s: an order was carried out and is still to be", s.clock())
	}
	status := decision.Status
	changed := !reflect.DeepEqual(status, s.task.Status)
	if status.Phase == "" || status.Decision == nil || status.Decision.Reason == "" || status.Decision.Message == "" {
		s.t.Fatalf("%s: the decision says nothing: phase %q, decision %+v", s.clock(), status.Phase, status.Decision)
	}
	if status.Phase == aiopsv1.PhaseBlocked && status.Decision.NextAllowedTime == nil {
		s.t.Fatalf("%s: blocked (%s) without a next time", s.clock(), status.Decision.Reason)
	}
	if !decision.NextTime.IsZero() && !decision.NextTime.After(s.now) {
		s.t.Fatalf("%s: %s/%s asks for a pass in the past, at %s", s.clock(), status.Phase, status.Decision.Reason, decision.NextTime)
	}
	if len(decision.Events) > 0 && !changed {
		s.t.Fatalf("%s: events without a change of status: %+v", s.clock(), decision.Events)
	}
	if len(status.History) > aiopsv1.MaxHistory || len(status.Executions) > aiopsv1.MaxExecutions {
		s.t.Fatalf("%s: %d history entries and %d executions", s.clock(), len(status.History), len(status.Executions))
	}
	if before, after := s.task.Status.Order, status.Order; before != nil && after != nil && before.ID != after.ID && !finished(status.History, before.ID) {
		s.t.Fatalf("%s: order %s was replaced by %s while unfinished", s.clock(), before.ID, after.ID)
	}
	if before, after := s.task.Status.Order, status.Order; before != nil && after != nil && before.State == aiopsv1.OrderVerifying && after.State == aiopsv1.OrderRecorded &&
		!finished(status.History, before.ID) {
		s.t.Fatalf("%s: order %s ran and was recorded again", s.clock(), before.ID)
	}
	if !changed {
		return
	}
	encoded, err := json.Marshal(status)
	if err != nil || len(encoded) > maxStatusBytes {
		s.t.Fatalf("%s: status has %d bytes, error %v", s.clock(), len(encoded), err)
	}
}

func finished(history []aiopsv1.HistoryEntry, id string) bool {
	return slices.ContainsFunc(history, func(entry aiopsv1.HistoryEntry) bool { return entry.ID == id })
}

// checkQuiet proves that nothing is written when nothing changes: neither now, nor just before the time that was asked for, nor,
// where none was, a day later.
func (s *story) checkQuiet() {
	s.t.Helper()
	now, observation, untried := s.now, s.observation, s.untried
	defer func() { s.now, s.observation, s.untried = now, observation, untried }()
	moments := []time.Time{now, now.Add(24 * time.Hour)}
	if !s.next.IsZero() {
		moments[1] = s.next.Add(-time.Millisecond)
		if moments[1].Before(now) {
			moments[1] = now
		}
	}
	if s.task.Status.Order != nil && s.task.Status.Order.State == aiopsv1.OrderRecorded {
		return // every pass asks the gate
	}
	for _, moment := range moments {
		s.now = moment
		decision := s.decide(s.input())
		if difference := reflect.DeepEqual(decision.Status, s.task.Status); !difference || len(decision.Events) > 0 {
			s.t.Fatalf("%s: nothing changed since %s, yet %s/%s became %s/%s\nbefore: %s\nafter:  %s\nevents: %+v", s.clock(), now.Sub(start()),
				s.task.Status.Phase, reasonOf(&s.task.Status), decision.Status.Phase, reasonOf(&decision.Status),
				encode(s.task.Status), encode(decision.Status), decision.Events)
		}
	}
}

func encode(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
