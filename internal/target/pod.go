package target

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// firstReadiness is how long after its start a pod's Ready condition is written for the first time at the latest, both in whole seconds: a pod
// that became unready later than that was ready before.
const firstReadiness = time.Second

// reducePod keeps a pod's identity and owner, and in place of its spec and status the state that was read from them, as JSON in status.message: a
// container's spec, status and quantities would take ten times as much memory. Of pods that belong to no workload only the
// identity is kept. A pod that was reduced before has no containers any more: the API server admits none without one.
func reducePod(in *corev1.Pod) *corev1.Pod {
	if kind, _ := podOwner(in); kind == "" {
		return &corev1.Pod{ObjectMeta: reduceIdentity(&in.ObjectMeta)}
	}
	if len(in.Spec.Containers) == 0 {
		return in
	}
	out := &corev1.Pod{ObjectMeta: reduceOwned(&in.ObjectMeta)}
	out.Labels = only(in.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	out.Status.Phase = in.Status.Phase
	if content, err := json.Marshal(readPod(in)); err == nil { // plain fields can always be written as JSON
		out.Status.Message = string(content)
	}
	return out
}

// readPod reads a pod as the API server has it.
func readPod(pod *corev1.Pod) Pod {
	state := Pod{
		Phase:      string(pod.Status.Phase),
		Revision:   podRevision(pod),
		Containers: make([]Container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers)),
	}
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		switch condition.Type {
		case corev1.PodScheduled:
			state.Scheduled = condition.Status == corev1.ConditionTrue
		case corev1.PodReady:
			state.Ready = condition.Status == corev1.ConditionTrue
			state.ReadyTransitionTime = condition.LastTransitionTime.UTC()
		}
	}
	state.EverReady = state.Ready || pod.Status.StartTime != nil &&
		state.ReadyTransitionTime.After(pod.Status.StartTime.Add(firstReadiness))
	state.Containers = appendContainers(state.Containers, pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true)
	state.Containers = appendContainers(state.Containers, pod.Spec.Containers, pod.Status.ContainerStatuses, false)
	return state
}

// podRevision names the object that holds the pod's template. Pods of a ReplicaSet are made from it; pods of a StatefulSet bear the
// name of their ControllerRevision, and pods of a DaemonSet its last part.
func podRevision(pod *corev1.Pod) string {
	controller := metav1.GetControllerOfNoCopy(pod)
	hash := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	switch {
	case controller == nil:
		return ""
	case controller.Kind == kindReplicaSet:
		return controller.Name
	case controller.Kind == kindDaemonSet && hash != "":
		return controller.Name + "-" + hash
	}
	return hash
}

func appendContainers(to []Container, specs []corev1.Container, statuses []corev1.ContainerStatus, init bool) []Container {
	for i := range specs {
		container := Container{
			Name:            specs[i].Name,
			Init:            init,
			CPURequestMilli: specs[i].Resources.Requests.Cpu().MilliValue(),
			MemoryRequest:   specs[i].Resources.Requests.Memory().Value(),
			MemoryLimit:     specs[i].Resources.Limits.Memory().Value(),
		}
		for j := range statuses {
			if statuses[j].Name == container.Name {
				readStatus(&container, &statuses[j])
			}
		}
		to = append(to, container)
	}
	return to
}

// readStatus leaves messages out: they are log text.
func readStatus(container *Container, status *corev1.ContainerStatus) {
	container.Running = status.State.Running != nil
	container.RestartCount = status.RestartCount
	if status.State.Waiting != nil {
		container.WaitingReason = status.State.Waiting.Reason
	}
	last := status.LastTerminationState.Terminated
	if status.State.Terminated != nil {
		last = status.State.Terminated
	}
	if last != nil {
		container.LastTerminationReason = last.Reason
		container.LastTerminationTime = last.FinishedAt.UTC()
	}
}

// podStates returns the live pods of these controllers, oldest first.
func podStates(pods []corev1.Pod, controllers map[types.UID]bool) []Pod {
	states := make([]Pod, 0, len(pods))
	for i := range pods {
		pod := &pods[i]
		controller := metav1.GetControllerOfNoCopy(pod)
		if controller == nil || !controllers[controller.UID] || pod.DeletionTimestamp != nil ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		states = append(states, podState(reducePod(pod)))
	}
	slices.SortFunc(states, func(a, b Pod) int {
		if order := a.CreationTime.Compare(b.CreationTime); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return states
}

// podState reads a reduced pod.
func podState(pod *corev1.Pod) Pod {
	var state Pod
	if json.Unmarshal([]byte(pod.Status.Message), &state) != nil {
		state = Pod{Phase: string(pod.Status.Phase)} // reducePod wrote it, so this does not happen; a pod without facts is an unready one
	}
	state.Name = pod.Name
	state.UID = pod.UID
	state.CreationTime = pod.CreationTimestamp.UTC()
	return state
}
