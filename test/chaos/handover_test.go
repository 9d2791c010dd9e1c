package chaos_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/operator"
	"github.com/example/aiops-operator/test/harness"
)

// stopAt is where in an action the leader is stopped.
type stopAt string

const (
	beforeSending stopAt = "before the action is sent"
	afterSending  stopAt = "after the action was done and before that is known"
)

var _ = DescribeTable("A leader that is stopped in the middle of an action hands over to its standby",
	func(ctx context.Context, where stopAt) {
		mark := auditMark()
		var in *incident
		alone(string(where), func(t *try) {
			in = prepare(ctx, t, aiopsv1.ActionRestart)
			elected := func(options *operator.Options) { options.LeaderElection = true }
			leader := t.start(in.namespace, elected)
			t.Eventually(leader.operator.Manager.Elected()).Should(BeClosed())
			standby := t.start(in.namespace, elected)
			in.settle()

			standby.wire.arm(0, passes)
			stopped := in.stopInAction(where, leader, standby)
			t.Eventually(standby.wire.counted).ShouldNot(BeEmpty())
			took := time.Since(stopped)
			AddReportEntry(fmt.Sprintf("%s: %s from stop to the standby's first write, %s", where, took.Round(time.Millisecond), standby.wire.counted()[0]))
			t.Expect(took).To(BeNumerically("<", harness.LeaseDuration(in.lease())), "the leader gives its lease back: nobody waits for its end")
			in.ended()
			in.sawOneAction()
			t.Expect(in.leaseHolder()).NotTo(BeEmpty())
			standby.stop(t)
			t.Expect(in.leaseHolder()).To(BeEmpty(), "holder of the lease after the last one has stopped in order")
		})
		sawOneActionEach(mark, []*incident{in})
	},
	Entry(nil, beforeSending),
	Entry(nil, afterSending),
)

// stopInAction begins the incident, stops the leader in the middle of its action and returns when it was told to stop.
func (in *incident) stopInAction(where stopAt, leader, standby *process) time.Time {
	if where == afterSending {
		leader.wire.armFor("patch deployments", hanging)
		in.begin()
		in.t.Eventually(leader.wire.hasMet).Should(BeTrue())
	} else {
		held := leader.wire.hold("patch deployments")
		in.begin()
		in.t.Eventually(held.reached).Should(BeClosed())
	}
	in.t.Expect(standby.wire.counted()).To(BeEmpty(), "writes of the standby while there is a leader")
	now := time.Now()
	leader.stop(in.t)
	return now
}

func (in *incident) lease() *coordinationv1.Lease {
	lease, err := harness.LeaderLease(in.ctx, admin)
	in.t.Expect(err).NotTo(HaveOccurred())
	return lease
}

func (in *incident) leaseHolder() string {
	return ptr.Deref(in.lease().Spec.HolderIdentity, "")
}
