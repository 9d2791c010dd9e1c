package main_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
	"github.com/example/aiops-operator/test/scorecard/check"
)

var _ = Describe("The custom scorecard tests", func() {
	It("all pass on a sound installation of which nothing is configured, stage by stage as the bundle configures them, and leave nothing", func(ctx context.Context) {
		var ran []string
		for _, stage := range stages() {
			ran = append(ran, stage...)
			for name, result := range together(ctx, environmentOf(ctx, namespace, account), stage...) {
				Expect(result.State).To(Equal(v1alpha3.PassState), "%s: %v\n%s", name, result.Errors, result.Log)
			}
		}
		Expect(ran).To(ConsistOf(allNames()), "each test is configured once")
		expectNothingLeft(ctx)
	})

	It("fail without an operator that works, say what they waited for, and clean up all the same", func(ctx context.Context) {
		running.stop()
		DeferCleanup(func(ctx context.Context) { running.start(ctx, "") })
		// Long enough that each of them, all at once on a busy machine, comes to wait for its tasks.
		const patience = 30 * time.Second
		waiting := []string{"samples-healthy", "short-form-acts", "uninstall-leaves-nothing", "upgrade-keeps-pods"}
		for name, result := range together(within(ctx, patience), environmentOf(ctx, namespace, account), waiting...) {
			Expect(result.State).To(Equal(v1alpha3.FailState), name)
			Expect(result.Errors).To(ContainElement(MatchRegexp(`^wait for .* to be healthy: not in time: .*the operator has not looked at it$`)), name)
		}
		expectNothingLeft(ctx)
	})
})

var _ = Describe("A scorecard test that cannot judge says what to do", func() {
	It("where the operator is not installed", func(ctx context.Context) {
		Expect(admin.Delete(ctx, running.deployment.DeepCopy())).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Create(ctx, running.deployment.DeepCopy())).To(Succeed()) })
		for name, result := range together(ctx, environmentOf(ctx, namespace, account), allNames()...) {
			Expect(result.State).To(Equal(v1alpha3.ErrorState), name)
			Expect(result.Errors).To(ConsistOf(ContainSubstring("install the operator first: `operator-sdk run bundle")), name)
		}
	})

	It("where several operators are installed", func(ctx context.Context) {
		second := running.deployment.DeepCopy()
		second.Namespace = "default"
		Expect(admin.Create(ctx, second)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, second)).To(Succeed()) })
		result := named("samples-healthy").Run(ctx, environmentOf(ctx, namespace, account)).Results[0]
		Expect(result.State).To(Equal(v1alpha3.ErrorState))
		Expect(result.Errors).To(ConsistOf(ContainSubstring("is in 2 namespaces, such as " + harness.Namespace + " and default: leave one operator")))
	})

	It("where the API is not installed", func(ctx context.Context) {
		running.stop()
		DeferCleanup(func(ctx context.Context) {
			Expect(harness.Install(ctx, admin)).To(Succeed())
			running.start(ctx, "")
		})
		definition := &unstructured.Unstructured{}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		definition.SetName("aitasks.aiops.example.com")
		Expect(admin.Delete(ctx, definition)).To(Succeed())
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(definition), definition) }).Should(Satisfy(apierrors.IsNotFound))
		Eventually(func() v1alpha3.TestResult {
			return named("samples-healthy").Run(ctx, environmentOf(ctx, namespace, account)).Results[0]
		}).Should(And(
			HaveField("State", v1alpha3.ErrorState),
			HaveField("Errors", ConsistOf(HavePrefix("the cluster does not know the kind AITask: install the operator first")))))
	})

	It("where its ServiceAccount has no rights", func(ctx context.Context) {
		for name, result := range together(ctx, environmentOf(ctx, namespace, "default"), allNames()...) {
			Expect(result.State).To(Equal(v1alpha3.ErrorState), name)
			Expect(result.Errors).To(ConsistOf(ContainSubstring("apply test/scorecard/rbac.yaml")), name)
		}
	})

	It("where the operator's pods do not run", func(ctx context.Context) {
		broken := running.deployment.DeepCopy()
		Expect(admin.Delete(ctx, running.deployment.DeepCopy())).To(Succeed())
		broken.Spec.Template.Spec.Containers[0].Image = "example.com/aiops-operator:missing"
		Eventually(func() error { return admin.Create(ctx, broken.DeepCopy()) }).Should(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(admin.Delete(ctx, broken.DeepCopy())).To(Succeed())
			Expect(admin.Create(ctx, running.deployment.DeepCopy())).To(Succeed())
		})
		result := named("samples-healthy").Run(within(ctx, 15*time.Second), environmentOf(ctx, namespace, account)).Results[0]
		Expect(result.State).To(Equal(v1alpha3.ErrorState))
		Expect(result.Errors).To(ConsistOf(ContainSubstring("the operator does not run; see `kubectl -n " + harness.Namespace)))
	})
})

var _ = Describe("upgrade-keeps-pods", func() {
	// What installed the operator owns the Deployment, and would take a change of it back.
	It("replaces every pod of the operator, and leaves its Deployment as it is", func(ctx context.Context) {
		before, after := &appsv1.Deployment{}, &appsv1.Deployment{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(running.deployment), before)).To(Succeed())
		old, err := running.live(ctx)
		Expect(err).NotTo(HaveOccurred())

		result := named("upgrade-keeps-pods").Run(ctx, environmentOf(ctx, namespace, account)).Results[0]
		Expect(result.State).To(Equal(v1alpha3.PassState), "%v\n%s", result.Errors, result.Log)
		now, err := running.live(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(now).To(HaveLen(old.Len()))
		Expect(now.Intersection(old)).To(BeEmpty())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(running.deployment), after)).To(Succeed())
		Expect(after.Generation).To(Equal(before.Generation))
	})

	DescribeTable("may evict pods in the operator's namespace and in no other:", func(ctx context.Context, space string, want bool) {
		asked := &authorizationv1.ResourceAttributes{Namespace: space, Verb: "create", Resource: "pods", Subresource: "eviction"}
		who := "system:serviceaccount:" + namespace + ":" + account
		// The API server's authorizer follows bindings by watching them.
		Eventually(func(g Gomega) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: who, ResourceAttributes: asked}}
			g.Expect(admin.Create(ctx, review)).To(Succeed())
			g.Expect(review.Status.Allowed).To(Equal(want), review.Status.Reason)
		}).Should(Succeed())
	},
		Entry("the operator's", harness.Namespace, true),
		Entry("another", "kube-system", false),
		Entry("all of them", "", false),
	)

	It("cannot judge where it may not replace them, and says what to do", func(ctx context.Context) {
		unbindUpgrade(ctx)
		result := named("upgrade-keeps-pods").Run(ctx, environmentOf(ctx, namespace, account)).Results[0]
		Expect(result.State).To(Equal(v1alpha3.ErrorState))
		Expect(result.Errors).To(ConsistOf(And(
			ContainSubstring("`kubectl -n "+harness.Namespace+" create rolebinding aiops-scorecard-upgrade "), ContainSubstring("list the operator's pods"))))
		expectNothingLeft(ctx)
	})
})

var _ = Describe("What must not happen is noticed", func() {
	It("by upgrade-keeps-pods: a pod that is replaced while the operator rolls", func(ctx context.Context) {
		running.onRoll(func(ctx context.Context) {
			_ = admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.HasLabels{check.RunLabel}) // the check says if not
		})
		result := named("upgrade-keeps-pods").Run(ctx, environmentOf(ctx, namespace, account)).Results[0]
		Expect(result.State).To(Equal(v1alpha3.FailState))
		const changed = "the upgrade of the operator changed Deployment "
		Expect(result.Errors).To(ConsistOf(HavePrefix(changed+"quiet-"), HavePrefix(changed+"asked-"), HavePrefix(changed+"midway-")))
	})

	DescribeTable("by uninstall-leaves-nothing:", func(ctx context.Context, leave func(context.Context, *appsv1.Deployment) error, says string) {
		meddle(ctx, leave)
		unholdDeleted(ctx)
		result := named("uninstall-leaves-nothing").Run(ctx, environmentOf(ctx, namespace, account)).Results[0]
		Expect(result.State).To(Equal(v1alpha3.FailState))
		Expect(result.Errors).To(ContainElement(ContainSubstring(says)))
		Expect(unhold(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owned"}})).To(Succeed())
	},
		Entry("an annotation that is not documented", func(ctx context.Context, deployment *appsv1.Deployment) error {
			return merge(ctx, deployment, `{"metadata":{"annotations":{"aiops.example.com/other":"1"}}}`)
		}, "it keeps the annotation aiops.example.com/other"),
		Entry("an object that a task owns", func(ctx context.Context, deployment *appsv1.Deployment) error {
			task := &aiopsv1.AITask{}
			if err := admin.Get(ctx, client.ObjectKeyFromObject(deployment), task); err != nil {
				return err
			}
			owned := &corev1.ConfigMap{} // which the garbage collector cannot remove
			owned.Namespace, owned.Name, owned.Finalizers = namespace, "owned", []string{"aiops.example.com/hold"}
			owned.OwnerReferences = append(owned.OwnerReferences, ownerReference(task))
			return admin.Create(ctx, owned)
		}, "ConfigMap owned is owned by the deleted AITask"),
		Entry("a finalizer", func(ctx context.Context, deployment *appsv1.Deployment) error {
			task := &aiopsv1.AITask{}
			if err := admin.Get(ctx, client.ObjectKeyFromObject(deployment), task); err != nil {
				return err
			}
			return merge(ctx, task, `{"metadata":{"finalizers":["aiops.example.com/hold"]}}`)
		}, `has the finalizers ["aiops.example.com/hold"]`),
	)
})
