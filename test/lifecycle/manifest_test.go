package lifecycle_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// kubectl runs kubectl as an administrator and returns what it prints.
func kubectl(ctx context.Context, program string, arguments ...string) string {
	GinkgoHelper()
	var output bytes.Buffer
	command := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", kubernetes.KubeconfigFile()}, arguments...)...)
	command.Stdout, command.Stderr = &output, &output
	Expect(command.Run()).To(Succeed(), output.String)
	return output.String()
}

var _ = Describe("The one YAML file", func() {
	It("is applied, rolled out, does its work, and is deleted without a trace", func(ctx context.Context) {
		programs, err := cluster.Build(ctx, GinkgoWriter, "kubectl")
		Expect(err).NotTo(HaveOccurred())
		program := programs["kubectl"]
		file := filepath.Join(harness.Root(), "dist", "install.yaml")
		before := inventory(ctx)
		DeferCleanup(removeAll)

		kubectl(ctx, program, "apply", "-f", file)
		kubectl(ctx, program, "rollout", "status", "-n", harness.Namespace, "deployment/"+harness.ServiceAccount, "--timeout=2m")
		Expect(replicas(ctx)).To(Equal("generation 1, 2 available"))

		By("applying it again: the replicas stay")
		kubectl(ctx, program, "apply", "-f", file)
		Consistently(func() string { return replicas(ctx) }).Should(Equal("generation 1, 2 available"))

		By("working as the account of the manifest: the pods are simulated, so the program runs beside them")
		operator, err := harness.BuildOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
		t := &town{before: before, operator: startProcess(ctx, operator, harness.ProcessOptions{Name: "manifest", Config: newMailbox(ctx).configuration()})}
		t.play = newPlay()
		t.live()
		t.breakPods("watching", cluster.NotReady)
		t.ends("watching", "Restart Recovered")

		By("deleting it in the middle of incidents")
		kubectl(ctx, program, "delete", "-f", file, "--timeout="+harness.DeletionTime.String())
		Expect(t.operator.Stop()).To(Succeed())
		kubectl(ctx, program, "delete", "namespace", t.namespace, "--timeout="+harness.DeletionTime.String())
		t.left(ctx)
	})
})

// replicas says what has become of the operator's Deployment.
func replicas(ctx context.Context) string {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: harness.Namespace, Name: harness.ServiceAccount}, deployment)).To(Succeed())
	return fmt.Sprintf("generation %d, %d available", deployment.Generation, deployment.Status.AvailableReplicas)
}
