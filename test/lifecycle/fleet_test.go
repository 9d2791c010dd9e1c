package lifecycle_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// perPhase tasks are in each of the ten phases: fifty in all.
const perPhase = 5

const image = "shop/web:1"

// member is a task in a phase that it stays in until something happens to it.
type member struct {
	phase string
	name  string
	// absent says that there is no workload, broken that its pod is not ready.
	absent, broken bool
	// edit makes the task what it is, from the short form without an action.
	edit func(*aiopsv1.AITask)
	// goOn makes something happen to it.
	goOn func(*play, *member)
	// history is what has come of it then, newest first, in phase Watching.
	history []string
}

// fleet returns tasks in every phase that there is.
func fleet() []*member {
	var out []*member
	for number := range perPhase {
		for _, template := range phases() {
			template.name = fmt.Sprintf("%s-%d", strings.ToLower(template.phase), number)
			out = append(out, &template)
		}
	}
	return out
}

func phases() []member {
	return []member{
		{phase: aiopsv1.PhaseRunning, edit: func(t *aiopsv1.AITask) { t.Spec.Threshold = nil },
			goOn: edited(func(t *aiopsv1.AITask) { t.Spec.Threshold = harness.Of[int64](1) })},
		{phase: aiopsv1.PhasePending, absent: true, edit: func(*aiopsv1.AITask) {},
			goOn: func(p *play, m *member) { p.create(harness.Deployment(p.namespace, m.name, 1, image)) }},
		{phase: aiopsv1.PhaseWatching, edit: func(t *aiopsv1.AITask) {
			t.Spec.Action, t.Spec.Limits = "Restart", &aiopsv1.Limits{CooldownSeconds: harness.Of[int32](0)}
		}, goOn: func(p *play, m *member) { p.breakPods(m.name, cluster.NotReady) }, history: []string{"Restart Recovered"}},
		{phase: aiopsv1.PhaseBreached, broken: true, edit: func(t *aiopsv1.AITask) {
			t.Spec.Action, t.Spec.ForSeconds = "Restart", harness.Of[int32](3600)
		}, goOn: healed},
		{phase: aiopsv1.PhaseBlocked, broken: true, edit: steps(aiopsv1.Step{Name: "more", Action: aiopsv1.ActionScale,
			Scale: &aiopsv1.ScaleStep{By: harness.Of[int32](1), Max: harness.Of[int32](1)}}), goOn: healed, history: []string{"Scale Refused"}},
		{phase: aiopsv1.PhaseActing, broken: true, edit: steps(aiopsv1.Step{Name: "tell", Action: aiopsv1.ActionNotify}),
			goOn: healed, history: []string{"Notify Done"}},
		{phase: aiopsv1.PhaseVerifying, broken: true, edit: steps(more(0)), goOn: healed, history: []string{"Scale Recovered"}},
		{phase: aiopsv1.PhaseExhausted, broken: true, edit: steps(more(10)), goOn: reset, history: []string{"Scale Failed"}},
		{phase: aiopsv1.PhaseSuspended, edit: func(t *aiopsv1.AITask) { t.Spec.Suspend = harness.Of(true) },
			goOn: edited(func(t *aiopsv1.AITask) { t.Spec.Suspend = nil })},
		{phase: aiopsv1.PhaseFailed, edit: func(t *aiopsv1.AITask) { t.Spec.Threshold = harness.Of[int64](0) },
			goOn: edited(func(t *aiopsv1.AITask) { t.Spec.Threshold = harness.Of[int64](1) })},
	}
}

// more does not help: the pod that is broken stays so. With a timeout nothing more is done then.
func more(timeoutSeconds int32) aiopsv1.Step {
	step := aiopsv1.Step{Name: "more", Action: aiopsv1.ActionScale, Scale: &aiopsv1.ScaleStep{By: harness.Of[int32](1), Max: harness.Of[int32](2)}}
	if timeoutSeconds > 0 {
		step.TimeoutSeconds, step.OnFailure = &timeoutSeconds, aiopsv1.OnFailureStop
	}
	return step
}

func steps(steps ...aiopsv1.Step) func(*aiopsv1.AITask) {
	return func(t *aiopsv1.AITask) { t.Spec.Steps = steps }
}

// edited goes on as the author of the task wants it.
func edited(edit func(*aiopsv1.AITask)) func(*play, *member) {
	return func(p *play, m *member) {
		task := p.task(m.name)()
		before := task.DeepCopy()
		edit(task)
		p.Expect(admin.Patch(p.ctx, task, client.MergeFrom(before))).To(Succeed())
	}
}

// healed goes on as a cause outside of the workload ends: its broken pods recover by themselves.
func healed(p *play, m *member) {
	p.breakPods(m.name, cluster.Healthy)
}

// reset goes on as somebody has looked at it.
func reset(p *play, m *member) {
	healed(p, m)
	task := p.task(m.name)()
	p.annotate(task, aiopsv1.ResetAnnotation, string(task.UID)+"/"+time.Now().UTC().Format(time.RFC3339))
}

// enter makes the task and its workload.
func (m *member) enter(p *play) {
	if !m.absent {
		p.create(harness.Deployment(p.namespace, m.name, 1, image))
		p.available(m.name)
	}
	if m.broken {
		p.breakPods(m.name, cluster.NotReady)
	}
	task := harness.Task(p.namespace, m.name, "")
	m.edit(task)
	p.create(task)
}

// available waits until a Deployment has all of its pods.
func (p *play) available(name string) {
	p.soon(func(g Gomega) {
		deployment := &appsv1.Deployment{}
		g.Expect(admin.Get(p.ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, deployment)).To(Succeed())
		g.Expect(deployment.Status.AvailableReplicas).To(Equal(*deployment.Spec.Replicas))
	}).Should(Succeed())
}

// all plays a part with each member at the same time.
func (p *play) all(members []*member, script func(*play, *member)) {
	err := inParallel(members, func(m *member) error {
		if err := p.apart(func(p *play) { script(p, m) }); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		return nil
	})
	if err != nil {
		p.Expect(err.Error()).To(BeEmpty())
	}
}

// phasesNow are the phases of the members by name.
func (p *play) phasesNow() map[string]string {
	list := &aiopsv1.AITaskList{}
	p.Expect(admin.List(p.ctx, list, client.InNamespace(p.namespace))).To(Succeed())
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].Status.Phase
	}
	return out
}

// podsOf counts the pods of the workloads: one each, and one more where a step added it.
func podsOf(members []*member) int {
	out := 0
	for _, m := range members {
		switch {
		case m.absent:
		case m.phase == aiopsv1.PhaseVerifying || m.phase == aiopsv1.PhaseExhausted:
			out += 2
		default:
			out++
		}
	}
	return out
}

// podUIDs are the identities of all pods of the namespace.
func (p *play) podUIDs() []string {
	list := &corev1.PodList{}
	p.Expect(admin.List(p.ctx, list, client.InNamespace(p.namespace))).To(Succeed())
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name+" "+string(list.Items[i].UID))
	}
	return out
}
