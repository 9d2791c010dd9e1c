package action

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// lagging is a cluster with one unready pod, whose StatefulSet's controller sees the new template at the third look.
type lagging struct {
	client.Client
	looks        int
	deletedAfter int
	// denied is what a deletion is answered with. Nil: it is carried out.
	denied error
}

func newLagging(podRevision string) *lagging {
	out := &lagging{}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: 4, UpdateRevision: "web-new"},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-0", UID: "web-0-uid", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: podRevision},
	}}
	out.Client = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(set, pod).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := to.Get(ctx, key, object, options...)
			if set, isSet := object.(*appsv1.StatefulSet); isSet {
				if out.looks++; out.looks >= 3 {
					set.Status.ObservedGeneration = 5
				}
			}
			return err
		},
		Delete: func(ctx context.Context, to client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if out.denied != nil {
				return out.denied
			}
			out.deletedAfter = out.looks
			return to.Delete(ctx, object, options...)
		},
	}).Build()
	return out
}

func (l *lagging) free(ctx context.Context) (Outcome, error) {
	request := Request{
		Target: stateOf("StatefulSet", func(s *target.State) { s.Pods = []target.Pod{broken("web-0", 0)} }),
		Order:  order(func(o *aiopsv1.Order) { o.PodUIDs = []string{"web-0-uid"} }),
	}
	return pods{writer: l, live: l}.free(ctx, request, Outcome{Executed: true, After: aiopsv1.TargetImage{Generation: 5}, Message: "restarted StatefulSet/web"})
}

func TestFreeWaitsForTheController(t *testing.T) {
	cluster := newLagging("web-old")
	outcome, err := cluster.free(t.Context())
	if err != nil || !outcome.Executed {
		t.Fatalf("free: %+v, %v", outcome, err)
	}
	if cluster.deletedAfter < 3 {
		t.Errorf("the pod was deleted after %d looks, before the controller had seen the new template", cluster.deletedAfter)
	}
}

func TestFreeTellsOfAPodThatStays(t *testing.T) {
	cluster := newLagging("web-old")
	cluster.denied = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-0", errors.New("no right"))
	outcome, err := cluster.free(t.Context())
	if err != nil || !outcome.Executed {
		t.Fatalf("free: %+v, %v", outcome, err)
	}
	if want := "restarted StatefulSet/web, but pod web-0 blocks its rollout: "; !strings.HasPrefix(outcome.Message, want) {
		t.Errorf("message %q, want %q and the reason", outcome.Message, want)
	}
}

func TestFreeLeavesPodsOfTheNewTemplate(t *testing.T) {
	cluster := newLagging("web-new")
	if outcome, err := cluster.free(t.Context()); err != nil || !outcome.Executed {
		t.Fatalf("free: %+v, %v", outcome, err)
	}
	if cluster.deletedAfter != 0 {
		t.Error("a pod that was made from the new template was deleted")
	}
}

func TestFreeGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newLagging("web-old")
		cluster.looks = -1 << 20
		inTime, cancel := context.WithTimeout(t.Context(), 3*time.Second+time.Millisecond)
		defer cancel()
		if outcome, err := cluster.free(inTime); err == nil {
			t.Errorf("free: %+v, want an error: the same order is to be tried again", outcome)
		}
		if inTime.Err() != nil {
			t.Error("free took more of the action's time than it may take")
		}
		if cluster.deletedAfter != 0 {
			t.Error("the pod was deleted although the controller has not seen the new template")
		}
	})
}
