package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
)

// empty measures the operator's memory while there is nothing to look at.
func (b *bench) empty(ctx context.Context) (err error) {
	process, err := b.startOperator(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	if b.emptyMemory, err = memory(process.PID(), "VmRSS"); err != nil {
		return err
	}
	b.results.add("memory", "resident, without tasks", b.emptyMemory/1024, "MiB")
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
	if err := b.judged(ctx); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	return b.reportMemory(process.PID())
}

func (b *bench) reportMemory(number int) error {
	resident, err := memory(number, "VmRSS")
	if err != nil {
		return err
	}
	highest, err := memory(number, "VmHWM")
	if err != nil {
		return err
	}
	where := fmt.Sprintf("memory (%d tasks)", b.tasks)
	b.results.add(where, "resident, after the cold start", resident/1024, "MiB")
	b.results.add(where, "highest", highest/1024, "MiB")
	b.results.addWithGoal(where, "per task, with its target", (resident-b.emptyMemory)/float64(b.tasks), "KiB", 15)
	return nil
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
	resident, err := memory(process.PID(), "VmRSS")
	if err != nil {
		return err
	}
	b.results.add(where, "resident", resident/1024, "MiB")
	b.results.addWithGoal(where, "memory per task, with its target", (resident-b.emptyMemory)/float64(b.tasks), "KiB", 15)
	return nil
}
