// Package operator wires one process together: manager, caches, the list of signal sources, the list of actions, the loop. The
// command gives it flags, tests give it faults. No rule lives here.
package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/controller"
	"github.com/example/aiops-operator/internal/metrics"
	"github.com/example/aiops-operator/internal/runbook"
	"github.com/example/aiops-operator/internal/signal"
	"github.com/example/aiops-operator/internal/target"
)

// The lease: a crashed leader is replaced after its duration, one that stops in order at once. An action begun right at the
// renew deadline still ends before the lease does.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	actionTimeout = leaseDuration - renewDeadline - time.Second

	// messageTimeout is above the longest timeout of a receiver.
	messageTimeout = 65 * time.Second

	gracefulShutdown = 30 * time.Second
)

// Options are what differs from one process to the next.
type Options struct {
	// Config says how the API server is reached. Required.
	Config *rest.Config
	// Version is what messages call this operator.
	Version string
	Logger  logr.Logger
	Clock   clock.Clock

	Endpoints []signal.PrometheusEndpoint
	Receivers []action.Receiver
	Storm     controller.Storm

	// LeaderElection makes only one process act. Without it this process acts at once.
	LeaderElection          bool
	LeaderElectionNamespace string
	// Concurrency is how many tasks are reconciled at the same time. At least 1.
	Concurrency int
	Metrics     metricsserver.Options
	// ProbeAddress serves /healthz and /readyz. Empty or "0": nowhere.
	ProbeAddress string
	// Registry receives the operator's metrics. Required.
	Registry prometheus.Registerer

	// WrapClient and WrapReader put something between the loop and the API server: faults, in tests. Nil: nothing.
	WrapClient func(client.Client) client.Client
	WrapReader func(client.Reader) client.Reader
	// SharedProcess allows several operators in one process, in tests.
	SharedProcess bool
}

// New returns the manager of one process, ready to start.
func New(ctx context.Context, options Options) (ctrl.Manager, error) {
	skew := controller.NewClockSkew(options.Clock)
	mgr, err := newManager(options, skew)
	if err != nil {
		return nil, err
	}
	reconciler, err := newReconciler(mgr, options, skew)
	if err != nil {
		return nil, err
	}
	if err := reconciler.SetupWithManager(ctx, mgr, options.Concurrency); err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	return newProcess(ctx, mgr, options)
}

func newManager(options Options, skew *controller.ClockSkew) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(options.Config)
	config.QPS = -1 // the API server's priority and fairness decides
	config.UserAgent = "aiops-operator"
	config.Wrap(skew.Wrap)
	lease, renew, retry, shutdown := leaseDuration, renewDeadline, retryPeriod, gracefulShutdown
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:                        scheme,
		Logger:                        options.Logger,
		Cache:                         cache.Options{ByObject: cachedObjects(), ReaderFailOnMissingInformer: true},
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              "aiops-operator." + aiopsv1.GroupName,
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
		GracefulShutdownTimeout:       &shutdown,
		Metrics:                       options.Metrics,
		HealthProbeBindAddress:        "0", // the process serves them, since before the manager starts
		Controller:                    ctrlconfig.Controller{SkipNameValidation: &options.SharedProcess},
	})
	if err != nil {
		return nil, fmt.Errorf("create the manager: %w", err)
	}
	return mgr, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		aiopsv1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, autoscalingv2.AddToScheme, policyv1.AddToScheme, metricsv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	return scheme, nil
}

func cachedObjects() map[client.Object]cache.ByObject {
	objects := target.ByObject()
	objects[&aiopsv1.AITask{}] = cache.ByObject{Transform: cache.TransformStripManagedFields()}
	return objects
}

// newReconciler puts the loop together.
func newReconciler(mgr ctrl.Manager, options Options, skew *controller.ClockSkew) (*controller.Reconciler, error) {
	writer, live := mgr.GetClient(), mgr.GetAPIReader()
	if options.WrapClient != nil {
		writer = options.WrapClient(writer)
	}
	if options.WrapReader != nil {
		live = options.WrapReader(live)
	}
	collectors, err := metrics.New(options.Registry)
	if err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	sources, err := newSources(options, live)
	if err != nil {
		return nil, err
	}
	reconciler := &controller.Reconciler{
		Client:         writer,
		Live:           live,
		Resolver:       target.NewResolver(writer, live),
		Sources:        sources,
		Actions:        newActions(options, writer, live),
		Names:          names(options),
		Fleet:          controller.NewFleet(writer, options.Storm),
		Skew:           skew,
		Events:         mgr.GetEventRecorder("aiops-operator"),
		Metrics:        collectors,
		Clock:          options.Clock,
		RandomID:       func() string { return string(uuid.NewUUID()) },
		ActionTimeout:  actionTimeout,
		MessageTimeout: messageTimeout,
		Messages:       make(chan struct{}, max(1, options.Concurrency/2)),
	}
	poller := signal.NewPoller(options.Clock, reconciler.Wake)
	reconciler.Poller = poller
	if err := mgr.Add(poller); err != nil {
		return nil, fmt.Errorf("add the poller: %w", err)
	}
	return reconciler, nil
}

// newSources is the list of signal sources: where a new one gets its one entry.
func newSources(options Options, live client.Reader) (signal.Set, error) {
	prometheusSource, err := signal.NewPrometheus(options.Endpoints...)
	if err != nil {
		return signal.Set{}, fmt.Errorf("configure Prometheus: %w", err)
	}
	usage := signal.NewMetricsAPI(live)
	return signal.NewSet(
		signal.NewUnavailableReplicas(),
		signal.NewContainerRestarts(),
		signal.NewCrashLoopingPods(),
		signal.NewOOMKills(),
		signal.NewPendingPods(),
		signal.NewRolloutStalled(),
		signal.NewCondition(),
		signal.NewCPUUtilization(usage),
		signal.NewMemoryUtilization(usage),
		prometheusSource,
	), nil
}

// newActions is the list of actions: where a new one gets its one entry.
func newActions(options Options, writer client.Client, live client.Reader) action.Set {
	return action.NewSet(
		action.NewRestart(writer, live),
		action.NewEvict(writer, live),
		action.NewScale(writer, live),
		action.NewRollback(writer, live),
		action.NewNotify(options.Receivers...),
	)
}

func names(options Options) runbook.Names {
	var out runbook.Names
	for i := range options.Endpoints {
		out.Endpoints = append(out.Endpoints, options.Endpoints[i].Name)
	}
	for i := range options.Receivers {
		out.Receivers = append(out.Receivers, options.Receivers[i].Name)
	}
	return out
}
