package signal

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/example/aiops-operator/internal/target"
)

// maxOccurrences bounds what is remembered of one signal. What happened more often than that within the window counts as this many.
const maxOccurrences = 4096

// windowNote remembers what happened to containers within a window, also to those whose pod is gone.
type windowNote struct {
	sightings   map[containerKey]sighting
	occurrences []occurrence
}

type containerKey struct {
	pod  types.UID
	name string
}

// sighting is how a container looked when it was last measured.
type sighting struct {
	at       time.Time
	restarts int32
	ended    time.Time
	running  bool
}

type occurrence struct {
	at        time.Time
	container string
}

// look is one container now, beside how it was before.
type look struct {
	now         time.Time
	windowStart time.Time
	pod         target.Pod
	container   target.Container
	before      sighting
	seenBefore  bool
}

// evidence returns when the thing that is counted happened since the container was last looked at: only what is proven.
type evidence func(look) []time.Time

// count observes the pods, whether or not judgement rests, and answers how often the thing happened within the window.
func (n *windowNote) count(request Request, window time.Duration, container *string, proven evidence) Reading {
	n.observe(request, window, proven)
	if reading, rests := rest(request); rests {
		return reading
	}
	value := 0
	var next time.Time
	for _, happened := range n.occurrences {
		if happened.at.Before(request.Since) || !applies(container, happened.container) {
			continue
		}
		value++
		next = earliest(next, happened.at.Add(window))
	}
	reading := known(request, float64(value))
	reading.NextChange = next
	return reading
}

func (n *windowNote) observe(request Request, window time.Duration, proven evidence) {
	windowStart := request.Now.Add(-window)
	if n.sightings == nil {
		n.sightings = map[containerKey]sighting{}
	}
	for _, pod := range request.Target.Pods {
		for _, container := range pod.Containers {
			key := containerKey{pod: pod.UID, name: container.Name}
			before, seenBefore := n.sightings[key]
			current := look{now: request.Now, windowStart: windowStart, pod: pod, container: container, before: before, seenBefore: seenBefore}
			for _, at := range proven(current) {
				n.occurrences = append(n.occurrences, occurrence{at: at, container: container.Name})
			}
			n.sightings[key] = sighting{
				at: request.Now, restarts: container.RestartCount, ended: container.LastTerminationTime, running: container.Running,
			}
		}
	}
	n.forgetBefore(windowStart, request.Now)
}

// forgetBefore drops what slid out of the window, and containers that were not seen in it: their pod is gone for good.
func (n *windowNote) forgetBefore(windowStart, now time.Time) {
	n.occurrences = slices.DeleteFunc(n.occurrences, func(happened occurrence) bool { return !happened.at.After(windowStart) })
	if surplus := len(n.occurrences) - maxOccurrences; surplus > 0 {
		slices.SortStableFunc(n.occurrences, func(a, b occurrence) int { return a.at.Compare(b.at) })
		n.occurrences = slices.Delete(n.occurrences, 0, surplus)
	}
	gone := 0
	for key, seen := range n.sightings {
		if seen.at.Equal(now) {
			continue
		}
		gone++
		if gone > maxOccurrences || !seen.at.After(windowStart) {
			delete(n.sightings, key)
		}
	}
}
