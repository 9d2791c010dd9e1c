package chaos_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// replacement is when the workload is deleted and created again, and whether the process dies at that moment.
type replacement struct {
	action  aiopsv1.ActionType
	when    moment
	crashed bool
}

// String names the variant.
func (r replacement) String() string {
	return fmt.Sprintf("%s: %s, the process dies: %t", r.action, r.when, r.crashed)
}

func replacements() []replacement {
	var out []replacement
	for _, action := range []aiopsv1.ActionType{aiopsv1.ActionRestart, aiopsv1.ActionScale, aiopsv1.ActionRollback, aiopsv1.ActionEvict} {
		for _, when := range []moment{atActing, atVerifying} {
			out = append(out, replacement{action, when, false}, replacement{action, when, true})
		}
	}
	return out
}

var _ = Describe("A workload that is deleted and created again in the middle of an incident", func() {
	It("sees nothing of the incident, which ends without success", func(ctx context.Context) {
		inParallel(replacements(), func(t *try, variant replacement) *incident {
			in := prepare(ctx, t, variant.action, variant.when.lasts)
			process := t.start(in.namespace)
			in.settle()
			in.replaceAt(variant, process)

			t.Eventually(in.phase).Should(Equal(aiopsv1.PhaseWatching))
			in.isUntouched()
			t.Consistently(in.phase).Should(Equal(aiopsv1.PhaseWatching))
			in.isUntouched()
			status := in.task().Status
			t.Expect(status.Incident).To(BeNil())
			t.Expect(status.Order).To(BeNil())
			t.Expect(status.History).NotTo(BeEmpty())
			for _, entry := range status.History {
				t.Expect(entry.Result).To(BeElementOf(aiopsv1.ResultSuperseded, aiopsv1.ResultCancelled, aiopsv1.ResultWithdrawn, aiopsv1.ResultRefused), entry.Message)
				t.Expect(entry.Reason).To(BeElementOf(aiopsv1.ReasonTargetReplaced, aiopsv1.ReasonTargetNotFound), entry.Message)
			}
			return in
		})
	})
})

// replaceAt begins the incident and replaces the workload at the moment.
func (in *incident) replaceAt(variant replacement, process *process) {
	if variant.when == atVerifying {
		in.begin()
		in.t.Eventually(in.phase).Should(Equal(aiopsv1.PhaseVerifying))
		if variant.crashed {
			process.crash()
		}
		in.replace()
		if variant.crashed {
			in.t.start(in.namespace)
		}
		return
	}
	held := process.wire.hold("patch deployments")
	in.begin()
	in.t.Eventually(held.reached).Should(BeClosed())
	in.replace()
	if variant.crashed {
		process.crash()
		in.t.start(in.namespace)
	}
	held.release()
}

// replace deletes the Deployment and creates a healthy one of the same name.
func (in *incident) replace() {
	in.t.Expect(admin.Delete(in.ctx, in.deployment())).To(Succeed())
	in.t.Eventually(func() error { return admin.Create(in.ctx, in.newDeployment()) }).Should(Succeed())
	in.t.Eventually(in.available).Should(BeEquivalentTo(replicas))
}

// isUntouched says that the workload is as it was created.
func (in *incident) isUntouched() {
	deployment := in.deployment()
	in.t.Expect(deployment.Generation).To(BeEquivalentTo(1))
	in.t.Expect(deployment.Annotations).NotTo(HaveKey(aiopsv1.LastOrderAnnotation))
}
