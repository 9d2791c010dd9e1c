package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/metrics"
	"github.com/example/aiops-operator/internal/runbook"
	"github.com/example/aiops-operator/internal/target"
)

func noon() time.Time {
	return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
}

// webTask is the short form on Deployment web, acting at once.
func webTask() *aiopsv1.AITask {
	name, threshold, hold := "web", int64(1), int32(0)
	task := &aiopsv1.AITask{}
	task.Namespace, task.Name, task.UID, task.ResourceVersion = "shop", name, "task-uid", "7"
	task.Spec.TargetDeployment, task.Spec.Threshold, task.Spec.Action, task.Spec.ForSeconds = &name, &threshold, "Restart", &hold
	return task
}

// oneTask is a client that holds one task. A status that is written to it changes nothing, as when the API server drops every field.
type oneTask struct {
	client.Client
	task *aiopsv1.AITask
}

func (o oneTask) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	task, ok := into.(*aiopsv1.AITask)
	if !ok {
		return errors.New("only AITasks are held here")
	}
	o.task.DeepCopyInto(task)
	return nil
}

func (oneTask) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func (oneTask) Status() client.SubResourceWriter { return droppedStatus{} }

type droppedStatus struct{ client.SubResourceWriter }

func (droppedStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

type fixedState struct{ state target.State }

func (f fixedState) Resolve(context.Context, target.Reference, time.Time) (target.State, error) {
	return f.state, nil
}

func (f fixedState) ResolveLive(context.Context, target.Reference, time.Time) (target.State, error) {
	return f.state, nil
}

// unplannable is a Restart that the API server does not let plan.
type unplannable struct{ action.Action }

func (unplannable) Type() aiopsv1.ActionType { return aiopsv1.ActionRestart }

func (unplannable) Plan(context.Context, action.Request) (action.Plan, *action.Refusal, error) {
	return action.Plan{}, nil, errors.New("failed calling webhook: secret-token")
}

func TestAStalledRolloutIsNotAskedForAgainAndAgain(t *testing.T) {
	for name, test := range map[string]struct {
		rollout target.Rollout
		want    time.Duration
	}{
		"progressing": {target.Rollout{Progressing: true, DeadlineTime: noon().Add(time.Minute)}, time.Minute},
		"stalled":     {target.Rollout{Stalled: true, DeadlineTime: noon().Add(-time.Minute)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Resolver: fixedState{target.State{UID: "u", Settled: true, Rollout: test.rollout}}}
			p := &pass{now: noon(), task: webTask()}
			if err := r.resolve(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if got := p.result().RequeueAfter; got != test.want {
				t.Errorf("requeue after %s, want %s", got, test.want)
			}
		})
	}
}

func TestWindowsStayClippedToTheLastActionAfterItWasProven(t *testing.T) {
	first, second := aiopsv1.NewTime(noon()), aiopsv1.NewTime(noon().Add(time.Minute))
	verifying := &aiopsv1.Order{State: aiopsv1.OrderVerifying, ExecutedTime: &second}
	for name, test := range map[string]struct {
		status aiopsv1.AITaskStatus
		want   time.Time
	}{
		"never acted":              {aiopsv1.AITaskStatus{}, time.Time{}},
		"verifying":                {aiopsv1.AITaskStatus{Order: verifying, Executions: []aiopsv1.Time{first}}, second.Time},
		"proven":                   {aiopsv1.AITaskStatus{Executions: []aiopsv1.Time{first, second}}, second.Time},
		"about to run another one": {aiopsv1.AITaskStatus{Order: &aiopsv1.Order{}, Executions: []aiopsv1.Time{first}}, first.Time},
	} {
		t.Run(name, func(t *testing.T) {
			task := webTask()
			task.Status = test.status
			if got := lastAction(task); !got.Equal(test.want) {
				t.Errorf("lastAction = %s, want %s", got, test.want)
			}
		})
	}
}

func TestADeletingTaskDoesNotHoldTheElection(t *testing.T) {
	task := webTask()
	deleted := metav1.NewTime(noon())
	task.DeletionTimestamp = &deleted
	r := &Reconciler{Client: oneTask{task: task}, Fleet: NewFleet(nil, Storm{}), Clock: clocktesting.NewFakePassiveClock(noon())}
	r.Fleet.expect([]types.NamespacedName{keyOf(task)}, noon())
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: keyOf(task)}); err != nil {
		t.Fatal(err)
	}
	if !r.Fleet.warm(noon()) {
		t.Error("the election waits for a task that is being deleted")
	}
}

func TestAWriteThatChangedNothingDoesNotBlindTheTask(t *testing.T) {
	task := webTask()
	collectors, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: oneTask{task: task}, Metrics: collectors, RandomID: func() string { return "id" }}
	p := &pass{key: keyOf(task), now: noon(), task: task, decision: &runbook.Decision{Status: aiopsv1.AITaskStatus{Phase: "Watching"}}}
	if err := r.report(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	later := &pass{key: keyOf(task), now: noon().Add(time.Hour)}
	if err := r.load(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if later.done {
		t.Error("the task waits for a newer version of itself, which will not come")
	}
}

func TestAPlanThatFailsIsSaidOnTheObject(t *testing.T) {
	task := webTask()
	r := &Reconciler{Actions: action.NewSet(unplannable{}), Fleet: NewFleet(oneTask{}, Storm{MinimumTargets: 10})}
	p := &pass{key: keyOf(task), now: noon(), task: task, state: &target.State{UID: "u"}}
	p.input = runbook.Input{
		Now: noon(), Task: task, Plan: runbook.PlanOf(&task.Spec), RandomID: "id", Target: &runbook.Target{Summary: "Deployment/web", UID: "u", Replicas: 1},
		Observation: runbook.Observation{BreachedSince: noon().Add(-time.Hour), Judgement: runbook.Judgement{
			Verdict: aiopsv1.VerdictBreached, Reading: runbook.Reading{Known: true, Value: 1, At: noon()}}},
	}
	if err := r.decide(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	decision := p.decision.Status.Decision
	if p.decision.Status.Phase != aiopsv1.PhaseBlocked || decision.Reason != aiopsv1.ReasonActionFailed || decision.NextAllowedTime == nil {
		t.Errorf("phase %s, decision %+v, want Blocked by ActionFailed with a next time", p.decision.Status.Phase, decision)
	}
	if want := "Restart could not be planned: the API server answered with an error, which the operator's log names. It is tried again until the step's timeout"; decision.Message != want {
		t.Errorf("message = %q, want %q", decision.Message, want)
	}
}

// undeliverable is a Notify that fails.
type undeliverable struct {
	action.Action
	failure error
}

func (undeliverable) Type() aiopsv1.ActionType { return aiopsv1.ActionNotify }

func (u undeliverable) Run(context.Context, action.Request) (action.Outcome, error) {
	return action.Outcome{}, u.failure
}

func TestAMessageThatDoesNotArriveIsSaidOncePerCause(t *testing.T) {
	task := webTask()
	task.Spec.Action = ""
	task.Spec.Steps = []aiopsv1.Step{{Name: "note", Action: aiopsv1.ActionNotify}}
	deadline := aiopsv1.NewTime(noon().Add(5 * time.Minute))
	task.Status.Order = &aiopsv1.Order{ID: "order", StepName: "note", Action: "Notify", State: aiopsv1.OrderRecorded, DeadlineTime: &deadline}
	var lines []string
	ctx := logf.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	refused := &action.UndeliveredError{Receiver: "default", Cause: "cannot be connected to"}
	busy := &action.UndeliveredError{Receiver: "default", Cause: "answered with status 503"}
	unknown := errors.New("the process ends")
	for _, try := range []struct {
		failure error
		message string
		err     error
		lines   int
	}{
		{refused, `Receiver "default" cannot be connected to; tried again until 2026-01-01T12:05:00Z`, nil, 1},
		{refused, `Receiver "default" cannot be connected to; tried again until 2026-01-01T12:05:00Z`, nil, 1},
		{busy, `Receiver "default" answered with status 503; tried again until 2026-01-01T12:05:00Z`, nil, 2},
		{unknown, "", unknown, 2},
	} {
		r := &Reconciler{Actions: action.NewSet(undeliverable{failure: try.failure}), Messages: make(chan struct{}, 1), MessageTimeout: time.Minute}
		p := &pass{key: keyOf(task), now: noon(), task: task, state: &target.State{UID: "u"}}
		gate := &runbook.Gate{Order: *task.Status.Order, Input: runbook.Input{
			Now: noon(), Task: task, Plan: runbook.PlanOf(&task.Spec), Target: &runbook.Target{Summary: "Deployment/web", UID: "u", Replicas: 1}}}
		decision, err := r.run(ctx, p, gate)
		if !errors.Is(err, try.err) || len(lines) != try.lines {
			t.Fatalf("%v: error %v and lines %q, want %v and %d lines", try.failure, err, lines, try.err, try.lines)
		}
		if err != nil {
			continue
		}
		if got := decision.Status.Decision.Message; got != try.message {
			t.Errorf("message %q, want %q", got, try.message)
		}
		task.Status = decision.Status
	}
}

// refusing is a Restart that finds nothing to do.
type refusing struct{ action.Action }

func (refusing) Type() aiopsv1.ActionType { return aiopsv1.ActionRestart }

func (refusing) Run(context.Context, action.Request) (action.Outcome, error) {
	return action.Outcome{Refusal: &action.Refusal{Reason: aiopsv1.ReasonNothingToEvict, Message: "nothing is left to do"}}, nil
}

func TestAnOrderThatAnotherOperatorRanIsNotSaidNotToHaveRun(t *testing.T) {
	problem := runbook.Problem{Reason: aiopsv1.ReasonSignalHealthy, Message: "the signal was healthy again before the step ran"}
	refusal := &runbook.Refusal{Problem: runbook.Problem{Reason: aiopsv1.ReasonNoEarlierRevision, Message: "there is nothing to go back to"}}
	for passage, notRun := range map[runbook.Passage]string{
		runbook.PassageWithdraw: aiopsv1.ResultWithdrawn,
		runbook.PassageRefuse:   aiopsv1.ResultRefused,
		runbook.PassageRun:      aiopsv1.ResultRefused,
	} {
		for lastOrder, want := range map[string]string{"order": aiopsv1.ResultCancelled, "": notRun} {
			t.Run(string(passage)+"/"+lastOrder, func(t *testing.T) {
				task := webTask()
				task.Status.Order = &aiopsv1.Order{ID: "order", StepName: "default", Action: "Restart", State: aiopsv1.OrderRecorded}
				r := &Reconciler{
					Actions: action.NewSet(refusing{}), Clock: clocktesting.NewFakePassiveClock(noon()),
					Resolver: fixedState{target.State{UID: "u", LastOrder: lastOrder}},
				}
				p := &pass{key: keyOf(task), now: noon(), task: task, state: &target.State{UID: "u"}}
				gate := &runbook.Gate{Order: *task.Status.Order, Input: runbook.Input{
					Now: noon(), Task: task, Plan: runbook.PlanOf(&task.Spec), Target: &runbook.Target{Summary: "Deployment/web", UID: "u", Replicas: 1},
					Proposals: []runbook.Proposal{{StepName: "default", Refusal: refusal}}}}
				decision, err := r.follow(t.Context(), p, gate, passage, problem)
				if err != nil {
					t.Fatal(err)
				}
				if got := decision.Status.History[0].Result; got != want {
					t.Errorf("result %s, want %s", got, want)
				}
			})
		}
	}
}
