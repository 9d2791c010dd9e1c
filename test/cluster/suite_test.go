package cluster_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/example/aiops-operator/test/cluster"
)

// childVariable makes this test program start a cluster in the named folder and wait to be killed.
const childVariable = "AIOPS_CLUSTER_TEST_CHILD"

func TestCluster(t *testing.T) {
	if folder := os.Getenv(childVariable); folder != "" {
		runUntilKilled(folder)
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Embedded Kubernetes")
}

func runUntilKilled(folder string) {
	if _, err := cluster.Start(context.Background(), cluster.Options{Dir: folder, Nodes: -1}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// The suite shares one cluster; every spec has a namespace of its own.
var (
	shared     *cluster.Cluster
	client     kubernetes.Interface
	startTimes []time.Duration
	namespace  string
)

var _ = BeforeSuite(func(ctx SpecContext) {
	// Everything the specs use, so that the times of starts are times of starts alone.
	_, err := cluster.Build(ctx, GinkgoWriter,
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "metrics-server", "prometheus")
	Expect(err).NotTo(HaveOccurred())
	shared = startCluster(ctx, cluster.Options{MetricsServer: true, Audit: true})
	client, err = kubernetes.NewForConfig(shared.Config())
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(30*time.Minute))

var _ = AfterSuite(func() {
	if shared != nil {
		Expect(shared.Stop()).To(Succeed())
	}
})

var _ = BeforeEach(func(ctx SpecContext) {
	created, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	namespace = created.Name
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.CoreV1().Namespaces().Delete(ctx, created.Name, metav1.DeleteOptions{})).To(Succeed())
	})
})

func startCluster(ctx context.Context, options cluster.Options) *cluster.Cluster {
	GinkgoHelper()
	options.Log = GinkgoWriter
	began := time.Now()
	started, err := cluster.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	startTimes = append(startTimes, time.Since(began))
	return started
}
