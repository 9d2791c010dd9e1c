package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/controller"
	"github.com/example/aiops-operator/internal/operator"
	"github.com/example/aiops-operator/test/cluster"
)

// Operator is one running operator process, inside of the test's process.
type Operator struct {
	Manager ctrl.Manager
	cancel  context.CancelFunc
	// done is closed when the operator has ended, with ended.
	done  chan struct{}
	ended error
}

// Options returns the options of an operator on the cluster, with the rights of its own ServiceAccount.
func Options(ctx context.Context, c *cluster.Cluster) (operator.Options, error) {
	config, err := c.ServiceAccountConfig(ctx, Namespace, ServiceAccount)
	if err != nil {
		return operator.Options{}, fmt.Errorf("log in as the operator: %w", err)
	}
	return OptionsFor(config), nil
}

// OptionsFor returns the options of an operator with these rights.
func OptionsFor(config *rest.Config) operator.Options {
	return operator.Options{
		Config:                  config,
		Logger:                  logr.Discard(),
		Clock:                   clock.RealClock{},
		Storm:                   controller.Storm{BreachedPercent: 100, MinimumTargets: 1 << 20, Within: time.Minute, Calm: time.Minute},
		LeaderElectionNamespace: Namespace,
		Concurrency:             8,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		ProbeAddress:            "0",
		Registry:                prometheus.NewRegistry(),
		SharedProcess:           true,
	}
}

// LeaderLease reads the lease by which the replicas of the operator choose the one that acts.
func LeaderLease(ctx context.Context, reader client.Client) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: Namespace, Name: "aiops-operator." + aiopsv1.GroupName}
	if err := reader.Get(ctx, key, lease); err != nil {
		return nil, fmt.Errorf("read the leader's lease: %w", err)
	}
	return lease, nil
}

// LeaseDuration is how long the lease of a leader that has not given it back keeps others from acting.
func LeaseDuration(lease *coordinationv1.Lease) time.Duration {
	return time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
}

// Start runs an operator until Stop, and returns when its caches are filled.
func Start(ctx context.Context, options operator.Options) (*Operator, error) {
	ctx, cancel := context.WithCancel(ctx)
	mgr, err := operator.New(ctx, options)
	if err != nil {
		cancel()
		return nil, err
	}
	out := &Operator{Manager: mgr, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(out.done)
		out.ended = mgr.Start(ctx)
	}()
	filled := make(chan bool, 1)
	go func() { filled <- mgr.GetCache().WaitForCacheSync(ctx) }()
	select {
	case <-out.done:
	case ok := <-filled:
		if ok {
			return out, nil
		}
	}
	return nil, fmt.Errorf("fill the caches: %w", out.Stop())
}

// Stop ends the operator and returns what it ended with. It may be called again.
func (o *Operator) Stop() error {
	o.cancel()
	<-o.done
	return o.ended
}
