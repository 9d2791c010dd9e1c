package cluster_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const appName = "app"

func labels() map[string]string { return map[string]string{"app": appName} }

// podTemplate has one container for each image, named container-0, container-1 and so on.
func podTemplate(annotations map[string]string, images ...string) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(), Annotations: annotations}}
	for number, image := range images {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: containerName(number), Image: image})
	}
	return template
}

func containerName(number int) string { return []string{"container-0", "container-1"}[number] }

func createDeployment(ctx context.Context, replicas int32, template corev1.PodTemplateSpec) {
	GinkgoHelper()
	_, err := client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: appName},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels()}, Template: template,
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func createStatefulSet(ctx context.Context, replicas int32, template corev1.PodTemplateSpec) {
	GinkgoHelper()
	_, err := client.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: appName},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels()}, Template: template,
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func createDaemonSet(ctx context.Context, template corev1.PodTemplateSpec) {
	GinkgoHelper()
	_, err := client.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: appName},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels()}, Template: template},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func createJob(ctx context.Context, template corev1.PodTemplateSpec) {
	GinkgoHelper()
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	noRetry := int32(0)
	_, err := client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: appName},
		Spec:       batchv1.JobSpec{BackoffLimit: &noRetry, Template: template},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func pods(ctx context.Context) func(g Gomega) []corev1.Pod {
	return func(g Gomega) []corev1.Pod {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return list.Items
	}
}

func onlyPod(ctx context.Context) corev1.Pod {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(list.Items).To(HaveLen(1))
	return list.Items[0]
}

func annotatePod(ctx context.Context, name, mergePatch string) {
	GinkgoHelper()
	_, err := client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":`+mergePatch+`}}`), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func isReady(pod corev1.Pod) bool { return conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) }

func conditionIs(pod corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status == status
		}
	}
	return false
}

// summary is what the specs compare of a pod.
type summary struct {
	Phase      corev1.PodPhase
	Ready      bool
	Waiting    string
	Terminated string
	ExitCode   int32
	Restarts   bool
}

// summarize describes the pod by its first container.
func summarize(pod corev1.Pod) summary {
	result := summary{Phase: pod.Status.Phase, Ready: isReady(pod)}
	if len(pod.Status.ContainerStatuses) == 0 {
		return result
	}
	status := pod.Status.ContainerStatuses[0]
	// More than one restart shows that the count grows.
	result.Restarts = status.RestartCount > 1
	if status.State.Waiting != nil {
		result.Waiting = status.State.Waiting.Reason
	}
	if ended := status.LastTerminationState.Terminated; ended != nil {
		result.Terminated, result.ExitCode = ended.Reason, ended.ExitCode
	}
	return result
}

func summaries(ctx context.Context) func(g Gomega) []summary {
	return func(g Gomega) []summary {
		var result []summary
		for _, pod := range pods(ctx)(g) {
			result = append(result, summarize(pod))
		}
		return result
	}
}
