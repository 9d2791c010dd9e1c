package admission_test

import (
	"bytes"
	"context"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// run runs kubectl with standard input, and returns what it prints on both outputs.
func run(ctx context.Context, input string, arguments ...string) (string, error) {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", kubernetes.KubeconfigFile()}, arguments...)...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &output, &output
	err := command.Run()
	return output.String(), err
}

// mustRun expects kubectl to succeed.
func mustRun(ctx context.Context, input string, arguments ...string) string {
	GinkgoHelper()
	output, err := run(ctx, input, arguments...)
	Expect(err).NotTo(HaveOccurred(), output)
	return output
}

// largest is about the largest task that the schema admits.
func largest() string {
	steps := stepNames("{name: s%d, action: Notify, notify: {receiver: pager, message: "+strings.Repeat("m", 1024)+"}}", 8)
	query := strings.Repeat("q", 4096)
	return manifest("{" + target + ", steps: [" + steps + "], signals: [{name: a, type: Prometheus, threshold: 1, prometheus: {query: " + query + ", aliveQuery: " + query + "}}]}")
}

var _ = Describe("kubectl", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	DescribeTable("shows a refusal that says what to write",
		func(ctx context.Context, spec, want string) {
			output, err := run(ctx, manifest(spec), "apply", "-n", namespace, "-f", "-")
			Expect(err).To(HaveOccurred())
			Expect(withoutValue(output)).To(ContainSubstring(want))
		},
		Entry("one line for one rule", "{threshold: 1, action: Restart}", "The AITask \"web\" is invalid: spec: Invalid value: set exactly one of targetDeployment, targetRef\n"),
		Entry("one line for each mistake", "{targetDeployment: web, threshold: 1, action: Scale}", "The AITask \"web\" is invalid: \n* spec.action: Unsupported value: \"Scale\": supported values: \"Restart\", \"Evict\", \"Rollback\"\n"),
		Entry("a misspelt field", "{targetDeployment: web, treshold: 1}", `unknown field "spec.treshold"`),
	)

	It("applies the largest task, again and changed", func(ctx context.Context) {
		Expect(mustRun(ctx, largest(), "apply", "-n", namespace, "-f", "-")).To(Equal("aitask.aiops.example.com/web created\n"))
		Expect(mustRun(ctx, largest(), "apply", "-n", namespace, "-f", "-")).To(Equal("aitask.aiops.example.com/web unchanged\n"))
		// diff exits with 1 where apply would change something: here a default or a defaulted list would.
		Expect(mustRun(ctx, largest(), "diff", "-n", namespace, "-f", "-")).To(BeEmpty())
		changed := strings.Replace(largest(), "threshold: 1", "threshold: 2", 1)
		Expect(mustRun(ctx, changed, "apply", "-n", namespace, "-f", "-")).To(Equal("aitask.aiops.example.com/web configured\n"))
		Expect(mustRun(ctx, "", "get", "at", "web", "-n", namespace, "-o", "jsonpath={.spec.signals[0].threshold}")).To(Equal("2"))
		Expect(mustRun(ctx, "", "get", "aiops", "-n", namespace, "-o", "name")).To(Equal("aitask.aiops.example.com/web\n"))
	})

	It("applies the CRD itself", func(ctx context.Context) {
		// The test's own set-up applied it on the server, so kubectl adds its annotation, which must fit.
		file := "../../../config/crd/bases/aiops.example.com_aitasks.yaml"
		mustRun(ctx, "", "apply", "-f", file)
		Expect(mustRun(ctx, "", "apply", "-f", file)).To(ContainSubstring("unchanged"))
	})

	It("explains every field", func(ctx context.Context) {
		Eventually(func(g Gomega) {
			output, err := run(ctx, "", "explain", "aitask.spec", "--recursive")
			g.Expect(err).NotTo(HaveOccurred(), output)
			g.Expect(output).To(ContainSubstring("recoveryThreshold"))
		}).Should(Succeed())
		Expect(mustRun(ctx, "", "explain", "at.spec.steps.scale.max")).To(And(ContainSubstring("FIELD: max <integer>"), ContainSubstring("the most replicas that this step ever sets. 0 to 10000.")))
	})
})
