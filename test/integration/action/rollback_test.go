package action_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/target"
)

// release sets an image and waits until the controller makes pods from it. It returns the revision.
func release(ctx context.Context, reference target.Reference, image string) string {
	GinkgoHelper()
	before := state(ctx, reference).Revision
	setImage(ctx, reference, image)
	generation := read(ctx, reference).GetGeneration()
	var after target.State
	Eventually(ctx, func(ctx context.Context) bool {
		after = state(ctx, reference)
		return after.Generation == generation && after.Settled && after.Revision != "" && after.Revision != before
	}).Should(BeTrue())
	return after.Revision
}

// eventuallyStuck waits until a rollout has a pod of the revision that does not become ready.
func eventuallyStuck(ctx context.Context, reference target.Reference, revision string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) bool {
		state := state(ctx, reference)
		for _, pod := range state.Pods {
			if pod.Revision == revision && pod.Scheduled && !pod.Ready && state.Rollout.Progressing {
				return true
			}
		}
		return false
	}).Should(BeTrue())
}

var _ = Describe("Rollback", func() {
	var namespace string
	var rollback action.Action
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		rollback = action.NewRollback(acting, acting)
	})

	request := func(ctx context.Context, reference target.Reference, healthy string) action.Request {
		GinkgoHelper()
		return action.Request{Task: taskWith(healthy), Target: live(ctx, reference), Now: now()}
	}

	DescribeTable("takes a release back that does not come up", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "shop/web:2.4.0"))
		good, content := state(ctx, reference).Revision, state(ctx, reference).TemplateHash
		bad := release(ctx, reference, "shop/web:bad")
		eventuallyStuck(ctx, reference, bad)
		recorded := planAndOrder(ctx, rollback, "order-1", request(ctx, reference, good))
		Expect(recorded.Order.Revision).To(Equal(good))
		facts := fmt.Sprintf(" back %s/web from revision 2 (shop/web:bad) to 1 (shop/web:2.4.0)", kind)
		Expect(recorded.Order.Message).To(Equal("roll" + facts))

		outcome := execute(ctx, rollback, recorded)
		Expect(outcome.Message).To(Equal("rolled" + facts))
		eventuallyWell(ctx, reference)
		after := live(ctx, reference)
		Expect(after.Revision).To(Equal(good))
		Expect(after.TemplateHash).To(Equal(outcome.After.TemplateHash))
		Expect(after.TemplateHash).To(Equal(content))
		Expect(after.LastOrder).To(Equal("order-1"))
		Expect(imageOf(ctx, reference)).To(Equal("shop/web:2.4.0"))

		By("running it again, as after a crash: nothing changes")
		again := recorded
		again.Target = after
		execute(ctx, rollback, again)
		Expect(read(ctx, reference).GetGeneration()).To(Equal(outcome.After.Generation))

		By("planning another one: the revision that was left is no place to go back to")
		_, refusal, err := rollback.Plan(ctx, request(ctx, reference, good))
		Expect(err).NotTo(HaveOccurred())
		Expect(refusal).To(HaveField("Reason", aiopsv1.ReasonNoEarlierRevision))
	}, kinds())

	DescribeTable("prefers the revision that was proven healthy to the one before", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		proven := state(ctx, reference).Revision
		release(ctx, reference, "web:2")
		eventuallyWell(ctx, reference)
		release(ctx, reference, "web:3")
		eventuallyWell(ctx, reference)
		Expect(plan(ctx, rollback, request(ctx, reference, proven)).Message).To(HaveSuffix("to 1 (web:1)"))
		Expect(plan(ctx, rollback, request(ctx, reference, "")).Message).To(HaveSuffix("to 2 (web:2)"))
		Expect(plan(ctx, rollback, request(ctx, reference, "gone")).Message).To(HaveSuffix("to 2 (web:2)"))
	}, kinds())

	DescribeTable("goes back beyond a restart of the bad release", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		good := state(ctx, reference).Revision
		bad := release(ctx, reference, "web:bad")
		eventuallyStuck(ctx, reference, bad)
		restart := action.NewRestart(acting, acting)
		restarted := execute(ctx, restart, planAndOrder(ctx, restart, "order-1", action.Request{Target: live(ctx, reference)}))
		Eventually(ctx, func(ctx context.Context) string {
			if after := state(ctx, reference); after.Generation == restarted.After.Generation {
				return after.Revision
			}
			return ""
		}).Should(And(Not(BeEmpty()), Not(Equal(bad))), "a restart is a revision of its own")

		recorded := planAndOrder(ctx, rollback, "order-2", request(ctx, reference, ""))
		Expect(recorded.Order.Revision).To(Equal(good))
		execute(ctx, rollback, recorded)
		eventuallyWell(ctx, reference)
		Expect(imageOf(ctx, reference)).To(Equal("web:1"))

		By("planning another one: the bad release is not gone back to in its form from before the restart")
		_, refusal, err := rollback.Plan(ctx, request(ctx, reference, ""))
		Expect(err).NotTo(HaveOccurred())
		Expect(refusal).To(HaveField("Reason", aiopsv1.ReasonNoEarlierRevision))
	}, kinds())

	DescribeTable("has nowhere to go from the first revision", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		_, refusal, err := rollback.Plan(ctx, request(ctx, reference, state(ctx, reference).Revision))
		Expect(err).NotTo(HaveOccurred())
		Expect(refusal).To(HaveField("Reason", aiopsv1.ReasonNoEarlierRevision))
	}, kinds())

	It("frees the pods that block a StatefulSet even after a crash in between", func(ctx SpecContext) {
		reference := create(ctx, workload("StatefulSet", namespace, "web:1"))
		good := state(ctx, reference).Revision
		bad := release(ctx, reference, "web:crash")
		eventuallyStuck(ctx, reference, bad)
		recorded := planAndOrder(ctx, rollback, "order-1", request(ctx, reference, good))
		Expect(recorded.Order.PodUIDs).To(HaveLen(1))

		By("dying after the template was written and before the pod was freed")
		_, err := action.NewRollback(dying(), acting).Run(ctx, recorded)
		Expect(err).To(MatchError(context.Canceled))
		Expect(imageOf(ctx, reference)).To(Equal("web:1"))
		stuck := types.UID(recorded.Order.PodUIDs[0])
		Consistently(ctx, func(ctx context.Context) []types.UID { return podUIDs(state(ctx, reference)) }).
			Should(ContainElement(stuck), "without help the controller waits for the pod for ever")

		recorded.Target = live(ctx, reference)
		execute(ctx, rollback, recorded)
		eventuallyWell(ctx, reference)
		Expect(podUIDs(state(ctx, reference))).NotTo(ContainElement(stuck))
	})

	It("is refused when the recorded revision is gone", func(ctx SpecContext) {
		reference := create(ctx, workload("Deployment", namespace, "web:1"))
		release(ctx, reference, "web:2")
		eventuallyWell(ctx, reference)
		recorded := planAndOrder(ctx, rollback, "order-1", request(ctx, reference, ""))
		recorded.Order.Revision = "web-gone"
		Expect(refused(ctx, rollback, recorded).Reason).To(Equal(aiopsv1.ReasonNoEarlierRevision))
		Expect(imageOf(ctx, reference)).To(Equal("web:2"))
	})

	It("is refused where Git owns the template, field by field", func(ctx SpecContext) {
		object := workload("Deployment", namespace, "web:1")
		Expect(admin.Create(ctx, object, client.FieldOwner("argocd-controller"))).To(Succeed())
		reference := referenceTo(object)
		eventuallyWell(ctx, reference)
		release(ctx, reference, "web:2")
		Eventually(ctx, func(ctx context.Context) string { return state(ctx, reference).TemplateAppliedBy }).Should(Equal("argocd-controller"))
		_, refusal, err := rollback.Plan(ctx, request(ctx, reference, ""))
		Expect(err).NotTo(HaveOccurred())
		Expect(refusal).To(HaveField("Reason", aiopsv1.ReasonOwnedByGitOps))
		Expect(state(ctx, reference).ReplicasAppliedBy).To(Equal("argocd-controller"))

		By("somebody else taking over the replicas")
		Expect(admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`)), client.FieldOwner("kubectl"))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) string { return state(ctx, reference).ReplicasAppliedBy }).Should(BeEmpty())
		Expect(state(ctx, reference).TemplateAppliedBy).To(Equal("argocd-controller"))
	})
})
