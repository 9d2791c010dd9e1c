package target

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// heavy is a text that must not stay in memory.
const heavy = "heavy-and-perhaps-secret"

func TestTransformDropsWhatIsNotRead(t *testing.T) {
	burden := func(object client.Object) {
		object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": heavy})
		object.SetLabels(map[string]string{"heavy": heavy})
		object.SetManagedFields(append(object.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: heavy}))
		object.SetFinalizers([]string{heavy})
	}
	heavyTemplate := template(heavy)
	objects := map[string]client.Object{
		"Deployment": deployment(func(d *appsv1.Deployment) {
			d.Spec.Template = heavyTemplate
			d.Status.Conditions[0].Message = heavy
		}),
		"StatefulSet":        statefulSet(func(s *appsv1.StatefulSet) { s.Spec.Template = heavyTemplate }),
		"DaemonSet":          &appsv1.DaemonSet{ObjectMeta: workloadMeta("agent", 0), Spec: appsv1.DaemonSetSpec{Template: heavyTemplate}},
		"ReplicaSet":         metadataOf(replicaSet("web-abc", "abc", "8", "web-uid")),
		"ControllerRevision": controllerRevision("DaemonSet", "agent", "agent-1", 3),
		"pod": deploymentPod("web-abc-1", 10, func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: heavy}}
			p.Spec.Volumes = []corev1.Volume{{Name: heavy}}
			p.Status.Message = heavy
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: heavy}}
		}),
	}
	for name, object := range objects {
		t.Run(name, func(t *testing.T) {
			burden(object)
			once, err := transform(object)
			if err != nil {
				t.Fatal(err)
			}
			content, err := json.Marshal(once)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), heavy) {
				t.Errorf("the cache would keep %s", content)
			}
			if got := once.(client.Object); got.GetUID() != object.GetUID() || got.GetResourceVersion() != object.GetResourceVersion() {
				t.Error("the cached object has lost its identity")
			}
			twice, err := transform(once)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, twice); diff != "" {
				t.Errorf("a second transform changed the object (-once +twice):\n%s", diff)
			}
		})
	}
}

func TestTransformKeepsNothingOfStrangePods(t *testing.T) {
	strange := pod("job-1", 0, nil, map[string]string{"a": "b"})
	got, err := transform(strange)
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-1", Namespace: "shop", UID: "job-1-uid", CreationTimestamp: timeAt(0)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transform (-want +got):\n%s", diff)
	}
}

func TestTransformIgnoresForgedGist(t *testing.T) {
	forged := deployment(func(d *appsv1.Deployment) {
		d.Annotations[templateHashKey], d.Annotations[templateAppliedByKey] = "forged", "forged"
	})
	state := deploymentState(Reference{}, reduceDeployment(forged), surroundings{}, at(0))
	if state.TemplateHash == "forged" || state.TemplateAppliedBy == "forged" {
		t.Errorf("State believes annotations of the workload: %+v", state)
	}
}

func TestOwnersOf(t *testing.T) {
	fields := func(raw string) *metav1.FieldsV1 { return metav1.NewFieldsV1(raw) }
	const replicas, image = `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:template":{"f:spec":{}}}}`
	tests := map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    owners
	}{
		"nobody": {nil, owners{}},
		"people": {
			[]metav1.ManagedFieldsEntry{{Manager: "kubectl-client-side-apply", FieldsV1: fields(image), Time: ptr.To(timeAt(5))}},
			owners{templateTime: at(5)},
		},
		"Argo CD owns the template alone": {
			[]metav1.ManagedFieldsEntry{{Manager: "argocd-controller", FieldsV1: fields(image)}, {Manager: "kubectl", FieldsV1: fields(replicas)}},
			owners{templateAppliedBy: "argocd-controller"},
		},
		"Flux owns replicas alone": {
			[]metav1.ManagedFieldsEntry{{Manager: "kustomize-controller", FieldsV1: fields(replicas)}},
			owners{replicasAppliedBy: "kustomize-controller"},
		},
		"Argo CD owns neither, whatever a label says": {
			[]metav1.ManagedFieldsEntry{{Manager: "argocd-controller", FieldsV1: fields(`{"f:metadata":{"f:labels":{"f:template":{}}}}`)}},
			owners{},
		},
		"a status owns nothing": {
			[]metav1.ManagedFieldsEntry{{Manager: "argocd-controller", Subresource: "status", FieldsV1: fields(image)}},
			owners{},
		},
		"the newest writer of the template counts": {
			[]metav1.ManagedFieldsEntry{
				{Manager: "a", FieldsV1: fields(image), Time: ptr.To(timeAt(9))},
				{Manager: "b", FieldsV1: fields(image), Time: ptr.To(timeAt(5))},
				{Manager: "c", FieldsV1: fields(replicas), Time: ptr.To(timeAt(50))},
			},
			owners{templateTime: at(9)},
		},
		"garbage": {[]metav1.ManagedFieldsEntry{{Manager: "argocd-controller", FieldsV1: fields(`[`)}}, owners{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ownersOf(test.entries), cmp.AllowUnexported(owners{})); diff != "" {
				t.Errorf("ownersOf (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEverReady(t *testing.T) {
	tests := map[string]struct {
		option podOption
		want   bool
	}{
		"ready": {func(*corev1.Pod) {}, true},
		"never ready: unready since it was first looked at": {unreadySince(101), false},
		"was ready, then not":                               {unreadySince(102), true},
		"not started":                                       {func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := readPod(deploymentPod("p", 100, test.option)).EverReady; got != test.want {
				t.Errorf("EverReady: %t, want %t", got, test.want)
			}
		})
	}
}

func TestTemplateHash(t *testing.T) {
	one, same, other := template("web:1"), template("web:1"), template("web:1")
	other.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": time.Time{}.String()}
	if TemplateHash(&one) != TemplateHash(&same) {
		t.Error("equal templates have different hashes")
	}
	if TemplateHash(&one) == TemplateHash(&other) {
		t.Error("a restarted template has the same hash")
	}
}
