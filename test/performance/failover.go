package main

import (
	"context"
	"fmt"
	"time"

	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// failover ends the leader, in order and as a crash would, and measures when the standby acts.
func (b *bench) failover(ctx context.Context) error {
	if err := b.ensure(ctx, b.tasks); err != nil {
		return err
	}
	// From the end, so that no task is used twice.
	took, err := b.replaceLeader(ctx, nameOf(b.tasks-1), (*harness.Process).Stop)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("failover (%d tasks)", b.tasks)
	b.results.addWithGoal(where, "leader asked to stop -> standby's action", took.Seconds(), "s", 5)
	took, err = b.replaceLeader(ctx, nameOf(b.tasks-2), func(p *harness.Process) error { p.Kill(); return nil })
	if err != nil {
		return err
	}
	b.results.add(where, "leader killed -> standby's action (lease of 15 s)", took.Seconds(), "s")
	return nil
}

// replaceLeader starts a standby, ends the leader, breaks a workload and returns how long after the beginning of the end the
// standby's patch was applied.
func (b *bench) replaceLeader(ctx context.Context, name string, end func(*harness.Process) error) (time.Duration, error) {
	standby, err := b.startOperator(ctx)
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, settle); err != nil {
		return 0, err
	}
	mark, err := b.cluster.AuditMark()
	if err != nil {
		return 0, err
	}
	leader := b.running[0]
	b.running = []*harness.Process{standby}
	began := time.Now()
	if err := end(leader); err != nil {
		return 0, err
	}
	if _, err := b.breakOne(ctx, name); err != nil {
		return 0, err
	}
	events, err := b.cluster.AuditEventsSince(mark, func(event cluster.AuditEvent) bool {
		return event.User == operatorUser && event.Verb == "patch" && event.Resource == "deployments" && event.Name == name
	})
	if err != nil {
		return 0, err
	}
	if len(events) != 1 {
		return 0, fmt.Errorf("%s was patched %d times, not once", name, len(events))
	}
	return events[0].Completed.Sub(began), nil
}
