package signal

import (
	"context"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// No threshold beyond this can be reached while anybody waits; it also keeps seconds far from overflowing a duration.
const longestStall = 100 * 365 * 24 * time.Hour

// RolloutStalled is how long an unfinished rollout has not progressed. Value: seconds, 0 when no rollout is under way. Source:
// the watched workload.
type RolloutStalled struct{}

// NewRolloutStalled returns the source for signals of type RolloutStalled.
func NewRolloutStalled() *RolloutStalled {
	return &RolloutStalled{}
}

// Type is RolloutStalled.
func (*RolloutStalled) Type() aiopsv1.SignalType { return aiopsv1.SignalRolloutStalled }

// Polled is false: workloads are watched.
func (*RolloutStalled) Polled() bool { return false }

// Measure measures.
func (*RolloutStalled) Measure(_ context.Context, request Request) Reading {
	rollout := request.Target.Rollout
	if !rollout.Progressing && !rollout.Stalled {
		return known(request, 0)
	}
	if rollout.LastProgressTime.IsZero() {
		// The workload's controller has not seen the new template yet: nothing is wrong, and nothing is known.
		reading := unknown(request, aiopsv1.ReasonNotObserved, "When the rollout of %s last moved is not known yet", request.Target.Reference)
		reading.Resting = true
		return reading
	}
	moved := notAfter(rollout.LastProgressTime, request.Now)
	reading := known(request, request.Now.Sub(moved).Seconds())
	reading.NextChange = nextCrossing(request, moved)
	return reading
}

// nextCrossing is when the growing value gets to the other side of a threshold: nobody has to look before.
func nextCrossing(request Request, moved time.Time) time.Time {
	var next time.Time
	consider := func(threshold *int64, further time.Duration) {
		if threshold == nil || *threshold < 0 || *threshold > int64(longestStall/time.Second) {
			return
		}
		crossing := moved.Add(time.Duration(*threshold)*time.Second + further)
		if crossing.After(request.Now) {
			next = earliest(next, crossing)
		}
	}
	if request.Signal.Comparison == aiopsv1.ComparisonAtMost {
		consider(request.Signal.Threshold, time.Millisecond) // the threshold itself is still a breach
		consider(request.Signal.RecoveryThreshold, 0)
		return next
	}
	consider(request.Signal.Threshold, 0)
	return next
}
