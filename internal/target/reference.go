package target

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	appsVersion = "apps/v1"

	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindDaemonSet   = "DaemonSet"
	kindReplicaSet  = "ReplicaSet"
)

// ErrNotFound is what Resolve and ResolveLive return, wrapped, for a workload that does not exist.
var ErrNotFound = errors.New("workload not found")

// UnsupportedKindError says that a reference names something that is not a Deployment, StatefulSet or DaemonSet of apps/v1.
type UnsupportedKindError struct {
	APIVersion string
	Kind       string
}

// Error says what to write instead.
func (e *UnsupportedKindError) Error() string {
	if kind := supportedKind(e.Kind); kind != "" {
		return fmt.Sprintf("kind %s of %s cannot be a target: write apiVersion: %s, kind: %s", e.Kind, e.APIVersion, appsVersion, kind)
	}
	switch strings.ToLower(e.Kind) {
	case "replicaset", "replicasets", "pod", "pods":
		return fmt.Sprintf("kind %s cannot be a target: name the Deployment, StatefulSet or DaemonSet that owns it", e.Kind)
	}
	return fmt.Sprintf("kind %s of %s cannot be a target: name a Deployment, StatefulSet or DaemonSet of apiVersion %s",
		e.Kind, e.APIVersion, appsVersion)
}

// supportedKind finds the supported kind that was probably meant: another case, or the plural.
func supportedKind(kind string) string {
	switch strings.TrimSuffix(strings.ToLower(kind), "s") {
	case "deployment":
		return kindDeployment
	case "statefulset":
		return kindStatefulSet
	case "daemonset":
		return kindDaemonSet
	}
	return ""
}

// ReferenceOf returns the workload that an AITask in the namespace names, by the short form or by targetRef. It does not judge whether the
// kind is supported: see [Reference.Validate].
func ReferenceOf(namespace string, spec *aiopsv1.AITaskSpec) Reference {
	if ref := spec.TargetRef; ref != nil {
		return Reference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
	}
	reference := Reference{APIVersion: appsVersion, Kind: kindDeployment, Namespace: namespace}
	if spec.TargetDeployment != nil {
		reference.Name = *spec.TargetDeployment
	}
	return reference
}

// Validate returns an *UnsupportedKindError for anything but a Deployment, StatefulSet or DaemonSet of apps/v1.
func (r Reference) Validate() error {
	if r.APIVersion == appsVersion && r.Kind == supportedKind(r.Kind) && r.Kind != "" {
		return nil
	}
	return &UnsupportedKindError{APIVersion: r.APIVersion, Kind: r.Kind}
}

// NewObject returns an empty object of the reference's kind, with its namespace and name, to read or to patch. It returns an
// *UnsupportedKindError where Validate does.
func (r Reference) NewObject() (client.Object, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}
	switch r.Kind {
	case kindDeployment:
		return &appsv1.Deployment{ObjectMeta: meta}, nil
	case kindStatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: meta}, nil
	default:
		return &appsv1.DaemonSet{ObjectMeta: meta}, nil
	}
}

// ReferencesFor returns the workloads whose state an object is part of: a workload itself, the owner of a pod, ReplicaSet or
// ControllerRevision, or what a HorizontalPodAutoscaler scales. None for anything else.
func ReferencesFor(object client.Object) []Reference {
	kind, name := "", ""
	switch object := object.(type) {
	case *appsv1.Deployment:
		kind, name = kindDeployment, object.Name
	case *appsv1.StatefulSet:
		kind, name = kindStatefulSet, object.Name
	case *appsv1.DaemonSet:
		kind, name = kindDaemonSet, object.Name
	case *corev1.Pod:
		kind, name = podOwner(object)
	case *autoscalingv2.HorizontalPodAutoscaler:
		kind, name = scaled(object)
	default:
		kind, name = workloadOwner(object)
	}
	if kind == "" {
		return nil
	}
	return []Reference{{APIVersion: appsVersion, Kind: kind, Namespace: object.GetNamespace(), Name: name}}
}

// workloadOwner returns the workload that is the controller of an object.
func workloadOwner(object client.Object) (kind, name string) {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil || controller.APIVersion != appsVersion || controller.Kind != supportedKind(controller.Kind) {
		return "", ""
	}
	return controller.Kind, controller.Name
}

// podOwner returns the workload of a pod. The Deployment of a pod is told from the name of its ReplicaSet: its own name, a dash
// and the pod's template hash. Resolve checks it against the ReplicaSet itself.
func podOwner(pod *corev1.Pod) (kind, name string) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil || controller.APIVersion != appsVersion {
		return "", ""
	}
	if controller.Kind != kindReplicaSet {
		return workloadOwner(pod)
	}
	if name = withoutTemplateHash(controller.Name, pod.Labels); name == "" {
		return "", ""
	}
	return kindDeployment, name
}

// withoutTemplateHash returns the Deployment's part of a ReplicaSet's name: all of it for names of up to 242 characters, which
// the controller does not cut.
func withoutTemplateHash(replicaSet string, labels map[string]string) string {
	hash := labels[appsv1.DefaultDeploymentUniqueLabelKey]
	name, found := strings.CutSuffix(replicaSet, "-"+hash)
	if hash == "" || !found {
		return ""
	}
	return name
}

// scaled returns the workload that an autoscaler scales. Its version does not count: Kubernetes looks the kind up by its group.
func scaled(autoscaler *autoscalingv2.HorizontalPodAutoscaler) (kind, name string) {
	ref := autoscaler.Spec.ScaleTargetRef
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || group.Group != appsv1.GroupName || ref.Kind != supportedKind(ref.Kind) {
		return "", ""
	}
	return ref.Kind, ref.Name
}
