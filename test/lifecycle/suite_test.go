// Package lifecycle_test shows what becomes of a cluster while the operator is installed, upgraded, taken back and removed: on a real
// control plane, with the operator's own program, under the rights of its bundle. How a bundle, a chart or a catalog is made
// belongs to test/packaging; what an incident means belongs to test/integration.
package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// operatorUser is whom the audit log names for the operator's requests.
const operatorUser = "system:serviceaccount:" + harness.Namespace + ":" + harness.ServiceAccount

var (
	kubernetes *cluster.Cluster
	admin      client.WithWatch
	// current is the release of this tree.
	current *harness.Release
)

func TestLifecycle(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Lifecycle")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(2 * time.Second)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	ctrl.SetLogger(logr.Discard())
	var err error
	kubernetes, err = cluster.Start(context.Background(), cluster.Options{AuditReads: true, Audit: true, MetricsServer: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(kubernetes.Stop)
	admin, err = harness.NewClient(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	current, err = harness.LoadRelease()
	Expect(err).NotTo(HaveOccurred())
})
