package signal

import (
	"context"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// reasonBackOff is the kubelet's own word for a container that keeps crashing.
const reasonBackOff = "CrashLoopBackOff"

const (
	// A container that runs this long in a ready pod has come out of its back-off, and so has one that has ended for this long
	// without being put into another: the kubelet does that within a second or two.
	settled = 10 * time.Second
	// A container whose pod does not become ready has come out of it when it outlived the longest back-off.
	settledNotReady = 5 * time.Minute
)

// CrashLoopingPods is how many pods have a container that does not come up: in a back-off after crashes, or one that cannot
// be pulled, created or started. Value: a number of pods. Judged during a rollout too.
//
// A looping container is up for a moment between two crashes. So that the value does not flap with it, a container that was
// seen in CrashLoopBackOff goes on counting until it has been running for 10 seconds in a ready pod, or for 5 minutes in one
// that is not ready, or has ended for good. A single crash, which the kubelet answers with a restart at once, never counts. Source: the watched pods.
type CrashLoopingPods struct {
	memory[loopNote]
}

// loopNote holds the containers that were seen in a back-off and have not come out of it.
type loopNote struct {
	loops map[containerKey]loop
}

type loop struct {
	restarts   int32
	running    bool
	backingOff bool
	// since is since when the container has been seen like this, by the operator's own clock.
	since time.Time
}

// NewCrashLoopingPods returns the source for signals of type CrashLoopingPods.
func NewCrashLoopingPods() *CrashLoopingPods {
	return &CrashLoopingPods{}
}

// Type is CrashLoopingPods.
func (*CrashLoopingPods) Type() aiopsv1.SignalType { return aiopsv1.SignalCrashLoopingPods }

// Polled is false: pods are watched.
func (*CrashLoopingPods) Polled() bool { return false }

// Measure counts.
func (s *CrashLoopingPods) Measure(_ context.Context, request Request) Reading {
	parameters := aiopsv1.CrashLoopingPodsSignal{}
	if request.Signal.CrashLoopingPods != nil {
		parameters = *request.Signal.CrashLoopingPods
	}
	if reading, stray := strayed(request, parameters.Container); stray {
		return reading
	}
	return s.with(request, func(note *loopNote) Reading {
		return note.count(request, parameters.Container)
	})
}

func (n *loopNote) count(request Request, name *string) Reading {
	value := 0
	var next time.Time
	loops := map[containerKey]loop{} // of the pods there are: it never outgrows them
	for _, pod := range request.Target.Pods {
		down := false
		for _, container := range pod.Containers {
			until, counts := n.follow(request.Now, pod, container, loops)
			if counts && applies(name, container.Name) {
				down = true
				next = earliest(next, until)
			}
		}
		if down {
			value++
		}
	}
	n.loops = loops
	reading := known(request, float64(value))
	reading.NextChange = next
	return reading
}

// follow says whether a container counts and, if time alone ends that, until when.
func (n *loopNote) follow(now time.Time, pod target.Pod, container target.Container, loops map[containerKey]loop) (time.Time, bool) {
	key := containerKey{pod: pod.UID, name: container.Name}
	before, looping := n.loops[key]
	present := loop{
		restarts: container.RestartCount, running: container.Running, backingOff: container.WaitingReason == reasonBackOff, since: now,
	}
	if present.backingOff {
		loops[key] = present
		return time.Time{}, true
	}
	if cannotStart(container.WaitingReason) {
		return time.Time{}, true
	}
	if !looping {
		return time.Time{}, false
	}
	if before.restarts == present.restarts && before.running == present.running && !before.backingOff {
		present.since = before.since
	}
	until := present.since.Add(settled)
	if container.Running && !pod.Ready {
		until = present.since.Add(settledNotReady)
	}
	if !until.After(now) {
		return time.Time{}, false
	}
	loops[key] = present
	return until, true
}

// cannotStart says whether the kubelet gave up, for now, on getting a container to run at all.
func cannotStart(waitingReason string) bool {
	switch waitingReason {
	case "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return true
	}
	return false
}
