package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// configuration lets many targets be broken at the same time: that is what is played here.
const configuration = "storm:\n  minimumTargets: 100000\n"

// playPrefix begins the names of the namespaces that are played in.
const playPrefix = "play-"

// play is a sequence that may fail without ending the spec, so that several are played at once and their failures are compared.
type play struct {
	Gomega
	ctx       context.Context
	namespace string
	patience  time.Duration
	failure   error
}

// attempt plays in a namespace of its own, and returns what failed.
func attempt(ctx context.Context, patience time.Duration, script func(*play)) error {
	p := &play{ctx: ctx, patience: patience}
	return p.apart(func(p *play) {
		p.enterNamespace()
		script(p)
	})
}

// apart plays a part whose failure does not end the rest, and returns it.
func (p *play) apart(script func(*play)) error {
	part := &play{ctx: p.ctx, namespace: p.namespace, patience: p.patience}
	part.Gomega = NewGomega(part.fail)
	var done sync.WaitGroup
	done.Go(func() { script(part) })
	done.Wait()
	return part.failure
}

// fail ends the goroutine of the part.
func (p *play) fail(message string, _ ...int) {
	p.failure = errors.New(message)
	runtime.Goexit()
}

func (p *play) enterNamespace() {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: playPrefix}}
	p.Expect(admin.Create(p.ctx, namespace)).To(Succeed())
	p.namespace = namespace.Name
}

// newPlay enters a namespace for several specs. What fails in it fails the spec.
func newPlay() *play {
	p := &play{Gomega: NewGomega(Fail), ctx: context.Background(), patience: 100 * time.Second}
	p.enterNamespace()
	return p
}

// inParallel calls do with each of them at the same time, and returns all errors.
func inParallel[T any](all []T, do func(T) error) error {
	problems := make([]error, len(all))
	var done sync.WaitGroup
	for i := range all {
		done.Go(func() { problems[i] = do(all[i]) })
	}
	done.Wait()
	return errors.Join(problems...)
}

// soon waits for what an incident comes to.
func (p *play) soon(actual any) gomegatypes.AsyncAssertion {
	return p.Eventually(actual).WithTimeout(p.patience)
}

func (p *play) create(objects ...client.Object) {
	for _, object := range objects {
		p.Expect(admin.Create(p.ctx, object)).To(Succeed())
	}
}

// task reads an AITask for Eventually.
func (p *play) task(name string) func() *aiopsv1.AITask {
	return func() *aiopsv1.AITask {
		out := &aiopsv1.AITask{}
		if err := admin.Get(p.ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, out); err != nil {
			return nil
		}
		return out
	}
}

// results are a task's history, such as "Restart Recovered", newest first.
func (p *play) results(name string) func() []string {
	return func() []string {
		task := p.task(name)()
		if task == nil {
			return nil
		}
		var out []string
		for _, entry := range task.Status.History {
			out = append(out, entry.Action+" "+entry.Result)
		}
		return out
	}
}

// story says what a task says of itself, for the one who reads a failure.
func (p *play) story(name string) func() string {
	return func() string {
		task := p.task(name)()
		if task == nil || task.Status.Decision == nil {
			return "the task says nothing"
		}
		return fmt.Sprintf("phase %s, %s: %s", task.Status.Phase, task.Status.Decision.Reason, task.Status.Decision.Message)
	}
}

// ends waits until a task has this history, such as "Restart Recovered".
func (p *play) ends(name string, results ...string) {
	p.soon(p.results(name)).Should(Equal(results), p.story(name))
}

// comesTo waits until a task has this in its history, whatever else has happened to it.
func (p *play) comesTo(name, result string) {
	p.soon(p.results(name)).Should(ContainElement(result), p.story(name))
}

// settled waits until the operator knows the workload to be healthy.
func (p *play) settled(name string) {
	p.soon(p.task(name)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())), p.story(name))
}

func (p *play) annotate(object client.Object, key, value string) {
	p.Expect(p.tryToAnnotate(object, key, value)).To(Succeed())
}

func (p *play) tryToAnnotate(object client.Object, key, value string) error {
	before, ok := object.DeepCopyObject().(client.Object)
	p.Expect(ok).To(BeTrue())
	annotations := map[string]string{key: value}
	for name, text := range object.GetAnnotations() {
		if name != key {
			annotations[name] = text
		}
	}
	object.SetAnnotations(annotations)
	return admin.Patch(p.ctx, object, client.MergeFrom(before))
}

// pods returns the live pods of a workload of this name.
func (p *play) pods(name string) []corev1.Pod {
	list := &corev1.PodList{}
	p.Expect(admin.List(p.ctx, list, client.InNamespace(p.namespace), client.MatchingLabels{"app": name})).To(Succeed())
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// breakPods makes the running pods of a workload behave so, without a rollout. Pods made later are healthy. The first one may make the
// operator replace the others before they are reached.
func (p *play) breakPods(name string, behaviour cluster.Behaviour) {
	for _, pod := range p.pods(name) {
		p.Expect(client.IgnoreNotFound(p.tryToAnnotate(&pod, cluster.BehaviourAnnotation, string(behaviour)))).To(Succeed())
	}
}

func (p *play) image(object client.Object, image string) {
	p.Expect(admin.Get(p.ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before, ok := object.DeepCopyObject().(client.Object)
	p.Expect(ok).To(BeTrue())
	switch object := object.(type) {
	case *appsv1.Deployment:
		object.Spec.Template.Spec.Containers[0].Image = image
	case *appsv1.StatefulSet:
		object.Spec.Template.Spec.Containers[0].Image = image
	}
	p.Expect(admin.Patch(p.ctx, object, client.MergeFrom(before))).To(Succeed())
}

// events are the events about an AITask as "Reason count".
func (p *play) events(name string) func() []string {
	return func() []string {
		list := &eventsv1.EventList{}
		if err := admin.List(p.ctx, list, client.InNamespace(p.namespace)); err != nil {
			return nil
		}
		var out []string
		for _, event := range list.Items {
			if event.Regarding.Kind != "AITask" || event.Regarding.Name != name {
				continue
			}
			count := int32(1)
			if event.Series != nil {
				count = event.Series.Count
			}
			out = append(out, fmt.Sprintf("%s %d", event.Reason, count))
		}
		return out
	}
}

// firstLine shortens a failure for a table.
func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}

// startProcess starts an operator under the rights of the bundle that is installed. It ends with the spec.
func startProcess(ctx context.Context, program string, options harness.ProcessOptions) *harness.Process {
	GinkgoHelper()
	process, err := harness.StartProcess(ctx, kubernetes, program, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(process.Kill)
	return process
}

// removeAll leaves the cluster as it was before anything was installed.
func removeAll(ctx context.Context) {
	GinkgoHelper()
	Expect(admin.DeleteAllOf(ctx, &rbacv1.ClusterRole{}, client.HasLabels{harness.OwnerLabel})).To(Succeed())
	Expect(admin.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, client.HasLabels{harness.OwnerLabel})).To(Succeed())
	Expect(current.Remove(ctx, admin)).To(Succeed())
	Eventually(func() []string { return deleteNamespaces(ctx) }).WithTimeout(harness.DeletionTime).Should(BeEmpty(), "namespaces are still there")
}

// deleteNamespaces deletes what is played in, and the operator's namespace, and returns those that are still there.
func deleteNamespaces(ctx context.Context) []string {
	GinkgoHelper()
	namespaces := &corev1.NamespaceList{}
	Expect(admin.List(ctx, namespaces)).To(Succeed())
	var left []string
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		if !strings.HasPrefix(namespace.Name, playPrefix) && namespace.Name != harness.Namespace {
			continue
		}
		left = append(left, namespace.Name)
		if namespace.DeletionTimestamp == nil {
			Expect(client.IgnoreNotFound(admin.Delete(ctx, namespace))).To(Succeed())
		}
	}
	return left
}
