package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

const (
	replicas = 2
	healthy  = "shop/web:1"
	crashing = "shop/web:crash"
)

// incident is a Deployment with a task in a namespace of their own, and what is to happen to them.
type incident struct {
	t         *try
	ctx       context.Context
	namespace string
	// name is that of the Deployment and of the task.
	name   string
	action aiopsv1.ActionType
	// generation, pods and broken are the workload before the action: its generation, its pods, and the one of them that is broken.
	generation int64
	pods       []string
	broken     string
	healed     bool
	// lost says that the eviction left its stamp and nothing else; see isLost.
	lost bool
}

// newNamespace makes a namespace. It is left to the end of the cluster.
func newNamespace(ctx context.Context, g Gomega) string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chaos-"}}
	g.Expect(admin.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// prepare makes a healthy Deployment and a task that answers a breach with one action, in a namespace of their own.
func prepare(ctx context.Context, t *try, action aiopsv1.ActionType, edits ...func(*aiopsv1.AITask)) *incident {
	return prepareIn(ctx, t, newNamespace(ctx, t), "web", action, edits...)
}

func prepareIn(ctx context.Context, t *try, namespace, name string, action aiopsv1.ActionType, edits ...func(*aiopsv1.AITask)) *incident {
	in := &incident{t: t, ctx: ctx, namespace: namespace, name: name, action: action}
	t.Expect(admin.Create(ctx, in.newDeployment())).To(Succeed())
	t.Expect(admin.Create(ctx, in.newTask(name, edits...))).To(Succeed())
	t.Eventually(in.available).Should(BeEquivalentTo(replicas))
	return in
}

func (in *incident) newDeployment() *appsv1.Deployment {
	return harness.Deployment(in.namespace, in.name, replicas, healthy)
}

func (in *incident) newTask(name string, edits ...func(*aiopsv1.AITask)) *aiopsv1.AITask {
	task := harness.Task(in.namespace, in.name, "")
	task.Name = name
	step := aiopsv1.Step{Name: "only", Action: in.action}
	switch in.action {
	case aiopsv1.ActionScale:
		step.Scale = &aiopsv1.ScaleStep{By: harness.Of[int32](1), Max: harness.Of[int32](10)}
	case aiopsv1.ActionRollback:
		task.Spec.Threshold = nil
		task.Spec.Signals = []aiopsv1.Signal{{Name: "crash", Type: aiopsv1.SignalCrashLoopingPods, Threshold: harness.Of[int64](1)}}
	}
	task.Spec.Steps = []aiopsv1.Step{step}
	for _, edit := range edits {
		edit(task)
	}
	return task
}

// settle waits until the operator watches a workload that it knows to be healthy.
func (in *incident) settle() {
	in.t.Eventually(in.task).Should(And(
		HaveField("Status.Phase", aiopsv1.PhaseWatching), HaveField("Status.Target.HealthyRevision", Not(BeEmpty()))))
	in.pods = in.podUIDs()
	in.t.Expect(in.pods).To(HaveLen(replicas))
}

// begin breaks the workload: one running pod, or for a Rollback the whole release.
func (in *incident) begin() {
	if in.action == aiopsv1.ActionRollback {
		deployment := in.deployment()
		before := client.MergeFrom(deployment.DeepCopy())
		deployment.Spec.Template.Spec.Containers[0].Image = crashing
		in.t.Expect(admin.Patch(in.ctx, deployment, before)).To(Succeed())
		in.generation = deployment.Generation
		return
	}
	in.generation = in.deployment().Generation
	broken := in.livePods()[0]
	in.broken = string(broken.UID)
	in.behave(&broken, cluster.Crash)
}

func (in *incident) behave(pod *corev1.Pod, behaviour cluster.Behaviour) {
	before := client.MergeFrom(pod.DeepCopy())
	pod.Annotations = map[string]string{cluster.BehaviourAnnotation: string(behaviour)}
	in.t.Expect(admin.Patch(in.ctx, pod, before)).To(Succeed())
}

// play is the rest of the script, to be called again and again: actions that cannot heal are helped once they are done.
func (in *incident) play() {
	if !in.healed && in.needsHelp() {
		in.heal()
	}
}

// heal ends the cause of the incident from outside.
func (in *incident) heal() {
	for _, pod := range in.livePods() {
		if string(pod.UID) == in.broken {
			in.behave(&pod, cluster.Healthy)
		}
	}
	in.healed = true
}

func (in *incident) needsHelp() bool {
	switch in.action {
	case aiopsv1.ActionScale:
		return *in.deployment().Spec.Replicas > replicas
	case aiopsv1.ActionNotify:
		return len(in.results()) > 0
	}
	return false
}

// ended waits until the incident is over, as it is when nothing fails.
func (in *incident) ended() {
	in.t.Eventually(func() string {
		in.play()
		return in.summary()
	}).Should(Equal(in.end()), in.state)
}

// state is what a failed try leaves to read.
func (in *incident) state() string {
	var out strings.Builder
	for _, part := range []any{in.task().Status, in.deployment().Annotations, in.deployment().Status, in.livePods()} {
		content, err := yaml.Marshal(part)
		in.t.Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&out, "%s\n", content)
	}
	return out.String()
}

// end is the summary of an incident that ended well.
func (in *incident) end() string {
	if in.action == aiopsv1.ActionNotify {
		return "Watching, recovered: true, [Notify Done]"
	}
	return fmt.Sprintf("Watching, recovered: true, [%s Recovered]", in.action)
}

func (in *incident) summary() string {
	task := in.task()
	recovered := task.Status.Incident != nil && task.Status.Incident.RecoveredTime != nil
	return fmt.Sprintf("%s, recovered: %t, %s", task.Status.Phase, recovered, in.results())
}

func (in *incident) task() *aiopsv1.AITask {
	return in.taskNamed(in.name)
}

func (in *incident) taskNamed(name string) *aiopsv1.AITask {
	task := &aiopsv1.AITask{}
	in.t.Expect(admin.Get(in.ctx, client.ObjectKey{Namespace: in.namespace, Name: name}, task)).To(Succeed())
	return task
}

// results are the task's history, such as "Restart Recovered", oldest first.
func (in *incident) results() []string {
	return resultsOf(in.task())
}

func resultsOf(task *aiopsv1.AITask) []string {
	var out []string
	for _, entry := range slices.Backward(task.Status.History) {
		out = append(out, entry.Action+" "+entry.Result)
	}
	return out
}

func (in *incident) deployment() *appsv1.Deployment {
	deployment := &appsv1.Deployment{}
	in.t.Expect(admin.Get(in.ctx, client.ObjectKey{Namespace: in.namespace, Name: in.name}, deployment)).To(Succeed())
	return deployment
}

func (in *incident) available() int32 {
	return in.deployment().Status.AvailableReplicas
}

func (in *incident) livePods() []corev1.Pod {
	list := &corev1.PodList{}
	in.t.Expect(admin.List(in.ctx, list, client.InNamespace(in.namespace), client.MatchingLabels{"app": in.name})).To(Succeed())
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

func (in *incident) podUIDs() []string {
	var out []string
	for _, pod := range in.livePods() {
		out = append(out, string(pod.UID))
	}
	return out
}

func (in *incident) replicaSets() int {
	list := &appsv1.ReplicaSetList{}
	in.t.Expect(admin.List(in.ctx, list, client.InNamespace(in.namespace), client.MatchingLabels{"app": in.name})).To(Succeed())
	return len(list.Items)
}

// sawOneAction asks the workload itself: one generation more, with the order's stamp, and exactly the pods that one action makes.
func (in *incident) sawOneAction() {
	deployment := in.deployment()
	after := in.podUIDs()
	if in.action == aiopsv1.ActionNotify {
		in.sawOneNotification()
		in.t.Expect(deployment.Generation).To(Equal(in.generation))
		in.t.Expect(after).To(ConsistOf(in.pods))
		return
	}
	in.t.Expect(deployment.Generation).To(Equal(in.generation+1), "generation of the workload")
	in.t.Expect(deployment.Annotations).To(HaveKeyWithValue(aiopsv1.LastOrderAnnotation, in.task().Status.History[0].ID))
	switch in.action {
	case aiopsv1.ActionRestart:
		in.t.Expect(in.replicaSets()).To(Equal(2))
		in.t.Expect(after).To(HaveLen(replicas))
		in.t.Expect(after).NotTo(ContainElements(in.pods))
	case aiopsv1.ActionScale:
		in.t.Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(replicas + 1))
		in.t.Expect(after).To(HaveLen(replicas + 1))
		in.t.Expect(after).To(ContainElements(in.pods))
	case aiopsv1.ActionRollback:
		in.t.Expect(in.replicaSets()).To(Equal(2))
		in.t.Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal(healthy))
	case aiopsv1.ActionEvict:
		in.t.Expect(in.replicaSets()).To(Equal(1))
		in.t.Expect(after).To(HaveLen(replicas))
		in.t.Expect(after).To(ContainElements(slices.DeleteFunc(slices.Clone(in.pods), func(uid string) bool { return uid == in.broken })))
		in.t.Expect(after).NotTo(ContainElement(in.broken))
	}
}

func (in *incident) sawOneNotification() {
	keys := post.arrived(in.namespace, in.name)
	in.t.Expect(keys).NotTo(BeEmpty())
	in.t.Expect(slices.Compact(keys)).To(Equal([]string{in.task().Status.History[0].ID}))
}

func (in *incident) phase() string {
	return in.task().Status.Phase
}

// touch changes task and Deployment in a way that means nothing.
func (in *incident) touch() {
	for _, object := range []client.Object{in.task(), in.deployment()} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"chaos.example.com/touched":"true"}}}`))
		in.t.Expect(admin.Patch(in.ctx, object, patch)).To(Succeed())
	}
}
