// Package runbook_test runs whole incidents on a real control plane, with the operator's own rights.
package runbook_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

var (
	kubernetes *cluster.Cluster
	admin      client.WithWatch
	running    *harness.Operator
)

func TestRunbook(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Runbook")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	ctrl.SetLogger(logr.Discard())
	var err error
	kubernetes, err = cluster.Start(context.Background(), cluster.Options{Audit: true, AuditReads: true, MetricsServer: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(kubernetes.Stop)
	admin, err = harness.NewClient(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	Expect(harness.Install(ctx, admin)).To(Succeed())
	options, err := harness.Options(ctx, kubernetes)
	Expect(err).NotTo(HaveOccurred())
	options.Logger = GinkgoLogr
	running, err = harness.Start(context.Background(), options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(running.Stop()).To(Succeed()) })
})

// newNamespace returns a namespace of the spec's own.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, namespace)).To(Succeed()) })
	return namespace.Name
}

// task reads an AITask for Eventually.
func task(ctx context.Context, namespace, name string) func() *aiopsv1.AITask {
	return func() *aiopsv1.AITask {
		out := &aiopsv1.AITask{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, out); err != nil {
			return nil
		}
		return out
	}
}

// results returns a task's history, newest first, or nothing while it cannot be read.
func results(t *aiopsv1.AITask) []string {
	if t == nil {
		return nil
	}
	var out []string
	for _, entry := range t.Status.History {
		out = append(out, fmt.Sprintf("%s %s", entry.Action, entry.Result))
	}
	return out
}
