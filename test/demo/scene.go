package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// scene is one incident, told from the versions of its AITasks.
type scene struct {
	*stage
	tasks *board
	title string
	// told is how many versions of a task were told, last is the latest of them.
	told map[string]int
	last map[string]*aiopsv1.AITask
	// values are the values that were printed last.
	values map[string]string
}

func newScene(stage *stage, tasks *board, title string) *scene {
	return &scene{
		stage: stage, tasks: tasks, title: title,
		told: map[string]int{}, last: map[string]*aiopsv1.AITask{}, values: map[string]string{},
	}
}

func (s *scene) line(at time.Time, what, format string, values ...any) {
	s.out.line(s.title, at, what, format, values...)
}

// until tells one version of a task after the other, up to one that holds.
func (s *scene) until(ctx context.Context, name, want string, within time.Duration, holds func(*aiopsv1.AITask) bool) (*aiopsv1.AITask, error) {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		task, err := s.tasks.version(bounded, name, s.told[name])
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return nil, fmt.Errorf("AITask %s was to %s within %s; %s", name, want, within, state(s.last[name]))
		}
		if err != nil {
			return nil, err
		}
		s.tell(s.last[name], task)
		s.told[name]++
		s.last[name] = task
		if holds(task) {
			return task, nil
		}
	}
}

func state(task *aiopsv1.AITask) string {
	if task == nil {
		return "it was not there"
	}
	if task.Status.Decision == nil {
		return "nothing was decided yet"
	}
	return fmt.Sprintf("it is %s: %s: %s", task.Status.Phase, task.Status.Decision.Reason, task.Status.Decision.Message)
}

// tell prints what a new version says that the one before did not.
func (s *scene) tell(before, after *aiopsv1.AITask) {
	if before == nil {
		before = &aiopsv1.AITask{}
	}
	s.tellBreach(before, after)
	s.tellValue(before, after)
	s.tellAction(before, after)
	s.tellHistory(before, after)
	s.tellEnd(before, after)
}

func incidentID(task *aiopsv1.AITask) string {
	if task.Status.Incident == nil {
		return ""
	}
	return task.Status.Incident.ID
}

func (s *scene) tellBreach(before, after *aiopsv1.AITask) {
	if id := incidentID(after); id != "" && id != incidentID(before) {
		s.values[after.Name] = after.Status.Signals[0].Value
		s.line(after.Status.Incident.StartTime.Or(time.Now()), "breached", "%s %s on %s",
			after.Spec.Signals[0].Type, after.Status.Decision.Summary, after.Status.Target.Summary)
	}
}

// tellValue follows a measured value while an incident is open.
func (s *scene) tellValue(before, after *aiopsv1.AITask) {
	if incidentID(after) == "" || incidentID(after) != incidentID(before) || len(after.Status.Signals) == 0 {
		return
	}
	now, signal := after.Status.Signals[0], after.Spec.Signals[0]
	if now.Value == "" || now.Value == s.values[after.Name] || signal.RecoveryThreshold == nil {
		return
	}
	s.values[after.Name] = now.Value
	meaning := fmt.Sprintf("still breached, until it reaches %d", *signal.RecoveryThreshold)
	if now.Verdict != aiopsv1.VerdictBreached {
		meaning = fmt.Sprintf("%s, for it has passed %d", strings.ToLower(now.Verdict), *signal.RecoveryThreshold)
	}
	s.line(now.MeasuredTime.Or(time.Now()), "measured", "%s %s: %s", signal.Type, now.Value, meaning)
}

// tellAction says how long it took from the pass that saw the breach, or found the step due, to the action applied.
func (s *scene) tellAction(before, after *aiopsv1.AITask) {
	order := after.Status.Order
	if order == nil || order.State != aiopsv1.OrderVerifying || (before.Status.Order != nil && before.Status.Order.State == order.State) {
		return
	}
	executed := order.ExecutedTime.Or(time.Now())
	since, from := order.RecordedTime.Or(executed), "the step was due"
	if incident := after.Status.Incident; incident != nil && incident.Attempts == 1 {
		since, from = incident.StartTime.Or(executed), "the breach was seen"
	}
	s.line(executed, order.Action, "%s; applied %s after %s", order.Message, s.out.reacted(executed.Sub(since)), from)
}

func (s *scene) tellHistory(before, after *aiopsv1.AITask) {
	for _, entry := range slices.Backward(after.Status.History) {
		told := slices.ContainsFunc(before.Status.History, func(old aiopsv1.HistoryEntry) bool {
			return old.ID == entry.ID && old.Result == entry.Result
		})
		if told || entry.Result == aiopsv1.ResultRecovered {
			continue
		}
		what := map[string]string{aiopsv1.ResultFailed: "no help", aiopsv1.ResultDone: entry.Action}[entry.Result]
		if what == "" {
			what = strings.ToLower(entry.Result)
		}
		s.line(entry.EndTime.Or(time.Now()), what, "%s%s", entry.Message, following(after))
	}
}

// following names the step that comes next in an open incident.
func following(task *aiopsv1.AITask) string {
	incident := task.Status.Incident
	if incident == nil || incident.Exhausted || incident.RecoveredTime != nil || incident.Pass > *task.Spec.Limits.MaxPasses {
		return ""
	}
	return fmt.Sprintf("; next is step %q", incident.StepName)
}

func (s *scene) tellEnd(before, after *aiopsv1.AITask) {
	incident, earlier := after.Status.Incident, before.Status.Incident
	if incident == nil {
		return
	}
	if incident.RecoveredTime != nil && (earlier == nil || earlier.RecoveredTime == nil) {
		recovered := incident.RecoveredTime.Or(time.Now())
		s.line(recovered, "recovered", "proven %.1f s after the breach", recovered.Sub(incident.StartTime.Or(recovered)).Seconds())
	}
	if incident.Exhausted && (earlier == nil || !earlier.Exhausted) {
		s.line(after.Status.Decision.DecisionTime.Or(time.Now()), "exhausted", "%s", after.Status.Decision.Message)
	}
}
