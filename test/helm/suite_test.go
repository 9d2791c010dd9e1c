package helm_test

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
	"github.com/example/aiops-operator/test/helm"
)

var (
	kubernetes *cluster.Cluster
	admin      client.WithWatch
	program    helm.Program
	// manager is where the operator's own program is.
	manager string
)

func TestHelm(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Helm")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	ctrl.SetLogger(logr.Discard())
	var err error
	kubernetes, err = cluster.Start(context.Background(), cluster.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(kubernetes.Stop)
	admin, err = harness.NewClient(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	program, err = helm.New(ctx, GinkgoWriter, GinkgoT().TempDir(), kubernetes.KubeconfigFile())
	Expect(err).NotTo(HaveOccurred())
	manager, err = harness.BuildOperator(ctx)
	Expect(err).NotTo(HaveOccurred())
})
