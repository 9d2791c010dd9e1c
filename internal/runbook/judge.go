package runbook

import (
	"math"
	"strconv"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// largestPlain is from where on values are written with an exponent. Thresholds stay below it.
const largestPlain = 1e17

// Reading is one measurement, as a source gave it.
type Reading struct {
	Known bool
	Value float64
	// NoData says that the source answered and had nothing to report.
	NoData bool
	// Alive says that the source was shown to report at all.
	Alive bool
	// Resting says that nothing is measured while the target is rolling out.
	Resting bool
	Reason  string
	Message string
	At      time.Time
}

// Judgement is a reading held against its threshold.
type Judgement struct {
	// Verdict is Breached, Healthy or Unknown.
	Verdict string
	Reading Reading
	// Summary is the value and how it stands to the threshold, such as "103.5 >= 100" or "99 < 100"; "unknown >= 100" without a value.
	Summary string
	Reason  string
	Message string
}

// Judge compares. breachedBefore is the latest known verdict: between threshold and recoveryThreshold it holds on (hysteresis). A
// reading without a value is Unknown, unless the source answered with no data and the signal says what that means.
func Judge(signal aiopsv1.Signal, reading Reading, breachedBefore bool) Judgement {
	if reading.Known && (math.IsNaN(reading.Value) || math.IsInf(reading.Value, 0)) {
		reading = Reading{Reason: aiopsv1.ReasonNotANumber, Message: "The value is not a finite number", At: reading.At}
	}
	judgement := Judgement{Verdict: aiopsv1.VerdictUnknown, Reading: reading, Reason: reading.Reason, Message: reading.Message}
	judgement.Summary = summaryOf(signal, reading)
	switch {
	case signal.Threshold == nil:
		return judgement
	case !reading.Known:
		judgement.Verdict = noDataVerdict(signal, reading)
		return judgement
	}
	judgement.Verdict, judgement.Reason = aiopsv1.VerdictHealthy, aiopsv1.ReasonHealthy
	if reached(signal, reading.Value, breachedBefore) {
		judgement.Verdict, judgement.Reason = aiopsv1.VerdictBreached, aiopsv1.ReasonThresholdReached
	}
	judgement.Summary = FormatValue(reading.Value) + " " + relationOf(signal, reading.Value, judgement.Verdict == aiopsv1.VerdictBreached)
	return judgement
}

func reached(signal aiopsv1.Signal, value float64, breachedBefore bool) bool {
	if signal.Comparison == aiopsv1.ComparisonAtMost {
		if breachedBefore && signal.RecoveryThreshold != nil {
			return value < float64(*signal.RecoveryThreshold)
		}
		return value <= float64(*signal.Threshold)
	}
	if breachedBefore && signal.RecoveryThreshold != nil {
		return value > float64(*signal.RecoveryThreshold)
	}
	return value >= float64(*signal.Threshold)
}

// noDataVerdict applies noData to an answered, empty result and to nothing else.
func noDataVerdict(signal aiopsv1.Signal, reading Reading) string {
	if !reading.NoData {
		return aiopsv1.VerdictUnknown
	}
	switch signal.NoData {
	case aiopsv1.NoDataBreached:
		return aiopsv1.VerdictBreached
	case aiopsv1.NoDataHealthy:
		if reading.Alive {
			return aiopsv1.VerdictHealthy
		}
	}
	return aiopsv1.VerdictUnknown
}

func summaryOf(signal aiopsv1.Signal, reading Reading) string {
	switch {
	case reading.Known:
		return FormatValue(reading.Value)
	case reading.NoData:
		return "no data " + thresholdOf(signal)
	}
	return "unknown " + thresholdOf(signal)
}

func thresholdOf(signal aiopsv1.Signal) string {
	if signal.Threshold == nil {
		return ""
	}
	sign := ">= "
	if signal.Comparison == aiopsv1.ComparisonAtMost {
		sign = "<= "
	}
	return sign + strconv.FormatInt(*signal.Threshold, 10)
}

// relationOf says how a value stands to the number that decided about it, so that value and relation always read as a true
// statement: "3 >= 1" is a breach, "0 < 1" is none, and "66 > 60" is one that has not come down to recoveryThreshold.
func relationOf(signal aiopsv1.Signal, value float64, breached bool) string {
	inside, outside, short := ">= ", "< ", "> "
	reaches := value >= float64(*signal.Threshold)
	if signal.Comparison == aiopsv1.ComparisonAtMost {
		inside, outside, short = "<= ", "> ", "< "
		reaches = value <= float64(*signal.Threshold)
	}
	switch {
	case reaches:
		return inside + strconv.FormatInt(*signal.Threshold, 10)
	case breached && signal.RecoveryThreshold != nil:
		return short + strconv.FormatInt(*signal.RecoveryThreshold, 10)
	}
	return outside + strconv.FormatInt(*signal.Threshold, 10)
}

// FormatValue writes a value the way people read it: whole numbers without a point, others with three decimals, and with more
// where fewer would show a whole number: a threshold is one, and 99.9996 has not reached 100. Only for display: judging uses the
// value as it was measured.
func FormatValue(value float64) string {
	for precision := 3; precision <= 12; precision++ {
		text := strconv.FormatFloat(value, 'f', precision, 64)
		rounded, err := strconv.ParseFloat(text, 64)
		if err == nil && (rounded != math.Trunc(rounded)) == (value != math.Trunc(value)) && math.Abs(value) < largestPlain {
			return strconv.FormatFloat(rounded, 'f', -1, 64)
		}
	}
	return strconv.FormatFloat(value, 'g', -1, 64)
}

// Observation is what this process has itself seen of a signal, without a break. It is kept in memory only: after a restart
// or a change of leader, durations count from what the new process saw, so they can come out longer, never shorter.
type Observation struct {
	Judgement Judgement
	// BreachedSince is since when every judgement was Breached. Zero: the latest was not.
	BreachedSince time.Time
	// RecoveringSince is since when every judgement was Healthy and the workload available. Zero: now it is not so.
	RecoveringSince time.Time
	// KnownBreached is the latest verdict that was not Unknown. Nil: there was none yet.
	KnownBreached *bool
}

// Observe adds one judgement. Unknown ends both durations: what was not seen did not hold.
func Observe(before Observation, judgement Judgement, available bool, now time.Time) Observation {
	after := Observation{Judgement: judgement, KnownBreached: before.KnownBreached}
	if judgement.Verdict == aiopsv1.VerdictBreached {
		after.BreachedSince = first(before.BreachedSince, now)
	}
	if judgement.Verdict == aiopsv1.VerdictHealthy && available {
		after.RecoveringSince = first(before.RecoveringSince, now)
	}
	if judgement.Verdict != aiopsv1.VerdictUnknown {
		breached := judgement.Verdict == aiopsv1.VerdictBreached
		after.KnownBreached = &breached
	}
	return after
}

// breachedBefore is the latest known verdict of this process, else of the status that it found.
func breachedBefore(observation Observation, status *aiopsv1.AITaskStatus) bool {
	if observation.KnownBreached != nil {
		return *observation.KnownBreached
	}
	if len(status.Signals) > 0 && status.Signals[0].Verdict != aiopsv1.VerdictUnknown {
		return status.Signals[0].Verdict == aiopsv1.VerdictBreached
	}
	return status.Incident != nil && status.Incident.RecoveredTime == nil
}

// BreachedBefore is the latest known verdict on the signal of this plan: what was seen or written of another signal, or of the same one with
// another threshold, is no hysteresis of this one.
func (p Plan) BreachedBefore(observation Observation, status *aiopsv1.AITaskStatus) bool {
	if observation.KnownBreached == nil && len(status.Signals) > 0 &&
		(p.Signal == nil || status.Signals[0].Name != p.Signal.Name || status.Signals[0].Threshold != thresholdOf(*p.Signal)) {
		return false
	}
	return breachedBefore(observation, status)
}

func first(since, now time.Time) time.Time {
	if since.IsZero() || since.After(now) {
		return now
	}
	return since
}
