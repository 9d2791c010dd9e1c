// Package main_test runs the custom scorecard tests on an embedded cluster, with the rights of test/scorecard/rbac.yaml, against the
// operator's own program with the rights of its own. It shows that they pass on a sound installation, and that each notices what
// it is there to notice.
package main_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
	"github.com/example/aiops-operator/test/scorecard/check"
)

const (
	// namespace and account are those of rbac.yaml.
	namespace = "aiops-scorecard"
	account   = "scorecard"
	// image is what the workloads run; no node here pulls it.
	image = "example.com/aiops-operator-scorecard:test"
)

var (
	kubernetes *cluster.Cluster
	admin      client.WithWatch
	csv        *operatorsv1alpha1.ClusterServiceVersion
	running    *operator
)

func TestScorecard(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Scorecard")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	ctrl.SetLogger(logr.Discard())
	var err error
	csv, err = check.LoadCSV(bundleFolder())
	Expect(err).NotTo(HaveOccurred())
	kubernetes, err = cluster.Start(context.Background(), cluster.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return kubernetes.Stop() })
	admin, err = harness.NewClient(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	Expect(harness.Install(ctx, admin)).To(Succeed())
	rights, err := harness.ReadManifest(filepath.Join(harness.Root(), "test", "scorecard", "rbac.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, object := range rights {
		Expect(admin.Create(ctx, object)).To(Succeed())
	}
	running = newOperator(ctx)
	running.start(ctx, "")
})

// bundleFolder is the folder of the bundle under test.
func bundleFolder() string {
	return filepath.Join(harness.Root(), "bundle")
}

// environmentOf is what a check sees with the rights of a ServiceAccount.
func environmentOf(ctx context.Context, space, name string) check.Environment {
	GinkgoHelper()
	access, err := check.NewClient(configOf(ctx, space, name))
	Expect(err).NotTo(HaveOccurred())
	return check.Environment{Client: access, Namespace: namespace, CSV: csv, Image: image}
}

func configOf(ctx context.Context, space, name string) *rest.Config {
	GinkgoHelper()
	config, err := kubernetes.ServiceAccountConfig(ctx, space, name)
	Expect(err).NotTo(HaveOccurred())
	return config
}

// named finds a check by its name.
func named(name string) check.Check {
	GinkgoHelper()
	for _, one := range check.All() {
		if one.Name == name {
			return one
		}
	}
	Fail("there is no check " + name)
	return check.Check{}
}
