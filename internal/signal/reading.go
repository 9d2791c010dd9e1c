// Package signal measures. One file per source; a source turns a target and a signal of the spec into a Reading: a known value,
// or unknown with a reason. It does not judge (thresholds are the runbook's) and knows no actions.
package signal

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// Reading is the outcome of one measurement: a value, or a typed reason why there is none. No data is never a number.
type Reading struct {
	// Known says that Value holds a finite number.
	Known bool
	Value float64
	// NoData says that the source answered and had nothing to report: only then may spec.signals[].noData decide.
	NoData bool
	// AliveChecked says that the aliveQuery was asked and answered with a value.
	AliveChecked bool
	// Resting says that judgement rests while the workload is rolling out; nothing is wrong with the source.
	Resting bool
	// Reason and Message say why there is no value, or warn about the one there is. Bounded; no answer body in them.
	Reason  string
	Message string
	// At is when the value was measured.
	At time.Time
	// NextChange is when the value may change without any event (a window that slides, a grace that ends). Zero: never.
	NextChange time.Time
}

// Request is what a source is asked.
type Request struct {
	Target target.State
	Signal aiopsv1.Signal
	// Task tells tasks apart for sources that remember, such as counters over a window.
	Task types.UID
	// Since clips every built-in window while an action is being verified: nothing before it counts. Zero: no clipping.
	Since time.Time
	// StartupGrace leaves younger, never-ready pods out of UnavailableReplicas.
	StartupGrace time.Duration
	Now          time.Time
}

// Source measures one type of signal. Measure is safe for concurrent use and never panics; whatever goes wrong is an unknown Reading.
type Source interface {
	Type() aiopsv1.SignalType
	// Polled says whether Measure asks something outside the watch caches: it may then take until its timeout and is
	// asked once per interval, never because of an unrelated event.
	Polled() bool
	Measure(ctx context.Context, request Request) Reading
}
