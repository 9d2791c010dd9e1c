package helm_test

import (
	"context"
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// recovers expects the operator to restart the workload of a task once, because its pods are no longer ready.
func recovers(ctx context.Context, task *aiopsv1.AITask, pods []corev1.Pod) {
	GinkgoHelper()
	Eventually(latest(ctx, task)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
	before := len(latest(ctx, task)().Status.History)
	for _, pod := range pods {
		sick := pod.DeepCopy()
		metav1.SetMetaDataAnnotation(&sick.ObjectMeta, cluster.BehaviourAnnotation, string(cluster.NotReady))
		Expect(client.IgnoreNotFound(admin.Patch(ctx, sick, client.MergeFrom(&pod)))).To(Succeed()) // the first one may make the others go
	}
	Eventually(latest(ctx, task)).Should(HaveField("Status.History", HaveLen(before+1)))
	entry := latest(ctx, task)().Status.History[before]
	Expect(entry.Action + " " + entry.Result).To(Equal("Restart Recovered"))
}

var _ = Describe("Installing", func() {
	It("brings an operator that works with the chart's rights and no others", func(ctx context.Context) {
		r := newRelease()
		workload := newWorkload(ctx)

		r.install(ctx)

		Expect(r.deployment(ctx).Status.AvailableReplicas).To(Equal(int32(2)))
		task := newTask(ctx, workload)
		r.startOperator(ctx)
		recovers(ctx, task, pods(ctx, workload))
	})

	It("lets those read metrics who are bound to the chart's role", func(ctx context.Context) {
		r := newRelease()
		r.install(ctx)
		running := r.startOperator(ctx)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "prometheus"}}
		Expect(admin.Create(ctx, account)).To(Succeed())
		config, err := kubernetes.ServiceAccountConfig(ctx, account.Namespace, account.Name)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (int, error) { return running.metricsStatus(ctx, config) }).Should(Equal(http.StatusForbidden))

		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.name + "-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		}
		Expect(admin.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(admin.Delete(ctx, binding)).To(Succeed()) })

		Eventually(func() (int, error) { return running.metricsStatus(ctx, config) }).Should(Equal(http.StatusOK))
	})

	It("is refused beside another release: two operators would act on the same tasks", func(ctx context.Context) {
		newRelease().install(ctx)
		second := newRelease()
		second.name = "second"

		_, err := second.try(ctx, "install", chart(), "--create-namespace")

		Expect(err).To(MatchError(ContainSubstring("CustomResourceDefinition \"" + definitionName + "\"")))
		Expect(err).To(MatchError(ContainSubstring("cannot be imported into the current release: invalid ownership metadata")))
	})

	It("takes over from dist/install.yaml, with every task, as docs/helm.md says", func(ctx context.Context) {
		r := newRelease()
		r.namespace = harness.Namespace
		workload := newWorkload(ctx)
		before := snapshot(ctx)
		kubectl(ctx, "apply", "-f", filepath.Join(harness.Root(), "dist", "install.yaml"))
		task := newTask(ctx, workload)
		_, err := r.try(ctx, "install", chart())
		Expect(err).To(MatchError(ContainSubstring("invalid ownership metadata")))

		kubectl(ctx, documented("kubectl delete deployment,")...)
		Eventually(added(ctx, before)).Should(ConsistOf(append(kept(task),
			"namespaces "+r.namespace,
			"serviceaccounts "+r.namespace+"/default",
			"configmaps "+r.namespace+"/kube-root-ca.crt",
		)))
		r.helm(ctx, "install", chart(), "--take-ownership", "--force-conflicts", "--wait")

		Expect(latest(ctx, task)()).To(HaveField("UID", task.UID))
		next := nextChart()
		_, err = r.try(ctx, "upgrade", next, "--wait")
		Expect(err).To(MatchError(ContainSubstring("conflict with \"kubectl-client-side-apply\"")))
		r.upgrade(ctx, next, "--force-conflicts")
		Expect(fields(ctx)).To(ContainElement("note"))
	})
})

var _ = Describe("Upgrading", func() {
	It("brings the CRD along, and touches no task and no workload", func(ctx context.Context) {
		r := newRelease()
		workload := newWorkload(ctx)
		r.install(ctx)
		task := newTask(ctx, workload)
		Expect(note(ctx, task, "before")).To(BeEmpty())
		running := r.startOperator(ctx)
		Eventually(latest(ctx, task)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		uids := podUIDs(ctx, workload)

		r.upgrade(ctx, nextChart())
		running.stop()
		r.startOperator(ctx)

		Expect(r.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v" + nextVersion))
		Eventually(func() string { return note(ctx, task, "after") }).Should(Equal("after"))
		Expect(latest(ctx, task)()).To(HaveField("UID", task.UID))
		Expect(podUIDs(ctx, workload)).To(ConsistOf(uids))
		Expect(latest(ctx, task)().Status.History).To(BeEmpty())
		recovers(ctx, task, pods(ctx, workload))
	})

	It("can be rolled back, and touches no task and no workload", func(ctx context.Context) {
		r := newRelease()
		workload := newWorkload(ctx)
		r.install(ctx)
		task := newTask(ctx, workload)
		r.upgrade(ctx, nextChart())
		Eventually(func() string { return note(ctx, task, "after") }).Should(Equal("after"))
		uids := podUIDs(ctx, workload)

		r.helm(ctx, "rollback", "1", "--wait")

		Expect(r.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v" + version()))
		Expect(fields(ctx)).NotTo(ContainElement("note"))
		Eventually(func() string { return noteOf(ctx, task) }).Should(BeEmpty())
		Expect(latest(ctx, task)()).To(HaveField("UID", task.UID))
		r.startOperator(ctx)
		Eventually(latest(ctx, task)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		Expect(podUIDs(ctx, workload)).To(ConsistOf(uids))
		recovers(ctx, task, pods(ctx, workload))
	})

	It("rolls back the operator alone, and loses nothing that the newer CRD holds", func(ctx context.Context) {
		r := newRelease()
		r.install(ctx)
		task := newTask(ctx, newWorkload(ctx))
		next := nextChart()
		r.upgrade(ctx, next)
		Eventually(func() string { return note(ctx, task, "after") }).Should(Equal("after"))

		r.helm(ctx, "upgrade", next, "--wait", "--reuse-values", "--set", "image.tag=v"+version())

		Expect(r.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":v" + version()))
		r.startOperator(ctx)
		Eventually(latest(ctx, task)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		Expect(noteOf(ctx, task)).To(Equal("after"))
	})

	It("leaves the operator's pods alone when only the configuration changes, which they notice by themselves", func(ctx context.Context) {
		r := newRelease()
		r.install(ctx)
		before := podUIDs(ctx, r.deployment(ctx))
		Expect(before).To(HaveLen(2))

		r.upgrade(ctx, chart(), "--set", "config.storm.breachedPercent=40")

		Consistently(func() []string { return podUIDs(ctx, r.deployment(ctx)) }).Should(ConsistOf(before))
		Expect(r.configuration(ctx)).To(ContainSubstring("breachedPercent: 40"))
	})

	It("changes nothing when a value is wrong", func(ctx context.Context) {
		r := newRelease()
		r.install(ctx)
		before := r.deployment(ctx).Generation

		_, err := r.try(ctx, "upgrade", nextChart(), "--set", "replica=3")

		Expect(err).To(MatchError(ContainSubstring("additional properties 'replica' not allowed")))
		Expect(r.deployment(ctx).Generation).To(Equal(before))
		Expect(fields(ctx)).NotTo(ContainElement("note"))
	})

	It("keeps the CRD and its tasks when it is no longer the chart's", func(ctx context.Context) {
		r := newRelease()
		r.install(ctx)
		task := newTask(ctx, newWorkload(ctx))

		r.upgrade(ctx, chart(), "--set", "crds.enabled=false")

		Consistently(latest(ctx, task)).Should(HaveField("UID", task.UID))
	})
})

var _ = Describe("Uninstalling", func() {
	It("leaves the CRD and every task and nothing else, and a later installation finds them", func(ctx context.Context) {
		r := newRelease()
		workload := newWorkload(ctx)
		r.createNamespace(ctx)
		before := snapshot(ctx)
		r.install(ctx)
		task := newTask(ctx, workload)
		running := r.startOperator(ctx)
		Eventually(latest(ctx, task)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		uids := podUIDs(ctx, workload)
		running.stop()

		r.helm(ctx, "uninstall", "--wait")

		Eventually(added(ctx, before)).Should(ConsistOf(append(kept(task), r.lease())))
		Expect(podUIDs(ctx, workload)).To(ConsistOf(uids))

		r.install(ctx)

		Expect(latest(ctx, task)()).To(HaveField("UID", task.UID))
		r.startOperator(ctx)
		recovers(ctx, task, pods(ctx, workload))
	})

	It("a second time does nothing", func(ctx context.Context) {
		r := newRelease()
		r.install(ctx)
		r.helm(ctx, "uninstall", "--wait")

		_, err := r.try(ctx, "uninstall")
		Expect(err).To(MatchError(ContainSubstring("release: not found")))

		r.helm(ctx, "uninstall", "--ignore-not-found")
		Expect(fields(ctx)).NotTo(BeEmpty())
	})

	It("removes the CRD and the tasks when crds.keep was switched off, and does not wait for an operator", func(ctx context.Context) {
		r := newRelease()
		workload := newWorkload(ctx)
		r.createNamespace(ctx)
		before := snapshot(ctx)
		r.install(ctx)
		task := newTask(ctx, workload)
		running := r.startOperator(ctx)
		Eventually(latest(ctx, task)).Should(HaveField("Status.Target.HealthyRevision", Not(BeEmpty())))
		running.stop()
		r.upgrade(ctx, chart(), "--set", "crds.keep=false")

		r.helm(ctx, "uninstall", "--wait")

		Eventually(added(ctx, before)).Should(ConsistOf(r.lease()))
	})

	It("works after the CRD was removed first", func(ctx context.Context) {
		r := newRelease()
		r.install(ctx)
		newTask(ctx, newWorkload(ctx))
		remove(ctx, definition())

		r.helm(ctx, "uninstall", "--wait")
	})

	It("is not needed before an installation into a namespace that was removed first", func(ctx context.Context) {
		r := newRelease()
		r.install(ctx)
		task := newTask(ctx, newWorkload(ctx))
		remove(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}})

		r.install(ctx)

		Expect(latest(ctx, task)()).To(HaveField("UID", task.UID))
	})
})
