package cluster_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/aiops-operator/test/cluster"
)

var (
	healthy      = summary{Phase: corev1.PodRunning, Ready: true}
	notReady     = summary{Phase: corev1.PodRunning}
	crashing     = summary{Phase: corev1.PodRunning, Waiting: "CrashLoopBackOff", Terminated: "Error", ExitCode: 1, Restarts: true}
	outOfMemory  = summary{Phase: corev1.PodRunning, Terminated: "OOMKilled", ExitCode: 137, Restarts: true}
	missingImage = summary{Phase: corev1.PodPending, Waiting: "ImagePullBackOff"}
	pending      = summary{Phase: corev1.PodPending, Waiting: "ContainerCreating"}
)

// quickly makes the restart count of crashing containers grow within the patience of a test.
func quickly(behaviour cluster.Behaviour) map[string]string {
	annotations := map[string]string{cluster.RestartEveryAnnotation: "200ms"}
	if behaviour != "" {
		annotations[cluster.BehaviourAnnotation] = string(behaviour)
	}
	return annotations
}

var _ = Describe("Simulated pods", func() {
	DescribeTable("behave as the image tag says", func(ctx SpecContext, image string, want summary) {
		createDeployment(ctx, 2, podTemplate(quickly(""), image))
		Eventually(summaries(ctx)).WithContext(ctx).Should(HaveExactElements(want, want))
	},
		Entry("plain", "app:1.2.3", healthy),
		Entry("no tag", "registry.example.com:5000/team/app", healthy),
		Entry("bad", "registry.example.com:5000/team/app:bad", notReady),
		Entry("not-ready", "app:not-ready", notReady),
		Entry("crash", "registry.example.com/app:crash", crashing),
		Entry("oom", "app:oom", outOfMemory),
		Entry("missing", "app:missing", missingImage),
		Entry("pending", "app:pending", pending),
	)

	DescribeTable("behave as the annotation says, which goes before the tag",
		func(ctx SpecContext, behaviour cluster.Behaviour, want summary) {
			createDeployment(ctx, 1, podTemplate(quickly(behaviour), "app:missing"))
			Eventually(summaries(ctx)).WithContext(ctx).Should(HaveExactElements(want))
		},
		Entry(nil, cluster.Healthy, healthy),
		Entry(nil, cluster.NotReady, notReady),
		Entry(nil, cluster.Crash, crashing),
		Entry(nil, cluster.OutOfMemory, outOfMemory),
		Entry(nil, cluster.MissingImage, missingImage),
		Entry(nil, cluster.Pending, pending),
		Entry(nil, cluster.Stuck, healthy),
	)

	DescribeTable("break and heal while they run", func(ctx SpecContext, behaviour cluster.Behaviour, broken summary) {
		createDeployment(ctx, 1, podTemplate(quickly(""), "app:1"))
		Eventually(summaries(ctx)).WithContext(ctx).Should(HaveExactElements(healthy))
		pod := onlyPod(ctx)

		annotatePod(ctx, pod.Name, `{"`+cluster.BehaviourAnnotation+`":"`+string(behaviour)+`"}`)
		Eventually(summaries(ctx)).WithContext(ctx).Should(HaveExactElements(broken))

		annotatePod(ctx, pod.Name, `{"`+cluster.BehaviourAnnotation+`":null}`)
		healed := broken
		healed.Ready, healed.Waiting = true, "" // What happened before stays on record.
		Eventually(summaries(ctx)).WithContext(ctx).Should(HaveExactElements(healed))
		Expect(onlyPod(ctx).UID).To(Equal(pod.UID))
	},
		Entry(nil, cluster.NotReady, notReady),
		Entry(nil, cluster.Crash, crashing),
		Entry(nil, cluster.OutOfMemory, outOfMemory),
	)

	It("let one container of several fail", func(ctx SpecContext) {
		createDeployment(ctx, 1, podTemplate(nil, "app:1", "sidecar:bad"))
		Eventually(readyContainers(ctx)).WithContext(ctx).Should(Equal([]bool{true, false}))
		name := onlyPod(ctx).Name

		annotatePod(ctx, name, `{"`+cluster.BehaviourAnnotation+`":"crash","`+cluster.ContainerAnnotation+`":"container-0"}`)
		Eventually(readyContainers(ctx)).WithContext(ctx).Should(Equal([]bool{false, true}))
	})

	It("start late when told so", func(ctx SpecContext) {
		createDeployment(ctx, 1, podTemplate(map[string]string{cluster.ReadyAfterAnnotation: "1s"}, "app:1"))
		Eventually(summaries(ctx)).WithContext(ctx).Should(HaveExactElements(healthy))
		pod := onlyPod(ctx)
		// Times on objects are whole seconds.
		Expect(pod.Status.StartTime.Time).To(BeTemporally(">", pod.CreationTimestamp.Time))
	})

	It("stay Pending when no node is large enough", func(ctx SpecContext) {
		template := podTemplate(nil, "app:1")
		template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
		createDeployment(ctx, 1, template)
		Eventually(pods(ctx)).WithContext(ctx).Should(ContainElement(Satisfy(func(pod corev1.Pod) bool {
			return conditionIs(pod, corev1.PodScheduled, corev1.ConditionFalse)
		})))
	})

	It("do not finish their deletion while stuck", func(ctx SpecContext) {
		createDeployment(ctx, 1, podTemplate(map[string]string{cluster.BehaviourAnnotation: "stuck"}, "app:1"))
		Eventually(summaries(ctx)).WithContext(ctx).Should(HaveExactElements(healthy))
		stuck := onlyPod(ctx)
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, stuck.Name, metav1.DeleteOptions{})).To(Succeed())
		// The replacement is ready, so the simulation has had every chance to delete the first one.
		Eventually(summaries(ctx)).WithContext(ctx).Should(HaveExactElements(healthy, healthy))

		annotatePod(ctx, stuck.Name, `{"`+cluster.BehaviourAnnotation+`":null}`)
		Eventually(pods(ctx)).WithContext(ctx).ShouldNot(ContainElement(HaveField("UID", stuck.UID)))
	})

	It("serve StatefulSets in order", func(ctx SpecContext) {
		createStatefulSet(ctx, 3, podTemplate(nil, "app:1"))
		Eventually(func(g Gomega) int32 {
			set, err := client.AppsV1().StatefulSets(namespace).Get(ctx, appName, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			return set.Status.ReadyReplicas
		}).WithContext(ctx).Should(BeEquivalentTo(3))
	})

	It("serve DaemonSets, one pod on every node", func(ctx SpecContext) {
		createDaemonSet(ctx, podTemplate(nil, "app:1"))
		Eventually(func(g Gomega) int32 {
			set, err := client.AppsV1().DaemonSets(namespace).Get(ctx, appName, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			return set.Status.NumberReady
		}).WithContext(ctx).Should(BeEquivalentTo(3))
	})

	DescribeTable("serve Jobs", func(ctx SpecContext, image string, want batchv1.JobConditionType) {
		createJob(ctx, podTemplate(nil, image))
		Eventually(func(g Gomega) []batchv1.JobCondition {
			job, err := client.BatchV1().Jobs(namespace).Get(ctx, appName, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			return job.Status.Conditions
		}).WithContext(ctx).Should(ContainElement(SatisfyAll(
			HaveField("Type", want), HaveField("Status", corev1.ConditionTrue))))
	},
		Entry("that succeed", "app:1", batchv1.JobComplete),
		Entry("that fail", "app:crash", batchv1.JobFailed),
	)
})

func readyContainers(ctx context.Context) func(g Gomega) []bool {
	return func(g Gomega) []bool {
		var ready []bool
		for _, pod := range pods(ctx)(g) {
			for _, status := range pod.Status.ContainerStatuses {
				ready = append(ready, status.Ready)
			}
		}
		return ready
	}
}
