package action

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// failing is a cluster with one Deployment and one unready pod that answers each of these verbs, such as "list *v1.ReplicaSetList", with the error.
func failing(verb string, failure error) client.Client {
	fail := func(asked string, object any) error {
		if fmt.Sprintf("%s %T", asked, object) == verb {
			return failure
		}
		return nil
	}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "web-0-uid"}}
	set := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}}
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(set, pod).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return errors.Join(fail("get", object), to.Get(ctx, key, object, options...))
		},
		List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return errors.Join(fail("list", list), to.List(ctx, list, options...))
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption) error {
			return fail("create", sub)
		},
	}).Build()
}

func TestPlanTellsARefusalFromAFailure(t *testing.T) {
	tests := map[string]struct {
		verb    string
		plan    func(client.Client) Action
		message string
	}{
		"reading the workload to roll back": {
			"get *v1.Deployment", func(to client.Client) Action { return NewRollback(to, to) }, "no right to get deployments.apps",
		},
		"listing its revisions": {
			"list *v1.ReplicaSetList", func(to client.Client) Action { return NewRollback(to, to) }, "no right to list replicasets.apps",
		},
		"reading a pod to evict": {
			"get *v1.Pod", func(to client.Client) Action { return NewEvict(to, to) }, "no right to get pods",
		},
		"trying an eviction": {
			"create *v1.Eviction", func(to client.Client) Action { return NewEvict(to, to) }, "no right to evict pods",
		},
	}
	said := `User "system:serviceaccount:a:b" cannot do this in the namespace "shop"`
	noRight := errors.New(said)
	request := Request{Target: stateOf("Deployment", func(s *target.State) { s.Pods = []target.Pod{broken("web-0", 0)} }), Now: at(60)}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, refusal, err := test.plan(failing(test.verb, apierrors.NewForbidden(schema.GroupResource{}, "", noRight))).Plan(t.Context(), request)
			if err != nil {
				t.Fatalf("Plan without the right: %v, want a refusal", err)
			}
			checkRefusal(t, refusal, aiopsv1.ReasonForbidden, test.message, false)
			_, refusal, err = test.plan(failing(test.verb, apierrors.NewInternalError(errors.New("boom")))).Plan(t.Context(), request)
			if err == nil || refusal != nil {
				t.Errorf("Plan with a server error: %+v, %v, want the error", refusal, err)
			}
		})
	}
}

func TestRunIsRefusedWithoutTheRightToReadTheRevision(t *testing.T) {
	said := `User "system:serviceaccount:a:b" cannot get resource "replicasets" in the namespace "shop"`
	noRight := errors.New(said)
	to := failing("get *v1.ReplicaSet", apierrors.NewForbidden(schema.GroupResource{}, "", noRight))
	outcome, err := NewRollback(to, to).Run(t.Context(), Request{
		Target: stateOf("Deployment"), Order: order(func(o *aiopsv1.Order) { o.Revision = "web-7" }), Now: at(60),
	})
	if err != nil {
		t.Fatal(err)
	}
	checkRefusal(t, outcome.Refusal, aiopsv1.ReasonForbidden, "no right to get replicasets.apps", false)
}
