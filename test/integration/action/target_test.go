package action_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/internal/target"
	"github.com/example/aiops-operator/test/harness"
)

var _ = Describe("The state of a target", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	rolloutOf := func(reference target.Reference) func(context.Context) target.Rollout {
		return func(ctx context.Context) target.Rollout { return state(ctx, reference).Rollout }
	}

	DescribeTable("is the same from the caches and live", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		var cached target.State
		Eventually(ctx, func(g Gomega, ctx context.Context) { // the caches may be a moment behind
			cached = state(ctx, reference)
			g.Expect(live(ctx, reference)).To(Equal(cached))
		}).Should(Succeed())
		Expect(cached.Pods).To(HaveLen(3))
		Expect(cached.Revision).NotTo(BeEmpty())
		Expect(cached.Pods).To(HaveEach(HaveField("Revision", cached.Revision)))
	}, kinds())

	DescribeTable("tells a rollout that moves from one that is finished, and from pods that fail later", func(ctx SpecContext, kind string) {
		reference := create(ctx, workload(kind, namespace, "web:1"))
		bad := release(ctx, reference, "web:bad")
		eventuallyStuck(ctx, reference, bad)
		Expect(state(ctx, reference).Rollout.Stalled).To(BeFalse())
		Expect(state(ctx, reference).Rollout.LastProgressTime).To(BeTemporally("~", now(), 60e9))

		release(ctx, reference, "web:2")
		if kind == "StatefulSet" { // its controller waits for the bad pod for ever
			for _, pod := range state(ctx, reference).Pods {
				if !pod.Ready {
					deletePod(ctx, namespace, pod.Name)
				}
			}
		}
		eventuallyWell(ctx, reference)
		pods := podUIDs(state(ctx, reference))
		failPod(ctx, reference, pods[0])
		Eventually(ctx, func(ctx context.Context) target.State { return state(ctx, reference) }).Should(And(
			HaveField("Available", BeEquivalentTo(2)), HaveField("Rollout", target.Rollout{})))
		Consistently(rolloutOf(reference)).WithContext(ctx).Should(Equal(target.Rollout{}))
	}, kinds())

	It("says that a Deployment's rollout has stalled when its controller does, and no more once it is taken back", func(ctx SpecContext) {
		deployment := harness.Deployment(namespace, name, 2, "web:1")
		deployment.Spec.ProgressDeadlineSeconds = harness.Of[int32](1)
		reference := create(ctx, deployment)
		release(ctx, reference, "web:bad")
		Eventually(rolloutOf(reference)).WithContext(ctx).Should(HaveField("Stalled", true))
		setImage(ctx, reference, "web:1")
		eventuallyWell(ctx, reference)
	})

	It("names no revision while a paused Deployment holds a template back", func(ctx SpecContext) {
		reference := create(ctx, harness.Deployment(namespace, name, 2, "web:1"))
		pause := []byte(`{"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"main","image":"web:2"}]}}}}`)
		Expect(admin.Patch(ctx, read(ctx, reference), client.RawPatch(types.StrategicMergePatchType, pause))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) bool {
			s := state(ctx, reference)
			return s.Paused && s.Settled && s.Updated == 0
		}).Should(BeTrue())
		Expect(state(ctx, reference)).To(And(HaveField("Revision", BeEmpty()), HaveField("Rollout", target.Rollout{})))
	})

	DescribeTable("says that pods run what the workload names, and not while it waits for somebody", func(ctx SpecContext, kind string) {
		object := workload(kind, namespace, "web:1")
		switch object := object.(type) {
		case *appsv1.StatefulSet:
			object.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: harness.Of[int32](3)}
		case *appsv1.DaemonSet:
			object.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		}
		reference := create(ctx, object)
		Expect(state(ctx, reference).RevisionRunning).To(BeTrue())
		release(ctx, reference, "web:2")
		Eventually(ctx, func(ctx context.Context) target.State { return state(ctx, reference) }).Should(And(
			HaveField("RevisionRunning", false), HaveField("Rollout", target.Rollout{}), HaveField("Available", BeEquivalentTo(3)),
			HaveField("HeldBack", kind == "StatefulSet")))
	}, Entry(nil, "StatefulSet"), Entry(nil, "DaemonSet"))

	It("respects the partition of a StatefulSet", func(ctx SpecContext) {
		set := harness.StatefulSet(namespace, name, 3, "web:1")
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: harness.Of[int32](2)}
		reference := create(ctx, set)
		setImage(ctx, reference, "web:2")
		Eventually(ctx, func(ctx context.Context) target.State { return state(ctx, reference) }).Should(And(
			HaveField("Generation", BeEquivalentTo(2)), HaveField("Updated", BeEquivalentTo(1)), HaveField("Rollout", target.Rollout{})))
	})
})

// failPod makes a pod unready, a minute after its start.
func failPod(ctx context.Context, reference target.Reference, uid types.UID) {
	GinkgoHelper()
	pod := podNamed(reference.Namespace, podOf(ctx, reference, uid).Name)
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":%q}]}}`,
		now().UTC().Add(time.Minute).Format(time.RFC3339))
	Expect(admin.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, patch))).To(Succeed())
}

func deletePod(ctx context.Context, namespace, pod string) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(admin.Delete(ctx, podNamed(namespace, pod)))).To(Succeed())
}
