package runbook

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// gateOf is a gate that lets its order pass: a Scale that was recorded a minute ago, with everything as it was.
func gateOf() *Gate {
	spec := specOf(step("more", aiopsv1.ActionScale), step("page", aiopsv1.ActionNotify))
	task := taskOf(spec)
	target := healthyTarget()
	plan := PlanOf(&spec)
	image := target.Image()
	order := aiopsv1.Order{
		ID: "order", StepName: "more", Action: "Scale", State: aiopsv1.OrderRecorded, PlanHash: plan.Hash, Cause: aiopsv1.CauseIncident,
		Before: &image, Replicas: pointer(int32(4)), RecordedTime: at(-time.Minute), DeadlineTime: at(4 * time.Minute),
	}
	task.Status.Order = order.DeepCopy()
	return &Gate{
		Input: Input{
			Now: start(), Task: task, Plan: plan, Target: target,
			Observation: Observation{Judgement: Judgement{Verdict: aiopsv1.VerdictBreached}},
			Proposals:   []Proposal{{StepName: "more", Replicas: pointer(int32(4))}},
		},
		TaskUID: taskUID, Order: order,
	}
}

// notify makes the gate's order one of the accompanying step.
func (gate *Gate) notify() {
	gate.Order.StepName, gate.Order.Action, gate.Order.Replicas = "page", "Notify", nil
	gate.Proposals = []Proposal{{StepName: "page"}}
}

func TestTheGateChecksEverythingAgain(t *testing.T) {
	judged := func(verdict, reason string) func(*Gate) {
		return func(gate *Gate) { gate.Observation.Judgement = Judgement{Verdict: verdict, Reason: reason} }
	}
	withdraw := func(reason string) [2]string { return [2]string{string(PassageWithdraw), reason} }
	hold := func(reason string) [2]string { return [2]string{string(PassageHold), reason} }
	run, abandon := [2]string{string(PassageRun)}, [2]string{string(PassageAbandon)}
	tests := map[string]struct {
		change func(*Gate)
		want   [2]string
	}{
		"as it was":                   {func(*Gate) {}, run},
		"as it was, not untried":      {func(gate *Gate) { gate.Untried = true }, run},
		"another task of the name":    {func(gate *Gate) { gate.Task.UID = "another" }, abandon},
		"the task goes":               {func(gate *Gate) { gate.Task.DeletionTimestamp = &metav1.Time{Time: start()} }, abandon},
		"the order is gone":           {func(gate *Gate) { gate.Task.Status.Order = nil }, abandon},
		"another order":               {func(gate *Gate) { gate.Task.Status.Order.ID = "another" }, abandon},
		"the order ran":               {func(gate *Gate) { gate.Task.Status.Order.State = aiopsv1.OrderVerifying }, abandon},
		"the spec became invalid":     {func(gate *Gate) { gate.SpecProblem = &Problem{} }, withdraw(aiopsv1.ReasonSpecChanged)},
		"another plan":                {func(gate *Gate) { gate.Plan.Hash = "another" }, withdraw(aiopsv1.ReasonSpecChanged)},
		"no steps":                    {func(gate *Gate) { gate.Plan.Steps = nil }, withdraw(aiopsv1.ReasonSpecChanged)},
		"suspended":                   {func(gate *Gate) { gate.Task.Spec.Suspend = pointer(true) }, withdraw(aiopsv1.ReasonSuspended)},
		"suspend: false":              {func(gate *Gate) { gate.Task.Spec.Suspend = pointer(false) }, run},
		"mode Observe":                {func(gate *Gate) { gate.Plan.Mode = aiopsv1.ModeObserve }, withdraw(aiopsv1.ReasonObserved)},
		"mode Observe of the step":    {func(gate *Gate) { gate.Plan.Steps[0].Mode = aiopsv1.ModeObserve }, withdraw(aiopsv1.ReasonObserved)},
		"mode Observe of another one": {func(gate *Gate) { gate.Plan.Steps[1].Mode = aiopsv1.ModeObserve }, run},
		"no target": {func(gate *Gate) {
			gate.Target, gate.TargetProblem = nil, &Problem{Reason: aiopsv1.ReasonTargetNotFound}
		},
			withdraw(aiopsv1.ReasonTargetNotFound)},
		"another target":              {func(gate *Gate) { gate.Target.UID = "another" }, withdraw(aiopsv1.ReasonTargetReplaced)},
		"no image":                    {func(gate *Gate) { gate.Order.Before = nil }, withdraw(aiopsv1.ReasonTargetReplaced)},
		"the target goes":             {func(gate *Gate) { gate.Target.Deleting = true }, withdraw(aiopsv1.ReasonTargetDeleting)},
		"its own stamp":               {func(gate *Gate) { gate.Target.LastOrder = "order" }, run},
		"the stamp of an earlier one": {func(gate *Gate) { gate.Target.LastOrder = "order"; gate.Untried = true }, withdraw(aiopsv1.ReasonInterrupted)},
		"another order's stamp":       {func(gate *Gate) { gate.Target.LastOrder = "another" }, run},
		"a change, it ran":            {func(gate *Gate) { gate.Target.LastOrder = "order"; gate.Target.Generation++ }, run},
		"it ran, and then healed":     {func(gate *Gate) { gate.Target.LastOrder = "order"; judged(aiopsv1.VerdictHealthy, "")(gate) }, run},
		"a change, it may have run": {func(gate *Gate) { gate.Target.Generation++ },
			[2]string{string(PassageInterrupt), aiopsv1.ReasonInterrupted}},
		"a change that another task's order explains": {func(gate *Gate) { gate.Target.Generation++; gate.Fleet.BusyTask = "other" },
			withdraw(aiopsv1.ReasonTargetBusy)},
		"a change, it was not tried":      {func(gate *Gate) { gate.Target.Generation++; gate.Untried = true }, withdraw(aiopsv1.ReasonSuperseded)},
		"another template":                {func(gate *Gate) { gate.Target.TemplateHash = "new"; gate.Untried = true }, withdraw(aiopsv1.ReasonSuperseded)},
		"a change before an eviction":     {func(gate *Gate) { gate.Target.Generation++; gate.Order.Action = "Evict" }, withdraw(aiopsv1.ReasonSuperseded)},
		"a change before a notification":  {func(gate *Gate) { gate.Target.Generation++; gate.notify() }, run},
		"the clock goes wrong":            {func(gate *Gate) { gate.ClockSkew = MaxClockSkew + time.Millisecond }, hold(aiopsv1.ReasonClockSkew)},
		"the clock goes wrong, behind":    {func(gate *Gate) { gate.ClockSkew = -MaxClockSkew - time.Millisecond }, hold(aiopsv1.ReasonClockSkew)},
		"the clock is just right":         {func(gate *Gate) { gate.ClockSkew = MaxClockSkew }, run},
		"the clock is just right, behind": {func(gate *Gate) { gate.ClockSkew = -MaxClockSkew }, run},
		"the clock stays wrong": {func(gate *Gate) { gate.ClockSkew = time.Hour; gate.Now = gate.Order.DeadlineTime.Time },
			withdraw(aiopsv1.ReasonClockSkew)},
		"healthy again":      {judged(aiopsv1.VerdictHealthy, ""), withdraw(aiopsv1.ReasonSignalHealthy)},
		"healthy, asked for": {func(gate *Gate) { gate.Order.Cause = aiopsv1.CauseRun; judged(aiopsv1.VerdictHealthy, "")(gate) }, run},
		"unknown":            {judged(aiopsv1.VerdictUnknown, aiopsv1.ReasonTimeout), hold(aiopsv1.ReasonSignalUnknown)},
		"unknown, asked for": {func(gate *Gate) { gate.Order.Cause = aiopsv1.CauseRun; judged(aiopsv1.VerdictUnknown, "")(gate) }, run},
		"unknown, almost over": {func(gate *Gate) {
			judged(aiopsv1.VerdictUnknown, "")(gate)
			gate.Now = at(4*time.Minute - time.Millisecond).Time
		}, hold(aiopsv1.ReasonSignalUnknown)},
		"unknown to the end":      {func(gate *Gate) { judged(aiopsv1.VerdictUnknown, "")(gate); gate.Now = at(4 * time.Minute).Time }, withdraw(aiopsv1.ReasonSignalUnknown)},
		"unknown, no deadline":    {func(gate *Gate) { judged(aiopsv1.VerdictUnknown, "")(gate); gate.Order.DeadlineTime = nil }, withdraw(aiopsv1.ReasonSignalUnknown)},
		"another task was faster": {func(gate *Gate) { gate.Fleet.BusyTask = "other" }, withdraw(aiopsv1.ReasonTargetBusy)},
		"a storm":                 {func(gate *Gate) { gate.Fleet.Storm = &Problem{Reason: aiopsv1.ReasonStormProtection} }, withdraw(aiopsv1.ReasonStormProtection)},
		"a cooldown":              {func(gate *Gate) { gate.Target.LastActionTime = start() }, withdraw(aiopsv1.ReasonCooldown)},
		"a cooldown, notifying":   {func(gate *Gate) { gate.Target.LastActionTime = start(); gate.notify() }, run},
		"not planned":             {func(gate *Gate) { gate.Proposals = nil }, hold(aiopsv1.ReasonNotObserved)},
		"refused": {func(gate *Gate) { gate.Proposals[0].Refusal = refusal(aiopsv1.ReasonOwnedByAutoscaler, false) },
			[2]string{string(PassageRefuse), aiopsv1.ReasonOwnedByAutoscaler}},
		"another action":      {func(gate *Gate) { gate.Plan.Steps[0].Action = aiopsv1.ActionRestart }, withdraw(aiopsv1.ReasonSuperseded)},
		"another number":      {func(gate *Gate) { gate.Proposals[0].Replicas = pointer(int32(5)) }, withdraw(aiopsv1.ReasonSuperseded)},
		"no number":           {func(gate *Gate) { gate.Proposals[0].Replicas = nil }, withdraw(aiopsv1.ReasonSuperseded)},
		"a number out of air": {func(gate *Gate) { gate.Order.Replicas = nil }, withdraw(aiopsv1.ReasonSuperseded)},
		"another revision":    {func(gate *Gate) { gate.Proposals[0].Revision = "web-6" }, withdraw(aiopsv1.ReasonSuperseded)},
		"too old":             {func(gate *Gate) { gate.Now = gate.Order.DeadlineTime.Time }, withdraw(aiopsv1.ReasonRequestExpired)},
		"almost too old":      {func(gate *Gate) { gate.Now = gate.Order.DeadlineTime.Add(-time.Millisecond) }, run},
		"no deadline":         {func(gate *Gate) { gate.Order.DeadlineTime = nil }, withdraw(aiopsv1.ReasonRequestExpired)},
		"too old, and it ran": {func(gate *Gate) { gate.Now = start().Add(72 * time.Hour); gate.Target.LastOrder = "order" }, run},
		"too old, and a change": {func(gate *Gate) { gate.Now = start().Add(72 * time.Hour); gate.Target.Generation++ },
			[2]string{string(PassageInterrupt), aiopsv1.ReasonInterrupted}},
		"too old, notifying": {func(gate *Gate) { gate.Now = start().Add(72 * time.Hour); gate.notify() },
			[2]string{string(PassageInterrupt), aiopsv1.ReasonInterrupted}},
		"too old, not tried to notify": {func(gate *Gate) { gate.Now = start().Add(72 * time.Hour); gate.notify(); gate.Untried = true },
			withdraw(aiopsv1.ReasonRequestExpired)},
		"other pods": {func(gate *Gate) { gate.Proposals[0].PodUIDs = []string{"pod-2"} }, withdraw(aiopsv1.ReasonSuperseded)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gate := gateOf()
			test.change(gate)
			passage, problem := Pass(*gate)
			if got := [2]string{string(passage), problem.Reason}; got != test.want {
				t.Errorf("passage %v, want %v", got, test.want)
			}
			if silent := passage == PassageRun || passage == PassageAbandon; (problem.Message == "") != silent && gate.TargetProblem == nil && gate.Fleet.Storm == nil {
				t.Errorf("passage %s with message %q", passage, problem.Message)
			}
		})
	}
}

func TestTheGatesRefusalIsThatOfTheOrdersStep(t *testing.T) {
	gate := gateOf()
	if got := gate.Refusal(); got != nil {
		t.Errorf("refusal %+v, want none", got)
	}
	want := refusal(aiopsv1.ReasonOwnedByAutoscaler, false)
	gate.Proposals = []Proposal{{StepName: "page", Refusal: refusal(aiopsv1.ReasonForbidden, false)}, {StepName: "more", Refusal: want}}
	if got := gate.Refusal(); got != want {
		t.Errorf("refusal %+v, want %+v", got, want)
	}
	gate.Proposals = nil
	if got := gate.Refusal(); got != nil {
		t.Errorf("refusal %+v, want none", got)
	}
}

func TestAnOrderAtTheGate(t *testing.T) {
	restart := step("restart", aiopsv1.ActionRestart)
	tests := map[string]struct {
		gate func(*story)
		want []string
	}{
		"is withdrawn when the signal healed": {(*story).heal, []string{"+60s Acting/Ordered", "+60s warning Breached", "+60s Blocked/SignalHealthy", "+60s event OrderWithdrawn",
			"+60s Breached/Recovering", "+120s Watching/Recovered", "+120s event Recovered"}},
		"waits while nobody can see": {func(s *story) { s.blind(); s.atGate = nil }, []string{"+60s Acting/Ordered", "+60s warning Breached", "+60s Acting/SignalUnknown",
			"+60s warning SignalUnknown", "+360s Blocked/SignalUnknown", "+360s event OrderWithdrawn", "+360s Breached/SignalUnknown"}},
		"is refused": {func(s *story) { s.refusals["restart"] = refusal(aiopsv1.ReasonTargetPaused, false) }, []string{"+60s Acting/Ordered", "+60s warning Breached",
			"+60s Blocked/TargetPaused", "+60s warning StepRefused"}},
		"is not repeated when it may have run": {func(s *story) { s.untried = ""; s.target.Generation++ }, []string{"+60s Acting/Ordered", "+60s warning Breached",
			"+60s Verifying/Verifying", "+60s warning OrderInterrupted"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf(restart))
			s.atGate = func() { test.gate(s) }
			s.breach()
			s.wait(6 * time.Minute)
			s.wantWords(append([]string{"+0s Breached/Holding"}, test.want...)...)
			if len(s.runs) > 0 {
				t.Errorf("runs %v, want none", s.runs)
			}
		})
	}
}

func TestAnInterruptedOrderIsVerifiedAndCounts(t *testing.T) {
	s := newStory(t, specOf(step("restart", aiopsv1.ActionRestart)))
	s.atGate = func() { s.untried = ""; s.target.Generation++ }
	s.breach()
	s.wait(60 * time.Second)
	want := "+60s warning OrderInterrupted: Step \"restart\" 1/1: it cannot be known whether it ran; it is verified and not run again: run Restart on Deployment/web"
	if got := s.log[len(s.log)-1]; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if got := s.task.Status; got.Order.Reason != aiopsv1.ReasonInterrupted || got.Incident.Attempts != 1 || len(got.Executions) != 1 {
		t.Errorf("status %s, want an attempt that counts", encode(got))
	}
	const unknown = "t cannot be known whether this was done: run Restart on Deployment/web"
	if got := s.message(); !strings.HasPrefix(got, "I"+unknown+". Recovery must hold for 60s; ") {
		t.Errorf("message %q, want no word of what is not known", got)
	}
	s.heal()
	s.wait(time.Minute)
	if got := s.task.Status.History[0]; got.Result != aiopsv1.ResultRecovered || got.Reason != aiopsv1.ReasonInterrupted || got.Message != "i"+unknown {
		t.Errorf("history %+v, want a recovery of which nobody knows whether it is the step's", got)
	}
}

func TestAnOrderOfAnOperatorThatWasDownIsGivenUp(t *testing.T) {
	tests := map[string]struct {
		action aiopsv1.ActionType
		want   []string
	}{
		"an action": {aiopsv1.ActionRestart, []string{"+259260s Blocked/RequestExpired", "+259260s event OrderWithdrawn",
			"+259260s Breached/Holding", "+259320s Acting/Ordered", "+259320s run Restart", "+259320s Verifying/Verifying", "+259320s event ActionExecuted"}},
		"a notification": {aiopsv1.ActionNotify, []string{"+259260s Breached/ThresholdReached", "+259260s warning StepFailed", "+259260s Breached/Holding",
			"+259320s Blocked/Cooldown", "+259320s warning Blocked"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := recorded(t, specOf(step("act", test.action)))
			s.observation, s.untried = Observation{}, ""
			s.now = s.now.Add(72 * time.Hour)
			s.wait(61 * time.Second)
			s.wantWords(test.want...)
		})
	}
}
