// Package admission_test asks what a user gets who writes a task wrongly: refused by the API server or reported by the operator,
// each time with what to write instead; and that nothing that is let in harms the others.
package admission_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/signal"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
	crdschema "github.com/example/aiops-operator/test/integration/admission/schema"
)

// The suite shares one cluster and one operator; every spec has a namespace of its own.
var (
	kubernetes *cluster.Cluster
	admin      client.WithWatch
	tasks      *rest.RESTClient
	registry   *prometheus.Registry
	kubectl    string
)

func TestAdmission(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Admission")
}

var _ = BeforeSuite(func(ctx context.Context) {
	ctrl.SetLogger(logr.Discard())
	programs, err := cluster.Build(ctx, GinkgoWriter, "kubectl")
	Expect(err).NotTo(HaveOccurred())
	kubectl = programs["kubectl"]
	kubernetes, err = cluster.Start(context.Background(), cluster.Options{Audit: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(kubernetes.Stop)
	admin, err = harness.NewClient(kubernetes.Config())
	Expect(err).NotTo(HaveOccurred())
	Expect(harness.Install(ctx, admin)).To(Succeed())
	tasks = newTasks(kubernetes.Config())
	registry = startOperator(ctx)
})

func startOperator(ctx context.Context) *prometheus.Registry {
	GinkgoHelper()
	options, err := harness.Options(ctx, kubernetes)
	Expect(err).NotTo(HaveOccurred())
	options.Endpoints = []signal.PrometheusEndpoint{{Name: "default", URL: "http://127.0.0.1:1"}, {Name: "long-term", URL: "http://127.0.0.1:1"}}
	options.Receivers = []action.Receiver{{Name: "pager", URL: "http://127.0.0.1:1"}}
	registry := prometheus.NewRegistry()
	options.Registry = registry
	running, err := harness.Start(context.Background(), options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(running.Stop()).To(Succeed()) })
	return registry
}

// newTasks returns a client that sends bodies as they are.
func newTasks(config *rest.Config) *rest.RESTClient {
	GinkgoHelper()
	config.APIPath, config.GroupVersion = "/apis", &schema.GroupVersion{Group: "aiops.example.com", Version: "v1"}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.WarningHandler = rest.NoWarnings{} // that an unknown field is dropped is part of the test
	out, err := rest.RESTClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, namespace)).To(Succeed()) })
	return namespace.Name
}

func readCRD() *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	crd, err := crdschema.ReadCRD(filepath.Join(harness.Root(), "config/crd/bases/aiops.example.com_aitasks.yaml"))
	Expect(err).NotTo(HaveOccurred())
	return crd
}
