package check

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// appLabel tells the pods of the stage's workloads apart.
const appLabel = "app"

// deploy makes a tiny Deployment, and returns when it is available.
func (s *stage) deploy(ctx context.Context, name string, replicas int32) (*appsv1.Deployment, error) {
	deployment := s.deployment(name, replicas)
	if err := s.create(ctx, deployment); err != nil {
		return nil, err
	}
	return deployment, s.untilAvailable(ctx, deployment)
}

func (s *stage) deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: s.selector(name), Template: s.template(name)},
	}
}

// workload is a tiny workload of any kind that an AITask may target.
func (s *stage) workload(kind, name string) (client.Object, error) {
	metadata, replicas := metav1.ObjectMeta{Name: name}, int32(1)
	switch kind {
	case "Deployment":
		return s.deployment(name, replicas), nil
	case "StatefulSet":
		return &appsv1.StatefulSet{ObjectMeta: metadata, Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: name, Selector: s.selector(name), Template: s.template(name)}}, nil
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: metadata, Spec: appsv1.DaemonSetSpec{Selector: s.selector(name), Template: s.template(name)}}, nil
	}
	return nil, fmt.Errorf("no workload of kind %s can be made", kind)
}

func (*stage) selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: name}}
}

// template is admitted by the Pod Security Standard "restricted". Its user is the image's, which is not root.
func (s *stage) template(name string) corev1.PodTemplateSpec {
	yes, no := true, false
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: name, RunLabel: s.id}},
		Spec: corev1.PodSpec{
			ImagePullSecrets:             s.PullSecrets,
			AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "main", Image: s.Image, Command: []string{Program, Idle}, ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("16Mi")}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
}

// untilAvailable returns when every pod of a workload is of its newest template and available.
func (s *stage) untilAvailable(ctx context.Context, object client.Object) error {
	what := fmt.Sprintf("%T %s/%s to be available", object, object.GetNamespace(), object.GetName())
	return s.until(ctx, what, func(ctx context.Context) (string, error) {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return "", err
		}
		return unavailable(object), nil
	})
}

// unavailable is what a workload still lacks; empty if nothing.
func unavailable(object client.Object) string {
	var observed int64
	var want, have, updated, available int32
	switch workload := object.(type) {
	case *appsv1.Deployment:
		status := workload.Status
		observed, want, have, updated, available = status.ObservedGeneration, *workload.Spec.Replicas, status.Replicas, status.UpdatedReplicas, status.AvailableReplicas
	case *appsv1.StatefulSet:
		status := workload.Status
		observed, want, have, updated, available = status.ObservedGeneration, *workload.Spec.Replicas, status.Replicas, status.UpdatedReplicas, status.AvailableReplicas
	case *appsv1.DaemonSet:
		status := workload.Status
		observed, want, have, updated, available = status.ObservedGeneration, status.DesiredNumberScheduled, status.CurrentNumberScheduled,
			status.UpdatedNumberScheduled, status.NumberAvailable
	}
	if observed == object.GetGeneration() && have == want && updated == want && available == want {
		return ""
	}
	return fmt.Sprintf("%d pods wanted, %d there, %d of the newest template, %d available", want, have, updated, available)
}

// pods returns the live pods of a workload that the stage made.
func (s *stage) pods(ctx context.Context, name string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{appLabel: name}); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", name, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }), nil
}

// podUIDs returns the identities of a workload's pods, sorted.
func (s *stage) podUIDs(ctx context.Context, name string) ([]string, error) {
	pods, err := s.pods(ctx, name)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range pods {
		out = append(out, string(pods[i].UID))
	}
	slices.Sort(out)
	return out, nil
}
