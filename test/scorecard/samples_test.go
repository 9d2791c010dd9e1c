package main_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/aiops-operator/internal/config"
	"github.com/example/aiops-operator/test/harness"
	"github.com/example/aiops-operator/test/scorecard/check"
)

// The samples that need configuration are in no bundle. Were they, a new installation would show examples that do not work.
var _ = Describe("samples-healthy, with samples that need configuration,", func() {
	It("fails where nothing is configured, and names what is missing", func(ctx context.Context) {
		result := named("samples-healthy").Run(within(ctx, 20*time.Second), presentingConfigured(ctx)).Results[0]
		Expect(result.State).To(Equal(v1alpha3.FailState), result.Log)
		Expect(result.Errors).To(ConsistOf(And(
			HavePrefix("wait for every sample to be healthy: not in time: "),
			MatchRegexp(`AITask payment-\w+: phase "Failed", Ready "False".*receiver "on-call" is not in the operator's configuration \(receivers\), which has none`),
			MatchRegexp(`AITask worker-\w+: phase "Failed", Ready "False".*endpoint "default" is not in the operator's configuration \(prometheusEndpoints\), which has none`),
		)))
		expectNothingLeft(ctx)
	})

	It("passes with the configuration that comes with them", func(ctx context.Context) {
		running.start(ctx, exampleConfiguration())
		DeferCleanup(func(ctx context.Context) { running.start(ctx, "") })
		result := named("samples-healthy").Run(ctx, presentingConfigured(ctx)).Results[0]
		Expect(result.State).To(Equal(v1alpha3.PassState), "%v\n%s", result.Errors, result.Log)
		Expect(strings.Split(result.Log, "\n")).To(ContainElements(
			MatchRegexp(`AITask payment-\w+ is healthy: `), MatchRegexp(`AITask worker-\w+ is healthy: `)))
	})
})

// configuredSamples is the folder of the samples that need configuration, and of that configuration.
func configuredSamples(below ...string) string {
	return filepath.Join(append([]string{harness.Root(), "config", "samples", "configured"}, below...)...)
}

// presentingConfigured is an environment with a ClusterServiceVersion whose samples are those that need configuration.
func presentingConfigured(ctx context.Context) check.Environment {
	GinkgoHelper()
	paths, err := filepath.Glob(configuredSamples("aiops_*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var samples []*unstructured.Unstructured
	for _, path := range paths {
		objects, err := harness.ReadManifest(path)
		Expect(err).NotTo(HaveOccurred())
		samples = append(samples, objects...)
	}
	text, err := json.Marshal(samples)
	Expect(err).NotTo(HaveOccurred())
	environment := environmentOf(ctx, namespace, account)
	environment.CSV = environment.CSV.DeepCopy()
	environment.CSV.Annotations["alm-examples"] = string(text)
	return environment
}

// exampleConfiguration is the configuration that comes with the samples, as it is but for the addresses of Prometheus. Nothing is sent
// to a receiver while all is well.
func exampleConfiguration() string {
	GinkgoHelper()
	objects, err := harness.ReadManifest(configuredSamples("operator", "configmap.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(objects).To(HaveLen(1))
	stored := &corev1.ConfigMap{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, stored)).To(Succeed())
	text := stored.Data["config.yaml"]
	parsed, err := config.Parse("config.yaml", []byte(text))
	Expect(err).NotTo(HaveOccurred())
	address := serveQueue()
	for _, endpoint := range parsed.PrometheusEndpoints {
		text = strings.ReplaceAll(text, endpoint.URL, address)
	}
	return text
}

// serveQueue is a Prometheus whose every query yields a short queue, and returns its address.
func serveQueue() string {
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		sample := []any{float64(time.Now().UnixMilli()) / 1000, "3"}
		_ = json.NewEncoder(answer).Encode(map[string]any{"status": "success", "data": map[string]any{ // the operator says if it got nothing
			"resultType": "vector", "result": []any{map[string]any{"metric": map[string]string{}, "value": sample}}}})
	}))
	DeferCleanup(server.Close)
	return server.URL
}
