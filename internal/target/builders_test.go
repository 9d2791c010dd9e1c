package target

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func at(seconds int) time.Time {
	return time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func timeAt(seconds int) metav1.Time {
	return metav1.NewTime(at(seconds))
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func workloadMeta(name string, templateTime int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: types.UID(name + "-uid"), Generation: 2,
		ManagedFields: []metav1.ManagedFieldsEntry{
			managed("kubectl", templateTime, `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{}}}}`),
		},
	}
}

func managed(manager string, second int, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: ptr.To(timeAt(second)),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

type deploymentOption func(*appsv1.Deployment)

// deployment is settled, with 3 replicas that are all updated and available, and a finished rollout.
func deployment(options ...deploymentOption) *appsv1.Deployment {
	out := &appsv1.Deployment{
		ObjectMeta: workloadMeta("web", 0),
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), Template: template("web:1")},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
			Conditions: []appsv1.DeploymentCondition{progressing("NewReplicaSetAvailable", 10)},
		},
	}
	out.Annotations = map[string]string{RevisionAnnotation: "8"}
	for _, option := range options {
		option(out)
	}
	return out
}

func progressing(reason string, updated int) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: reason, LastUpdateTime: timeAt(updated),
	}
}

func withProgress(reason string, updated int) deploymentOption {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{progressing(reason, updated)}
	}
}

func controlledBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

func replicaSet(name, hash string, number string, owner types.UID) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "shop", UID: types.UID(name + "-uid"),
		Labels:          map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash, "app": "web"},
		Annotations:     map[string]string{RevisionAnnotation: number, "note": "dropped"},
		OwnerReferences: controlledBy("Deployment", "web", owner),
	}}
}

type podOption func(*corev1.Pod)

// pod is ready since 5 seconds after its creation.
func pod(name string, created int, owner []metav1.OwnerReference, labels map[string]string, options ...podOption) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", UID: types.UID(name + "-uid"), CreationTimestamp: timeAt(created),
			Labels: labels, OwnerReferences: owner,
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: ptr.To(timeAt(created)),
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: timeAt(created)},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: timeAt(created + 5)},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			}},
		},
	}
	for _, option := range options {
		option(out)
	}
	return out
}

func unreadySince(second int) podOption {
	return func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			if p.Status.Conditions[i].Type == corev1.PodReady {
				p.Status.Conditions[i].Status = corev1.ConditionFalse
				p.Status.Conditions[i].LastTransitionTime = timeAt(second)
			}
		}
	}
}

func deploymentPod(name string, created int, options ...podOption) *corev1.Pod {
	return pod(name, created, controlledBy("ReplicaSet", "web-abc", "web-abc-uid"),
		map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "abc", "app": "web"}, options...)
}
