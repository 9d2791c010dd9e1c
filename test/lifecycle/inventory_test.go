package lifecycle_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/aiops-operator/test/harness"
)

// inventory returns every object of the cluster, as soon as all kinds can be listed.
func inventory(ctx context.Context) []string {
	GinkgoHelper()
	out, err := harness.CompleteInventory(ctx, kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	return out
}

// added returns, for Eventually, what there is now and was not before.
func added(ctx context.Context, before []string) func() ([]string, error) {
	return func() ([]string, error) { return harness.AddedSince(ctx, kubernetes.Config(), before) }
}
