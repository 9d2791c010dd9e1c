package lifecycle_test

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

var _ = Describe("An operator that is newer than the CustomResourceDefinition", Ordered, func() {
	const (
		dropped = "know: status.order.before; apply that of version " + olderVersion
		task    = "web"
	)
	var (
		p                   *play
		operator, shortened version
	)

	BeforeAll(func(ctx context.Context) {
		DeferCleanup(removeAll)
		operator = olderOperator(ctx)
		shortened = operator
		release := *operator.release
		release.Definitions = []*unstructured.Unstructured{withoutBefore(current.Definitions[0])}
		shortened.release = &release
		Expect(shortened.release.Install(ctx, admin)).To(Succeed())
		p = newPlay()
		p.create(harness.Deployment(p.namespace, task, 1, image))
		p.available(task)
		p.breakPods(task, cluster.NotReady)
		broken := harness.Task(p.namespace, task, "Restart")
		broken.Spec.Limits = &aiopsv1.Limits{CooldownSeconds: harness.Of[int32](0)}
		p.create(broken)
	})

	It("does nothing and says which fields are missing, until it is brought up to date", func(ctx context.Context) {
		mark, err := kubernetes.AuditMark()
		Expect(err).NotTo(HaveOccurred())
		process := startProcess(ctx, operator.program, harness.ProcessOptions{Name: "schema-start", Config: configuration})
		Eventually(os.ReadFile).WithArguments(process.LogFile).Should(ContainSubstring(dropped))
		Expect(process.Readiness(ctx)).To(ContainSubstring(dropped))
		Consistently(kubernetes.AuditEventsSince).WithArguments(mark, func(event cluster.AuditEvent) bool {
			return event.User == operatorUser && event.Resource != ""
		}).Should(BeEmpty(), "requests for objects, the lease among them")

		Expect(operator.release.InstallDefinitions(ctx, admin)).To(Succeed())
		Expect(process.WaitReady(ctx)).To(Succeed())
		p.ends(task, "Restart Recovered")
	})

	It("ends when the older one is applied while it runs, and its successor waits", func(ctx context.Context) {
		process := startProcess(ctx, operator.program, harness.ProcessOptions{Name: "schema-run", Config: configuration})
		Expect(process.WaitReady(ctx)).To(Succeed())
		Expect(shortened.release.InstallDefinitions(ctx, admin)).To(Succeed())
		Eventually(process.Done()).Should(BeClosed())
		Expect(os.ReadFile(process.LogFile)).To(ContainSubstring(dropped))

		successor := startProcess(ctx, operator.program, harness.ProcessOptions{Name: "schema-next", Config: configuration})
		Eventually(os.ReadFile).WithArguments(successor.LogFile).Should(ContainSubstring(dropped))
		Expect(successor.Stop()).To(Succeed())
	})
})

// withoutBefore returns a definition whose orders do not hold the state of the target that they were decided upon.
func withoutBefore(definition *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	definition = definition.DeepCopy()
	versions, found, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue())
	served, ok := versions[0].(map[string]any)
	Expect(ok).To(BeTrue())
	unstructured.RemoveNestedField(served, "schema", "openAPIV3Schema", "properties", "status", "properties", "order", "properties", "before")
	Expect(unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")).To(Succeed())
	return definition
}
