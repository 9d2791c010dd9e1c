// Package action_test runs each action against real controllers, with the rights that the actions need and no others.
package action_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/target"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// user is who acts in these tests.
const user = "system:serviceaccount:aiops-system:actions-under-test"

var (
	kubernetes *cluster.Cluster
	admin      client.WithWatch
	// acting has the rights of rules, and nothing else.
	acting   client.WithWatch
	resolver *target.Resolver
)

func TestAction(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Actions")
}

// rules are the rights that resolving targets and acting on them need: docs/actions.md lists them.
func rules() []rbacv1.PolicyRule {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule("apps", "deployments", "get", "list", "watch", "patch"),
		rule("apps", "statefulsets", "get", "list", "watch", "patch"),
		rule("apps", "daemonsets", "get", "list", "watch", "patch"),
		rule("apps", "replicasets", "get", "list", "watch"),
		rule("apps", "controllerrevisions", "get", "list", "watch"),
		rule("autoscaling", "horizontalpodautoscalers", "list", "watch"),
		rule("", "pods", "get", "list", "watch", "delete"),
		rule("", "pods/eviction", "create"),
	}
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	EnforceDefaultTimeoutsWhenUsingContexts()
	ctrl.SetLogger(logr.Discard())
	var err error
	kubernetes, err = cluster.Start(ctx, cluster.Options{Audit: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return kubernetes.Stop() })
	admin, err = harness.NewClient(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	grant(ctx, "actions-under-test", user, rules())
	config, err := kubernetes.UserConfig(user)
	Expect(err).NotTo(HaveOccurred())
	acting, err = harness.NewClient(config)
	Expect(err).NotTo(HaveOccurred())
	resolver = target.NewResolver(startCaches(config), acting)
})

func grant(ctx context.Context, name, user string, rules []rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: name}
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})).To(Succeed())
}

// startCaches fills the caches as the operator does: transformed, indexed, and no kind beyond those that are named.
func startCaches(config *rest.Config) cache.Cache {
	GinkgoHelper()
	scheme, err := harness.Scheme()
	Expect(err).NotTo(HaveOccurred())
	caches, err := cache.New(config, cache.Options{Scheme: scheme, ByObject: target.ByObject(), ReaderFailOnMissingInformer: true})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	Expect(target.IndexFields(running, caches)).To(Succeed())
	for _, kind := range target.Kinds() {
		_, err := caches.GetInformer(running, kind)
		Expect(err).NotTo(HaveOccurred())
	}
	go func() {
		defer GinkgoRecover()
		Expect(caches.Start(running)).To(Succeed())
	}()
	Expect(caches.WaitForCacheSync(running)).To(BeTrue())
	return caches
}

// newNamespace returns a namespace of the spec's own.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, namespace)).To(Succeed()) })
	return namespace.Name
}

// now is the time at which the tests act.
func now() time.Time {
	return time.Now()
}

// orderFor records what a plan says, as the operator writes it ahead.
func orderFor(id string, state target.State, plan action.Plan) *aiopsv1.Order {
	before := state.Image()
	return &aiopsv1.Order{
		ID: id, Before: &before, Replicas: plan.Replicas, Revision: plan.Revision, PodUIDs: plan.PodUIDs, Message: plan.Message,
		RecordedTime: aiopsv1.TimePointer(now()),
	}
}
