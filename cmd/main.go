// Command manager runs the AITask operator.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/config"
	"github.com/example/aiops-operator/internal/controller"
	"github.com/example/aiops-operator/internal/operator"
	"github.com/example/aiops-operator/internal/signal"
)

// version is set by the build.
var version = "dev"

type flags struct {
	configFile      string
	leaderElect     bool
	leaseNamespace  string
	metricsAddress  string
	metricsInsecure bool
	metricsCertDir  string
	probeAddress    string
	concurrency     int
	printVersion    bool
	unexpected      string
	zap             zap.Options
}

func main() {
	options := parse()
	if options.printVersion {
		fmt.Println(version)
		return
	}
	logf.SetLogger(zap.New(zap.UseFlagOptions(&options.zap)))
	if err := run(ctrl.SetupSignalHandler(), options); err != nil {
		fmt.Fprintln(os.Stderr, "aiops-operator:", err) // a configuration's mistakes are several lines, to be read by people
		os.Exit(1)
	}
}

func parse() flags {
	var out flags
	flag.StringVar(&out.configFile, "config", "", "The operator's configuration file. Empty, or in an empty folder: no Prometheus endpoints and no receivers.")
	flag.BoolVar(&out.leaderElect, "leader-elect", false, "Let only one of several replicas act; the others observe and take over.")
	flag.StringVar(&out.leaseNamespace, "leader-election-namespace", "", "The namespace of the lease. Empty: the one that the pod runs in.")
	flag.StringVar(&out.metricsAddress, "metrics-bind-address", ":8443", "The address of the metrics endpoint. 0: none.")
	flag.BoolVar(&out.metricsInsecure, "metrics-insecure", false, "Serve metrics over HTTP without authentication, for tests on one machine.")
	flag.StringVar(&out.metricsCertDir, "metrics-cert-dir", "", "The directory of tls.crt and tls.key of the metrics endpoint. Empty: a self-signed certificate.")
	flag.StringVar(&out.probeAddress, "health-probe-bind-address", ":8081", "The address of /healthz and /readyz. 0: none.")
	flag.IntVar(&out.concurrency, "concurrency", 8, "How many AITasks are reconciled at the same time.")
	flag.BoolVar(&out.printVersion, "version", false, "Print the version and exit.")
	out.zap.StacktraceLevel = zapcore.DPanicLevel // an error says what was being done to which object
	out.zap.BindFlags(flag.CommandLine)
	flag.Parse()
	out.unexpected = flag.Arg(0)
	return out
}

func run(ctx context.Context, given flags) error {
	if given.unexpected != "" { // what stands after it would be ignored
		return fmt.Errorf("unexpected argument %q: write every flag as --name=value", given.unexpected)
	}
	if given.concurrency < 1 {
		return fmt.Errorf("--concurrency is %d: write 1 or more", given.concurrency)
	}
	kubeconfig, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	settings, err := load(given.configFile)
	if err != nil {
		return err
	}
	mgr, err := operator.New(ctx, operator.Options{
		Config:                  kubeconfig,
		Version:                 version,
		Logger:                  logf.Log,
		Clock:                   clock.RealClock{},
		Endpoints:               endpoints(settings),
		Receivers:               receivers(settings),
		Storm:                   storm(settings),
		LeaderElection:          given.leaderElect,
		LeaderElectionNamespace: given.leaseNamespace,
		Concurrency:             given.concurrency,
		Metrics:                 metricsOptions(given),
		ProbeAddress:            given.probeAddress,
		Registry:                ctrlmetrics.Registry,
	})
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := watchConfiguration(mgr, given, settings, end); err != nil {
		return err
	}
	logf.Log.Info("Starting", "version", version)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

// watchConfiguration ends the process when the file has changed.
func watchConfiguration(mgr ctrl.Manager, given flags, running config.Config, end func()) error {
	if given.configFile == "" {
		return nil
	}
	watch := &config.Watch{Path: given.configFile, Running: running, End: end, Clock: clock.RealClock{}, Logger: logf.Log}
	if given.leaderElect {
		watch.Leads = mgr.Elected()
	}
	if err := mgr.Add(watch); err != nil {
		return fmt.Errorf("watch the configuration: %w", err)
	}
	return nil
}

func load(path string) (config.Config, error) {
	if path == "" {
		return config.Parse("", nil)
	}
	settings, found, err := config.Load(path)
	if err == nil && !found {
		logf.Log.Info("Found no configuration: there are no Prometheus endpoints and no receivers", "file", path)
	}
	return settings, err
}

// metricsOptions serves metrics over HTTPS to those whom the API server authenticates and authorizes. HTTP/2 is off: of its
// attacks on servers (CVE-2023-44487, CVE-2023-39325), HTTP/1.1 knows none.
func metricsOptions(given flags) metricsserver.Options {
	options := metricsserver.Options{BindAddress: given.metricsAddress}
	if given.metricsInsecure {
		return options
	}
	options.SecureServing = true
	options.CertDir = given.metricsCertDir
	options.FilterProvider = filters.WithAuthenticationAndAuthorization
	options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	return options
}

func endpoints(settings config.Config) []signal.PrometheusEndpoint {
	var out []signal.PrometheusEndpoint
	for _, from := range settings.PrometheusEndpoints {
		endpoint := signal.PrometheusEndpoint{
			Name: from.Name, URL: from.URL, Timeout: time.Duration(from.TimeoutSeconds) * time.Second,
			BearerTokenFile: from.BearerTokenFile, CAFile: from.CAFile, InsecureSkipTLSVerify: from.InsecureSkipTLSVerify,
		}
		if from.BasicAuth != nil {
			endpoint.Username, endpoint.PasswordFile = from.BasicAuth.Username, from.BasicAuth.PasswordFile
		}
		out = append(out, endpoint)
	}
	return out
}

func receivers(settings config.Config) []action.Receiver {
	var out []action.Receiver
	for _, from := range settings.Receivers {
		out = append(out, action.Receiver{
			Name: from.Name, URL: from.URL, Timeout: time.Duration(from.TimeoutSeconds) * time.Second,
			BearerTokenFile: from.BearerTokenFile, CAFile: from.CAFile, Headers: from.Headers,
		})
	}
	return out
}

func storm(settings config.Config) controller.Storm {
	return controller.Storm{
		BreachedPercent: int(settings.Storm.BreachedPercent), MinimumTargets: int(settings.Storm.MinimumTargets),
		Within: time.Duration(settings.Storm.WithinSeconds) * time.Second, Calm: time.Duration(settings.Storm.CalmSeconds) * time.Second,
	}
}
