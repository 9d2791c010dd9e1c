package prometheus_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/signal"
	"github.com/example/aiops-operator/internal/target"
	"github.com/example/aiops-operator/test/cluster"
)

// patience is how long an exposed value may take to be scraped and answered.
const patience = time.Minute

// longerThanAnyTest is an interval of which no slot ends while a test runs.
const longerThanAnyTest = 100 * 365 * 24 * time.Hour

func sourceAt(address string) *signal.Prometheus {
	GinkgoHelper()
	source, err := signal.NewPrometheus(signal.PrometheusEndpoint{Name: aiopsv1.DefaultEndpoint, URL: address})
	Expect(err).NotTo(HaveOccurred())
	return source
}

func asking(query string, change ...func(*aiopsv1.Signal)) signal.Request {
	asked := aiopsv1.Signal{Name: "main", Type: aiopsv1.SignalPrometheus, Prometheus: &aiopsv1.PrometheusSignal{Query: query}}
	for _, apply := range change {
		apply(&asked)
	}
	return signal.Request{Target: target.State{Settled: true}, Signal: asked, Now: time.Now()}
}

// measuring measures again each time it is called.
func measuring(ctx context.Context, address, query string, change ...func(*aiopsv1.Signal)) func() signal.Reading {
	source := sourceAt(address)
	return func() signal.Reading { return source.Measure(ctx, asking(query, change...)) }
}

func beValue(number float64) OmegaMatcher {
	return SatisfyAll(HaveField("Known", true), HaveField("Value", number), HaveField("Reason", ""))
}

func beUnknown(reason string) OmegaMatcher {
	return SatisfyAll(HaveField("Known", false), HaveField("Reason", reason), HaveField("Message", Not(BeEmpty())))
}

var _ = Describe("The Prometheus signal, asking a real server", func() {
	BeforeEach(func(ctx SpecContext) {
		depth.Reset()
		depth.WithLabelValues("fast").Set(3)
		depth.WithLabelValues("slow").Set(40)
		Eventually(measuring(ctx, server.URL, "sum(queue_depth)")).WithTimeout(patience).Should(beValue(43))
	})

	It("follows a value that changes", func(ctx SpecContext) {
		measure := measuring(ctx, server.URL, `queue_depth{queue="slow"}`)
		Eventually(measure).WithTimeout(patience).Should(beValue(40))
		depth.WithLabelValues("slow").Set(103.5)
		Eventually(measure).WithTimeout(patience).Should(beValue(103.5))
	})

	DescribeTable("tells every kind of answer apart",
		func(ctx SpecContext, query string, want OmegaMatcher) {
			// Not at once: a rate needs two scrapes.
			Eventually(measuring(ctx, server.URL, query)).WithTimeout(patience).Should(want)
		},
		Entry("scalar", "scalar(sum(queue_depth)) * 2", beValue(86)),
		Entry("a comparison that says 0", "sum(queue_depth) > bool 100", beValue(0)),
		Entry("a hint about the query is none about the data", "sum(rate(queue_depth[1m])) * 0", beValue(0)),
		Entry("more than one series", "queue_depth", beUnknown(aiopsv1.ReasonManySamples)),
		Entry("hundreds of series", `label_replace(vector(1), "a", "b", "", "") or {__name__=~".+"}`, beUnknown(aiopsv1.ReasonManySamples)),
		Entry("nothing", "no_such_metric", SatisfyAll(beUnknown(aiopsv1.ReasonNoData), HaveField("NoData", true))),
		Entry("a comparison that does not hold", "sum(queue_depth) > 100", SatisfyAll(beUnknown(aiopsv1.ReasonFilterQuery), HaveField("NoData", true))),
		Entry("0/0", "sum(queue_depth) * 0 / 0", beUnknown(aiopsv1.ReasonNotANumber)),
		Entry("1/0", "sum(queue_depth) / 0", beUnknown(aiopsv1.ReasonNotANumber)),
		Entry("a warning", "quantile(2, queue_depth)", beUnknown(aiopsv1.ReasonPartialAnswer)),
		Entry("not PromQL", "sum(queue_depth", beUnknown(aiopsv1.ReasonQueryRejected)),
		Entry("PromQL that cannot be evaluated", "queue_depth * on () queue_depth", beUnknown(aiopsv1.ReasonQueryRejected)),
		Entry("a range", "queue_depth[1m]", beUnknown(aiopsv1.ReasonMalformedAnswer)),
		Entry("a text", `"hello"`, beUnknown(aiopsv1.ReasonMalformedAnswer)),
	)

	It("loses a value that is no longer exposed", func(ctx SpecContext) {
		measure := measuring(ctx, server.URL, `queue_depth{queue="slow"}`)
		depth.DeleteLabelValues("slow")
		Eventually(measure).WithTimeout(patience).Should(SatisfyAll(beUnknown(aiopsv1.ReasonNoData), HaveField("NoData", true)))
	})

	DescribeTable("asks whether anybody reports when nothing is reported",
		func(ctx SpecContext, aliveQuery string, want OmegaMatcher) {
			Eventually(measuring(ctx, server.URL, `queue_depth{queue="dead-letter"}`, func(asked *aiopsv1.Signal) {
				asked.NoData = aiopsv1.NoDataHealthy
				asked.Prometheus.AliveQuery = ptr.To(aliveQuery)
			})).WithTimeout(patience).Should(want)
		},
		Entry("somebody does", "up", SatisfyAll(HaveField("NoData", true), HaveField("AliveChecked", true))),
		Entry("several do", "queue_depth", SatisfyAll(HaveField("NoData", true), HaveField("AliveChecked", true))),
		Entry("nobody does", `up{job="absent"}`, SatisfyAll(beUnknown(aiopsv1.ReasonNoData), HaveField("NoData", false), HaveField("AliveChecked", false))),
		Entry("the question is wrong", "up{", SatisfyAll(beUnknown(aiopsv1.ReasonQueryRejected), HaveField("NoData", false))),
	)

	It("asks identical queries once in an interval for all tasks", func(ctx SpecContext) {
		address, queries := counting()
		source := sourceAt(address)
		notified := make(chan types.NamespacedName, 200)
		poller := signal.NewPoller(clock.RealClock{}, func(task types.NamespacedName) { notified <- task })
		running, stop := context.WithCancel(ctx)
		stopped := make(chan error, 1)
		go func() { stopped <- poller.Start(running) }()
		DeferCleanup(func() {
			stop()
			Expect(<-stopped).To(Succeed())
		})

		// No scrape decides what is answered: one that fails takes the exporter's series away until the next one.
		latest := func(task int, notBefore time.Time) signal.Reading {
			name := types.NamespacedName{Namespace: "shop", Name: fmt.Sprint(task)}
			reading, _ := poller.Latest(name, source, asking("vector(43)"), longerThanAnyTest, notBefore)
			return reading
		}
		for task := range 100 {
			Expect(latest(task, time.Time{})).To(Or(beUnknown(aiopsv1.ReasonNotMeasured), beValue(43)))
		}
		Eventually(notified).WithTimeout(patience).Should(Receive())
		for task := range 100 {
			Expect(latest(task, time.Time{})).To(beValue(43))
		}
		Expect(queries.Load()).To(BeEquivalentTo(1))

		By("asking afresh when one of them must know")
		now := time.Now()
		latest(0, now)
		Eventually(func() signal.Reading { return latest(0, now) }).WithTimeout(patience).Should(HaveField("At", BeTemporally(">=", now)))
		Expect(queries.Load()).To(BeEquivalentTo(2))
		Expect(latest(1, now)).To(beValue(43))
		Expect(queries.Load()).To(BeEquivalentTo(2))
	})
})

var _ = Describe("The Prometheus signal, when its server goes away", func() {
	It("does not know any more", func(ctx SpecContext) {
		other, err := cluster.StartPrometheus(ctx, "", []byte("global: {scrape_interval: 200ms}\n"), GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.Stop)
		measure := measuring(ctx, other.URL, "vector(7)")
		Expect(measure()).To(beValue(7))
		Expect(other.Stop()).To(Succeed())
		Expect(measure()).To(beUnknown(aiopsv1.ReasonUnreachable))
	})
})
