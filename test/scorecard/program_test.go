package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/aiops-operator/test/harness"
	"github.com/example/aiops-operator/test/scorecard/check"
)

var _ = Describe("The program", Ordered, func() {
	var program, kubeconfig string

	BeforeAll(func(ctx context.Context) {
		folder := GinkgoT().TempDir()
		program, kubeconfig = filepath.Join(folder, "scorecard"), filepath.Join(folder, "kubeconfig")
		printed, err := exec.CommandContext(ctx, "go", "build", "-C", harness.Root(), "-o", program, "./test/scorecard").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(printed))
		Expect(kubernetes.WriteKubeconfig(kubeconfig, configOf(ctx, namespace, account))).To(Succeed())
	})

	// prepare returns the program as a scorecard pod runs it.
	prepare := func(ctx context.Context, access string, arguments ...string) (command *exec.Cmd, stdout, stderr *bytes.Buffer) {
		stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
		command = exec.CommandContext(ctx, program, arguments...)
		command.Stdout, command.Stderr = stdout, stderr
		command.Env = []string{"KUBECONFIG=" + access, "SCORECARD_NAMESPACE=" + namespace, "HOME=" + os.TempDir()}
		return command, stdout, stderr
	}

	// run runs it, and expects that it prints one JSON object and nothing else.
	run := func(ctx context.Context, access string, arguments ...string) v1alpha3.TestResult {
		GinkgoHelper()
		command, stdout, stderr := prepare(ctx, access, arguments...)
		err := command.Run()
		result := onlyResult(stdout, stderr)
		Expect(err == nil).To(Equal(result.State == v1alpha3.PassState))
		return result
	}

	It("prints what came of a test", func(ctx context.Context) {
		result := run(ctx, kubeconfig, "--bundle", bundleFolder(), "--image", image, "rights-sufficient-and-minimal")
		Expect(result.Name).To(Equal("rights-sufficient-and-minimal"))
		Expect(result.State).To(Equal(v1alpha3.PassState), "%v", result.Errors)
		Expect(result.Log).To(MatchRegexp(`Asked for [1-9][0-9]+ rights of the ClusterServiceVersion`))
	})

	DescribeTable("prints why there was no test:", func(ctx context.Context, says string, arguments ...string) {
		result := run(ctx, kubeconfig, arguments...)
		Expect(result.State).To(Equal(v1alpha3.ErrorState))
		Expect(result.Errors).To(ConsistOf(ContainSubstring(says)))
	},
		Entry("no name", "name one test: samples-healthy, short-form-acts"),
		Entry("an unknown name", `there is no test "other"; there are samples-healthy`, "other"),
		Entry("an unknown flag", "flag provided but not defined: -other", "--other"),
		Entry("no bundle", "read the bundle in /nowhere", "--bundle", "/nowhere", "--image", image, "samples-healthy"),
		Entry("a pod that is none", "find the pod that this runs in", "--bundle", bundleFolder(), "samples-healthy"),
	)

	It("prints that there is no cluster", func(ctx context.Context) {
		result := run(ctx, "/nowhere", "--bundle", bundleFolder(), "--image", image, "samples-healthy")
		Expect(result.State).To(Equal(v1alpha3.ErrorState))
		Expect(result.Errors).To(ConsistOf(ContainSubstring("find the cluster")))
	})

	It("cleans up and prints all the same when it is asked to end", func(ctx context.Context) {
		command, stdout, stderr := prepare(ctx, kubeconfig, "--bundle", bundleFolder(), "--image", image, "short-form-acts")
		var made atomic.Bool
		meddle(ctx, func(context.Context, *appsv1.Deployment) error {
			made.Store(true)
			return nil
		})
		Expect(command.Start()).To(Succeed())
		Eventually(made.Load).Should(BeTrue())
		Expect(command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(command.Wait()).NotTo(Succeed())
		result := onlyResult(stdout, stderr)
		Expect(result.State).To(Equal(v1alpha3.FailState))
		Expect(result.Errors).To(ContainElement(ContainSubstring("interrupted")))
		expectNothingLeft(ctx)
	})

	It("idles as the workload of the tests until it is asked to end", func(ctx context.Context) {
		command := exec.CommandContext(ctx, program, check.Idle)
		said, err := command.StderrPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(command.Start()).To(Succeed())
		DeferCleanup(func() { _ = command.Process.Kill() }) // Only if the spec fails.
		Expect(bufio.NewReader(said).ReadString('\n')).To(Equal("idle until asked to end\n"), "before that it does not hear the request")
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		Consistently(ended, "300ms").ShouldNot(Receive())
		Expect(command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Eventually(ended).Should(Receive(BeNil()))
	})
})

// onlyResult expects that one result was printed in one JSON object, and nothing else anywhere: the log of a pod holds both streams.
func onlyResult(stdout, stderr io.Reader) v1alpha3.TestResult {
	GinkgoHelper()
	other, err := io.ReadAll(stderr)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(other)).To(BeEmpty())
	decoder := json.NewDecoder(stdout)
	decoder.DisallowUnknownFields()
	status := v1alpha3.TestStatus{}
	Expect(decoder.Decode(&status)).To(Succeed())
	_, end := decoder.Token()
	Expect(end).To(MatchError(io.EOF))
	Expect(status.Results).To(HaveLen(1))
	return status.Results[0]
}

var _ = Describe("A check in a pod", func() {
	It("uses the pod's image for its workloads, and makes the pod their owner", func(ctx context.Context) {
		name, err := os.Hostname()
		Expect(err).NotTo(HaveOccurred())
		pod := harness.Deployment(namespace, name, 1, "example.com/scorecard:pod").Spec.Template
		own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: pod.Spec}
		own.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		Expect(admin.Create(ctx, own)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, own)).To(Succeed()) })

		environment, err := check.NewEnvironment(ctx, configOf(ctx, namespace, account), namespace, bundleFolder(), "")
		Expect(err).NotTo(HaveOccurred())
		Expect(environment.PullSecrets).To(Equal(own.Spec.ImagePullSecrets))
		var made atomic.Pointer[appsv1.Deployment]
		meddle(ctx, func(_ context.Context, deployment *appsv1.Deployment) error {
			made.Store(deployment)
			return nil
		})
		Expect(named("samples-healthy").Run(ctx, environment).Results[0].State).To(Equal(v1alpha3.PassState))
		seen := made.Load()
		Expect(seen).NotTo(BeNil())
		Expect(seen.Spec.Template.Spec.Containers[0].Image).To(Equal("example.com/scorecard:pod"))
		Expect(seen.OwnerReferences).To(ConsistOf(metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: own.UID}))
	})
})
