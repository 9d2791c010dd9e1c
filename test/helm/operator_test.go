package helm_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// operator is the operator's program, run beside the cluster as its pod would be in it: with the command line of the chart's
// Deployment, the file of its ConfigMap, and the rights of its ServiceAccount.
type operator struct {
	process *harness.Process
	metrics string
}

// startOperator runs the release's operator until the end of the spec.
func (r *release) startOperator(ctx context.Context) *operator {
	GinkgoHelper()
	metrics, err := cluster.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	pod := r.deployment(ctx).Spec.Template.Spec
	process, err := harness.StartProcess(ctx, kubernetes, manager, harness.ProcessOptions{
		Name:      r.namespace + "-" + utilrand.String(5),
		Account:   types.NamespacedName{Namespace: r.namespace, Name: pod.ServiceAccountName},
		Arguments: pod.Containers[0].Args,
		Config:    r.configuration(ctx),
		Flags:     []string{"--metrics-bind-address=" + metrics},
	})
	Expect(err).NotTo(HaveOccurred())
	out := &operator{process: process, metrics: metrics}
	DeferCleanup(out.stop)
	Expect(process.WaitReady(ctx)).To(Succeed())
	return out
}

// stop may be called again.
func (o *operator) stop() {
	GinkgoHelper()
	Expect(o.process.Stop()).To(Succeed())
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
