// Package prometheus_test holds the Prometheus signal against a real Prometheus server that scrapes a real exporter. What a
// server cannot be made to answer (garbage, half an answer) is a table in internal/signal.
package prometheus_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/example/aiops-operator/test/cluster"
)

func TestPrometheus(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Prometheus signal")
}

var (
	server *cluster.Prometheus
	// depth is what the exporter exposes: one series for each queue.
	depth *prometheus.GaugeVec
)

var _ = BeforeSuite(func(ctx SpecContext) {
	registry := prometheus.NewRegistry()
	depth = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "queue_depth", Help: "Waiting jobs."}, []string{"queue"})
	registry.MustRegister(depth)
	exporter := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	DeferCleanup(exporter.Close)

	var err error
	server, err = cluster.StartPrometheus(ctx, "", configuration(exporter), GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return server.Stop() })
})

func configuration(exporter *httptest.Server) []byte {
	return []byte(strings.ReplaceAll(`
global: {scrape_interval: 200ms}
scrape_configs:
- job_name: exporter
  static_configs: [{targets: [ADDRESS]}]
`, "ADDRESS", strings.TrimPrefix(exporter.URL, "http://")))
}

// counting is a proxy before the server that counts the queries.
func counting() (address string, queries *atomic.Int32) {
	GinkgoHelper()
	behind, err := url.Parse(server.URL)
	Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(behind)
	queries = &atomic.Int32{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(front.Close)
	return front.URL, queries
}
