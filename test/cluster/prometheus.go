package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// Prometheus is a running Prometheus server of the pinned version.
type Prometheus struct {
	// URL is its address, such as http://127.0.0.1:21234.
	URL string

	host *Cluster
}

// StartPrometheus builds Prometheus if need be and runs it with the given configuration on a port of its own on 127.0.0.1.
// It returns when queries are answered. dir holds its data; empty means a temporary folder that Stop removes. The server
// reads dir/configuration/prometheus.yaml again on a POST to URL + "/-/reload". Cloud service discoveries are not built in.
func StartPrometheus(ctx context.Context, dir string, configYAML []byte, log io.Writer) (*Prometheus, error) {
	if log == nil {
		log = io.Discard
	}
	programs, err := Build(ctx, log, prometheusProgram)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		server, err := startPrometheusOnce(ctx, Options{Dir: dir, Log: log}, programs, configYAML)
		if err == nil || attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return server, err
		}
	}
}

func startPrometheusOnce(ctx context.Context, options Options, programs map[string]string, configYAML []byte) (*Prometheus, error) {
	// A cluster of one process: folders, logs, process numbers and the ending are the same.
	host := &Cluster{dir: options.Dir, options: options, programs: programs}
	if err := host.prepareFolder(); err != nil {
		return nil, err
	}
	host.launcher = newLauncher(false)
	server := &Prometheus{host: host}
	if err := server.up(ctx, configYAML); err != nil {
		return nil, errors.Join(fmt.Errorf("start Prometheus: %w", err), host.Stop())
	}
	return server, nil
}

func (p *Prometheus) up(ctx context.Context, configYAML []byte) error {
	chosen, err := freePorts(1)
	if err != nil {
		return err
	}
	p.URL = "http://" + address(chosen[0])
	configuration := p.host.path("configuration", "prometheus.yaml")
	if err := os.WriteFile(configuration, configYAML, 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	err = p.host.start(prometheusProgram, []string{
		"--config.file=" + configuration, "--storage.tsdb.path=" + filepath.Join(p.host.dir, "data"),
		"--web.listen-address=" + address(chosen[0]), "--web.enable-lifecycle", "--log.level=warn",
	})
	if err != nil {
		return err
	}
	return p.host.waitFor(ctx, "Prometheus to be ready", func(ctx context.Context) error {
		return checkHealth(ctx, p.URL+"/-/ready")
	})
}

// Stop ends the server. A second call does nothing.
func (p *Prometheus) Stop() error { return p.host.Stop() }

// checkHealth succeeds when a GET of the address is answered with 200.
func checkHealth(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", response.Status)
	}
	return nil
}
