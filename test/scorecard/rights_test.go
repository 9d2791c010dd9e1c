package main_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/harness"
)

var _ = Describe("rights-sufficient-and-minimal", func() {
	// The API server's authorizer follows RBAC objects by watching them, so the answer is asked for until it fits.
	judge := func(ctx context.Context) v1alpha3.TestResult {
		return named("rights-sufficient-and-minimal").Run(ctx, environmentOf(ctx, namespace, account)).Results[0]
	}

	It("finds a right that is missing", func(ctx context.Context) {
		role := managerRole(ctx)
		before := slices.Clone(role.Rules)
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "pods/eviction") })
		Expect(role.Rules).To(HaveLen(len(before) - 1))
		Expect(admin.Update(ctx, role)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			role.Rules = before
			Expect(admin.Update(ctx, role)).To(Succeed())
			Eventually(func() v1alpha3.State { return judge(ctx).State }).Should(Equal(v1alpha3.PassState))
		})
		Eventually(func() v1alpha3.TestResult { return judge(ctx) }).Should(And(
			HaveField("State", v1alpha3.FailState),
			HaveField("Errors", ConsistOf("the operator may not create pods/eviction in all namespaces, though its ClusterServiceVersion asks for it"))))
	})

	DescribeTable("finds a right too many,", func(ctx context.Context, subject rbacv1.Subject) {
		grant(ctx, subject)
		Eventually(func() v1alpha3.TestResult { return judge(ctx) }).Should(And(
			HaveField("State", v1alpha3.FailState),
			HaveField("Errors", ContainElements(
				"ClusterRole secret-reader lets the operator get secrets in all namespaces, which its ClusterServiceVersion does not ask for",
				"the operator may get secrets"))))
	},
		Entry("granted to its account", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: harness.Namespace, Name: harness.ServiceAccount}),
		Entry("granted to the accounts of its namespace", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + harness.Namespace}),
		Entry("granted to everyone", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}),
	)
})

// grant lets a subject read Secrets until the spec ends.
func grant(ctx context.Context, subject rbacv1.Subject) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "secret-reader"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "secret-reader"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: []rbacv1.Subject{subject}}
	for _, object := range []client.Object{role, binding} {
		Expect(admin.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, object)).To(Succeed()) })
	}
}

// managerRole is the ClusterRole by which the operator may evict pods.
func managerRole(ctx context.Context) *rbacv1.ClusterRole {
	GinkgoHelper()
	bindings := &rbacv1.ClusterRoleBindingList{}
	Expect(admin.List(ctx, bindings)).To(Succeed())
	for _, binding := range bindings.Items {
		if !slices.ContainsFunc(binding.Subjects, func(subject rbacv1.Subject) bool { return subject.Name == harness.ServiceAccount }) {
			continue
		}
		role := &rbacv1.ClusterRole{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: binding.RoleRef.Name}, role)).To(Succeed())
		if slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "pods/eviction") }) {
			return role
		}
	}
	Fail("no ClusterRole lets the operator evict pods")
	return nil
}
