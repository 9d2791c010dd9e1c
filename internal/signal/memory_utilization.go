package signal

import (
	"context"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// MemoryUtilization is how much of the memory that it may use the ready pod nearest to its limit uses. Value: percent of the
// limits of the pod's containers, of the request where a container has no limit. Source: metrics.k8s.io.
type MemoryUtilization struct {
	reader PodUsageReader
}

// NewMemoryUtilization returns the source for signals of type MemoryUtilization.
func NewMemoryUtilization(reader PodUsageReader) *MemoryUtilization {
	return &MemoryUtilization{reader: reader}
}

// Type is MemoryUtilization.
func (*MemoryUtilization) Type() aiopsv1.SignalType { return aiopsv1.SignalMemoryUtilization }

// Polled is true: metrics.k8s.io is asked.
func (*MemoryUtilization) Polled() bool { return true }

func (*MemoryUtilization) question(Request) question {
	return question{queue: metricsQueue, timeout: metricsTimeout}
}

// Measure asks for the usage of every ready pod.
func (s *MemoryUtilization) Measure(ctx context.Context, request Request) Reading {
	if reading, rests := rest(request); rests {
		return reading
	}
	parameters := aiopsv1.MemoryUtilizationSignal{}
	if request.Signal.MemoryUtilization != nil {
		parameters = *request.Signal.MemoryUtilization
	}
	pods, problem := measurePods(ctx, request, s.reader, parameters.Container, meter{
		resource: "memory",
		needed:   "memory limit or request",
		used:     func(usage ContainerUsage) float64 { return usage.Memory },
		meant:    allowedMemory,
	})
	if problem != nil {
		return *problem
	}
	highest := 0.0
	for _, pod := range pods {
		highest = max(highest, 100*pod.used/pod.meant)
	}
	return known(request, highest)
}

func allowedMemory(container target.Container) float64 {
	if container.MemoryLimit > 0 {
		return float64(container.MemoryLimit)
	}
	return float64(container.MemoryRequest)
}
