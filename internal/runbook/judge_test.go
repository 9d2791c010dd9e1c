package runbook

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

func atLeast(threshold int64) aiopsv1.Signal {
	return aiopsv1.Signal{Name: "queue", Type: aiopsv1.SignalPrometheus, Threshold: &threshold}
}

func atMost(threshold int64) aiopsv1.Signal {
	signal := atLeast(threshold)
	signal.Comparison = aiopsv1.ComparisonAtMost
	return signal
}

func recovering(signal aiopsv1.Signal, threshold int64) aiopsv1.Signal {
	signal.RecoveryThreshold = &threshold
	return signal
}

func withNoData(signal aiopsv1.Signal, verdict aiopsv1.NoDataVerdict) aiopsv1.Signal {
	signal.NoData = verdict
	return signal
}

func value(number float64) Reading {
	return Reading{Known: true, Value: number}
}

func TestJudgeComparesTheValueAsItWasMeasured(t *testing.T) {
	const breached, healthy = aiopsv1.VerdictBreached, aiopsv1.VerdictHealthy
	tests := map[string]struct {
		signal  aiopsv1.Signal
		value   float64
		before  bool
		want    string
		summary string
	}{
		"at the threshold":                       {atLeast(100), 100, false, breached, "100 >= 100"},
		"above":                                  {atLeast(100), 103.5, false, breached, "103.5 >= 100"},
		"just below is never rounded up":         {atLeast(100), 99.99999, false, healthy, "99.99999 < 100"},
		"at most: at the threshold":              {atMost(3), 3, false, breached, "3 <= 3"},
		"at most: below":                         {atMost(3), -1, false, breached, "-1 <= 3"},
		"at most: just above":                    {atMost(3), 3.0000001, false, healthy, "3.0000001 > 3"},
		"negative":                               {atLeast(-5), -5, false, breached, "-5 >= -5"},
		"the largest threshold":                  {atLeast(1<<53 - 1), 1<<53 - 1, false, breached, "9007199254740991 >= 9007199254740991"},
		"just below the largest threshold":       {atLeast(1<<53 - 1), 1<<53 - 2, false, healthy, "9007199254740990 < 9007199254740991"},
		"hysteresis: was healthy":                {recovering(atLeast(100), 20), 50, false, healthy, "50 < 100"},
		"hysteresis: was breached":               {recovering(atLeast(100), 20), 50, true, breached, "50 > 20"},
		"hysteresis: at recovery":                {recovering(atLeast(100), 20), 20, true, healthy, "20 < 100"},
		"hysteresis: just above recovery":        {recovering(atLeast(100), 20), 20.001, true, breached, "20.001 > 20"},
		"hysteresis: breached anew":              {recovering(atLeast(100), 20), 100, false, breached, "100 >= 100"},
		"hysteresis at most: was healthy":        {recovering(atMost(3), 10), 5, false, healthy, "5 > 3"},
		"hysteresis at most: was breached":       {recovering(atMost(3), 10), 5, true, breached, "5 < 10"},
		"hysteresis at most: at recovery":        {recovering(atMost(3), 10), 10, true, healthy, "10 > 3"},
		"hysteresis at most: just below":         {recovering(atMost(3), 10), 9.999, true, breached, "9.999 < 10"},
		"no hysteresis: was breached":            {atLeast(100), 99, true, healthy, "99 < 100"},
		"no hysteresis at most: was breached":    {atMost(3), 4, true, healthy, "4 > 3"},
		"noData says nothing about a real value": {withNoData(atLeast(100), aiopsv1.NoDataBreached), 5, false, healthy, "5 < 100"},
	}
	reasons := map[string]string{breached: aiopsv1.ReasonThresholdReached, healthy: aiopsv1.ReasonHealthy}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reading := Reading{Known: true, Value: test.value, Message: "a warning of the source"}
			want := Judgement{Verdict: test.want, Reading: reading, Summary: test.summary, Reason: reasons[test.want], Message: reading.Message}
			if difference := cmp.Diff(want, Judge(test.signal, reading, test.before)); difference != "" {
				t.Errorf("judgement (-want +got):\n%s", difference)
			}
		})
	}
}

// TestInvariantI1NoDataIsNeverANumber: whatever is not a finite value is Unknown, unless the source answered with nothing and the
// signal says what that means.
func TestInvariantI1NoDataIsNeverANumber(t *testing.T) {
	const breached, healthy, unknown = aiopsv1.VerdictBreached, aiopsv1.VerdictHealthy, aiopsv1.VerdictUnknown
	empty := Reading{NoData: true, Reason: aiopsv1.ReasonNoData}
	alive := Reading{NoData: true, Alive: true, Reason: aiopsv1.ReasonNoData}
	failed := Reading{Reason: aiopsv1.ReasonTimeout, Alive: true}
	tests := map[string]struct {
		signal  aiopsv1.Signal
		reading Reading
		want    string
		summary string
		reason  string
	}{
		"no answer":                            {atLeast(0), failed, unknown, "unknown >= 0", aiopsv1.ReasonTimeout},
		"no answer, noData Breached":           {withNoData(atLeast(0), aiopsv1.NoDataBreached), failed, unknown, "unknown >= 0", aiopsv1.ReasonTimeout},
		"no answer, noData Healthy":            {withNoData(atLeast(0), aiopsv1.NoDataHealthy), failed, unknown, "unknown >= 0", aiopsv1.ReasonTimeout},
		"nothing at all":                       {atMost(0), Reading{}, unknown, "unknown <= 0", ""},
		"empty answer":                         {atMost(0), empty, unknown, "no data <= 0", aiopsv1.ReasonNoData},
		"empty answer, noData Unknown":         {withNoData(atMost(0), aiopsv1.NoDataUnknown), alive, unknown, "no data <= 0", aiopsv1.ReasonNoData},
		"empty answer, noData Breached":        {withNoData(atLeast(1), aiopsv1.NoDataBreached), empty, breached, "no data >= 1", aiopsv1.ReasonNoData},
		"empty answer, noData Healthy":         {withNoData(atLeast(1), aiopsv1.NoDataHealthy), alive, healthy, "no data >= 1", aiopsv1.ReasonNoData},
		"empty answer, Healthy but not alive":  {withNoData(atLeast(1), aiopsv1.NoDataHealthy), empty, unknown, "no data >= 1", aiopsv1.ReasonNoData},
		"empty answer, a word of the future":   {withNoData(atLeast(1), "Maybe"), alive, unknown, "no data >= 1", aiopsv1.ReasonNoData},
		"not a number":                         {atLeast(0), value(math.NaN()), unknown, "unknown >= 0", aiopsv1.ReasonNotANumber},
		"infinite":                             {atLeast(0), value(math.Inf(1)), unknown, "unknown >= 0", aiopsv1.ReasonNotANumber},
		"minus infinite, noData Breached":      {withNoData(atMost(0), aiopsv1.NoDataBreached), value(math.Inf(-1)), unknown, "unknown <= 0", aiopsv1.ReasonNotANumber},
		"a signal without a threshold":         {aiopsv1.Signal{}, value(5), unknown, "5", ""},
		"neither threshold nor value":          {aiopsv1.Signal{}, Reading{}, unknown, "unknown ", ""},
		"hysteresis does not make data either": {recovering(atLeast(100), 20), failed, unknown, "unknown >= 100", aiopsv1.ReasonTimeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, before := range []bool{false, true} {
				got := Judge(test.signal, test.reading, before)
				if got.Verdict != test.want || got.Summary != test.summary || got.Reason != test.reason {
					t.Errorf("breached before %t: %s %q %s, want %s %q %s", before, got.Verdict, got.Summary, got.Reason, test.want, test.summary, test.reason)
				}
				if got.Reading.Known && (math.IsNaN(got.Reading.Value) || math.IsInf(got.Reading.Value, 0)) {
					t.Errorf("the reading still holds %v", got.Reading.Value)
				}
			}
		})
	}
}

func TestFormatValueNeverShowsAThresholdThatWasNotReached(t *testing.T) {
	tests := map[float64]string{
		0: "0", 3: "3", -2: "-2", 103.5: "103.5", 1234.5: "1234.5", 12345.6789: "12345.679", 0.1 + 0.2: "0.3",
		99.9996: "99.9996", -0.0004: "-0.0004", 0.00000001: "0.00000001", 1e-12: "0.000000000001", 1e-300: "1e-300", 3.0000000000004: "3.0000000000004",
		9007199254740991: "9007199254740991", 1e17: "1e+17", -1e17: "-1e+17", 99999999999999984: "99999999999999980", math.MaxFloat64: "1.7976931348623157e+308",
	}
	for number, want := range tests {
		if got := FormatValue(number); got != want {
			t.Errorf("FormatValue(%v) = %q, want %q", number, got, want)
		}
	}
}

func TestObserveCountsUnbrokenTime(t *testing.T) {
	t0, t1, t2 := start(), start().Add(time.Second), start().Add(2*time.Second)
	judged := func(verdict string) Judgement { return Judgement{Verdict: verdict} }
	tests := map[string]struct {
		before    Observation
		verdict   string
		available bool
		want      Observation
	}{
		"a first breach":                        {Observation{}, aiopsv1.VerdictBreached, true, Observation{BreachedSince: t1, KnownBreached: pointer(true)}},
		"it goes on":                            {Observation{BreachedSince: t0}, aiopsv1.VerdictBreached, true, Observation{BreachedSince: t0, KnownBreached: pointer(true)}},
		"the clock went back":                   {Observation{BreachedSince: t2}, aiopsv1.VerdictBreached, true, Observation{BreachedSince: t1, KnownBreached: pointer(true)}},
		"health ends it":                        {Observation{BreachedSince: t0}, aiopsv1.VerdictHealthy, true, Observation{RecoveringSince: t1, KnownBreached: pointer(false)}},
		"health goes on":                        {Observation{RecoveringSince: t0}, aiopsv1.VerdictHealthy, true, Observation{RecoveringSince: t0, KnownBreached: pointer(false)}},
		"healthy but not available":             {Observation{RecoveringSince: t0}, aiopsv1.VerdictHealthy, false, Observation{KnownBreached: pointer(false)}},
		"unknown ends a breach":                 {Observation{BreachedSince: t0, KnownBreached: pointer(true)}, aiopsv1.VerdictUnknown, true, Observation{KnownBreached: pointer(true)}},
		"unknown ends health":                   {Observation{RecoveringSince: t0, KnownBreached: pointer(false)}, aiopsv1.VerdictUnknown, true, Observation{KnownBreached: pointer(false)}},
		"unknown is all there was":              {Observation{}, aiopsv1.VerdictUnknown, true, Observation{}},
		"a breach of an available workload":     {Observation{RecoveringSince: t0}, aiopsv1.VerdictBreached, true, Observation{BreachedSince: t1, KnownBreached: pointer(true)}},
		"a breach of an unavailable workload":   {Observation{RecoveringSince: t0}, aiopsv1.VerdictBreached, false, Observation{BreachedSince: t1, KnownBreached: pointer(true)}},
		"at the same moment nothing has passed": {Observation{BreachedSince: t1}, aiopsv1.VerdictBreached, true, Observation{BreachedSince: t1, KnownBreached: pointer(true)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Judgement = judged(test.verdict)
			got := Observe(test.before, judged(test.verdict), test.available, t1)
			if difference := cmp.Diff(test.want, got); difference != "" {
				t.Errorf("observation (-want +got):\n%s", difference)
			}
		})
	}
}

func TestBreachedBeforeTrustsWhatWasSeenMost(t *testing.T) {
	signals := func(verdict string) []aiopsv1.SignalStatus {
		return []aiopsv1.SignalStatus{{Name: "default", Verdict: verdict}}
	}
	open, closed := &aiopsv1.Incident{}, &aiopsv1.Incident{RecoveredTime: at(0)}
	tests := map[string]struct {
		observation Observation
		status      aiopsv1.AITaskStatus
		want        bool
	}{
		"nothing":                           {want: false},
		"seen breached":                     {Observation{KnownBreached: pointer(true)}, aiopsv1.AITaskStatus{Signals: signals(aiopsv1.VerdictHealthy)}, true},
		"seen healthy":                      {Observation{KnownBreached: pointer(false)}, aiopsv1.AITaskStatus{Signals: signals(aiopsv1.VerdictBreached), Incident: open}, false},
		"status says breached":              {status: aiopsv1.AITaskStatus{Signals: signals(aiopsv1.VerdictBreached)}, want: true},
		"status says healthy":               {status: aiopsv1.AITaskStatus{Signals: signals(aiopsv1.VerdictHealthy), Incident: open}, want: false},
		"status is unknown, incident open":  {status: aiopsv1.AITaskStatus{Signals: signals(aiopsv1.VerdictUnknown), Incident: open}, want: true},
		"status is unknown, incident over":  {status: aiopsv1.AITaskStatus{Signals: signals(aiopsv1.VerdictUnknown), Incident: closed}, want: false},
		"status is unknown, no incident":    {status: aiopsv1.AITaskStatus{Signals: signals(aiopsv1.VerdictUnknown)}, want: false},
		"status has no signal but incident": {status: aiopsv1.AITaskStatus{Incident: open}, want: true},
	}
	plan := Plan{Signal: pointer(atLeast(100))}
	plan.Signal.Name = "default"
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range test.status.Signals {
				test.status.Signals[i].Threshold = ">= 100"
			}
			if got := breachedBefore(test.observation, &test.status); got != test.want {
				t.Errorf("BreachedBefore = %t, want %t", got, test.want)
			}
			if got := plan.BreachedBefore(test.observation, &test.status); got != test.want {
				t.Errorf("Plan.BreachedBefore = %t, want %t", got, test.want)
			}
		})
	}
}

// A threshold that was raised while the old one was reached has not been reached: hysteresis belongs to the signal it was seen on.
func TestHysteresisDoesNotOutliveItsSignal(t *testing.T) {
	status := aiopsv1.AITaskStatus{Signals: []aiopsv1.SignalStatus{{Name: "queue", Verdict: aiopsv1.VerdictBreached, Threshold: ">= 10"}}}
	tests := map[string]struct {
		plan Plan
		want bool
	}{
		"the same signal":    {Plan{Signal: pointer(atLeast(10))}, true},
		"another threshold":  {Plan{Signal: pointer(atLeast(100))}, false},
		"another comparison": {Plan{Signal: pointer(atMost(10))}, false},
		"another name":       {Plan{Signal: &aiopsv1.Signal{Name: "other", Threshold: pointer(int64(10))}}, false},
		"no signal":          {Plan{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.plan.BreachedBefore(Observation{}, &status); got != test.want {
				t.Errorf("BreachedBefore = %t, want %t", got, test.want)
			}
		})
	}
}

func TestTheSummaryOfAValueThatStatusKept(t *testing.T) {
	tests := map[string]struct {
		kept aiopsv1.SignalStatus
		want string
	}{
		"none":                         {aiopsv1.SignalStatus{}, "unknown >= 100"},
		"breached":                     {aiopsv1.SignalStatus{Value: "103.5", Verdict: aiopsv1.VerdictBreached}, "103.5 >= 100"},
		"breached, not come down yet":  {aiopsv1.SignalStatus{Value: "50", Verdict: aiopsv1.VerdictBreached}, "50 > 20"},
		"healthy":                      {aiopsv1.SignalStatus{Value: "50", Verdict: aiopsv1.VerdictHealthy}, "50 < 100"},
		"not a number, by other hands": {aiopsv1.SignalStatus{Value: "many", Threshold: ">= 100", Verdict: aiopsv1.VerdictHealthy}, "many >= 100"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, specOf())
			in := s.input()
			signal := recovering(atLeast(100), 20)
			in.Plan.Signal = &signal
			in.Observation.Judgement = Judge(signal, Reading{}, false)
			m := newMachine(in)
			m.status.Signals = []aiopsv1.SignalStatus{test.kept}
			if got := m.summary(); got != test.want {
				t.Errorf("summary %q, want %q", got, test.want)
			}
		})
	}
}
