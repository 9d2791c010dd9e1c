package action_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/target"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

func scaleStep(by, most int32) aiopsv1.Step {
	return aiopsv1.Step{Name: "more", Action: aiopsv1.ActionScale, Scale: &aiopsv1.ScaleStep{By: &by, Max: &most}}
}

func autoscale(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    harness.Of[int32](2), MaxReplicas: 9,
		},
	})).To(Succeed())
}

var _ = Describe("Scale", func() {
	var namespace string
	var scale action.Action
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		scale = action.NewScale(acting, acting)
	})

	DescribeTable("sets the recorded replicas once", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		request := planAndOrder(ctx, scale, "order-1", action.Request{Target: live(ctx, reference), Step: scaleStep(1, 6)})
		outcome := execute(ctx, scale, request)
		Expect(outcome.After.Replicas).To(BeEquivalentTo(4))
		eventuallyWell(ctx, reference)
		Expect(state(ctx, reference).Replicas).To(BeEquivalentTo(4))
		Expect(outcome.After.TemplateHash).To(Equal(request.Target.TemplateHash), "scaling is no new template")

		execute(ctx, scale, request)
		request.Target = live(ctx, reference)
		execute(ctx, scale, request)
		Expect(read(ctx, reference).GetGeneration()).To(Equal(outcome.After.Generation))
		Expect(live(ctx, reference).Replicas).To(BeEquivalentTo(4))
	}, Entry(nil, "Deployment"), Entry(nil, "StatefulSet"))

	It("does not undo a scaling that came in between", func(ctx SpecContext) {
		reference := create(ctx, workload("Deployment", namespace, "web:1"))
		request := planAndOrder(ctx, scale, "order-1", action.Request{Target: live(ctx, reference), Step: scaleStep(1, 6)})
		Expect(admin.Patch(ctx, read(ctx, reference), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`)))).To(Succeed())
		Expect(refused(ctx, scale, request).Reason).To(Equal(aiopsv1.ReasonSuperseded))
		Expect(live(ctx, reference).Replicas).To(BeEquivalentTo(5))
	})

	It("is refused while an autoscaler owns replicas", func(ctx SpecContext) {
		reference := create(ctx, workload("Deployment", namespace, "web:1"))
		request := planAndOrder(ctx, scale, "order-1", action.Request{Target: live(ctx, reference), Step: scaleStep(1, 6)})
		autoscale(ctx, namespace)
		Eventually(ctx, func(ctx context.Context) *target.Autoscaler { return state(ctx, reference).Autoscaler }).
			Should(HaveValue(And(HaveField("Summary", "HorizontalPodAutoscaler/web"), HaveField("MinReplicas", BeEquivalentTo(2)))))
		request.Target = live(ctx, reference)
		Expect(refused(ctx, scale, request)).To(Equal(action.Refusal{
			Reason:  aiopsv1.ReasonOwnedByAutoscaler,
			Message: "HorizontalPodAutoscaler/web sets replicas of Deployment/web; a Scale step would be undone. Raise its minReplicas, or use another step",
		}))
	})
})

var _ = Describe("Restart", func() {
	It("does not wait for a broken pod of a StatefulSet, which its controller would", func(ctx SpecContext) {
		reference := create(ctx, workload("StatefulSet", newNamespace(ctx), "web:1"))
		pods := podUIDs(state(ctx, reference))
		breakPod(ctx, reference, pods[1], cluster.Crash)
		restart := action.NewRestart(acting, acting)
		request := planAndOrder(ctx, restart, "order-1", action.Request{Target: live(ctx, reference)})
		Expect(request.Order.PodUIDs).To(HaveExactElements(string(pods[1])))
		execute(ctx, restart, request)
		eventuallyWell(ctx, reference)
		Expect(podUIDs(state(ctx, reference))).NotTo(ContainElement(BeElementOf(pods[0], pods[1], pods[2])))
	})
})
