package target

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Reasons of a Deployment's Progressing condition, as its controller writes them.
const (
	rolloutComplete = "NewReplicaSetAvailable"
	rolloutTimedOut = "ProgressDeadlineExceeded"
)

const (
	// longestDeadline is from where on a progress deadline is taken as none: judgement must not rest for ever.
	longestDeadline = 24 * time.Hour
	// statusLag is how long after a new template a status may still speak of the rollout before it.
	statusLag = 30 * time.Second
)

// progressDeadline returns how long a rollout may stand still. 600 seconds where the workload does not say.
func progressDeadline(seconds *int32) time.Duration {
	standard := time.Duration(aiopsv1.DefaultProgressSecond) * time.Second
	if seconds == nil {
		return standard
	}
	deadline := time.Duration(*seconds) * time.Second
	if deadline <= 0 || deadline > longestDeadline {
		return standard
	}
	return deadline
}

// unfinished is a rollout that is under way and last moved at this time. With the zero time it is taken as moving.
func unfinished(last time.Time, deadline time.Duration, now time.Time) Rollout {
	if last.IsZero() {
		return Rollout{Progressing: true, DeadlineTime: now.Add(deadline)}
	}
	rollout := Rollout{LastProgressTime: last, DeadlineTime: last.Add(deadline)}
	rollout.Progressing = now.Before(rollout.DeadlineTime)
	rollout.Stalled = !rollout.Progressing
	return rollout
}

// deploymentRollout follows the Deployment controller, which remembers in a condition whether the template in force was once rolled
// out completely: pods that fail later do not make it a rollout again.
func deploymentRollout(deployment *appsv1.Deployment, state *State, templateTime, now time.Time) Rollout {
	deadline := progressDeadline(deployment.Spec.ProgressDeadlineSeconds)
	if state.Paused {
		return Rollout{}
	}
	if !state.Settled {
		return unfinished(time.Time{}, deadline, now)
	}
	mixed := deployment.Status.Replicas != deployment.Status.UpdatedReplicas
	condition := progressingCondition(deployment)
	if condition == nil { // the controller keeps none for a Deployment without a deadline
		if mixed || state.Updated < state.Replicas {
			return unfinished(latestProgress(state, templateTime), deadline, now)
		}
		return starting(state, deployment.Status.Replicas, templateTime, deadline, now)
	}
	switch {
	case condition.Reason == rolloutComplete && !mixed:
		return Rollout{}
	case condition.Reason == rolloutComplete:
		// The next rollout has begun, on a ReplicaSet that was there before: the condition still praises the one before it.
		return unfinished(latestProgress(state, templateTime), deadline, now)
	case condition.Reason == rolloutTimedOut:
		return timedOut(condition, templateTime, deadline, now)
	default:
		return unfinished(condition.LastUpdateTime.UTC(), deadline, now)
	}
}

// timedOut is a rollout that the controller has given up, unless the template is younger than that.
func timedOut(condition *appsv1.DeploymentCondition, templateTime time.Time, deadline time.Duration, now time.Time) Rollout {
	if now.Before(templateTime.Add(statusLag)) {
		return unfinished(templateTime, deadline, now)
	}
	return Rollout{
		Stalled:          true,
		LastProgressTime: condition.LastUpdateTime.UTC().Add(-deadline),
		DeadlineTime:     condition.LastUpdateTime.UTC(),
	}
}

func progressingCondition(deployment *appsv1.Deployment) *appsv1.DeploymentCondition {
	for i := range deployment.Status.Conditions {
		if condition := &deployment.Status.Conditions[i]; condition.Type == appsv1.DeploymentProgressing {
			return condition
		}
	}
	return nil
}

// statefulSetRollout: the controller makes the update revision the current one when every pod has it and is ready. With a
// partition it never does, and pods below the partition are meant to stay as they are.
func statefulSetRollout(set *appsv1.StatefulSet, state *State, templateTime, now time.Time) Rollout {
	deadline := progressDeadline(nil)
	if state.OnDelete {
		return Rollout{}
	}
	if !state.Settled {
		return unfinished(time.Time{}, deadline, now)
	}
	partition := partitionOf(set)
	if set.Status.UpdateRevision != set.Status.CurrentRevision &&
		(partition == 0 || state.Updated < state.Replicas-partition) {
		return unfinished(latestProgress(state, templateTime), deadline, now)
	}
	return starting(state, set.Status.Replicas, templateTime, deadline, now)
}

func partitionOf(set *appsv1.StatefulSet) int32 {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	return *rolling.Partition
}

// daemonSetRollout: a rollout is under way while a pod has an older revision. Counts alone do not tell, since a pod that was
// deleted, or a node that was added, lowers the number of updated pods too.
func daemonSetRollout(set *appsv1.DaemonSet, state *State, templateTime, now time.Time) Rollout {
	deadline := progressDeadline(nil)
	if state.OnDelete {
		return Rollout{}
	}
	if !state.Settled {
		return unfinished(time.Time{}, deadline, now)
	}
	for i := range state.Pods {
		if revision := state.Pods[i].Revision; state.Revision != "" && revision != "" && revision != state.Revision {
			return unfinished(latestProgress(state, templateTime), deadline, now)
		}
	}
	return starting(state, set.Status.CurrentNumberScheduled, templateTime, deadline, now)
}

// starting is a workload whose template is in force everywhere, but whose pods may not all have been there yet: progressing while pods are
// still being created, or while a pod of a young template has never been ready. It ends by itself and is never
// stalled: nothing that a rollback could cure.
func starting(state *State, created int32, templateTime time.Time, deadline time.Duration, now time.Time) Rollout {
	if last := latestProgress(state, templateTime); created < state.Replicas && now.Before(last.Add(deadline)) {
		return unfinished(last, deadline, now)
	}
	if !now.Before(templateTime.Add(deadline)) {
		return Rollout{}
	}
	for i := range state.Pods {
		if !state.Pods[i].EverReady {
			return unfinished(templateTime, deadline, now)
		}
	}
	return Rollout{}
}

// latestProgress is the newest of: the template's last change, and the creation and becoming ready of a pod made from it.
func latestProgress(state *State, templateTime time.Time) time.Time {
	last := templateTime
	for i := range state.Pods {
		pod := &state.Pods[i]
		if pod.Revision != state.Revision {
			continue
		}
		last = later(last, pod.CreationTime)
		if pod.Ready {
			last = later(last, pod.ReadyTransitionTime)
		}
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func conditionsOf[C any](conditions []C, read func(*C) (string, corev1.ConditionStatus)) []Condition {
	if len(conditions) == 0 {
		return nil
	}
	out := make([]Condition, len(conditions))
	for i := range conditions {
		kind, status := read(&conditions[i])
		out[i] = Condition{Type: kind, Status: string(status)}
	}
	return out
}
