package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
)

// wipe replaces the task's status with an empty one.
func (in *incident) wipe() {
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/status","value":{}}]`))
	in.t.Expect(admin.Status().Patch(in.ctx, &aiopsv1.AITask{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: in.name}}, patch)).To(Succeed())
}

// wiping is when somebody wipes the status, and whether the process dies at that moment.
type wiping struct {
	action  aiopsv1.ActionType
	when    moment
	crashed bool
}

// String names the variant.
func (w wiping) String() string {
	return fmt.Sprintf("%s: %s, the process dies: %t", w.action, w.when, w.crashed)
}

func wipings() []wiping {
	var out []wiping
	for _, action := range []aiopsv1.ActionType{aiopsv1.ActionRestart, aiopsv1.ActionScale, aiopsv1.ActionEvict} {
		for _, when := range moments() {
			out = append(out, wiping{action, when, false}, wiping{action, when, true})
		}
	}
	return out
}

var _ = Describe("A status that is wiped in the middle of an incident", func() {
	It("leads to no second action", func(ctx context.Context) {
		mark := auditMark()
		incidents := inParallel(wipings(), func(t *try, variant wiping) *incident {
			in := prepare(ctx, t, variant.action, variant.when.lasts, func(task *aiopsv1.AITask) {
				if variant.when == atBreach {
					task.Spec.ForSeconds = harness.Of[int32](4) // as the other moments, it lasts until it is seen
				}
			})
			process := t.start(in.namespace)
			in.settle()
			in.wipeAt(variant, process)
			t.Eventually(func() bool {
				in.play()
				return in.isWellAgain()
			}).Should(BeTrue())
			t.Eventually(in.phase).Should(Equal(aiopsv1.PhaseWatching))
			t.Consistently(in.phase).Should(Equal(aiopsv1.PhaseWatching))
			in.isActedOnOnce()
			return in
		})
		sawOneActionEach(mark, incidents)
	})

	It("keeps the cooldown, since the workload bears it", func(ctx context.Context) {
		const cooldown = 10
		alone("a workload that a restart does not heal", func(t *try) {
			in := prepare(ctx, t, aiopsv1.ActionRollback, func(task *aiopsv1.AITask) {
				task.Spec.Steps[0].Action = aiopsv1.ActionRestart
				task.Spec.Limits = &aiopsv1.Limits{CooldownSeconds: harness.Of[int32](cooldown)}
			})
			t.start(in.namespace)
			in.settle()
			in.begin()
			t.Eventually(in.phase).Should(Equal(aiopsv1.PhaseVerifying))
			first := in.stamp()
			in.wipe()
			t.Eventually(in.reason).Should(Equal(aiopsv1.ReasonCooldown))
			in.wipe()
			t.Eventually(in.reason).Should(Equal(aiopsv1.ReasonCooldown))
			t.Eventually(in.stamp).ShouldNot(Equal(first))
			t.Expect(in.stamp().Sub(first)).To(BeNumerically(">=", cooldown*time.Second))
			t.Expect(in.deployment().Generation).To(Equal(in.generation + 2))
		})
	})
})

// wipeAt begins the incident and wipes the status at the moment.
func (in *incident) wipeAt(variant wiping, process *process) {
	switch variant.when {
	case atBreach:
		in.begin()
		in.t.Eventually(in.phase).Should(Equal(aiopsv1.PhaseBreached))
		in.wipe()
	case atActing:
		held := process.wire.hold("patch deployments")
		in.begin()
		in.t.Eventually(held.reached).Should(BeClosed())
		in.wipe()
		held.release()
		in.t.Eventually(func() bool { return in.isDone() || in.isLost(held) }).Should(BeTrue())
	case atVerifying:
		in.begin()
		in.t.Eventually(in.phase).Should(Equal(aiopsv1.PhaseVerifying))
		in.wipe()
	}
	if variant.crashed {
		process.crash()
		in.t.start(in.namespace)
	}
}

// isLost says that an eviction ended after its first write, and helps: on a machine so slow that the action's time is up while it is held,
// the operator would carry out the rest of its order in the next pass, but with the status the order was wiped. The stamp keeps it from
// acting again until the cooldown is over.
func (in *incident) isLost(held *hold) bool {
	in.lost = in.action == aiopsv1.ActionEvict && held.overdue() && in.deployment().Generation == in.generation+1 && in.reason() == aiopsv1.ReasonCooldown
	if in.lost {
		in.heal()
	}
	return in.lost
}

// isDone says that the action was carried out to its end.
func (in *incident) isDone() bool {
	there := in.action == aiopsv1.ActionEvict && !in.lost && slices.Contains(in.podUIDs(), in.broken)
	return in.deployment().Generation == in.generation+1 && !there
}

func (in *incident) isWellAgain() bool {
	deployment := in.deployment()
	return in.isDone() && deployment.Status.ObservedGeneration == deployment.Generation &&
		deployment.Status.AvailableReplicas == *deployment.Spec.Replicas && deployment.Status.Replicas == *deployment.Spec.Replicas
}

// isActedOnOnce says that the workload's generation and stamp speak of one action, whatever the task's status remembers.
func (in *incident) isActedOnOnce() {
	in.t.Expect(in.deployment().Generation).To(Equal(in.generation + 1))
	in.t.Expect(in.deployment().Annotations).To(HaveKey(aiopsv1.LastOrderAnnotation))
}

// stamp is when the workload was acted on last, as it bears it itself.
func (in *incident) stamp() time.Time {
	stamp, err := time.Parse(time.RFC3339, in.deployment().Annotations[aiopsv1.LastActionTimeAnnotation])
	in.t.Expect(err).NotTo(HaveOccurred())
	return stamp
}

func (in *incident) reason() string {
	decision := in.task().Status.Decision
	if decision == nil {
		return ""
	}
	return decision.Reason
}
