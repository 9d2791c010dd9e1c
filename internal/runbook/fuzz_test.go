package runbook

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// dice turns the fuzzer's bytes into choices. When they are used up, every choice is the first one.
type dice struct {
	data []byte
}

func (d *dice) pick(sides int) int {
	if len(d.data) == 0 {
		return 0
	}
	first := d.data[0]
	d.data = d.data[1:]
	return int(first) % sides
}

func (d *dice) number() int32 {
	var bytes [4]byte
	d.data = d.data[copy(bytes[:], d.data):]
	return int32(binary.LittleEndian.Uint32(bytes[:]))
}

func oneOf[T any](d *dice, values ...T) T {
	return values[d.pick(len(values))]
}

// FuzzNext plays random incidents of random tasks, with statuses that nobody wrote, and looks after every pass at what must hold.
func FuzzNext(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x01\x02\x00\x01\x00\x00\x03\x01\x00\x00\x04\x02\x00\x05"))
	f.Add([]byte("\x02\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c"))
	f.Add([]byte("\x03\x03\x03\x03\x02\x02\x02\x02\x01\x01\x01\x01\x10\x20\x30\x40\x50\x60\x70\x80\x90\xa0\xb0\xc0\xd0\xe0\xf0\xff"))
	f.Fuzz(playRandom)
}

func playRandom(t *testing.T, data []byte) {
	d := &dice{data: data[:min(len(data), 512)]}
	s := newStory(t, d.spec())
	d.status(s)
	guard := &guard{s: s, seen: map[string]bool{}}
	s.atGate = func() { guard.recorded(); d.disturb(s) }
	s.onRun = func(order *aiopsv1.Order) { guard.ran(order); d.help(s) }
	lives := maxPassesAtOnce / 2
	s.crash = func() bool {
		if lives == 0 || d.pick(10) != 9 {
			return false
		}
		lives--
		return true
	}
	for range 12 {
		d.world(s)
		s.wait(oneOf(d, 0, time.Second, 30*time.Second, 61*time.Second, 11*time.Minute, 40*time.Minute))
	}
	end(t, s)
}

// end lets everything else be as it should: then an incident that nothing cures ends Exhausted, or is blocked for a reason.
func end(t *testing.T, s *story) {
	t.Helper()
	s.atGate, s.onRun, s.crash, s.outcome, s.fleet, s.skew, s.refusals = nil, nil, nil, nil, Fleet{}, 0, map[string]*Refusal{}
	s.target = healthyTarget()
	s.task.Annotations = nil
	action := s.task.Spec.Action
	s.task.Spec = specOf(s.task.Spec.Steps...)
	s.task.Spec.Action = action
	for i := range s.task.Spec.Steps {
		s.task.Spec.Steps[i].Mode = ""
	}
	s.task.Spec.Limits = &aiopsv1.Limits{MaxActions: pointer(int32(100))}
	if s.settle(); len(PlanOf(&s.task.Spec).Steps) == 0 || s.task.Status.Phase == aiopsv1.PhaseFailed {
		return
	}
	s.breach()
	s.wait(20 * 24 * time.Hour)
	if s.task.Status.Phase != aiopsv1.PhaseExhausted {
		t.Fatalf("a breach that lasts did not end Exhausted: %s", encode(s.task.Status))
	}
	s.heal()
	s.wait(2 * time.Hour)
	if s.task.Status.Phase != aiopsv1.PhaseWatching || s.task.Status.Incident != nil {
		t.Fatalf("recovery did not end the incident: %s", encode(s.task.Status))
	}
}

// guard remembers what was run, to find what must not be.
type guard struct {
	s        *story
	seen     map[string]bool
	incident string
	attempts int32
}

// recorded is called in the pass after an order was written.
func (g *guard) recorded() {
	order := g.s.task.Status.Order
	verdict := g.s.observation.Judgement.Verdict
	recordedTime := order.RecordedTime.Or(time.Time{})
	written := order.ID + recordedTime.String()
	first := !g.seen[written]
	g.seen[written] = true
	if first && g.s.untried == order.ID && recordedTime.Equal(aiopsv1.NewTime(g.s.now).Time) && order.Cause != aiopsv1.CauseRun && verdict != aiopsv1.VerdictBreached {
		g.s.t.Fatalf("%s: an order was written although the signal was %s", g.s.clock(), verdict)
	}
}

func (g *guard) ran(order *aiopsv1.Order) {
	s := g.s
	if g.seen[order.ID] && !aiopsv1.ActionType(order.Action).Accompanies() { // these are told at least once
		s.t.Fatalf("%s: order %s was run twice", s.clock(), order.ID)
	}
	g.seen[order.ID] = true
	verdict := s.observation.Judgement.Verdict
	if order.Cause != aiopsv1.CauseRun && verdict != aiopsv1.VerdictBreached {
		s.t.Fatalf("%s: an order was run although the signal was %s", s.clock(), verdict)
	}
	if suspend := s.task.Spec.Suspend; suspend != nil && *suspend {
		s.t.Fatalf("%s: an order was run although the task is suspended", s.clock())
	}
	incident := s.task.Status.Incident
	if incident.ID != g.incident || aiopsv1.ActionType(order.Action).Accompanies() {
		g.incident, g.attempts = incident.ID, 0
	}
	g.attempts++
	plan := PlanOf(&s.task.Spec)
	if most := (plan.MaxPasses + 1) * int32(len(plan.Steps)); g.attempts > most {
		s.t.Fatalf("%s: %d attempts in one incident, want at most %d", s.clock(), g.attempts, most)
	}
}

func (d *dice) spec() aiopsv1.AITaskSpec {
	spec := specOf()
	d.signal(&spec)
	for i := range d.pick(5) {
		action := oneOf(d, aiopsv1.ActionRestart, aiopsv1.ActionScale, aiopsv1.ActionRollback, aiopsv1.ActionEvict, aiopsv1.ActionNotify)
		made := step(fmt.Sprintf("step-%d", i), action)
		made.Mode = oneOf(d, aiopsv1.Mode(""), "", "", aiopsv1.ModeAuto, aiopsv1.ModeObserve)
		made.OnFailure = oneOf(d, aiopsv1.FailurePolicy(""), "", aiopsv1.OnFailureNext, aiopsv1.OnFailureStop)
		made.TimeoutSeconds = oneOf(d, nil, pointer(int32(10)), pointer(int32(300)), pointer(int32(86400)))
		spec.Steps = append(spec.Steps, made)
	}
	if d.pick(6) == 5 {
		spec.Steps, spec.Action = nil, aiopsv1.ShortAction(oneOf(d, aiopsv1.ActionRestart, aiopsv1.ActionEvict))
	}
	d.settings(&spec)
	return spec
}

func (d *dice) signal(spec *aiopsv1.AITaskSpec) {
	switch d.pick(5) {
	case 3:
		spec.Threshold = nil
	case 4:
		spec.Threshold = nil
		spec.Signals = []aiopsv1.Signal{{
			Name: "value", Type: aiopsv1.SignalMemoryUtilization, Threshold: pointer(int64(2)), RecoveryThreshold: oneOf(d, nil, pointer(int64(1))),
			NoData: oneOf(d, aiopsv1.NoDataVerdict(""), aiopsv1.NoDataBreached, aiopsv1.NoDataHealthy),
		}}
	}
}

func (d *dice) settings(spec *aiopsv1.AITaskSpec) {
	spec.Mode = oneOf(d, aiopsv1.Mode(""), aiopsv1.ModeAuto, aiopsv1.ModeAuto, aiopsv1.ModeObserve)
	spec.ForSeconds = oneOf(d, nil, pointer(int32(0)), pointer(int32(300)))
	spec.RecoverySeconds = oneOf(d, nil, pointer(int32(0)), pointer(int32(300)))
	spec.IntervalSeconds = oneOf(d, nil, pointer(int32(5)), pointer(int32(86400)))
	spec.Suspend = oneOf(d, nil, nil, nil, pointer(false), pointer(true))
	spec.Limits = &aiopsv1.Limits{
		CooldownSeconds: oneOf(d, nil, pointer(int32(0)), pointer(int32(86400))), RecurrenceSeconds: oneOf(d, nil, pointer(int32(0)), pointer(int32(604800))),
		MaxPasses: oneOf(d, nil, pointer(int32(1)), pointer(int32(5))), MaxActions: oneOf(d, nil, pointer(int32(1)), pointer(int32(100))),
		PeriodSeconds: oneOf(d, nil, pointer(int32(60)), pointer(int32(604800))),
	}
}

// world changes something around the task, or the task.
func (d *dice) world(s *story) {
	switch d.pick(16) {
	case 0, 1, 2, 3:
		s.breach()
	case 4, 5:
		s.heal()
	case 6:
		s.blind()
	case 7:
		s.reading = oneOf(d, Reading{NoData: true, Alive: true, Reason: "NoData", Message: "none"}, Reading{Known: true, Value: math.NaN()},
			Reading{Known: true, Value: 1.5}, Reading{Resting: true, Reason: "RolloutInProgress", Message: "rolling out"})
	case 8:
		d.workload(s)
	case 9:
		d.refusing(s)
	case 10:
		s.fleet = oneOf(d, Fleet{}, Fleet{BusyTask: "other"}, Fleet{BusyTask: "other", BusyUntil: s.now.Add(time.Minute)},
			Fleet{Storm: &Problem{aiopsv1.ReasonStormProtection, "many"}})
	case 11:
		s.task.Generation++
		d.settings(&s.task.Spec)
	case 12:
		s.task.Generation++
		s.task.Spec = d.spec()
	case 13:
		s.ask(oneOf(d, aiopsv1.RunAnnotation, aiopsv1.ResetAnnotation), oneOf(d, 0, -time.Minute, -time.Hour, time.Hour))
	case 14:
		s.skew = oneOf(d, 0, time.Minute, -time.Hour)
	case 15:
		d.status(s)
	}
}

func (d *dice) workload(s *story) {
	if s.target == nil {
		s.target = healthyTarget()
		s.target.UID = oneOf(d, targetUID, "another")
		return
	}
	switch d.pick(8) {
	case 0:
		s.target = nil
	case 1:
		s.target.Deleting = !s.target.Deleting
	case 2:
		s.target.Generation++
		s.target.TemplateHash += "x"
	case 3:
		s.target.Generation++
		s.target.Replicas = oneOf(d, int32(0), 1, 5)
	case 4:
		s.target.Autoscaled = !s.target.Autoscaled
	case 5:
		s.target.TemplateApplied = !s.target.TemplateApplied
	case 6:
		s.target.Available = !s.target.Available
	case 7:
		s.target.LastActionTime = s.now.Add(time.Duration(d.number()) * time.Second)
	}
}

func (d *dice) refusing(s *story) {
	s.refusals = map[string]*Refusal{}
	for i := range s.task.Spec.Steps {
		s.refusals[s.task.Spec.Steps[i].Name] = oneOf(d, nil, refusal(aiopsv1.ReasonQuotaExceeded, true), refusal(aiopsv1.ReasonOwnedByGitOps, false),
			refusal(aiopsv1.ReasonBlockedByDisruptionBudget, true))
	}
	s.outcome = nil
	if d.pick(4) == 3 {
		s.refuseRunning(d.pick(2) == 1)
	}
}

// disturb changes the world between the order and its gate.
func (d *dice) disturb(s *story) {
	switch d.pick(8) {
	case 5:
		s.heal()
	case 6:
		s.blind()
	case 7:
		if s.target != nil {
			d.workload(s)
		}
	}
}

// help lets the action that ran do some good, or not.
func (d *dice) help(s *story) {
	if d.pick(3) == 2 {
		s.heal()
	}
}

// status writes over what the operator wrote: an older version, a restored backup, somebody's hands.
func (d *dice) status(s *story) {
	moment := func() *aiopsv1.Time {
		return oneOf(d, nil, &aiopsv1.Time{}, at(0), aiopsv1.TimePointer(s.now.Add(time.Duration(d.number())*time.Second)))
	}
	status := &s.task.Status
	if status.Incident == nil || d.pick(2) == 1 {
		status.Incident = oneOf(d, nil, &aiopsv1.Incident{}, &aiopsv1.Incident{
			ID: "forged", StartTime: moment(), RecoveredTime: moment(), NotBeforeTime: moment(), Pass: d.number(), Attempts: d.number() % 1000,
			ExecutedInPass: d.number() % 1000, StepName: oneOf(d, "step-0", "step-1", "ghost", ""), Cause: oneOf(d, "Incident", "Run", ""),
			PlanHash: oneOf(d, PlanOf(&s.task.Spec).Hash, "", "other"), TargetUID: oneOf(d, targetUID, ""), Exhausted: d.pick(4) == 3,
		})
	}
	if d.pick(2) == 1 {
		status.Order = &aiopsv1.Order{
			ID: "forged", StepName: oneOf(d, "step-0", "ghost", ""), State: oneOf(d, aiopsv1.OrderRecorded, aiopsv1.OrderVerifying, "Strange"),
			Action: oneOf(d, "Restart", "Notify", "Strange"), RecordedTime: moment(), ExecutedTime: moment(), DeadlineTime: moment(),
			Before: oneOf(d, nil, &aiopsv1.TargetImage{UID: targetUID}), After: oneOf(d, nil, &aiopsv1.TargetImage{Generation: 1 << 50}),
		}
		if incident := status.Incident; incident != nil && d.pick(2) == 1 {
			status.Order.StepName = incident.StepName
			status.Order.ID = digest(taskUID, incident.ID, incident.Pass, incident.Attempts, incident.StepName, incident.PlanHash)
		}
	} else if d.pick(2) == 1 {
		status.Order = nil
	}
	status.Executions = nil
	for range d.pick(4) * 40 {
		if executed := moment(); executed != nil && len(status.Executions) < aiopsv1.MaxExecutions {
			status.Executions = append(status.Executions, *executed)
		}
	}
	status.Executions = slices.Clip(status.Executions)
	status.Decision = oneOf(d, status.Decision, nil, &aiopsv1.Decision{}, &aiopsv1.Decision{Reason: aiopsv1.ReasonQuotaExceeded, DecisionTime: moment(), NextAllowedTime: moment()})
	status.Conditions = oneOf(d, status.Conditions, nil, []aiopsv1.Condition{{Type: "Ready", Status: "True", LastTransitionTime: moment()}})
	status.Signals = oneOf(d, status.Signals, nil, []aiopsv1.SignalStatus{{Name: "default", Verdict: "Breached", MeasuredTime: moment()}})
	status.LastExecutionTime = moment()
	s.observation = Observation{}
}
