package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
)

// rest is after how long without work a process has given back the memory that it only needed at its start.
const rest = 150 * time.Second

// empty measures the operator's memory while there is nothing to look at.
func (b *bench) empty(ctx context.Context) (err error) {
	process, err := b.startOperator(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	if b.emptyMemory, err = b.reportMemory("memory (0 tasks)", process.PID()); err != nil {
		return err
	}
	return b.stopOperators()
}

// coldStart starts the operator among tasks that nobody has ever judged, and once more when all of them are.
func (b *bench) coldStart(ctx context.Context) error {
	if err := b.stopOperators(); err != nil {
		return err
	}
	if err := b.admin.DeleteAllOf(ctx, &aiopsv1.AITask{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete the AITasks: %w", err)
	}
	b.created = 0
	gone := func(all map[string]*aiopsv1.AITask) bool { return len(all) == 0 }
	if err := b.aitasks.wait(ctx, "the AITasks to be gone", gone); err != nil {
		return err
	}
	if err := b.grow(ctx, b.tasks); err != nil {
		return err
	}
	if err := b.createTasks(ctx, b.tasks); err != nil {
		return err
	}
	if err := b.firstStart(ctx); err != nil {
		return err
	}
	if err := b.stopOperators(); err != nil {
		return err
	}
	return b.secondStart(ctx)
}

func (b *bench) firstStart(ctx context.Context) error {
	where := fmt.Sprintf("cold start (%d new tasks)", b.tasks)
	process, err := b.startOperator(ctx)
	if err != nil {
		return err
	}
	filled := time.Since(process.Started)
	err = b.aitasks.wait(ctx, "every AITask to have a verdict", func(all map[string]*aiopsv1.AITask) bool {
		return count(all, func(task *aiopsv1.AITask) bool {
			return len(task.Status.Signals) > 0 && task.Status.Signals[0].Verdict != ""
		}) == b.tasks
	})
	if err != nil {
		return err
	}
	judged := time.Since(process.Started)
	b.results.add(where, "process start -> caches filled", filled.Seconds(), "s")
	b.results.addWithGoal(where, "process start -> all judged and written", judged.Seconds(), "s", 10)
	b.results.add(where, "caches filled -> all judged and written", (judged - filled).Seconds(), "s")
	computed, err := processorTime(process.PID())
	if err != nil {
		return err
	}
	b.results.add(where, "CPU time of the operator", computed.Seconds(), "s")
	if err := b.judged(ctx); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	_, err = b.reportMemory(fmt.Sprintf("memory (%d tasks, cold start)", b.tasks), process.PID())
	return err
}

// reportMemory returns what the process itself holds, in KiB: resident memory without the pages of its program file, of which
// the kernel keeps as many as it likes.
func (b *bench) reportMemory(where string, number int) (float64, error) {
	for _, line := range []struct{ key, name string }{{"VmRSS", "resident"}, {"VmHWM", "resident, highest"}} {
		kibibytes, err := memory(number, line.key)
		if err != nil {
			return 0, err
		}
		b.results.add(where, line.name, kibibytes/1024, "MiB")
	}
	own, err := memory(number, "RssAnon")
	if err != nil {
		return 0, err
	}
	b.results.add(where, "resident, without the program file", own/1024, "MiB")
	return own, nil
}

// secondStart is a restart among tasks that are all judged: nothing is left to write.
func (b *bench) secondStart(ctx context.Context) error {
	where := fmt.Sprintf("restart (%d judged tasks)", b.tasks)
	mark, err := b.cluster.AuditMark()
	if err != nil {
		return err
	}
	process, err := b.startOperator(ctx)
	if err != nil {
		return err
	}
	b.results.add(where, "process start -> caches filled", time.Since(process.Started).Seconds(), "s")
	if err := pause(ctx, 2*settle); err != nil {
		return err
	}
	events, err := b.requestsSince(mark)
	if err != nil {
		return err
	}
	writes := countWhere(events, func(event cluster.AuditEvent) bool { return isWrite(event) && !isElection(event) })
	b.results.addWithGoal(where, "writes", float64(writes), "", 0)
	// The runtime collects what the start left behind after two minutes without allocations, and gives it back in the background.
	progress("waiting for the memory of %d tasks to settle", b.tasks)
	if err := pause(ctx, rest); err != nil {
		return err
	}
	own, err := b.reportMemory(fmt.Sprintf("memory (%d tasks, %s after a restart)", b.tasks, rest), process.PID())
	if err != nil {
		return err
	}
	b.results.addWithGoal(where, "memory per task, with its target", (own-b.emptyMemory)/float64(b.tasks), "KiB", 15)
	return nil
}
