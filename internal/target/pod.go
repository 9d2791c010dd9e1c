package target

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// firstReadiness is how long after its start a pod's Ready condition is written for the first time at the latest, both in whole seconds: a pod
// that became unready later than that was ready before.
const firstReadiness = time.Second

// reducePod keeps what podState reads. Of pods that belong to no workload only the identity is kept.
func reducePod(in *corev1.Pod) *corev1.Pod {
	if kind, _ := podOwner(in); kind == "" {
		return &corev1.Pod{ObjectMeta: reduceIdentity(&in.ObjectMeta)}
	}
	out := &corev1.Pod{ObjectMeta: reduceOwned(&in.ObjectMeta)}
	out.Spec.InitContainers = reduceContainers(in.Spec.InitContainers)
	out.Spec.Containers = reduceContainers(in.Spec.Containers)
	out.Status.Phase = in.Status.Phase
	out.Status.StartTime = in.Status.StartTime
	for i := range in.Status.Conditions {
		condition := &in.Status.Conditions[i]
		if condition.Type == corev1.PodReady || condition.Type == corev1.PodScheduled {
			out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{
				Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime,
			})
		}
	}
	out.Status.InitContainerStatuses = reduceStatuses(in.Status.InitContainerStatuses)
	out.Status.ContainerStatuses = reduceStatuses(in.Status.ContainerStatuses)
	return out
}

func reduceContainers(in []corev1.Container) []corev1.Container {
	if len(in) == 0 {
		return nil
	}
	out := make([]corev1.Container, len(in))
	for i := range in {
		out[i].Name = in[i].Name
		out[i].Resources = corev1.ResourceRequirements{
			Limits:   onlyResources(in[i].Resources.Limits, corev1.ResourceMemory),
			Requests: onlyResources(in[i].Resources.Requests, corev1.ResourceCPU, corev1.ResourceMemory),
		}
	}
	return out
}

func onlyResources(in corev1.ResourceList, names ...corev1.ResourceName) corev1.ResourceList {
	var out corev1.ResourceList
	for _, name := range names {
		if quantity, found := in[name]; found {
			if out == nil {
				out = make(corev1.ResourceList, len(names))
			}
			out[name] = quantity
		}
	}
	return out
}

func reduceStatuses(in []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(in) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, len(in))
	for i := range in {
		out[i] = corev1.ContainerStatus{
			Name:                 in[i].Name,
			RestartCount:         in[i].RestartCount,
			State:                reduceContainerState(in[i].State),
			LastTerminationState: corev1.ContainerState{Terminated: reduceTermination(in[i].LastTerminationState.Terminated)},
		}
	}
	return out
}

func reduceContainerState(in corev1.ContainerState) corev1.ContainerState {
	out := corev1.ContainerState{Terminated: reduceTermination(in.Terminated)}
	if in.Running != nil {
		out.Running = &corev1.ContainerStateRunning{}
	}
	if in.Waiting != nil {
		out.Waiting = &corev1.ContainerStateWaiting{Reason: in.Waiting.Reason}
	}
	return out
}

// reduceTermination drops the message, which is log text.
func reduceTermination(in *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if in == nil {
		return nil
	}
	return &corev1.ContainerStateTerminated{Reason: in.Reason, FinishedAt: in.FinishedAt}
}

// podStates returns the live pods of these owners, oldest first.
func podStates(pods []corev1.Pod, owners map[types.UID]string) []Pod {
	states := make([]Pod, 0, len(pods))
	for i := range pods {
		pod := &pods[i]
		if len(pod.OwnerReferences) == 0 || pod.DeletionTimestamp != nil ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, owner := range pod.OwnerReferences {
			if name, found := owners[owner.UID]; found && owner.Controller != nil && *owner.Controller {
				states = append(states, podState(pod, name))
			}
		}
	}
	slices.SortFunc(states, func(a, b Pod) int {
		if order := a.CreationTime.Compare(b.CreationTime); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return states
}

// podState reads one pod. revision is what the pod's owner says it was made from, or the prefix of it that is the same for all
// revisions of a DaemonSet.
func podState(pod *corev1.Pod, owner string) Pod {
	state := Pod{
		Name:         pod.Name,
		UID:          pod.UID,
		Phase:        string(pod.Status.Phase),
		CreationTime: pod.CreationTimestamp.UTC(),
		Revision:     podRevision(pod, owner),
		Containers:   make([]Container, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers)),
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
func podRevision(pod *corev1.Pod, owner string) string {
	hash := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	for i := range pod.OwnerReferences {
		switch pod.OwnerReferences[i].Kind {
		case kindReplicaSet:
			return owner
		case kindStatefulSet:
			return hash
		case kindDaemonSet:
			if hash != "" {
				return owner + "-" + hash
			}
		}
	}
	return ""
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
