package target

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// targetIndex is the field by which pods, autoscalers, ReplicaSets and ControllerRevisions are found: kind and name of their workload.
const targetIndex = "target"

// Kinds returns one empty object for each kind that Resolve reads from the caches and that has to be watched. ReplicaSets are
// watched as metadata alone: their pod templates are of no use here.
func Kinds() []client.Object {
	return []client.Object{
		&appsv1.Deployment{},
		&appsv1.StatefulSet{},
		&appsv1.DaemonSet{},
		&corev1.Pod{},
		&autoscalingv2.HorizontalPodAutoscaler{},
		replicaSetMetadata(),
		&appsv1.ControllerRevision{},
	}
}

// ByObject returns how the caches hold each of Kinds: with transforms that keep what Resolve looks at and drop everything else,
// above all pod templates and managed fields. Whoever needs more of an object has to read it from the API server.
func ByObject() map[client.Object]cache.ByObject {
	byObject := make(map[client.Object]cache.ByObject)
	for _, kind := range Kinds() {
		byObject[kind] = cache.ByObject{Transform: transform}
	}
	return byObject
}

// IndexFields makes pods, autoscalers, ReplicaSets and ControllerRevisions findable by their workload.
func IndexFields(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range Kinds() {
		switch kind.(type) {
		case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
			continue
		}
		if err := indexer.IndexField(ctx, kind, targetIndex, indexValues); err != nil {
			return fmt.Errorf("index %T by target: %w", kind, err)
		}
	}
	return nil
}

func indexValues(object client.Object) []string {
	references := ReferencesFor(object)
	if len(references) == 0 {
		return nil
	}
	return []string{references[0].String()}
}

func replicaSetMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: appsVersion, Kind: kindReplicaSet}}
}

// transform has the signature of a cache's transform and never fails: what it does not know it leaves alone.
var _ toolscache.TransformFunc = transform

func transform(object any) (any, error) {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return reduceDeployment(object), nil
	case *appsv1.StatefulSet:
		return reduceStatefulSet(object), nil
	case *appsv1.DaemonSet:
		return reduceDaemonSet(object), nil
	case *corev1.Pod:
		return reducePod(object), nil
	case *autoscalingv2.HorizontalPodAutoscaler:
		return reduceAutoscaler(object), nil
	case *metav1.PartialObjectMetadata:
		out := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: reduceOwned(&object.ObjectMeta)}
		out.Annotations = only(object.Annotations, RevisionAnnotation)
		return out, nil
	case *appsv1.ControllerRevision:
		return &appsv1.ControllerRevision{ObjectMeta: reduceOwned(&object.ObjectMeta), Revision: object.Revision}, nil
	default:
		return object, nil
	}
}

// reduceIdentity keeps what tells an object from another and one version of it from the next.
func reduceIdentity(in *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              in.Name,
		Namespace:         in.Namespace,
		UID:               in.UID,
		ResourceVersion:   in.ResourceVersion,
		Generation:        in.Generation,
		CreationTimestamp: in.CreationTimestamp,
		DeletionTimestamp: in.DeletionTimestamp,
	}
}

// reduceOwned also keeps the controller.
func reduceOwned(in *metav1.ObjectMeta) metav1.ObjectMeta {
	out := reduceIdentity(in)
	if controller := metav1.GetControllerOfNoCopy(in); controller != nil {
		out.OwnerReferences = []metav1.OwnerReference{shared(*controller)}
	}
	return out
}

// shared returns the reference with texts that all objects share where it can.
func shared(reference metav1.OwnerReference) metav1.OwnerReference {
	if reference.APIVersion == appsVersion {
		reference.APIVersion = appsVersion
	}
	for _, kind := range []string{kindDeployment, kindStatefulSet, kindDaemonSet, kindReplicaSet} {
		if reference.Kind == kind {
			reference.Kind = kind
		}
	}
	return reference
}

// only returns the entries of these keys, or nil if there are none.
func only(in map[string]string, keys ...string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		value, found := in[key]
		if !found {
			continue
		}
		if out == nil {
			out = make(map[string]string, len(keys))
		}
		out[key] = value
	}
	return out
}

func reduceAutoscaler(in *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: reduceIdentity(&in.ObjectMeta),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: in.Spec.ScaleTargetRef,
			MinReplicas:    in.Spec.MinReplicas,
			MaxReplicas:    in.Spec.MaxReplicas,
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{LastScaleTime: in.Status.LastScaleTime},
	}
}
