// Command cluster starts and stops the embedded Kubernetes from the command line.
//
//	cluster up [--dir D] [--nodes N] [--metrics-server] [--audit]   start it, or find it running, and print how to use it
//	cluster down [--dir D]                                          end exactly what up started
//	cluster build [name...]                                         build programs ahead of time; all of them without a name
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/example/aiops-operator/test/cluster"
)

const usage = `usage:
  cluster up [--dir D] [--nodes N] [--metrics-server] [--audit]
  cluster down [--dir D]
  cluster build [name...]`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1)
	}
}

// run keeps what a script may read (out) apart from progress (log).
func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	if len(arguments) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	switch command, rest := arguments[0], arguments[1:]; command {
	case "up":
		return up(ctx, rest, out, log)
	case "down":
		return down(rest, log)
	case "build":
		return build(ctx, rest, out, log)
	default:
		return fmt.Errorf("no command %q\n%s", command, usage)
	}
}

func up(ctx context.Context, arguments []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	dir := dirFlag(flags)
	nodes := flags.Int("nodes", 0, "number of simulated nodes; 0 means 3, below 0 none")
	metricsServer := flags.Bool("metrics-server", false, "serve the metrics API too")
	audit := flags.Bool("audit", false, "record every write in logs/audit.log")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	folder, err := stateFolder(*dir)
	if err != nil {
		return err
	}
	running, err := cluster.Open(folder)
	if errors.Is(err, cluster.ErrNotRunning) {
		running, err = cluster.Start(ctx, cluster.Options{
			Dir: folder, Nodes: *nodes, MetricsServer: *metricsServer, Audit: *audit, Log: log, KeepOnExit: true,
		})
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "export KUBECONFIG=%s\n", running.KubeconfigFile())
	return nil
}

func down(arguments []string, log io.Writer) error {
	flags := flag.NewFlagSet("down", flag.ContinueOnError)
	dir := dirFlag(flags)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	folder, err := stateFolder(*dir)
	if err != nil {
		return err
	}
	running, err := cluster.Open(folder)
	if errors.Is(err, cluster.ErrNotRunning) {
		fmt.Fprintln(log, "no cluster runs in", folder)
		return nil
	}
	if err != nil {
		return err
	}
	if err := running.Stop(); err != nil {
		return err
	}
	fmt.Fprintln(log, "cluster down")
	return nil
}

func build(ctx context.Context, names []string, out, log io.Writer) error {
	if len(names) == 0 {
		names = cluster.ProgramNames()
	}
	paths, err := cluster.Build(ctx, log, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Fprintln(out, paths[name])
	}
	return nil
}

func dirFlag(flags *flag.FlagSet) *string {
	return flags.String("dir", "", "folder for the cluster's state; default: cluster in the cache folder")
}

func stateFolder(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	cache, err := cluster.CacheFolder()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "cluster"), nil
}
