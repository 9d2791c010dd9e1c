package runbook_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

var _ = Describe("The short form", func() {
	It("restarts once, proves recovery, and tells it", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		create(ctx, harness.Deployment(namespace, "web", 2, "shop/web:1"), harness.Task(namespace, "web", "Restart"))
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		available(ctx, namespace, "web", 2)
		before := generation(ctx, namespace, "web")

		behave(ctx, namespace, "web", cluster.NotReady)

		Eventually(func() []string { return results(task(ctx, namespace, "web")()) }).Should(Equal([]string{"Restart Recovered"}))
		Expect(generation(ctx, namespace, "web")).To(Equal(before + 1))
		done := task(ctx, namespace, "web")()
		Expect(done.Status.LastExecutionTime).NotTo(BeNil())
		Expect(done.Status.Executions).To(HaveLen(1))
		Expect(done.Status.Order).To(BeNil())
		Eventually(events(ctx, namespace, "web")).Should(ConsistOf("Breached", "ActionExecuted", "Recovered"))
	})
})

var _ = Describe("A bad release", func() {
	It("of a Deployment is rolled back to the revision that was proven healthy", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		deployment := harness.Deployment(namespace, "checkout", 3, "shop/checkout:2.4.0")
		create(ctx, deployment, rollbackTask(namespace, "checkout", "Deployment"))
		Eventually(task(ctx, namespace, "checkout")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))

		change(ctx, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "shop/checkout:crash" })

		Eventually(func() []string { return results(task(ctx, namespace, "checkout")()) }).Should(Equal([]string{"Rollback Recovered"}))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("shop/checkout:2.4.0"))
	})

	It("of a StatefulSet is rolled back, and the pods that block it are freed", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		set := harness.StatefulSet(namespace, "db", 3, "shop/db:1")
		create(ctx, set, rollbackTask(namespace, "db", "StatefulSet"))
		Eventually(task(ctx, namespace, "db")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))

		change(ctx, set, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "shop/db:missing" })

		Eventually(func() []string { return results(task(ctx, namespace, "db")()) }).Should(Equal([]string{"Rollback Recovered"}))
	})

	It("of a DaemonSet is rolled back", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		set := harness.DaemonSet(namespace, "agent", "shop/agent:1")
		aitask := rollbackTask(namespace, "agent", "DaemonSet")
		aitask.Spec.Limits = &aiopsv1.Limits{CooldownSeconds: harness.Of[int32](0)}
		create(ctx, set, aitask)
		Eventually(task(ctx, namespace, "agent")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))

		change(ctx, set, func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = "shop/agent:crash" })

		// A DaemonSet does not name its revision: its pods may be seen crashing before the release, and what was recorded is then withdrawn.
		Eventually(func() []string { return results(task(ctx, namespace, "agent")()) }).Should(
			Or(Equal([]string{"Rollback Recovered"}), Equal([]string{"Rollback Recovered", "Rollback Withdrawn"})))
	})

	It("that a GitOps tool applied is not rolled back: the refusal says where to do it", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		deployment := harness.Deployment(namespace, "web", 1, "shop/web:1")
		Expect(admin.Create(ctx, deployment, client.FieldOwner("argocd-controller"))).To(Succeed())
		create(ctx, rollbackTask(namespace, "web", "Deployment"))
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		before := deployment.DeepCopy()
		deployment.Spec.Template.Spec.Containers[0].Image = "shop/web:crash"
		Expect(admin.Patch(ctx, deployment, client.MergeFrom(before), client.FieldOwner("argocd-controller"))).To(Succeed())

		Eventually(task(ctx, namespace, "web")).Should(And(
			HaveField("Status.Phase", aiopsv1.PhaseBlocked),
			HaveField("Status.Decision.Reason", aiopsv1.ReasonOwnedByGitOps),
			HaveField("Status.Decision.Message", ContainSubstring("Git")),
			HaveField("Status.Decision.NextAllowedTime", Not(BeNil()))))
	})
})

func rollbackTask(namespace, name, kind string) *aiopsv1.AITask {
	out := harness.Task(namespace, name, "")
	out.Spec.TargetDeployment, out.Spec.Threshold = nil, nil
	out.Spec.TargetRef = &aiopsv1.TargetReference{APIVersion: "apps/v1", Kind: kind, Name: name}
	out.Spec.Signals = []aiopsv1.Signal{{Name: "crash", Type: aiopsv1.SignalCrashLoopingPods, Threshold: harness.Of[int64](1)}}
	out.Spec.Steps = []aiopsv1.Step{{Name: "back", Action: aiopsv1.ActionRollback}}
	return out
}

// hopeless is a task on a workload that nothing helps.
func hopeless(namespace string) *aiopsv1.AITask {
	out := harness.Task(namespace, "worker", "")
	out.Spec.Threshold = nil
	out.Spec.Signals = []aiopsv1.Signal{{Name: "crash", Type: aiopsv1.SignalCrashLoopingPods, Threshold: harness.Of[int64](1)}}
	out.Spec.Steps = []aiopsv1.Step{
		{Name: "restart", Action: aiopsv1.ActionRestart, TimeoutSeconds: harness.Of[int32](10)},
		{Name: "evict", Action: aiopsv1.ActionEvict, TimeoutSeconds: harness.Of[int32](10)},
	}
	out.Spec.Limits = &aiopsv1.Limits{CooldownSeconds: harness.Of[int32](0), MaxPasses: harness.Of[int32](1)}
	return out
}

var _ = Describe("What does not help", func() {
	It("escalates and ends Exhausted, said once, until it is reset", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		aitask := hopeless(namespace)
		create(ctx, harness.Deployment(namespace, "worker", 1, "shop/worker:crash"), aitask)

		Eventually(task(ctx, namespace, "worker"), "60s").Should(HaveField("Status.Phase", aiopsv1.PhaseExhausted))
		Expect(results(task(ctx, namespace, "worker")())).To(Equal([]string{"Evict Failed", "Restart Failed"}))
		Eventually(events(ctx, namespace, "worker")).Should(ConsistOf("Breached", "ActionExecuted", "StepFailed", "ActionExecuted", "StepFailed", "Exhausted"))
		before := mark()
		Consistently(func() []cluster.AuditEvent { return ofTask(writes(before), "worker") }, "2s").Should(BeEmpty())

		annotate(ctx, aitask, aiopsv1.ResetAnnotation)
		Eventually(task(ctx, namespace, "worker")).Should(HaveField("Status.Incident.Exhausted", false))
		Eventually(func() int { return len(task(ctx, namespace, "worker")().Status.Executions) }).Should(Equal(3))
	})

	It("is left alone from suspend on, and begins anew on resume", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		aitask := hopeless(namespace)
		create(ctx, harness.Deployment(namespace, "worker", 1, "shop/worker:crash"), aitask)
		Eventually(task(ctx, namespace, "worker")).Should(HaveField("Status.Phase", aiopsv1.PhaseVerifying))

		change(ctx, aitask, func(t *aiopsv1.AITask) { t.Spec.Suspend = harness.Of(true) })
		Eventually(task(ctx, namespace, "worker")).Should(And(
			HaveField("Status.Phase", aiopsv1.PhaseSuspended), HaveField("Status.Order", BeNil()), HaveField("Status.Incident", BeNil())))
		Expect(results(task(ctx, namespace, "worker")())).To(Equal([]string{"Restart Cancelled"}))

		change(ctx, aitask, func(t *aiopsv1.AITask) { t.Spec.Suspend = harness.Of(false) })
		Eventually(task(ctx, namespace, "worker")).Should(HaveField("Status.Incident.StepName", "restart"))
		Eventually(func() int { return len(task(ctx, namespace, "worker")().Status.Executions) }).Should(Equal(2))
	})
})

func ofTask(audit []cluster.AuditEvent, name string) []cluster.AuditEvent {
	var out []cluster.AuditEvent
	for _, event := range audit {
		if event.Name == name {
			out = append(out, event)
		}
	}
	return out
}

var _ = Describe("Doing nothing", func() {
	It("is what mode Observe does, once recorded", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		aitask := harness.Task(namespace, "web", "Restart")
		aitask.Spec.Mode = aiopsv1.ModeObserve
		create(ctx, harness.Deployment(namespace, "web", 1, "shop/web:not-ready"), aitask)
		change(ctx, harness.Deployment(namespace, "web", 1, ""), func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = harness.Of[int32](1) })

		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Decision.Reason", aiopsv1.ReasonObserved))
		observed := task(ctx, namespace, "web")()
		Expect(results(observed)).To(Equal([]string{"Restart Observed"}))
		Expect(observed.Status.LastExecutionTime).To(BeNil())
		Eventually(events(ctx, namespace, "web")).Should(ConsistOf("Breached", "Observed"))
		behave(ctx, namespace, "web", cluster.Crash)
		Consistently(func() []string { return results(task(ctx, namespace, "web")()) }).Should(HaveLen(1))
	})

	It("is what happens to replicas that an autoscaler owns, and the refusal says so", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		create(ctx, harness.Deployment(namespace, "web", 1, "shop/web:crash"), &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
					Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: harness.Of[int32](80)}}}}},
		})
		aitask := hopeless(namespace)
		aitask.Name, aitask.Spec.TargetDeployment = "web", harness.Of("web")
		aitask.Spec.Steps = []aiopsv1.Step{{Name: "more", Action: aiopsv1.ActionScale, Scale: &aiopsv1.ScaleStep{By: harness.Of[int32](1), Max: harness.Of[int32](3)}}}
		create(ctx, aitask)
		Eventually(task(ctx, namespace, "web")).Should(And(
			HaveField("Status.Phase", aiopsv1.PhaseBlocked),
			HaveField("Status.Decision.Reason", aiopsv1.ReasonOwnedByAutoscaler),
			HaveField("Status.Decision.Message", ContainSubstring("HorizontalPodAutoscaler/web"))))
	})

	It("is what a task without its target does, and it says which", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		create(ctx, harness.Task(namespace, "ghost", "Restart"))
		Eventually(task(ctx, namespace, "ghost")).Should(And(
			HaveField("Status.Phase", aiopsv1.PhasePending),
			HaveField("Status.Decision.Message", "Deployment/ghost does not exist in namespace "+namespace+": create it, or correct the name")))
		create(ctx, harness.Deployment(namespace, "ghost", 1, "shop/ghost:1"))
		Eventually(task(ctx, namespace, "ghost")).Should(HaveField("Status.Phase", aiopsv1.PhaseWatching))
	})

	It("is what a quiet system does: healthy tasks cost no write", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			create(ctx, harness.Deployment(namespace, name, 1, "shop/web:1"), harness.Task(namespace, name, "Restart"))
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			Eventually(task(ctx, namespace, name)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		}
		before := mark()
		Consistently(func() []cluster.AuditEvent { return inNamespace(writes(before), namespace) }, "5s").Should(BeEmpty())
	})
})

func inNamespace(audit []cluster.AuditEvent, namespace string) []cluster.AuditEvent {
	var out []cluster.AuditEvent
	for _, event := range audit {
		if event.Namespace == namespace {
			out = append(out, event)
		}
	}
	return out
}

var _ = Describe("A run request", func() {
	It("runs the first step of a healthy task once, whatever the signal says", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		aitask := harness.Task(namespace, "web", "Restart")
		create(ctx, harness.Deployment(namespace, "web", 1, "shop/web:1"), aitask)
		available(ctx, namespace, "web", 1)
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		before := generation(ctx, namespace, "web")

		annotate(ctx, aitask, aiopsv1.RunAnnotation)

		Eventually(func() []string { return results(task(ctx, namespace, "web")()) }).Should(Equal([]string{"Restart Recovered"}))
		Consistently(func() int64 { return generation(ctx, namespace, "web") }).Should(Equal(before + 1))
	})

	It("copied from another object is refused with the reason", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		aitask := harness.Task(namespace, "web", "Restart")
		aitask.Annotations = map[string]string{aiopsv1.RunAnnotation: "0000/2026-01-01T00:00:00Z"}
		create(ctx, harness.Deployment(namespace, "web", 1, "shop/web:1"), aitask)
		Eventually(events(ctx, namespace, "web")).Should(Equal([]string{"RequestRefused"}))
		Consistently(task(ctx, namespace, "web")).Should(HaveField("Status.LastExecutionTime", BeNil()))
	})
})

var _ = Describe("Two tasks on one target", func() {
	It("take turns: the other waits as TargetBusy", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		first, second := hopeless(namespace), hopeless(namespace)
		first.Name, second.Name = "first", "second"
		first.Spec.Steps[0].TimeoutSeconds = harness.Of[int32](600) // until then the other one does not look again by itself
		create(ctx, harness.Deployment(namespace, "worker", 1, "shop/worker:crash"), first)
		Eventually(task(ctx, namespace, "first")).Should(HaveField("Status.Phase", aiopsv1.PhaseVerifying))
		create(ctx, second)
		Eventually(task(ctx, namespace, "second")).Should(And(
			HaveField("Status.Phase", aiopsv1.PhaseBlocked),
			HaveField("Status.Decision.Reason", aiopsv1.ReasonTargetBusy),
			HaveField("Status.Decision.Message", ContainSubstring(`"first"`))))

		Expect(admin.Delete(ctx, first)).To(Succeed())
		Eventually(task(ctx, namespace, "second")).Should(HaveField("Status.LastExecutionTime", Not(BeNil())), "it need not wait until it looks again by itself")
	})
})

var _ = Describe("A workload under load", func() {
	It("is scaled out by its CPU use, judged through the metrics API", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		deployment := harness.Deployment(namespace, "web", 1, "shop/web:1")
		deployment.Spec.Template.Annotations = map[string]string{"fake.aiops.example.com/cpu": "85m"} // measured by the second, the value strays
		harness.RequestCPU(deployment, "100m")
		aitask := harness.Task(namespace, "web", "")
		aitask.Spec.Threshold, aitask.Spec.IntervalSeconds = nil, harness.Of[int32](5)
		aitask.Spec.Signals = []aiopsv1.Signal{{Name: "cpu", Type: aiopsv1.SignalCPUUtilization, Threshold: harness.Of[int64](80)}}
		aitask.Spec.Steps = []aiopsv1.Step{{Name: "more", Action: aiopsv1.ActionScale, Scale: &aiopsv1.ScaleStep{By: harness.Of[int32](1), Max: harness.Of[int32](3)}}}
		create(ctx, deployment, aitask)
		available(ctx, namespace, "web", 2)
		// The usage of the new pod is not known at once; the order holds the value that it answers.
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Order.Value", MatchRegexp(`^[89][0-9](\.[0-9]+)?$`)))
	})
})

var _ = Describe("The object", func() {
	It("keeps its spec: the operator owns status fields alone", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		create(ctx, harness.Deployment(namespace, "web", 1, "shop/web:1"), harness.Task(namespace, "web", "Restart"))
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		for _, entry := range task(ctx, namespace, "web")().ManagedFields {
			if entry.Manager != "aiops-operator" {
				continue
			}
			owned := map[string]any{}
			Expect(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned)).To(Succeed())
			Expect(owned).To(HaveLen(1))
			Expect(owned).To(HaveKey("f:status"))
			Expect(entry.Subresource).To(Equal("status"))
		}
	})
})
