package signal

import (
	"context"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// CPUUtilization is how much of the CPU that they request the ready pods use. Value: percent, the mean over the pods. Source:
// metrics.k8s.io.
type CPUUtilization struct {
	reader PodUsageReader
}

// NewCPUUtilization returns the source for signals of type CPUUtilization.
func NewCPUUtilization(reader PodUsageReader) *CPUUtilization {
	return &CPUUtilization{reader: reader}
}

// Type is CPUUtilization.
func (*CPUUtilization) Type() aiopsv1.SignalType { return aiopsv1.SignalCPUUtilization }

// Polled is true: metrics.k8s.io is asked.
func (*CPUUtilization) Polled() bool { return true }

func (*CPUUtilization) question(Request) question {
	return question{queue: metricsQueue, timeout: metricsTimeout}
}

// Measure asks for the usage of every ready pod.
func (s *CPUUtilization) Measure(ctx context.Context, request Request) Reading {
	if reading, rests := rest(request); rests {
		return reading
	}
	parameters := aiopsv1.CPUUtilizationSignal{}
	if request.Signal.CPUUtilization != nil {
		parameters = *request.Signal.CPUUtilization
	}
	pods, problem := measurePods(ctx, request, s.reader, parameters.Container, meter{
		resource: "CPU",
		needed:   "CPU request",
		used:     func(usage ContainerUsage) float64 { return usage.CPU },
		meant:    func(container target.Container) float64 { return float64(container.CPURequestMilli) / 1000 },
	})
	if problem != nil {
		return *problem
	}
	sum := 0.0
	for _, pod := range pods {
		sum += 100 * pod.used / pod.meant
	}
	return known(request, sum/float64(len(pods)))
}
