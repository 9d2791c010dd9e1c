package target

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func TestReferenceOf(t *testing.T) {
	tests := map[string]struct {
		spec aiopsv1.AITaskSpec
		want Reference
	}{
		"short form": {
			spec: aiopsv1.AITaskSpec{TargetDeployment: ptr.To("web")},
			want: Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		},
		"long form": {
			spec: aiopsv1.AITaskSpec{TargetRef: &aiopsv1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}},
			want: Reference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "db"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ReferenceOf("shop", &test.spec)); diff != "" {
				t.Errorf("ReferenceOf (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		apiVersion, kind string
		want             string
	}{
		{"apps/v1", "Deployment", ""},
		{"apps/v1", "StatefulSet", ""},
		{"apps/v1", "DaemonSet", ""},
		{"apps/v1", "deployments", "write apiVersion: apps/v1, kind: Deployment"},
		{"extensions/v1beta1", "DaemonSet", "write apiVersion: apps/v1, kind: DaemonSet"},
		{"apps/v1", "ReplicaSet", "name the Deployment, StatefulSet or DaemonSet that owns it"},
		{"v1", "Pod", "name the Deployment, StatefulSet or DaemonSet that owns it"},
		{"batch/v1", "Job", "name a Deployment, StatefulSet or DaemonSet of apiVersion apps/v1"},
		{"", "", "name a Deployment, StatefulSet or DaemonSet of apiVersion apps/v1"},
	}
	for _, test := range tests {
		t.Run(test.apiVersion+" "+test.kind, func(t *testing.T) {
			err := Reference{APIVersion: test.apiVersion, Kind: test.kind}.Validate()
			var unsupported *UnsupportedKindError
			switch {
			case test.want == "" && err != nil:
				t.Errorf("Validate: %v, want no error", err)
			case test.want != "" && (!errors.As(err, &unsupported) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("Validate: %v, want an UnsupportedKindError with %q", err, test.want)
			}
		})
	}
}

func TestReferencesFor(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "web", Namespace: "shop"}
	tests := map[string]struct {
		object client.Object
		want   string
	}{
		"Deployment":  {&appsv1.Deployment{ObjectMeta: meta}, "Deployment/web"},
		"StatefulSet": {&appsv1.StatefulSet{ObjectMeta: meta}, "StatefulSet/web"},
		"DaemonSet":   {&appsv1.DaemonSet{ObjectMeta: meta}, "DaemonSet/web"},
		"pod of a Deployment": {
			deploymentPod("web-abc-1", 0), "Deployment/web",
		},
		"pod of a StatefulSet": {
			pod("db-0", 0, controlledBy("StatefulSet", "db", "u"), nil), "StatefulSet/db",
		},
		"pod of a Job": {
			pod("job-1", 0, []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", Controller: ptr.To(true)}}, nil), "",
		},
		"pod of a ReplicaSet without a Deployment": {
			pod("rs-1", 0, controlledBy("ReplicaSet", "rs", "u"), nil), "",
		},
		"pod on its own": {pod("p", 0, nil, nil), ""},
		"ReplicaSet as metadata": {
			&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", OwnerReferences: controlledBy("Deployment", "web", "u")}},
			"Deployment/web",
		},
		"ControllerRevision": {
			&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", OwnerReferences: controlledBy("DaemonSet", "agent", "u")}},
			"DaemonSet/agent",
		},
		"autoscaler": {
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "api"},
			}},
			"Deployment/api",
		},
		"autoscaler by an older version": {
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1beta1", Kind: "StatefulSet", Name: "db"},
			}},
			"StatefulSet/db",
		},
		"autoscaler of something else of the same kind": {
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "example.com/v1", Kind: "Deployment", Name: "api"},
			}},
			"",
		},
		"autoscaler of something else": {
			&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "api"},
			}},
			"",
		},
		"something else": {&corev1.ConfigMap{ObjectMeta: meta}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if references := ReferencesFor(test.object); len(references) == 1 {
				got = references[0].String()
				if references[0].Namespace != "shop" {
					t.Errorf("namespace is %q, want shop", references[0].Namespace)
				}
			}
			if got != test.want {
				t.Errorf("ReferencesFor: %q, want %q", got, test.want)
			}
		})
	}
}
