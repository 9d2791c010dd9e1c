package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
)

// removal is one step of an uninstallation.
type removal string

const (
	theOperator          removal = "the operator"
	theTasks             removal = "the tasks"
	theNamespace         removal = "the tasks' namespace"
	theOperatorNamespace removal = "the operator's namespace"
	theDefinition        removal = "the CRD"
)

// town is a namespace with tasks in the middle of incidents, and the operator that looks after them.
type town struct {
	*play
	operator *harness.Process
	// before is everything that was in the cluster before the operator was installed.
	before []string
	// pods are the workloads' pods in the moment of the first removal.
	pods []string
}

// newTown installs the operator as OLM does, and begins incidents.
func newTown(ctx context.Context, program string) *town {
	GinkgoHelper()
	t := &town{before: inventory(ctx)}
	DeferCleanup(removeAll)
	Expect(current.Install(ctx, admin)).To(Succeed())
	letters := newMailbox(ctx)
	t.operator = startProcess(ctx, program, harness.ProcessOptions{Name: fmt.Sprintf("uninstall-%d", time.Now().UnixNano()), Config: letters.configuration()})
	t.play = newPlay()
	t.live()
	return t
}

// live begins one incident whose action is under way, one that is being verified, and a quiet task.
func (t *town) live() {
	GinkgoHelper()
	var members []*member
	for _, phase := range []string{aiopsv1.PhaseWatching, aiopsv1.PhaseActing, aiopsv1.PhaseVerifying} {
		for _, template := range phases() {
			if template.phase == phase {
				template.name = strings.ToLower(phase)
				members = append(members, &template)
			}
		}
	}
	t.all(members, func(p *play, m *member) {
		m.enter(p)
		p.soon(p.task(m.name)).Should(HaveField("Status.Phase", m.phase), p.story(m.name))
	})
	t.available("watching")
	t.soon(func() int { return len(t.podUIDs()) }).Should(Equal(4))
	t.pods = t.podUIDs()
}

// remove removes one thing and returns when it is gone.
func (t *town) remove(ctx context.Context, what removal) {
	GinkgoHelper()
	By("removing " + string(what))
	switch what {
	case theOperator:
		Expect(t.operator.Stop()).To(Succeed())
		Expect(current.Uninstall(ctx, admin)).To(Succeed())
	case theTasks:
		list := &aiopsv1.AITaskList{}
		Expect(admin.List(ctx, list)).To(Succeed())
		for i := range list.Items {
			t.gone(ctx, &list.Items[i])
		}
	case theNamespace:
		t.gone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.namespace}})
	case theOperatorNamespace:
		t.gone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: harness.Namespace}})
	case theDefinition:
		for _, definition := range current.Definitions {
			t.gone(ctx, definition.DeepCopy())
		}
	}
}

// gone deletes an object and waits until it does not exist any more.
func (t *town) gone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	err := admin.Delete(ctx, object)
	if isGone(err) {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() bool { return isGone(admin.Get(ctx, client.ObjectKeyFromObject(object), object)) }).
		WithTimeout(harness.DeletionTime).Should(BeTrue(), "%s is still there", object.GetName())
}

func isGone(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// left waits until nothing but this has come to the cluster.
func (t *town) left(ctx context.Context, want ...string) {
	GinkgoHelper()
	Eventually(added(ctx, t.before)).WithTimeout(harness.DeletionTime).WithPolling(250 * time.Millisecond).
		Should(ConsistOf(want))
}

// keptByOLM are files of the bundle that belong to no namespace, and the namespace, which is the user's.
func keptByOLM() []string {
	return []string{
		"clusterroles.rbac.authorization.k8s.io aiops-aitask-admin-role",
		"clusterroles.rbac.authorization.k8s.io aiops-aitask-editor-role",
		"clusterroles.rbac.authorization.k8s.io aiops-aitask-viewer-role",
		"clusterroles.rbac.authorization.k8s.io aiops-metrics-reader",
		"priorityclasses.scheduling.k8s.io aiops-controller-manager",
	}
}

// keptNamespace is what is in the operator's namespace as long as its owner keeps it.
func keptNamespace() []string {
	return []string{
		"namespaces " + harness.Namespace,
		"serviceaccounts " + harness.Namespace + "/default",
		"configmaps " + harness.Namespace + "/kube-root-ca.crt",
		"leases.coordination.k8s.io " + leaseKey().String(),
	}
}

var _ = Describe("Uninstalling", Ordered, func() {
	var program string
	BeforeAll(func(ctx context.Context) {
		var err error
		program, err = harness.BuildOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("in the middle of incidents neither hangs nor leaves anything but what the policy keeps",
		func(ctx context.Context, order ...removal) {
			t := newTown(ctx, program)
			for i, what := range order {
				t.remove(ctx, what)
				if !slices.Contains(order[:i+1], theNamespace) {
					Expect(t.podUIDs()).To(ConsistOf(t.pods), "pods of the workloads")
				}
			}
			kept := keptByOLM()
			if !slices.Contains(order, theOperatorNamespace) {
				kept = append(kept, keptNamespace()...)
			}
			t.left(ctx, kept...)
		},
		Entry("operator first", theOperator, theTasks, theNamespace, theDefinition),
		Entry("operator first, CRD next", theOperator, theDefinition, theNamespace, theOperatorNamespace),
		Entry("tasks first", theTasks, theOperator, theDefinition, theNamespace),
		Entry("namespace first", theNamespace, theOperator, theDefinition),
		Entry("CRD first", theDefinition, theOperator, theNamespace),
		Entry("the operator's namespace first", theOperatorNamespace, theOperator, theTasks, theNamespace, theDefinition),
	)
})
