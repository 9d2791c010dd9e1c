package runbook_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
)

var _ = Describe("A bad release", func() {
	It("is rolled back to the revision that was proven healthy, and recovery is proven", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		deployment := harness.Deployment(namespace, "checkout", 3, "shop/checkout:2.4.0")
		Expect(admin.Create(ctx, deployment)).To(Succeed())
		aitask := harness.Task(namespace, "checkout", "")
		aitask.Spec.Threshold = nil
		aitask.Spec.Signals = []aiopsv1.Signal{{Name: "crash", Type: aiopsv1.SignalCrashLoopingPods, Threshold: harness.Of[int64](1)}}
		aitask.Spec.Steps = []aiopsv1.Step{{Name: "back", Action: aiopsv1.ActionRollback}}
		Expect(admin.Create(ctx, aitask)).To(Succeed())
		Eventually(task(ctx, namespace, "checkout")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))

		patch := client.MergeFrom(deployment.DeepCopy())
		deployment.Spec.Template.Spec.Containers[0].Image = "shop/checkout:crash"
		Expect(admin.Patch(ctx, deployment, patch)).To(Succeed())

		Eventually(func() []string { return results(task(ctx, namespace, "checkout")()) }).Should(Equal([]string{"Rollback Recovered"}))
		Expect(phase(task(ctx, namespace, "checkout")())).To(Equal(aiopsv1.PhaseWatching))
		live := &appsv1.Deployment{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(deployment), live)).To(Succeed())
		Expect(live.Spec.Template.Spec.Containers[0].Image).To(Equal("shop/checkout:2.4.0"))
	})
})
