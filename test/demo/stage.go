package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

//go:embed manifests
var manifests embed.FS

const (
	// namespace is where the workloads are.
	namespace = "shop"
	// operatorName names the operator's process in the cluster's folder.
	operatorName = "operator"
)

// stage is everything that the scenes play on.
type stage struct {
	out      *screen
	kubectl  string
	program  string
	cluster  *cluster.Cluster
	admin    client.WithWatch
	pages    *pages
	operator *harness.Process
}

// setUp builds what is missing and starts everything. What was started is in the stage even if a later part fails.
func setUp(ctx context.Context, out *screen, keep bool) (*stage, error) {
	s := &stage{out: out}
	if err := s.build(ctx); err != nil {
		return s, err
	}
	if err := s.startCluster(ctx, keep); err != nil {
		return s, err
	}
	var err error
	if s.admin, err = harness.NewClient(s.cluster.Config()); err != nil {
		return s, err
	}
	if err := harness.Install(ctx, s.admin); err != nil {
		return s, err
	}
	if err := s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return s, fmt.Errorf("create the namespace: %w", err)
	}
	if s.pages, err = listenForPages(); err != nil {
		return s, err
	}
	return s, s.startOperator(ctx)
}

// build makes every program before the first one is started.
func (s *stage) build(ctx context.Context) error {
	names := slices.DeleteFunc(cluster.ProgramNames(), func(name string) bool { return name == "prometheus" })
	programs, err := cluster.Build(ctx, progress{s.out, "Kubernetes"}, names...)
	if err != nil {
		return err
	}
	s.kubectl = programs["kubectl"]
	s.out.about("operator", "compiling, the first time for a minute or two")
	s.program, err = harness.BuildOperator(ctx)
	return err
}

func (s *stage) startCluster(ctx context.Context, keep bool) (err error) {
	began := time.Now()
	options := cluster.Options{MetricsServer: true, KeepOnExit: keep}
	if keep {
		folder, err := cluster.CacheFolder()
		if err != nil {
			return err
		}
		options.Dir = filepath.Join(folder, "cluster") // where `make cluster-down` looks
	}
	s.cluster, err = cluster.Start(ctx, options)
	if errors.Is(err, cluster.ErrAlreadyRunning) {
		return fmt.Errorf("%w: end it with `make cluster-down`", err)
	}
	if err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(s.cluster.Config())
	if err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	version, err := found.ServerVersion()
	if err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	s.out.about("cluster", "Kubernetes %s up in %.1f s (kube-apiserver, controllers, scheduler, metrics-server, 3 simulated nodes)",
		version.GitVersion, time.Since(began).Seconds())
	return nil
}

// startOperator runs the real program, with the rights that the manifests give to its ServiceAccount and no others.
func (s *stage) startOperator(ctx context.Context) error {
	configuration := fmt.Sprintf("receivers:\n- name: default\n  url: %s\n", s.pages.url())
	var err error
	s.operator, err = harness.StartProcess(ctx, s.cluster, s.program, harness.ProcessOptions{Name: operatorName, Config: configuration})
	if err != nil {
		return err
	}
	if err := s.waitForLeader(ctx); err != nil {
		return err
	}
	s.out.about("operator", "process %d, with no rights but its ServiceAccount's; leader after %.1f s", s.operator.PID(), time.Since(s.operator.Started).Seconds())
	return nil
}

func (s *stage) waitForLeader(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	leases, err := s.admin.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(harness.Namespace))
	if err != nil {
		return fmt.Errorf("watch the operator's lease: %w", err)
	}
	defer leases.Stop()
	for event := range leases.ResultChan() {
		if lease, ok := event.Object.(*coordinationv1.Lease); ok && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			return s.operator.WaitReady(ctx)
		}
	}
	return errors.New("the operator did not become the leader within 30 s")
}

// apply creates the objects of a manifest.
func (s *stage) apply(ctx context.Context, name string) error {
	content, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	objects, err := harness.DecodeManifest(content)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, object := range objects {
		object.SetNamespace(namespace)
		if err := s.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// operatorLog returns the end of the operator's log.
func (s *stage) operatorLog() string {
	content, err := os.ReadFile(s.operator.LogFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// tearDown ends everything that was started.
func (s *stage) tearDown() error {
	var problems []error
	if s.operator != nil {
		problems = append(problems, s.operator.Stop())
	}
	if s.cluster != nil {
		problems = append(problems, s.cluster.Stop())
	}
	if s.pages != nil {
		problems = append(problems, s.pages.close())
	}
	return errors.Join(problems...)
}

// leave hands everything over to whoever wants to look around.
func (s *stage) leave() error {
	if s.pages == nil || s.operator == nil {
		return s.tearDown()
	}
	file, err := s.pages.handOver(s.cluster)
	if err != nil {
		return errors.Join(err, s.tearDown())
	}
	s.out.say(`The cluster and the operator go on running. To look around:
    export KUBECONFIG=%s
    %s -n %s get at -o wide
Pages arrive in     %s
The operator's log  %s
To end all of it:   make cluster-down`, s.cluster.KubeconfigFile(), s.kubectl, namespace, file, s.operator.LogFile)
	return nil
}
