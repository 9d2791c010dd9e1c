package action_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/target"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// breakPod makes a running pod misbehave and waits until the caches show it.
func breakPod(ctx context.Context, reference target.Reference, uid types.UID, behaviour cluster.Behaviour) {
	GinkgoHelper()
	annotatePod(ctx, reference, uid, `"`+string(behaviour)+`"`)
	Eventually(ctx, func(ctx context.Context) bool { return podOf(ctx, reference, uid).Ready }).Should(BeFalse())
}

func healPod(ctx context.Context, reference target.Reference, uid types.UID) {
	GinkgoHelper()
	annotatePod(ctx, reference, uid, "null")
	Eventually(ctx, func(ctx context.Context) bool { return podOf(ctx, reference, uid).Ready }).Should(BeTrue())
}

func annotatePod(ctx context.Context, reference target.Reference, uid types.UID, value string) {
	GinkgoHelper()
	pod := podNamed(reference.Namespace, podOf(ctx, reference, uid).Name)
	patch := `{"metadata":{"annotations":{"` + cluster.BehaviourAnnotation + `":` + value + `}}}`
	Expect(admin.Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

func podNamed(namespace, pod string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}}
}

func podOf(ctx context.Context, reference target.Reference, uid types.UID) target.Pod {
	GinkgoHelper()
	for _, pod := range state(ctx, reference).Pods {
		if pod.UID == uid {
			return pod
		}
	}
	Fail("there is no pod " + string(uid))
	return target.Pod{}
}

func evictStep(most int32, policy aiopsv1.BudgetPolicy) aiopsv1.Step {
	return aiopsv1.Step{Name: "evict", Action: aiopsv1.ActionEvict, Evict: &aiopsv1.EvictStep{MaxPods: &most, UnhealthyPods: policy}}
}

// protect makes a PodDisruptionBudget that lets no broken pod go, and waits until its controller has seen it.
func protect(ctx context.Context, namespace, budget string) {
	GinkgoHelper()
	object := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: budget},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: harness.Of(intstr.FromInt32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}
	Expect(admin.Create(ctx, object)).To(Succeed())
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		g.Expect(object.Status.ObservedGeneration).To(Equal(object.Generation))
		g.Expect(object.Status.CurrentHealthy).To(BeNumerically("<", 3))
	}).Should(Succeed())
}

var _ = Describe("Evict", func() {
	var namespace string
	var reference target.Reference
	var evict action.Action
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		evict = action.NewEvict(acting, acting)
	})

	DescribeTable("removes unhealthy pods and no others", func(ctx SpecContext, kind string) {
		reference = create(ctx, workload(kind, namespace, "web:1"))
		pods := podUIDs(state(ctx, reference))
		breakPod(ctx, reference, pods[1], cluster.Crash)
		request := planAndOrder(ctx, evict, "order-1", action.Request{Target: live(ctx, reference), Step: evictStep(16, "")})
		Expect(request.Order.PodUIDs).To(HaveExactElements(string(pods[1])))

		outcome := execute(ctx, evict, request)
		Expect(outcome.Message).To(HavePrefix("evicted 1 unhealthy pod of " + kind + "/web: "))
		eventuallyWell(ctx, reference)
		after := live(ctx, reference)
		Expect(podUIDs(after)).To(ContainElements(pods[0], pods[2]))
		Expect(podUIDs(after)).NotTo(ContainElement(pods[1]))
		Expect(after.LastOrder).To(Equal("order-1"))
		Expect(after.Generation).To(Equal(outcome.After.Generation))
		Expect(after.TemplateHash).To(Equal(request.Target.TemplateHash))

		By("running it again, as after a crash: nothing more is removed")
		again := request
		again.Target = after
		again.Now = request.Now.Add(time.Second)
		execute(ctx, evict, again)
		Expect(live(ctx, reference).LastActionTime).To(Equal(after.LastActionTime))
		Consistently(ctx, func(ctx context.Context) []types.UID { return podUIDs(state(ctx, reference)) }).Should(Equal(podUIDs(after)))
	}, kinds())

	Context("of a Deployment with broken pods", func() {
		var pods []types.UID
		BeforeEach(func(ctx SpecContext) {
			reference = create(ctx, workload("Deployment", namespace, "web:1"))
			pods = podUIDs(state(ctx, reference))
			breakPod(ctx, reference, pods[0], cluster.Crash)
			breakPod(ctx, reference, pods[1], cluster.Crash)
		})
		request := func(ctx context.Context, step aiopsv1.Step) action.Request {
			return action.Request{Target: live(ctx, reference), Step: step, Now: now()}
		}

		It("waits for the PodDisruptionBudget, and leaves no stamp while it does", func(ctx SpecContext) {
			recorded := planAndOrder(ctx, evict, "order-1", request(ctx, evictStep(2, "")))
			protect(ctx, namespace, "keep-three")

			_, planned, err := evict.Plan(ctx, request(ctx, evictStep(2, "")))
			Expect(err).NotTo(HaveOccurred())
			for _, refusal := range []action.Refusal{*planned, refused(ctx, evict, recorded)} {
				Expect(refusal.Reason).To(Equal(aiopsv1.ReasonBlockedByDisruptionBudget))
				Expect(refusal.Wait).To(BeTrue())
				Expect(refusal.Message).To(ContainSubstring("keep-three needs 3 healthy pods"))
			}
			Expect(live(ctx, reference).LastOrder).To(BeEmpty())
			Expect(podUIDs(state(ctx, reference))).To(Equal(pods))
		})

		It("removes broken pods despite the budget when it is told to", func(ctx SpecContext) {
			protect(ctx, namespace, "keep-three")
			outcome := execute(ctx, evict, planAndOrder(ctx, evict, "order-1", request(ctx, evictStep(2, aiopsv1.IgnoreBudget))))
			Expect(outcome.Message).To(ContainSubstring("deleted despite a PodDisruptionBudget: "))
			eventuallyWell(ctx, reference)
			Expect(podUIDs(state(ctx, reference))).To(ContainElement(pods[2]))
			Expect(podUIDs(state(ctx, reference))).NotTo(ContainElements(pods[0], pods[1]))
		})

		It("does not wait for two budgets, which the eviction API cannot serve", func(ctx SpecContext) {
			protect(ctx, namespace, "keep-three")
			protect(ctx, namespace, "keep-three-too")
			_, refusal, err := evict.Plan(ctx, request(ctx, evictStep(1, "")))
			Expect(err).NotTo(HaveOccurred())
			Expect(refusal).To(HaveValue(And(
				HaveField("Reason", aiopsv1.ReasonBlockedByDisruptionBudget), HaveField("Wait", false),
				HaveField("Message", ContainSubstring("several PodDisruptionBudgets")))))
			execute(ctx, evict, planAndOrder(ctx, evict, "order-1", request(ctx, evictStep(1, aiopsv1.IgnoreBudget))))
		})

		It("leaves a pod alone that has recovered in the meantime", func(ctx SpecContext) {
			recorded := planAndOrder(ctx, evict, "order-1", request(ctx, evictStep(2, "")))
			healPod(ctx, reference, pods[0])
			outcome := execute(ctx, evict, recorded)
			Expect(outcome.Message).To(ContainSubstring("1 had recovered"))
			eventuallyWell(ctx, reference)
			Expect(podUIDs(state(ctx, reference))).To(ContainElement(pods[0]))
			Expect(podUIDs(state(ctx, reference))).NotTo(ContainElement(pods[1]))
		})

		It("does nothing when all have recovered", func(ctx SpecContext) {
			recorded := planAndOrder(ctx, evict, "order-1", request(ctx, evictStep(2, "")))
			healPod(ctx, reference, pods[0])
			healPod(ctx, reference, pods[1])
			Expect(refused(ctx, evict, recorded)).To(SatisfyAll(HaveField("Reason", aiopsv1.ReasonNothingToEvict), HaveField("Wait", true)))
			Expect(live(ctx, reference).LastOrder).To(BeEmpty())
		})

		It("goes on after a crash between the stamp and the first eviction", func(ctx SpecContext) {
			recorded := planAndOrder(ctx, evict, "order-1", request(ctx, evictStep(2, "")))
			_, err := action.NewEvict(dying(), acting).Run(ctx, recorded)
			Expect(err).To(MatchError(context.Canceled))
			Expect(live(ctx, reference).LastOrder).To(Equal("order-1"))
			Expect(podUIDs(state(ctx, reference))).To(Equal(pods))

			recorded.Target = live(ctx, reference)
			execute(ctx, evict, recorded)
			eventuallyWell(ctx, reference)
			Expect(podUIDs(state(ctx, reference))).NotTo(ContainElements(pods[0], pods[1]))
		})
	})

	DescribeTable("is locked out by another action on the same target", func(ctx SpecContext, kind string) {
		reference = create(ctx, workload(kind, namespace, "web:1"))
		pods := podUIDs(state(ctx, reference))
		breakPod(ctx, reference, pods[0], cluster.Crash)
		breakPod(ctx, reference, pods[1], cluster.Crash)
		request := action.Request{Target: live(ctx, reference), Step: evictStep(1, "")}
		first := planAndOrder(ctx, evict, "order-1", request)
		request.Step = evictStep(2, "")
		second := planAndOrder(ctx, evict, "order-2", request)
		execute(ctx, evict, first)
		Expect(refused(ctx, evict, second).Reason).To(Equal(aiopsv1.ReasonSuperseded))
		Consistently(ctx, func(ctx context.Context) []types.UID { return podUIDs(state(ctx, reference)) }).Should(ContainElement(pods[1]))
	}, kinds())

	It("has nothing to do on a healthy workload", func(ctx SpecContext) {
		reference = create(ctx, workload("Deployment", namespace, "web:1"))
		_, refusal, err := evict.Plan(ctx, action.Request{Target: live(ctx, reference), Now: now()})
		Expect(err).NotTo(HaveOccurred())
		Expect(refusal).To(HaveValue(Equal(action.Refusal{
			Reason: aiopsv1.ReasonNothingToEvict, Message: "no pod of Deployment/web is unhealthy: 3 ready, 0 starting, 0 waiting for a node",
		})))
	})
})
