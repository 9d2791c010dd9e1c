package helm_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/cluster"
)

// operator is the operator's program, run beside the cluster as its pod would be in it: with the command line of the chart's
// Deployment, the file of its ConfigMap, and the rights of its ServiceAccount. Only addresses differ, since every process of
// this machine shares them, and the namespace, which only a pod can find out.
type operator struct {
	metrics string
	probe   string
	command *exec.Cmd
	done    chan struct{}
}

// startOperator runs the release's operator until the end of the spec.
func (r *release) startOperator(ctx context.Context) *operator {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	pod := r.deployment(ctx).Spec.Template.Spec
	out := &operator{done: make(chan struct{})}
	var err error
	out.metrics, err = cluster.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	out.probe, err = cluster.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	arguments := append(pod.Containers[0].Args,
		"--kubeconfig="+r.writeKubeconfig(ctx, folder, pod.ServiceAccountName),
		"--config="+r.writeConfig(ctx, folder),
		"--leader-election-namespace="+r.namespace,
		"--metrics-bind-address="+out.metrics,
		"--health-probe-bind-address="+out.probe,
	)
	out.command = exec.Command(manager, arguments...)
	out.command.Stdout, out.command.Stderr = GinkgoWriter, GinkgoWriter
	out.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	Expect(out.command.Start()).To(Succeed())
	go func() {
		_ = out.command.Wait() // the way it ended is in its log
		close(out.done)
	}()
	DeferCleanup(out.stop)
	Eventually(func() (int, error) { return status(ctx, http.DefaultClient, "http://"+out.probe+"/readyz") }).Should(Equal(http.StatusOK))
	return out
}

// stop may be called again.
func (o *operator) stop() {
	GinkgoHelper()
	_ = o.command.Process.Signal(syscall.SIGTERM) // it may have ended
	Eventually(o.done).Should(BeClosed())
}

func (r *release) writeKubeconfig(ctx context.Context, folder, account string) string {
	GinkgoHelper()
	config, err := kubernetes.ServiceAccountConfig(ctx, r.namespace, account)
	Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(folder, "kubeconfig")
	Expect(kubernetes.WriteKubeconfig(path, config)).To(Succeed())
	return path
}

// writeConfig writes the configuration into a folder of this machine.
func (r *release) writeConfig(ctx context.Context, folder string) string {
	GinkgoHelper()
	path := filepath.Join(folder, "config.yaml")
	Expect(os.WriteFile(path, []byte(r.configuration(ctx)), 0o600)).To(Succeed())
	return path
}

// configuration is the file that the pods find in their first volume.
func (r *release) configuration(ctx context.Context) string {
	GinkgoHelper()
	out := &corev1.ConfigMap{}
	name := r.deployment(ctx).Spec.Template.Spec.Volumes[0].ConfigMap.Name
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, out)).To(Succeed())
	return out.Data["config.yaml"]
}

// metricsStatus is how the operator answers somebody who asks for its metrics.
func (o *operator) metricsStatus(ctx context.Context, config *rest.Config) (int, error) {
	config = rest.CopyConfig(config)
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	asking, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	return status(ctx, asking, "https://"+o.metrics+"/metrics")
}

func status(ctx context.Context, asking *http.Client, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	answer, err := asking.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask %s: %w", url, err)
	}
	return answer.StatusCode, answer.Body.Close()
}
