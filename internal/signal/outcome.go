package signal

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// maxNamedContainers bounds how many containers a message names.
const maxNamedContainers = 8

// known is the reading of a value. What is no finite number is no value, whichever source it came from.
func known(request Request, value float64) Reading {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return unknown(request, aiopsv1.ReasonNotANumber, "The value is not a finite number")
	}
	return Reading{Known: true, Value: value, At: request.Now}
}

// unknown is the reading of no value. Callers put names of their own into the message, never text that was read from outside.
func unknown(request Request, reason, format string, arguments ...any) Reading {
	message := fmt.Sprintf(format, arguments...)
	if len(message) > aiopsv1.MaxMessageLength {
		message = strings.ToValidUTF8(message[:aiopsv1.MaxMessageLength], "")
	}
	return Reading{Reason: reason, Message: message, At: request.Now}
}

// parametersMissing is the reading of a signal whose type and parameters do not fit. Admission refuses such a spec.
func parametersMissing(request Request, member string) Reading {
	return unknown(request, aiopsv1.ReasonInvalidSpec, "A signal of type %s needs %s", request.Signal.Type, member)
}

// rest says whether judgement rests. While the workload is still moving towards its newest template, missing pods and odd
// numbers are what is expected of it. A rollout that has stalled is judged again, and so are the signals that exist to find one.
func rest(request Request) (Reading, bool) {
	rollout := request.Target.Rollout
	if !rollout.Progressing && request.Target.Settled {
		return Reading{}, false
	}
	reading := unknown(request, aiopsv1.ReasonRolloutInProgress,
		"%s is rolling out: judgement rests until the rollout has finished or stalled", request.Target.Reference)
	reading.Resting = true
	reading.NextChange = rollout.DeadlineTime
	return reading, true
}

// strayed says that a signal looks at a container that no pod has: it would stay at 0 for ever and look healthy.
func strayed(request Request, name *string) (Reading, bool) {
	if name == nil {
		return Reading{}, false
	}
	var others []string
	for i := range request.Target.Pods {
		for _, container := range request.Target.Pods[i].Containers {
			if container.Name == *name {
				return Reading{}, false
			}
			if !slices.Contains(others, container.Name) && len(others) < maxNamedContainers {
				others = append(others, container.Name)
			}
		}
	}
	if len(others) == 0 {
		return Reading{}, false // there is no pod to tell it by
	}
	return unknown(request, aiopsv1.ReasonUnknownContainer, "No pod of %s has a container %q: write one of %s, or leave the name out",
		request.Target.Reference, *name, strings.Join(others, ", ")), true
}

// seconds is a window of the spec as a duration.
func seconds(value *int32, absent int32) time.Duration {
	if value == nil {
		return time.Duration(absent) * time.Second
	}
	return time.Duration(*value) * time.Second
}

// earliest is the earlier of two times, where zero means never.
func earliest(one, other time.Time) time.Time {
	if one.IsZero() || (!other.IsZero() && other.Before(one)) {
		return other
	}
	return one
}

// notAfter is moment, or limit if moment lies beyond it: what a machine with a fast clock wrote did not happen in the future.
func notAfter(moment, limit time.Time) time.Time {
	if moment.After(limit) {
		return limit
	}
	return moment
}

// applies says whether a container is looked at. An absent name means every container.
func applies(name *string, container string) bool {
	return name == nil || *name == container
}
