package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

const (
	// namespace is where tasks and workloads are.
	namespace = "bench"
	// writers is how many objects are created at the same time.
	writers = 8
	// patience bounds every wait for the cluster: creating a thousand workloads on a busy laptop takes its time.
	patience = 10 * time.Minute
)

// bench is a cluster, the operator on it, and what was measured so far.
type bench struct {
	settings
	results *results
	cluster *cluster.Cluster
	admin   client.WithWatch
	// operators counts the processes that were started, for their names.
	operators int
	running   []*harness.Process

	// emptyMemory is what a process without tasks holds, in KiB.
	emptyMemory float64

	deployments *tracker[*appsv1.Deployment]
	aitasks     *tracker[*aiopsv1.AITask]
	workloads   int
	created     int
}

// start brings the cluster up, without an operator and without workloads. What was started is in the bench even if it fails.
func start(ctx context.Context, given settings) (*bench, error) {
	b := &bench{settings: given, results: newResults()}
	var err error
	if b.program == "" {
		if b.program, err = harness.BuildOperator(ctx); err != nil {
			return b, err
		}
	}
	if b.cluster, err = cluster.Start(ctx, cluster.Options{AuditReads: true, Log: os.Stderr}); err != nil {
		return b, err
	}
	if b.admin, err = harness.NewClient(b.cluster.Config()); err != nil {
		return b, err
	}
	if err := harness.Install(ctx, b.admin); err != nil {
		return b, err
	}
	if err := b.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return b, fmt.Errorf("create the namespace: %w", err)
	}
	if b.deployments, err = track[*appsv1.Deployment](ctx, b.admin, &appsv1.DeploymentList{}); err != nil {
		return b, err
	}
	b.aitasks, err = track[*aiopsv1.AITask](ctx, b.admin, &aiopsv1.AITaskList{})
	return b, err
}

// stop ends everything.
func (b *bench) stop() error {
	problems := []error{b.stopOperators()}
	if b.cluster != nil && b.keepAudit != "" {
		problems = append(problems, copyFile(filepath.Join(b.cluster.Dir(), "logs", "audit.log"), b.keepAudit))
	}
	if b.cluster != nil {
		problems = append(problems, b.cluster.Stop())
	}
	return errors.Join(problems...)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// startOperator starts one more process and returns when its caches are filled.
func (b *bench) startOperator(ctx context.Context) (*harness.Process, error) {
	b.operators++
	process, err := harness.StartProcess(ctx, b.cluster, b.program, harness.ProcessOptions{
		Name: fmt.Sprintf("operator-%d", b.operators), Flags: strings.Fields(b.operatorFlags),
	})
	if err != nil {
		return nil, err
	}
	b.running = append(b.running, process)
	return process, process.WaitReady(ctx)
}

func (b *bench) stopOperators() error {
	var problems []error
	for _, process := range b.running {
		problems = append(problems, process.Stop())
	}
	b.running = nil
	return errors.Join(problems...)
}

func nameOf(number int) string { return fmt.Sprintf("web-%04d", number) }

// grow creates Deployments up to this number, and returns when all of them are available.
func (b *bench) grow(ctx context.Context, to int) error {
	if b.workloads >= to {
		return nil
	}
	progress("creating %d Deployments", to-b.workloads)
	err := inParallel(b.workloads, to, func(number int) error {
		return b.admin.Create(ctx, harness.Deployment(namespace, nameOf(number), 1, "bench/web:1"))
	})
	if err != nil {
		return fmt.Errorf("create Deployments: %w", err)
	}
	b.workloads = to
	return b.deployments.wait(ctx, "the Deployments to be available", func(all map[string]*appsv1.Deployment) bool {
		return len(all) == to && count(all, func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 1 }) == to
	})
}

// createTasks creates AITasks up to this number.
func (b *bench) createTasks(ctx context.Context, to int) error {
	progress("creating %d AITasks", max(0, to-b.created))
	err := inParallel(b.created, to, func(number int) error {
		return b.admin.Create(ctx, b.task(nameOf(number)))
	})
	if err != nil {
		return fmt.Errorf("create AITasks: %w", err)
	}
	b.created = max(b.created, to)
	return nil
}

// task acts at the first reading and believes recovery at once, so that incidents follow each other quickly.
func (b *bench) task(name string) *aiopsv1.AITask {
	task := harness.Task(namespace, name, aiopsv1.ShortAction(b.action))
	task.Spec.RecoverySeconds = harness.Of[int32](0)
	if b.action == string(aiopsv1.ActionScale) {
		task.Spec.Action = ""
		task.Spec.Steps = []aiopsv1.Step{{Name: "more", Action: aiopsv1.ActionScale, Scale: &aiopsv1.ScaleStep{By: harness.Of[int32](1), Max: harness.Of[int32](3)}}}
	}
	return task
}

// judged waits until every task has a verdict and its workload's revision is proven: from then on nothing is left to write.
func (b *bench) judged(ctx context.Context) error {
	return b.aitasks.wait(ctx, "the AITasks to be judged", func(all map[string]*aiopsv1.AITask) bool {
		return count(all, isProven) == b.created
	})
}

func isProven(task *aiopsv1.AITask) bool {
	return task.Status.Phase == aiopsv1.PhaseWatching && task.Status.Target != nil && task.Status.Target.HealthyRevision != ""
}

// ensure has so many tasks, judged, with one operator running.
func (b *bench) ensure(ctx context.Context, tasks int) error {
	if len(b.running) == 0 {
		if _, err := b.startOperator(ctx); err != nil {
			return err
		}
	}
	if err := b.grow(ctx, tasks); err != nil {
		return err
	}
	if err := b.createTasks(ctx, tasks); err != nil {
		return err
	}
	return b.judged(ctx)
}

func progress(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
}
