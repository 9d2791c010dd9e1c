package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	defaultNodes = 3
	// startAttempts bounds how often a start is tried again because another process took a port.
	startAttempts = 3
	// startTimeout bounds one start once the programs are built: generous, because a laptop may be busy.
	startTimeout = 90 * time.Second
)

// Options say what kind of cluster to start. The zero value is a control plane with three nodes in a temporary folder.
type Options struct {
	// Dir is the folder for the cluster's state, emptied of an earlier cluster's. Default: a temporary folder that Stop removes.
	Dir string
	// Nodes is the number of simulated nodes, each with 32 CPUs and 256 GiB. Default (0): 3. Below 0: none.
	Nodes int
	// MetricsServer also runs metrics-server, fed with what the annotations [CPUAnnotation] and [MemoryAnnotation] say.
	MetricsServer bool
	// Audit records every write request; see [Cluster.AuditEvents].
	Audit bool
	// AuditReads records get, list and watch requests too. It implies Audit.
	AuditReads bool
	// Log receives progress lines. Default: none.
	Log io.Writer
	// KeepOnExit leaves the cluster running when this process ends, for the command line; [Open] finds it again. Otherwise
	// the kernel ends the cluster's processes with this one (on Linux), even when it is killed.
	KeepOnExit bool
}

// Cluster is a running control plane. Its methods may be called from several goroutines, except Stop.
type Cluster struct {
	dir       string
	temporary bool
	options   Options
	// controlPlane is what runs; its minor version is also the nodes'.
	controlPlane release
	programs     map[string]string
	ports        ports
	config       *rest.Config
	client       kubernetes.Interface
	authority    *keyPair
	launcher     *launcher
	processes    []*process
}

// ErrAlreadyRunning is returned by Start when a cluster that was started earlier still runs in Options.Dir.
var ErrAlreadyRunning = errors.New("a cluster already runs in this folder")

// Start builds what is missing and starts a cluster. It returns when the nodes are ready, pods can be created and, if asked
// for, the metrics API is served. If it fails nothing is left running, and the error holds the end of the failing
// program's log.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if options.Log == nil {
		options.Log = io.Discard
	}
	programs, err := Build(ctx, options.Log, options.programNames()...)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		started, err := startOnce(ctx, options, programs)
		if err == nil || attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return started, err
		}
	}
}

func (o Options) programNames() []string {
	names := []string{etcdProgram, apiServerProgram, controllerManagerProgram, schedulerProgram, kwokProgram}
	if o.MetricsServer {
		names = append(names, metricsServerProgram)
	}
	return names
}

func startOnce(ctx context.Context, options Options, programs map[string]string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	began := time.Now()
	controlPlane, err := chosenRelease()
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: options.Dir, options: options, controlPlane: controlPlane, programs: programs}
	if err := c.prepareFolder(); err != nil {
		return nil, err
	}
	c.launcher = newLauncher(options.KeepOnExit)
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the cluster: %w", err), c.Stop())
	}
	fmt.Fprintf(options.Log, "cluster up in %s, state in %s\n", time.Since(began).Round(100*time.Millisecond), c.dir)
	return c, nil
}

// stateFolders are the folders inside the state folder; nothing else in it is touched.
func stateFolders() []string {
	return []string{"certificates", "configuration", "data", "logs", "run"}
}

// prepareFolder makes an empty state folder, or refuses while an earlier cluster runs in it.
func (c *Cluster) prepareFolder() error {
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "aiops-cluster-")
		if err != nil {
			return fmt.Errorf("make a folder for the cluster's state: %w", err)
		}
		c.dir, c.temporary = dir, true
	}
	dir, err := filepath.Abs(c.dir)
	if err != nil {
		return fmt.Errorf("find the state folder %s: %w", c.dir, err)
	}
	c.dir = dir
	running, err := runningIn(c.dir)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		return fmt.Errorf("%s: %w", c.dir, ErrAlreadyRunning)
	}
	if err := c.removeState(); err != nil {
		return err
	}
	for _, folder := range stateFolders() {
		if err := os.MkdirAll(c.path(folder), 0o700); err != nil {
			return fmt.Errorf("make the state folder: %w", err)
		}
	}
	return nil
}

func (c *Cluster) removeState() error {
	for _, folder := range stateFolders() {
		if err := os.RemoveAll(c.path(folder)); err != nil {
			return fmt.Errorf("remove the state of an earlier cluster: %w", err)
		}
	}
	return nil
}

// path is a place below the state folder.
func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

// up brings the programs up in the order in which they need each other.
func (c *Cluster) up(ctx context.Context) error {
	steps := []func(context.Context) error{
		c.choosePorts,
		c.writeConfiguration,
		c.startEtcd,
		c.startAPIServer,
		c.startControllers,
		c.createNodes,
		c.registerMetricsServer,
		c.waitUntilUsable,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends exactly the processes this cluster started, the last one first, and removes the state folder if it was a
// temporary one. A second call does nothing.
func (c *Cluster) Stop() error {
	var problems []error
	for _, running := range slices.Backward(c.processes) {
		if err := running.stop(); err != nil {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, os.RemoveAll(c.path("run", running.name)))
	}
	c.processes = nil
	if c.launcher != nil {
		c.launcher.close()
		c.launcher = nil
	}
	if c.temporary {
		problems = append(problems, os.RemoveAll(c.dir))
	}
	return errors.Join(problems...)
}

// Dir is the state folder: logs/ holds each program's output.
func (c *Cluster) Dir() string { return c.dir }

// startOrder lists the programs that may run in a state folder in the order they are started.
func startOrder() []string {
	return []string{
		etcdProgram, apiServerProgram, controllerManagerProgram, schedulerProgram, kwokProgram, metricsServerProgram, prometheusProgram,
	}
}

// runningIn finds the processes of a cluster that was started in the folder, in the order they were started.
func runningIn(dir string) ([]*process, error) {
	var running []*process
	for _, name := range append(startOrder(), adoptedNames(dir)...) {
		found, err := recall(dir, name)
		if err != nil {
			return nil, err
		}
		if found != nil {
			running = append(running, found)
		}
	}
	return running, nil
}

// ErrNotRunning is returned by Open when no cluster runs in the folder.
var ErrNotRunning = errors.New("no cluster runs in this folder")

// Open finds a cluster again that was started in the folder with Options.KeepOnExit, to use or to stop it.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the state folder %s: %w", dir, err)
	}
	c := &Cluster{dir: dir, options: Options{Dir: dir, Log: io.Discard, KeepOnExit: true}}
	if c.processes, err = runningIn(dir); err != nil {
		return nil, err
	}
	if len(c.processes) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotRunning)
	}
	if c.authority, err = readKeyPair(c.path("certificates"), "cluster"); err != nil {
		return nil, err
	}
	return c, c.readAccess()
}
