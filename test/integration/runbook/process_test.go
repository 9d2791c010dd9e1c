package runbook_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

var _ = Describe("A restart of the operator", Serial, func() {
	It("replaces no pod of any workload and acts on nothing", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			create(ctx, harness.Deployment(namespace, name, 2, "shop/web:1"), harness.Task(namespace, name, "Restart"))
		}
		for _, name := range names {
			Eventually(task(ctx, namespace, name)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		}
		uids := map[string][]string{}
		for _, name := range names {
			uids[name] = podUIDs(ctx, namespace, name)
		}
		before := mark()

		Expect(running.Stop()).To(Succeed())
		options, err := harness.Options(ctx, kubernetes)
		Expect(err).NotTo(HaveOccurred())
		running, err = harness.Start(context.Background(), options)
		Expect(err).NotTo(HaveOccurred())

		Consistently(func() []cluster.AuditEvent { return inNamespace(writes(before), namespace) }, "3s").Should(BeEmpty())
		for _, name := range names {
			Expect(podUIDs(ctx, namespace, name)).To(ConsistOf(uids[name]))
		}
	})

	It("counts durations from what the new process itself saw", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		aitask := harness.Task(namespace, "web", "Restart")
		aitask.Spec.ForSeconds = harness.Of[int32](4)
		create(ctx, harness.Deployment(namespace, "web", 1, "shop/web:1"), aitask)
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		behave(ctx, namespace, "web", cluster.NotReady)
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Decision.Reason", aiopsv1.ReasonHolding))
		due := task(ctx, namespace, "web")().Status.Decision.NextAllowedTime

		Expect(running.Stop()).To(Succeed())
		options, err := harness.Options(ctx, kubernetes)
		Expect(err).NotTo(HaveOccurred())
		running, err = harness.Start(context.Background(), options)
		Expect(err).NotTo(HaveOccurred())

		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.LastExecutionTime", Not(BeNil())))
		executed := task(ctx, namespace, "web")().Status.LastExecutionTime
		Expect(executed.Time).To(BeTemporally(">", due.Time), "the breach held for 4s in the old process only in part")
	})
})

var _ = Describe("A standby", func() {
	It("observes and writes nothing, and acts as soon as the leader has stopped", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		Expect(running.Stop()).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			options, err := harness.Options(ctx, kubernetes)
			Expect(err).NotTo(HaveOccurred())
			running, err = harness.Start(context.Background(), options)
			Expect(err).NotTo(HaveOccurred())
		})
		leader := startElected(ctx)
		Eventually(leader.Manager.Elected()).Should(BeClosed())
		standby := startElected(ctx)
		Expect(standby.Manager.Elected()).NotTo(BeClosed())
		aitask := harness.Task(namespace, "web", "Restart")
		aitask.Spec.Suspend = harness.Of(true)
		create(ctx, harness.Deployment(namespace, "web", 1, "shop/web:1"), aitask)
		available(ctx, namespace, "web", 1)
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.Phase", aiopsv1.PhaseSuspended))

		Expect(leader.Stop()).To(Succeed())
		stopped := time.Now()
		Eventually(standby.Manager.Elected()).Should(BeClosed())
		took := time.Since(stopped)
		lease, err := harness.LeaderLease(ctx, admin)
		Expect(err).NotTo(HaveOccurred())
		// It was renewed at most a few seconds before: without this, the standby would wait for the rest of its duration.
		Expect(took).To(BeNumerically("<", harness.LeaseDuration(lease)-5*time.Second), "the leader gives its lease back: nobody waits for its end")
		behave(ctx, namespace, "web", cluster.NotReady)
		change(ctx, aitask, func(t *aiopsv1.AITask) { t.Spec.Suspend = harness.Of(false) })
		Eventually(task(ctx, namespace, "web")).Should(HaveField("Status.LastExecutionTime", Not(BeNil())))
	})
})

// startElected starts an operator that acts only while it is the leader. It ends with the spec, unless it was stopped before.
func startElected(ctx context.Context) *harness.Operator {
	GinkgoHelper()
	options, err := harness.Options(ctx, kubernetes)
	Expect(err).NotTo(HaveOccurred())
	options.LeaderElection = true
	out, err := harness.Start(context.Background(), options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(out.Stop()).To(Succeed()) })
	return out
}

var _ = Describe("The metrics endpoint", func() {
	It("answers over HTTPS, without HTTP/2, to those who may read it and to nobody else", func(ctx context.Context) {
		options, err := harness.Options(ctx, kubernetes)
		Expect(err).NotTo(HaveOccurred())
		address, err := cluster.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		options.LeaderElection = true // a standby serves metrics too
		options.Metrics = metricsserver.Options{BindAddress: address, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}}
		options.Registry = ctrlmetrics.Registry
		second, err := harness.Start(context.Background(), options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(second.Stop()).To(Succeed()) })

		create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "aiops-metrics-reader"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "default"}}})
		allowed, err := kubernetes.ServiceAccountConfig(ctx, "default", "default")
		Expect(err).NotTo(HaveOccurred())
		var refused *rest.Config
		Eventually(func() error { // every namespace gets this account, a moment after it was made
			refused, err = kubernetes.ServiceAccountConfig(ctx, "kube-public", "default")
			return err
		}).Should(Succeed())

		Eventually(func() string { return scrape(ctx, address, allowed) }).Should(HavePrefix("200 HTTP/1.1 "))
		Expect(scrape(ctx, address, allowed)).To(ContainSubstring("controller_runtime_reconcile_total"))
		Expect(scrape(ctx, address, refused)).To(HavePrefix("403 "))
		Expect(scrape(ctx, address, nil)).To(HavePrefix("401 "))
	})
})

// scrape returns status, protocol and body, or the error.
func scrape(ctx context.Context, address string, who *rest.Config) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		return err.Error()
	}
	if who != nil {
		request.Header.Set("Authorization", "Bearer "+who.BearerToken)
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err.Error()
	}
	return strings.Join([]string{response.Status[:3], response.Proto, string(body)}, " ")
}
