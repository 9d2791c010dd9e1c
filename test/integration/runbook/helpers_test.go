package runbook_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// operatorUser is whom the audit log names for the operator's requests.
const operatorUser = "system:serviceaccount:" + harness.Namespace + ":" + harness.ServiceAccount

// create creates objects in order.
func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
}

// change applies edit to the live object.
func change[T client.Object](ctx context.Context, object T, edit func(T)) {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before, ok := object.DeepCopyObject().(T)
	Expect(ok).To(BeTrue())
	edit(object)
	Expect(admin.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// pods returns the live pods of a workload of this name.
func pods(ctx context.Context, namespace, name string) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": name})).To(Succeed())
	var out []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out
}

// podUIDs returns the pods' identities.
func podUIDs(ctx context.Context, namespace, name string) []string {
	GinkgoHelper()
	var out []string
	for _, pod := range pods(ctx, namespace, name) {
		out = append(out, string(pod.UID))
	}
	return out
}

// behave makes the running pods of a workload behave so, without a rollout. Pods made later are healthy. The first one may make the operator
// replace the others before they are reached.
func behave(ctx context.Context, namespace, name string, behaviour cluster.Behaviour) {
	GinkgoHelper()
	for _, pod := range pods(ctx, namespace, name) {
		before := pod.DeepCopy()
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[cluster.BehaviourAnnotation] = string(behaviour)
		Expect(client.IgnoreNotFound(admin.Patch(ctx, &pod, client.MergeFrom(before)))).To(Succeed())
	}
}

// available waits until a Deployment has all of its pods.
func available(ctx context.Context, namespace, name string, replicas int32) {
	GinkgoHelper()
	Eventually(func() int32 {
		deployment := &appsv1.Deployment{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment); err != nil {
			return -1
		}
		return deployment.Status.AvailableReplicas
	}).Should(Equal(replicas))
}

func generation(ctx context.Context, namespace, name string) int64 {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment)).To(Succeed())
	return deployment.Generation
}

// events returns "Reason note" of the events about a task, oldest first.
func events(ctx context.Context, namespace, name string) func() []string {
	return func() []string {
		list := &eventsv1.EventList{}
		if err := admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil
		}
		var out []string
		for _, event := range list.Items {
			if event.Regarding.Kind == "AITask" && event.Regarding.Name == name {
				out = append(out, event.Reason)
			}
		}
		return out
	}
}

// writes returns the operator's successful writes since mark, leases and events left out.
func writes(mark cluster.AuditMark) []cluster.AuditEvent {
	GinkgoHelper()
	out, err := kubernetes.AuditEventsSince(mark, func(event cluster.AuditEvent) bool {
		switch event.Verb {
		case "create", "update", "patch", "delete":
			return event.User == operatorUser && event.Resource != "leases" && event.Resource != "events" &&
				event.Resource != "tokenreviews" && event.Resource != "subjectaccessreviews"
		}
		return false
	})
	Expect(err).NotTo(HaveOccurred())
	return out
}

func mark() cluster.AuditMark {
	GinkgoHelper()
	out, err := kubernetes.AuditMark()
	Expect(err).NotTo(HaveOccurred())
	return out
}

// request is the value of a run or reset annotation for the task, made now.
func request(t *aiopsv1.AITask) string {
	return string(t.UID) + "/" + time.Now().UTC().Format(time.RFC3339)
}

func annotate(ctx context.Context, t *aiopsv1.AITask, key string) {
	GinkgoHelper()
	change(ctx, t, func(t *aiopsv1.AITask) {
		if t.Annotations == nil {
			t.Annotations = map[string]string{}
		}
		t.Annotations[key] = request(t)
	})
}
