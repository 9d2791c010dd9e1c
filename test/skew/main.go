// Command skew runs test suites against the control plane of every Kubernetes that the operator is meant for, the oldest first, and
// prints which passed as a table.
//
//	skew [--kubernetes 1.34,1.35] [package...]
//
// A control plane that was never built before takes about ten minutes.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/example/aiops-operator/test/cluster"
)

// grace is how long interrupted tests may take to end.
const grace = 30 * time.Second

var errFailed = errors.New("not everything passed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "skew:", err)
		stop()
		os.Exit(1)
	}
}

// run prints the table to out and everything else to log.
func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	known := cluster.KubernetesVersions()
	slices.Reverse(known)
	flags := flag.NewFlagSet("skew", flag.ContinueOnError)
	chosen := flags.String("kubernetes", strings.Join(known, ","), "minor versions of Kubernetes, separated by commas")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	packages := flags.Args()
	if len(packages) == 0 {
		packages = []string{"./test/integration/...", "./test/lifecycle/..."}
	}
	versions := strings.Split(*chosen, ",")
	results := map[string]map[string]string{}
	var problems []error
	for _, version := range versions {
		found, err := try(ctx, log, version, packages)
		results[version] = found
		if err != nil {
			problems = append(problems, fmt.Errorf("kubernetes %s: %w", version, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	writeTable(out, versions, results)
	return errors.Join(problems...)
}

// try runs the packages against one version and returns what came of each.
func try(ctx context.Context, log io.Writer, version string, packages []string) (map[string]string, error) {
	if err := os.Setenv(cluster.KubernetesVariable, version); err != nil {
		return nil, fmt.Errorf("choose the version: %w", err)
	}
	fmt.Fprintln(log, "Kubernetes", version)
	// Ahead of the tests, whose time is bounded.
	if _, err := cluster.Build(ctx, log, "kube-apiserver", "kube-controller-manager", "kube-scheduler"); err != nil {
		return nil, err
	}
	var printed bytes.Buffer
	// One after another, since packages share the machine, and never from the cache, which does not know the cluster.
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-p", "1", "-count", "1", "-timeout", "30m"}, packages...)...)
	command.Stdout, command.Stderr = io.MultiWriter(&printed, log), log
	// An interrupt reaches the tests below go test too, which end their clusters in order.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = grace
	err := command.Run()
	results := parse(printed.String())
	switch {
	case err != nil && ctx.Err() != nil:
		return results, ctx.Err()
	case err != nil:
		return results, errFailed
	case len(results) == 0:
		return nil, fmt.Errorf("no tests in %s", strings.Join(packages, " "))
	}
	return results, nil
}

// parse reads what go test says about each package: how long it took, or that it failed.
func parse(printed string) map[string]string {
	results := map[string]string{}
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 3 || !strings.Contains(fields[1], "/"):
		case fields[0] == "ok":
			results[fields[1]] = fields[2]
		case fields[0] == "FAIL":
			results[fields[1]] = "FAILED"
		}
	}
	return results
}

// writeTable prints one row for each package and one column for each version, in Markdown.
func writeTable(out io.Writer, versions []string, results map[string]map[string]string) {
	var packages []string
	for _, found := range results {
		for name := range found {
			packages = append(packages, name)
		}
	}
	slices.Sort(packages)
	fmt.Fprintf(out, "| suite | %s |\n|---%s|\n", strings.Join(versions, " | "), strings.Repeat("|---", len(versions)))
	for _, name := range slices.Compact(packages) {
		cells := []string{suite(name)}
		for _, version := range versions {
			result := results[version][name]
			if result == "" {
				result = "not run"
			}
			cells = append(cells, result)
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	}
}

// suite is the folder below test of a package, for the table.
func suite(name string) string {
	if _, below, found := strings.Cut(name, "/test/"); found {
		return below
	}
	return path.Base(name)
}
