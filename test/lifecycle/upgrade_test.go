package lifecycle_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

var _ = Describe("Another version of the operator takes over fifty tasks in all phases", Ordered, func() {
	var (
		p            *play
		older, newer version
		// replicas are those of the newer version, and later of the one that was gone back to.
		replicas []*harness.Process
		members  []*member
		letters  *mailbox
		// incident is the member that breaks while the leader is told to end.
		incident *member
		mark     cluster.AuditMark
	)

	BeforeAll(func(ctx context.Context) {
		older, newer = olderOperator(ctx), newerOperator(ctx)
		letters = newMailbox(ctx)
		DeferCleanup(removeAll)
		DeferCleanup(func() {
			for _, replica := range replicas {
				replica.Kill()
			}
		})
		Expect(older.release.Install(ctx, admin)).To(Succeed())
		leader := older.start(ctx, "older-1", letters.configuration())
		DeferCleanup(leader.Kill)
		Eventually(holder(ctx)).ShouldNot(BeEmpty())
		standby := older.start(ctx, "older-2", letters.configuration())
		DeferCleanup(standby.Kill)

		p, members = newPlay(), fleet()
		p.all(members, func(p *play, m *member) { m.enter(p) })
		want := map[string]string{}
		for _, m := range members {
			want[m.name] = m.phase
		}
		Expect(want).To(HaveLen(50))
		p.soon(p.phasesNow).Should(Equal(want))
		incident = members[slices.IndexFunc(members, func(m *member) bool { return m.phase == aiopsv1.PhaseWatching })]
		p.all(members, func(p *play, m *member) {
			if m.phase == aiopsv1.PhaseWatching {
				p.settled(m.name)
			}
		})

		By("upgrading as OLM does: the definition, the rights, then one replica after the other")
		p.soon(func() int { return len(p.podUIDs()) }).Should(Equal(podsOf(members)))
		pods := p.podUIDs()
		var err error
		mark, err = kubernetes.AuditMark()
		Expect(err).NotTo(HaveOccurred())
		Expect(newer.release.Install(ctx, admin)).To(Succeed())
		replicas = append(replicas, newer.start(ctx, "newer-1", letters.configuration()))
		Expect(standby.Stop()).To(Succeed())
		replicas = append(replicas, newer.start(ctx, "newer-2", letters.configuration()))
		before := holder(ctx)()
		p.breakPods(incident.name, cluster.NotReady)
		Expect(leader.Stop()).To(Succeed())
		Expect(older.release.RemoveRights(ctx, admin)).To(Succeed())
		Eventually(holder(ctx)).Should(And(Not(BeEmpty()), Not(Equal(before))))

		p.ends(incident.name, incident.history...)
		Expect(otherPods(p.podUIDs(), incident)).To(ConsistOf(otherPods(pods, incident)), "pods of the workloads after the upgrade")
		Eventually(p.phasesNow).Should(Equal(want))
	})

	It("and does the action of an incident once that begins while it takes over", func(ctx context.Context) {
		deployment := &appsv1.Deployment{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: incident.name}, deployment)).To(Succeed())
		Expect(deployment.Generation).To(BeEquivalentTo(2), "one change after it was made")
		Expect(p.task(incident.name)().Status.Executions).To(HaveLen(1))
		patched, err := kubernetes.AuditEventsSince(mark, func(event cluster.AuditEvent) bool {
			return event.User == operatorUser && event.Verb == "patch" && event.Resource == "deployments" && event.Namespace == p.namespace && !event.DryRun
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(patched).To(HaveLen(1), "changes of workloads since the upgrade began")
	})

	It("and every task goes on", func() {
		close(letters.opened)
		p.soon(letters.arrived).Should(Equal(perPhase), "notifications, by key")
		going := slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return m == incident })
		p.all(going, func(p *play, m *member) {
			m.goOn(p, m)
			p.soon(p.task(m.name)).Should(HaveField("Status.Phase", aiopsv1.PhaseWatching), p.story(m.name))
			p.ends(m.name, m.history...)
		})
		Expect(letters.arrived()).To(Equal(perPhase), "notifications, by key")
	})

	It("and, taken back to the older one, loses nothing of what the newer one wrote", func(ctx context.Context) {
		name := incident.name
		p.writeNewerFields(name)
		before := newerPlaces(p.raw(name))
		Expect(len(before)).To(BeNumerically(">=", 13))
		leader := holder(ctx)()
		replicas = append(replicas, older.goBack(ctx, newer, replicas, letters.configuration()))
		Eventually(holder(ctx)).Should(And(Not(BeEmpty()), Not(Equal(leader))))

		p.breakPods(name, cluster.NotReady)
		p.ends(name, "Restart Recovered", "Restart Recovered")

		Expect(newerPlaces(p.raw(name))).To(ContainElements(before))
	})

	It("and goes on where the newer one used words that it does not know", func() {
		name := members[slices.IndexFunc(members, func(m *member) bool { return m.phase == incident.phase && m != incident })].name
		p.patchStatus(name, `{"status": {"phase": "Rehearsing", "decision": {"reason": "Rehearsed"}, "incident": {"cause": "Drill"},
			"order": {"id": "1", "action": "Rehearse", "state": "Rehearsing", "cause": "Drill", "stepName": "more"},
			"history": [{"id": "0", "action": "Rehearse", "result": "Rehearsed", "reason": "Drill"}]}}`)
		p.soon(p.task(name)).Should(And(HaveField("Status.Phase", aiopsv1.PhaseWatching), HaveField("Status.Order", BeNil())), p.story(name))
		p.breakPods(name, cluster.NotReady)
		p.soon(p.results(name)).Should(Equal([]string{"Restart Recovered", "Rehearse Cancelled", "Rehearse Rehearsed"}), p.story(name))
	})
})

// otherPods leaves the pods of one workload out.
func otherPods(pods []string, but *member) []string {
	return slices.DeleteFunc(slices.Clone(pods), func(pod string) bool { return strings.HasPrefix(pod, but.name+"-") })
}
