package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// settings are what the flags set.
type settings struct {
	tasks, incidents, quietTasks, quietSeconds int
	only                                       []string
	json                                       bool
	action                                     string
	keepAudit                                  string
	operatorFlags                              string
	program                                    string
}

// sections are the parts of a run, in their order: each needs the tasks of the one before, or more.
func sections() []section {
	return []section{
		{"empty", (*bench).empty},
		{"quiet", (*bench).quiet},
		{"coldstart", (*bench).coldStart},
		{"latency", (*bench).latency},
		{"failover", (*bench).failover},
	}
}

type section struct {
	name    string
	measure func(*bench, context.Context) error
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		stop()
		os.Exit(1)
	}
}

func parse() (settings, error) {
	var out settings
	var only string
	flag.IntVar(&out.tasks, "tasks", 1000, "How many AITasks there are, each with a Deployment of one replica.")
	flag.IntVar(&out.incidents, "incidents", 100, "How many incidents are measured, one after the other.")
	flag.IntVar(&out.quietTasks, "quiet-tasks", 200, "How many healthy AITasks the quiet system has.")
	flag.IntVar(&out.quietSeconds, "quiet-seconds", 120, "How long the quiet system is watched.")
	flag.StringVar(&only, "only", "", "Sections to measure, with commas: empty, quiet, coldstart, latency, failover. Empty: all.")
	flag.BoolVar(&out.json, "json", false, "Print the results as JSON.")
	flag.StringVar(&out.action, "action", "Restart", "The action of the incidents: Restart or Scale.")
	flag.StringVar(&out.keepAudit, "audit", "", "A file to copy the audit log to.")
	flag.StringVar(&out.program, "operator", "", "The operator's program, to compare it with another. Empty: it is built from the present source.")
	flag.StringVar(&out.operatorFlags, "operator-flags", "", "Further flags of the operator, separated by blanks.")
	flag.Parse()
	if only != "" {
		out.only = strings.Split(only, ",")
	}
	for _, name := range out.only {
		if !slices.ContainsFunc(sections(), func(s section) bool { return s.name == name }) {
			return out, fmt.Errorf("--only: there is no section %q", name)
		}
	}
	if out.incidents > out.tasks {
		return out, errors.New("--incidents must not be above --tasks: every incident has a task of its own")
	}
	if out.action != "Restart" && out.action != "Scale" {
		return out, fmt.Errorf("--action: %q is neither Restart nor Scale", out.action)
	}
	return out, nil
}

func run(ctx context.Context) error {
	given, err := parse()
	if err != nil {
		return err
	}
	b, err := start(ctx, given)
	if err == nil {
		err = b.measure(ctx)
	}
	return errors.Join(b.results.print(os.Stdout, given.json), err, b.stop())
}

// measure goes through the sections.
func (b *bench) measure(ctx context.Context) error {
	for _, next := range sections() {
		if len(b.only) > 0 && !slices.Contains(b.only, next.name) {
			continue
		}
		if err := next.measure(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", next.name, err)
		}
	}
	return nil
}
