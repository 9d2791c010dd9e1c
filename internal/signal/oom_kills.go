package signal

import (
	"context"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// reasonOOMKilled is what the kubelet writes when the kernel killed a container for its memory.
const reasonOOMKilled = "OOMKilled"

// OOMKills counts out-of-memory kills of a workload's containers within a window, over all of its pods, those deleted within
// the window included. Value: a number of kills. Source: the watched pods.
type OOMKills struct {
	memory[windowNote]
}

// NewOOMKills returns the source for signals of type OOMKills.
func NewOOMKills() *OOMKills {
	return &OOMKills{}
}

// Type is OOMKills.
func (*OOMKills) Type() aiopsv1.SignalType { return aiopsv1.SignalOOMKills }

// Polled is false: pods are watched.
func (*OOMKills) Polled() bool { return false }

// Measure counts.
func (s *OOMKills) Measure(_ context.Context, request Request) Reading {
	parameters := aiopsv1.OOMKillsSignal{}
	if request.Signal.OOMKills != nil {
		parameters = *request.Signal.OOMKills
	}
	if reading, stray := strayed(request, parameters.Container); stray {
		return reading
	}
	window := seconds(parameters.WindowSeconds, aiopsv1.DefaultOOMWindowSeconds)
	return s.with(request, func(note *windowNote) Reading {
		return note.count(request, window, parameters.Container, oomKills)
	})
}

// oomKills is at most the last end of a container: a status proves no more. The kill was after the last look and before this
// one, whatever the node's clock says.
func oomKills(current look) []time.Time {
	if current.container.LastTerminationReason != reasonOOMKilled {
		return nil
	}
	ended := notAfter(current.container.LastTerminationTime, current.now)
	if !current.seenBefore {
		if !ended.After(current.windowStart) {
			return nil
		}
		return []time.Time{ended}
	}
	if sameEnd(current) {
		return nil
	}
	if ended.Before(current.before.at) {
		ended = current.before.at
	}
	return []time.Time{ended}
}

// sameEnd says whether the container's last end is the one that was seen before. The count of restarts grows only when the
// container comes up again, so it alone would count one kill twice; the time alone, which is in whole seconds, would miss the
// second of two kills in one second.
func sameEnd(current look) bool {
	if !current.container.LastTerminationTime.Equal(current.before.ended) {
		return false
	}
	grown := current.container.RestartCount - current.before.restarts
	return grown <= 0 || (grown == 1 && !current.before.running)
}
