package signal

import (
	"context"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// phasePending is the phase of a pod that is not scheduled, or whose containers have not all been started.
const phasePending = "Pending"

// PendingPods is how many pods have been pending for the window. Value: a number of pods. Judged during a rollout too: an
// image that cannot be run keeps a rollout from ever finishing. The window is how long a pod may take, not how far back
// something counts, so verification does not clip it: a pod that was pending before an action still is. Source: the watched pods.
type PendingPods struct{}

// NewPendingPods returns the source for signals of type PendingPods.
func NewPendingPods() *PendingPods {
	return &PendingPods{}
}

// Type is PendingPods.
func (*PendingPods) Type() aiopsv1.SignalType { return aiopsv1.SignalPendingPods }

// Polled is false: pods are watched.
func (*PendingPods) Polled() bool { return false }

// Measure counts.
func (*PendingPods) Measure(_ context.Context, request Request) Reading {
	parameters := aiopsv1.PendingPodsSignal{}
	if request.Signal.PendingPods != nil {
		parameters = *request.Signal.PendingPods
	}
	window := seconds(parameters.WindowSeconds, aiopsv1.DefaultPendingWindowSeconds)
	value := 0
	var next time.Time
	for _, pod := range request.Target.Pods {
		if pod.Phase != phasePending {
			continue
		}
		overdue := notAfter(pod.CreationTime, request.Now).Add(window)
		if overdue.After(request.Now) {
			next = earliest(next, overdue)
			continue
		}
		value++
	}
	reading := known(request, float64(value))
	reading.NextChange = next
	return reading
}
