package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/example/aiops-operator/internal/schema"
)

// probeTimeout bounds one answer to the kubelet.
const probeTimeout = time.Second

// process is a manager that starts nothing, and does not run for leader, before the API server stores what this operator writes. It serves
// the probes itself, not those that are added to the manager: a process that waits is alive and not ready, so that it is not restarted
// and a rollout keeps the replicas that are.
type process struct {
	ctrl.Manager
	schema *schema.Check
	// probes is where the probes are served. Nil: nowhere.
	probes net.Listener
}

func newProcess(ctx context.Context, mgr ctrl.Manager, options Options) (ctrl.Manager, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for discovery: %w", err)
	}
	out := &process{Manager: mgr, schema: &schema.Check{
		OpenAPI: client.OpenAPIV3WithContext(ctx), Clock: options.Clock, Logger: options.Logger, Version: options.Version,
	}}
	if err := mgr.Add(out.schema); err != nil {
		return nil, fmt.Errorf("add the check of the schema: %w", err)
	}
	if options.ProbeAddress == "" || options.ProbeAddress == "0" {
		return out, nil
	}
	if out.probes, err = (&net.ListenConfig{}).Listen(ctx, "tcp", options.ProbeAddress); err != nil {
		return nil, fmt.Errorf("serve the probes: %w", err)
	}
	return out, nil
}

// Start runs the process until ctx ends, or something in it fails. The probes are served for longer than anything else.
func (p *process) Start(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	probing, endProbing := context.WithCancel(context.WithoutCancel(ctx))
	defer endProbing()
	served := make(chan error, 1)
	go func() {
		defer end()
		served <- p.serveProbes(probing)
	}()
	p.schema.Wait(ctx)
	var err error
	if ctx.Err() == nil {
		err = p.Manager.Start(ctx)
	}
	endProbing()
	return errors.Join(err, <-served)
}

func (p *process) serveProbes(ctx context.Context) error {
	if p.probes == nil {
		<-ctx.Done()
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", answer(func(context.Context) error { return nil }))
	mux.HandleFunc("/readyz", answer(p.ready))
	timeout := probeTimeout
	server := &manager.Server{
		Name:            "health probe",
		Server:          &http.Server{Handler: mux, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 90 * time.Second},
		Listener:        p.probes,
		ShutdownTimeout: &timeout,
	}
	if err := server.Start(ctx); err != nil {
		return fmt.Errorf("serve the probes: %w", err)
	}
	return nil
}

// ready says what the process waits for, nil for nothing.
func (p *process) ready(ctx context.Context) error {
	if err := p.schema.WaitsFor(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if !p.GetCache().WaitForCacheSync(ctx) {
		return errors.New("caches are not filled yet")
	}
	return nil
}

// answer is a probe's: ok, or why not.
func answer(probe func(context.Context) error) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		if err := probe(request.Context()); err != nil {
			http.Error(writer, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = writer.Write([]byte("ok"))
	}
}
