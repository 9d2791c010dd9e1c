package action_test

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/test/harness"
)

const restartedAt = "kubectl.kubernetes.io/restartedAt"

func kinds() []TableEntry {
	return []TableEntry{Entry(nil, "Deployment"), Entry(nil, "StatefulSet"), Entry(nil, "DaemonSet")}
}

var _ = Describe("The write of an action", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	restart := func() action.Action { return action.NewRestart(acting, acting) }

	DescribeTable("happens once, however often the order is run", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		request := planAndOrder(ctx, restart(), "order-1", action.Request{Target: live(ctx, reference)})
		old := podUIDs(request.Target)

		first := execute(ctx, restart(), request)
		Expect(first.After.Generation).To(Equal(request.Target.Generation + 1))
		eventuallyWell(ctx, reference)
		Expect(podUIDs(state(ctx, reference))).NotTo(ContainElements(old))
		after := live(ctx, reference)
		Expect(after.LastOrder).To(Equal("order-1"))
		Expect(after.LastActionTime).To(BeTemporally("~", request.Now, 1e9))
		Expect(after.TemplateHash).To(Equal(first.After.TemplateHash))

		By("running it again with the state of before, as after a lost answer")
		Expect(execute(ctx, restart(), request).After.Generation).To(Equal(first.After.Generation))
		By("running it again with the state of now, as after a crash")
		again := request
		again.Target = live(ctx, reference)
		Expect(execute(ctx, restart(), again).After.Generation).To(Equal(first.After.Generation))
		Expect(read(ctx, reference).GetGeneration()).To(Equal(first.After.Generation))
	}, kinds())

	DescribeTable("does not happen when somebody changed the workload after the order was recorded", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		request := planAndOrder(ctx, restart(), "order-1", action.Request{Target: live(ctx, reference)})
		setImage(ctx, reference, "web:2")

		refusal := refused(ctx, restart(), request)
		Expect(refusal.Reason).To(Equal(aiopsv1.ReasonSuperseded))
		Expect(templateOf(read(ctx, reference)).Annotations).NotTo(HaveKey(restartedAt))
		Expect(read(ctx, reference).GetAnnotations()).NotTo(HaveKey(aiopsv1.LastOrderAnnotation))
	}, kinds())

	DescribeTable("is a lock: of many orders at the same moment one is executed", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		const orders = 8
		outcomes := make([]action.Outcome, orders)
		var group sync.WaitGroup
		before := live(ctx, reference)
		for i := range orders {
			request := planAndOrder(ctx, restart(), fmt.Sprintf("order-%d", i), action.Request{Target: before})
			group.Go(func() {
				defer GinkgoRecover()
				var err error
				outcomes[i], err = restart().Run(ctx, request)
				Expect(err).NotTo(HaveOccurred())
			})
		}
		group.Wait()
		executed := 0
		for _, outcome := range outcomes {
			if outcome.Executed {
				executed++
				continue
			}
			Expect(outcome.Refusal.Reason).To(Equal(aiopsv1.ReasonSuperseded))
		}
		Expect(executed).To(Equal(1))
		Expect(read(ctx, reference).GetGeneration()).To(Equal(before.Generation + 1))
	}, kinds())

	It("keeps what others annotate at the same time, even on a workload that had no annotations", func(ctx SpecContext) {
		reference := create(ctx, workload("StatefulSet", namespace, "web:1"))
		before := live(ctx, reference)
		Expect(before.Annotated).To(BeFalse())
		Expect(before.TemplateAnnotated).To(BeFalse())
		request := planAndOrder(ctx, restart(), "order-1", action.Request{Target: before})
		annotate(ctx, read(ctx, reference), "example.com/theirs", "kept")

		execute(ctx, restart(), request)
		Expect(read(ctx, reference).GetAnnotations()).To(SatisfyAll(
			HaveKeyWithValue("example.com/theirs", "kept"), HaveKeyWithValue(aiopsv1.LastOrderAnnotation, "order-1")))

		By("restarting a second time, now that everything is annotated")
		eventuallyWell(ctx, reference)
		request = planAndOrder(ctx, restart(), "order-2", action.Request{Target: live(ctx, reference)})
		Expect(request.Target.Annotated).To(BeTrue())
		Expect(request.Target.TemplateAnnotated).To(BeTrue())
		execute(ctx, restart(), request)
		Expect(read(ctx, reference).GetAnnotations()).To(SatisfyAll(
			HaveKeyWithValue("example.com/theirs", "kept"), HaveKeyWithValue(aiopsv1.LastOrderAnnotation, "order-2")))
	})

	It("happens on a workload whose annotations went away in the meantime", func(ctx SpecContext) {
		object := workload("StatefulSet", namespace, "web:1")
		object.SetAnnotations(map[string]string{"example.com/theirs": "soon gone"})
		reference := create(ctx, object)
		request := planAndOrder(ctx, restart(), "order-1", action.Request{Target: live(ctx, reference)})
		Expect(admin.Patch(ctx, read(ctx, reference), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`)))).To(Succeed())

		execute(ctx, restart(), request)
		Expect(read(ctx, reference).GetAnnotations()).To(HaveKeyWithValue(aiopsv1.LastOrderAnnotation, "order-1"))
	})

	It("does not happen on a workload that was created anew", func(ctx SpecContext) {
		annotated := func() client.Object {
			object := workload("Deployment", namespace, "web:1")
			object.SetAnnotations(map[string]string{"example.com/note": "so that nothing but the UID tells them apart"})
			return object
		}
		reference := create(ctx, annotated())
		request := planAndOrder(ctx, restart(), "order-1", action.Request{Target: live(ctx, reference)})
		Expect(admin.Delete(ctx, read(ctx, reference))).To(Succeed())
		Expect(refused(ctx, restart(), request).Reason).To(Equal(aiopsv1.ReasonTargetNotFound))
		Expect(admin.Create(ctx, annotated())).To(Succeed())
		Expect(refused(ctx, restart(), request).Reason).To(Equal(aiopsv1.ReasonTargetReplaced))
		Expect(templateOf(read(ctx, reference)).Annotations).NotTo(HaveKey(restartedAt))
	})

	It("names the right that is missing", func(ctx SpecContext) {
		reference := create(ctx, workload("Deployment", namespace, "web:1"))
		config, err := kubernetes.UserConfig("nobody")
		Expect(err).NotTo(HaveOccurred())
		nobody, err := harness.NewClient(config)
		Expect(err).NotTo(HaveOccurred())
		request := planAndOrder(ctx, restart(), "order-1", action.Request{Target: live(ctx, reference)})
		refusal := refused(ctx, action.NewRestart(nobody, acting), request)
		Expect(refusal).To(Equal(action.Refusal{
			Reason:  aiopsv1.ReasonForbidden,
			Message: "the operator has no right to patch deployments.apps in namespace " + namespace + ". Grant it, or use another step",
		}))
	})

	It("says what an admission policy said", func(ctx SpecContext) {
		reference := create(ctx, workload("Deployment", namespace, "web:1"))
		denyUpdates(ctx, namespace, "nobody deploys on Fridays")
		request := planAndOrder(ctx, restart(), "order-1", action.Request{Target: live(ctx, reference)})
		Eventually(ctx, func(ctx context.Context) *action.Refusal {
			outcome, err := restart().Run(ctx, request)
			Expect(err).NotTo(HaveOccurred())
			if outcome.Executed { // the policy is not in force yet
				Eventually(ctx, func(ctx context.Context) bool { return live(ctx, reference).Settled }).Should(BeTrue())
				request = planAndOrder(ctx, restart(), request.Order.ID+"x", action.Request{Target: live(ctx, reference)})
			}
			return outcome.Refusal
		}).Should(HaveValue(And(
			HaveField("Reason", aiopsv1.ReasonActionFailed), HaveField("Message", ContainSubstring("nobody deploys on Fridays")))))
	})

	It("is tried again when the API server cannot be reached", func(ctx SpecContext) {
		reference := create(ctx, workload("Deployment", namespace, "web:1"))
		request := planAndOrder(ctx, restart(), "order-1", action.Request{Target: live(ctx, reference)})
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err := restart().Run(over, request)
		Expect(err).To(HaveOccurred())
		execute(ctx, restart(), request)
	})

	It("is refused where a new template would not be rolled out", func(ctx SpecContext) {
		deployment := harness.Deployment(namespace, name, 1, "web:1")
		reference := create(ctx, deployment)
		Expect(admin.Patch(ctx, read(ctx, reference), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`)))).To(Succeed())
		before := live(ctx, reference)
		_, refusal, err := restart().Plan(ctx, action.Request{Target: before, Now: now()})
		Expect(err).NotTo(HaveOccurred())
		Expect(refusal).To(HaveField("Reason", aiopsv1.ReasonTargetPaused))
		request := action.Request{Target: before, Order: orderFor("order-1", before, action.Plan{}), Now: now()}
		Expect(refused(ctx, restart(), request).Reason).To(Equal(aiopsv1.ReasonTargetPaused))

		set := harness.StatefulSet(namespace, "on-delete", 1, "web:1")
		set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		_, refusal, err = restart().Plan(ctx, action.Request{Target: live(ctx, create(ctx, set)), Now: now()})
		Expect(err).NotTo(HaveOccurred())
		Expect(refusal).To(HaveField("Reason", aiopsv1.ReasonUnsupported))
	})
})

// denyUpdates has the API server refuse every change of a Deployment in the namespace.
func denyUpdates(ctx context.Context, namespace, message string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: namespace}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: message}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        namespace,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		Expect(admin.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, object)).To(Succeed()) })
	}
}
