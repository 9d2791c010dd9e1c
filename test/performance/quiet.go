package main

import (
	"context"
	"fmt"
	"time"

	"github.com/example/aiops-operator/test/cluster"
)

// settle is how long the last events of what went before take to be written.
const settle = 5 * time.Second

// quiet watches what the operator does while every task is healthy.
func (b *bench) quiet(ctx context.Context) error {
	if err := b.ensure(ctx, b.quietTasks); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	mark, err := b.cluster.AuditMark()
	if err != nil {
		return err
	}
	number := b.running[0].PID()
	before, err := processorTime(number)
	if err != nil {
		return err
	}
	progress("watching %d healthy tasks for %d s", b.created, b.quietSeconds)
	if err := pause(ctx, time.Duration(b.quietSeconds)*time.Second); err != nil {
		return err
	}
	after, err := processorTime(number)
	if err != nil {
		return err
	}
	events, err := b.requestsSince(mark)
	if err != nil {
		return err
	}
	b.reportQuiet(events, after-before)
	return nil
}

func (b *bench) reportQuiet(events []cluster.AuditEvent, computed time.Duration) {
	where := fmt.Sprintf("quiet (%d tasks, %d s)", b.created, b.quietSeconds)
	writes := countWhere(events, func(event cluster.AuditEvent) bool { return isWrite(event) && !isElection(event) })
	reads := countWhere(events, func(event cluster.AuditEvent) bool { return !isWrite(event) && !isElection(event) })
	b.results.addWithGoal(where, "writes", float64(writes), "", 0)
	b.results.add(where, "writes of the leader election", float64(countWhere(events, func(event cluster.AuditEvent) bool { return isWrite(event) && isElection(event) })), "")
	b.results.add(where, "reads", float64(reads), "")
	b.results.add(where, "CPU time", computed.Seconds(), "s")
	b.results.addWithGoal(where, "share of one core", 100*computed.Seconds()/float64(b.quietSeconds), "%", 5)
}
