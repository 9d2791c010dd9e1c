package signal

import (
	"context"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// ContainerRestarts counts the restarts of a workload's containers within a window, over all of its pods, those deleted
// within the window included. Value: a number of restarts. Source: the watched pods.
type ContainerRestarts struct {
	memory[windowNote]
}

// NewContainerRestarts returns the source for signals of type ContainerRestarts.
func NewContainerRestarts() *ContainerRestarts {
	return &ContainerRestarts{}
}

// Type is ContainerRestarts.
func (*ContainerRestarts) Type() aiopsv1.SignalType { return aiopsv1.SignalContainerRestarts }

// Polled is false: pods are watched.
func (*ContainerRestarts) Polled() bool { return false }

// Measure counts.
func (s *ContainerRestarts) Measure(_ context.Context, request Request) Reading {
	parameters := aiopsv1.ContainerRestartsSignal{}
	if request.Signal.ContainerRestarts != nil {
		parameters = *request.Signal.ContainerRestarts
	}
	if reading, stray := strayed(request, parameters.Container); stray {
		return reading
	}
	window := seconds(parameters.WindowSeconds, aiopsv1.DefaultRestartWindowSeconds)
	return s.with(request, func(note *windowNote) Reading {
		return note.count(request, window, parameters.Container, restarts)
	})
}

// restarts happened just now if the count grew between two looks: this is judged by the operator's own clock, since the end
// of the last run can be a whole back-off ago and was written by another machine.
func restarts(current look) []time.Time {
	if !current.seenBefore {
		return earlierRestarts(current)
	}
	grown := min(current.container.RestartCount-current.before.restarts, maxOccurrences)
	if grown <= 0 {
		return nil
	}
	return repeated(current.now, int(grown))
}

// earlierRestarts is what the status of a pod that was never looked at proves: every restart of a pod that is younger than
// the window, and of an older pod the last one, if the run before it ended within the window.
func earlierRestarts(current look) []time.Time {
	count := min(current.container.RestartCount, maxOccurrences)
	if count <= 0 {
		return nil
	}
	var times []time.Time
	if born := notAfter(current.pod.CreationTime, current.now); born.After(current.windowStart) {
		times = repeated(born, int(count)-1)
	}
	if ended := notAfter(current.container.LastTerminationTime, current.now); ended.After(current.windowStart) {
		times = append(times, ended)
	}
	return times
}

func repeated(moment time.Time, count int) []time.Time {
	times := make([]time.Time, count)
	for i := range times {
		times[i] = moment
	}
	return times
}
