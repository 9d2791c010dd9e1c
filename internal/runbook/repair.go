package runbook

import (
	"slices"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// clockTolerance is how far ahead of this machine's clock a time may lie that another replica wrote: each of the two clocks may
// be MaxClockSkew apart from the API server's.
const clockTolerance = 2 * MaxClockSkew

// repair makes a status safe to count with that may come from anywhere: an older operator, a backup, somebody's hands. A time that
// is none is dropped or set, since the API server takes no null back. One that lies further ahead than this operator writes
// is brought back to what it writes, since it would hold everything up for as long.
func repair(in Input, status *aiopsv1.AITaskStatus) {
	repairExecutions(in, status)
	repairReports(in, status)
	if incident := status.Incident; incident != nil {
		incident.Pass, incident.Attempts, incident.ExecutedInPass = max(1, incident.Pass), max(0, incident.Attempts), max(0, incident.ExecutedInPass)
		require(&incident.StartTime, in.Now)
		clip(&incident.StartTime, in.Now)
		clip(&incident.RecoveredTime, in.Now)
		clip(&incident.NotBeforeTime, in.Now.Add(max(planRetry, in.Plan.Cooldown, in.Plan.For, withdrawBackoff+withdrawJitter)))
	}
	if order := status.Order; order != nil {
		repairOrder(in, order)
	}
	status.History = status.History[:min(len(status.History), aiopsv1.MaxHistory)]
	for i := range status.History {
		clip(&status.History[i].StartTime, in.Now)
		clip(&status.History[i].EndTime, in.Now)
	}
}

func repairExecutions(in Input, status *aiopsv1.AITaskStatus) {
	clip(&status.LastExecutionTime, in.Now)
	status.Executions = slices.DeleteFunc(status.Executions, func(t aiopsv1.Time) bool { return t.IsZero() })
	for i := range status.Executions {
		if status.Executions[i].After(in.Now.Add(clockTolerance)) {
			status.Executions[i] = aiopsv1.NewTime(in.Now)
		}
	}
	slices.SortFunc(status.Executions, func(a, b aiopsv1.Time) int { return a.Compare(b.Time) })
	if len(status.Executions) == 0 {
		status.Executions = nil
	}
}

func repairReports(in Input, status *aiopsv1.AITaskStatus) {
	for i := range status.Conditions {
		clip(&status.Conditions[i].LastTransitionTime, in.Now)
	}
	for i := range status.Signals {
		clip(&status.Signals[i].LastTransitionTime, in.Now)
		clip(&status.Signals[i].MeasuredTime, in.Now)
	}
	if status.Decision != nil {
		clip(&status.Decision.DecisionTime, in.Now)
	}
	if status.Target != nil {
		clip(&status.Target.HealthyTime, in.Now)
	}
}

func repairOrder(in Input, order *aiopsv1.Order) {
	require(&order.RecordedTime, in.Now)
	clip(&order.RecordedTime, in.Now)
	longest := orderDeadline
	if order.State != aiopsv1.OrderRecorded {
		step, _ := in.Plan.Step(order.StepName)
		longest = timeoutOf(step) + in.Plan.SignalWindow()
		require(&order.ExecutedTime, in.Now)
		clip(&order.ExecutedTime, in.Now)
	}
	require(&order.DeadlineTime, in.Now.Add(longest))
	clip(&order.DeadlineTime, in.Now.Add(longest))
}

// require sets a time that is not known.
func require(t **aiopsv1.Time, value time.Time) {
	if (*t).Or(time.Time{}).IsZero() {
		*t = aiopsv1.TimePointer(value)
	}
}

// clip drops a time that is none, and brings one back that lies too far ahead.
func clip(t **aiopsv1.Time, latest time.Time) {
	switch known := (*t).Or(time.Time{}); {
	case known.IsZero():
		*t = nil
	case known.After(latest.Add(clockTolerance)):
		*t = aiopsv1.TimePointer(latest)
	}
}
