// Package chaos_test shows that a workload sees each action exactly once, whatever dies, lags, is lost or is done twice. Faults are
// put on the wire between an operator and the API server (wire_test.go), so that the operator itself runs unchanged; what
// happened is counted by the API server's audit log and by the workload itself. What an incident means when nothing fails is
// tested elsewhere.
package chaos_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
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
	// rights are those of the operator's ServiceAccount.
	rights *rest.Config
	// post is where every operator of the suite sends its notifications.
	post *postOffice
)

func TestChaos(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Chaos")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(2 * time.Second)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	ctrl.SetLogger(logr.Discard())
	var err error
	kubernetes, err = cluster.Start(context.Background(), cluster.Options{Audit: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(kubernetes.Stop)
	admin, err = harness.NewClient(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	Expect(harness.Install(ctx, admin)).To(Succeed())
	rights, err = kubernetes.ServiceAccountConfig(ctx, harness.Namespace, harness.ServiceAccount)
	Expect(err).NotTo(HaveOccurred())
	post = openPostOffice()
	DeferCleanup(post.close)
})
