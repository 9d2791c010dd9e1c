package signal

import (
	"context"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// autoscalerGrace is how long pods that an autoscaler has just asked for may take to come up, at least.
const autoscalerGrace = 60 * time.Second

// UnavailableReplicas is how many of the desired pods are not available. Value: a number of pods, never below 0. Pods inside
// the startup grace that were never ready do not count, nor do those that an autoscaler has just asked for. Source: the
// watched workload and its pods.
type UnavailableReplicas struct{}

// NewUnavailableReplicas returns the source for signals of type UnavailableReplicas.
func NewUnavailableReplicas() *UnavailableReplicas {
	return &UnavailableReplicas{}
}

// Type is UnavailableReplicas.
func (*UnavailableReplicas) Type() aiopsv1.SignalType { return aiopsv1.SignalUnavailableReplicas }

// Polled is false: workloads and pods are watched.
func (*UnavailableReplicas) Polled() bool { return false }

// Measure counts.
func (*UnavailableReplicas) Measure(_ context.Context, request Request) Reading {
	if reading, rests := rest(request); rests {
		return reading
	}
	workload := request.Target
	missing := max(0, int(workload.Replicas-workload.Available))
	if missing == 0 {
		return known(request, 0)
	}
	excused, until := excusedPods(request)
	reading := known(request, float64(max(0, missing-excused)))
	reading.NextChange = until
	return reading
}

// excusedPods is how many pods do not count, and when the first of them will.
func excusedPods(request Request) (int, time.Time) {
	excused := 0
	var until time.Time
	scaled := scaleGraceEnd(request)
	for _, pod := range request.Target.Pods {
		if end := podGraceEnd(request, pod, scaled); end.After(request.Now) {
			excused++
			until = earliest(until, end)
		}
	}
	if absent := int(request.Target.Replicas) - len(request.Target.Pods); absent > 0 && scaled.After(request.Now) {
		excused += absent
		until = earliest(until, scaled)
	}
	return excused, until
}

// podGraceEnd is until when a pod is excused. A pod that was ready once is not starting, it broke.
func podGraceEnd(request Request, pod target.Pod, scaled time.Time) time.Time {
	if pod.Ready || pod.EverReady {
		return time.Time{}
	}
	born := notAfter(pod.CreationTime, request.Now)
	end := born.Add(request.StartupGrace)
	if scaled.After(request.Now) {
		if asked := notAfter(born.Add(scaleGrace(request)), scaled); asked.After(end) {
			end = asked
		}
	}
	return end
}

// scaleGraceEnd is until when pods may still come up because an autoscaler asked for them. Zero: no autoscaler did.
func scaleGraceEnd(request Request) time.Time {
	autoscaler := request.Target.Autoscaler
	if autoscaler == nil || autoscaler.LastScaleTime.IsZero() {
		return time.Time{}
	}
	return notAfter(autoscaler.LastScaleTime, request.Now).Add(scaleGrace(request))
}

func scaleGrace(request Request) time.Duration {
	return max(request.StartupGrace, autoscalerGrace)
}
