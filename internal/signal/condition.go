package signal

import (
	"context"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Condition tells whether a condition of the workload has a status. Value: 1 if it has, 0 if it has another; unknown, and open
// to noData, while the workload has no such condition. Source: the watched workload.
type Condition struct{}

// NewCondition returns the source for signals of type Condition.
func NewCondition() *Condition {
	return &Condition{}
}

// Type is Condition.
func (*Condition) Type() aiopsv1.SignalType { return aiopsv1.SignalCondition }

// Polled is false: workloads are watched.
func (*Condition) Polled() bool { return false }

// Measure looks.
func (*Condition) Measure(_ context.Context, request Request) Reading {
	parameters := request.Signal.Condition
	if parameters == nil {
		return parametersMissing(request, "condition")
	}
	if reading, rests := rest(request); rests {
		return reading
	}
	for _, condition := range request.Target.Conditions {
		if condition.Type != parameters.Type {
			continue
		}
		if condition.Status == string(parameters.Status) {
			return known(request, 1)
		}
		return known(request, 0)
	}
	reading := unknown(request, aiopsv1.ReasonConditionAbsent, "%s has no condition %q", request.Target.Reference, parameters.Type)
	reading.NoData = true
	return reading
}
