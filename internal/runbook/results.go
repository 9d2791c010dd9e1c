package runbook

import (
	"fmt"
	"strings"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// triedText says how the passes over the steps ended.
func (m *machine) triedText() string {
	if m.status.Incident.Attempts == 0 {
		return "nothing could be done to the workload: " + m.stepResults()
	}
	passes, steps := m.in.Plan.MaxPasses, len(m.in.Plan.Steps)
	return fmt.Sprintf("%s over %s brought no lasting recovery: %s",
		count(int(passes), "pass", "passes"), count(steps, "step", "steps"), m.stepResults())
}

// stepResults says what came of each step of this incident, the latest time that it was its turn.
func (m *machine) stepResults() string {
	results := make([]string, 0, len(m.in.Plan.Steps))
	for i := range m.in.Plan.Steps {
		results = append(results, m.stepResult(m.in.Plan.Steps[i].Name))
	}
	return strings.Join(results, ", ")
}

func (m *machine) stepResult(name string) string {
	entry := m.latest(func(entry aiopsv1.HistoryEntry) bool { return entry.StepName == name })
	if entry == nil {
		return fmt.Sprintf("%q had no turn", name)
	}
	word := map[string]string{
		aiopsv1.ResultFailed:     "failed",
		aiopsv1.ResultRecovered:  "helped for a while",
		aiopsv1.ResultDone:       "was delivered",
		aiopsv1.ResultObserved:   "was only observed",
		aiopsv1.ResultRefused:    "was refused (" + entry.Reason + ")",
		aiopsv1.ResultWithdrawn:  "was withdrawn (" + entry.Reason + ")",
		aiopsv1.ResultCancelled:  "was cancelled",
		aiopsv1.ResultSuperseded: "was superseded",
	}[entry.Result]
	return fmt.Sprintf("%q %s", name, word)
}

// latest finds the newest finished order of this incident that is asked for. History holds the newest first.
func (m *machine) latest(asked func(aiopsv1.HistoryEntry) bool) *aiopsv1.HistoryEntry {
	begin := m.status.Incident.StartTime.Or(m.in.Now)
	for i := range m.status.History {
		entry := &m.status.History[i]
		if !entry.StartTime.Or(m.in.Now).Before(begin) && asked(*entry) {
			return entry
		}
	}
	return nil
}

// howRecovered is what this task did last before the recovery, or that it did nothing.
func (m *machine) howRecovered() string {
	entry := m.latest(func(entry aiopsv1.HistoryEntry) bool { return entry.Result == aiopsv1.ResultRecovered })
	if entry == nil {
		return "the breach ended without an action of this task"
	}
	return entry.Message
}

// observedText is what was recorded of a step that mode Observe did not run.
func (m *machine) observedText(name string) string {
	entry := m.latest(func(entry aiopsv1.HistoryEntry) bool {
		return entry.StepName == name && entry.Result == aiopsv1.ResultObserved
	})
	if entry == nil {
		return "Mode Observe: the step was recorded and is not run"
	}
	return entry.Message
}
