package target

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// around returns a Deployment named after number with two ReplicaSets and three pods, each read anew.
func around(number int) []client.Object {
	name := fmt.Sprintf("web-%d", number)
	workload := deployment(func(d *appsv1.Deployment) { d.Name, d.UID = name, types.UID(name+"-uid") })
	objects := []client.Object{workload}
	for _, hash := range []string{"old", "abc"} {
		owned := replicaSet(name+"-"+hash, hash, "8", workload.UID)
		owned.OwnerReferences = controlledBy("Deployment", name, workload.UID)
		objects = append(objects, metadataOf(owned))
	}
	for i := range 3 {
		objects = append(objects, pod(fmt.Sprintf("%s-abc-%d", name, i), i, controlledBy("ReplicaSet", name+"-abc", types.UID(name+"-abc-uid")),
			map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "abc"}))
	}
	return objects
}

// BenchmarkCachedTarget tells how much memory a target takes in the caches: a Deployment, two ReplicaSets, three pods.
func BenchmarkCachedTarget(b *testing.B) {
	kept := make([]any, 0, 6*b.N)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for number := range b.N {
		for _, object := range around(number) {
			kept = append(kept, transformed(b, object))
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(b.N), "B/target")
	runtime.KeepAlive(kept)
}

// transformed decodes the object as the watch does, so that nothing is shared, and transforms it.
func transformed(b *testing.B, object client.Object) any {
	content, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	var fresh client.Object
	switch object.(type) {
	case *appsv1.Deployment:
		fresh = &appsv1.Deployment{}
	case *metav1.PartialObjectMetadata:
		fresh = &metav1.PartialObjectMetadata{}
	default:
		fresh = &corev1.Pod{}
	}
	if err := json.Unmarshal(content, fresh); err != nil {
		b.Fatal(err)
	}
	out, err := transform(fresh)
	if err != nil {
		b.Fatal(err)
	}
	return out
}
