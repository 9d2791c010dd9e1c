package chaos_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/harness"
)

// deletion is what is deleted in the middle of an incident.
type deletion struct {
	what   string
	when   moment
	object func(*incident) client.Object
	// withoutOperator says that the operator is gone before.
	withoutOperator bool
}

// String names the variant.
func (d deletion) String() string {
	return fmt.Sprintf("%s, %s, without operator: %t", d.what, d.when, d.withoutOperator)
}

func deletions() []deletion {
	objects := map[string]func(*incident) client.Object{
		"task":     func(in *incident) client.Object { return in.task() },
		"workload": func(in *incident) client.Object { return in.deployment() },
		"namespace": func(in *incident) client.Object {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.namespace}}
		},
	}
	var out []deletion
	for what, object := range objects {
		for _, when := range []moment{atActing, atVerifying} {
			out = append(out, deletion{what, when, object, false}, deletion{what, when, object, true})
		}
	}
	return out
}

var _ = Describe("Deleting in the middle of an incident", func() {
	It("always finishes", func(ctx context.Context) {
		inParallel(deletions(), func(t *try, variant deletion) *incident {
			in := prepare(ctx, t, aiopsv1.ActionRestart, variant.when.lasts)
			process := t.start(in.namespace)
			in.settle()
			in.at(variant.when, process, func() {
				if variant.withoutOperator {
					process.crash()
				}
				t.Expect(in.task().Finalizers).To(BeEmpty())
				t.Expect(in.deployment().Finalizers).To(BeEmpty())
				in.isGoneSoon(variant.object(in))
			})
			if variant.withoutOperator || variant.what == "namespace" {
				return in
			}
			By("the operator is none the worse: another incident ends well")
			next := prepareIn(ctx, t, in.namespace, "next", aiopsv1.ActionRestart)
			next.settle()
			next.begin()
			next.ended()
			next.sawOneAction()
			return in
		})
	})

	It("finishes for the whole kind, and tasks that come with it again are served", func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) { Expect(harness.Install(ctx, admin)).To(Succeed()) })
		alone("CRD", func(t *try) {
			in := prepare(ctx, t, aiopsv1.ActionRestart, atVerifying.lasts)
			process := t.start(in.namespace)
			in.settle()
			in.at(atVerifying, process, func() {
				kind := &unstructured.Unstructured{}
				kind.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
				kind.SetName("aitasks." + aiopsv1.GroupName)
				in.isGoneSoon(kind)
			})
			t.Expect(harness.Install(ctx, admin)).To(Succeed())
			next := prepareIn(ctx, t, in.namespace, "next", aiopsv1.ActionRestart)
			next.settle()
			next.begin()
			next.ended()
			next.sawOneAction()
		})
	})
})

// isGoneSoon deletes an object and waits until it is gone.
func (in *incident) isGoneSoon(object client.Object) {
	in.t.Expect(admin.Delete(in.ctx, object)).To(Succeed())
	in.t.Eventually(func() bool {
		return apierrors.IsNotFound(admin.Get(in.ctx, client.ObjectKeyFromObject(object), object))
	}).WithTimeout(harness.DeletionTime).Should(BeTrue(), "it is still there")
}
