package controller

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// report writes the status if and only if something changed, then tells the events, then counts.
func (r *Reconciler) report(ctx context.Context, p *pass) error {
	before := p.task
	r.Metrics.Phase(p.key, p.decision.Status.Phase)
	if reflect.DeepEqual(before.Status, p.decision.Status) {
		return nil
	}
	after := before.DeepCopy()
	after.Status = p.decision.Status
	err := r.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// The task is not the one that was decided on. Its event brings a new pass; nothing is done on an old view.
		logf.FromContext(ctx).V(1).Info("Dropped a decision on an outdated task")
		p.next = p.now.Add(cacheWait)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write status of AITask %s: %w", p.key, err)
	}
	if after.ResourceVersion == before.ResourceVersion {
		// The API server dropped all of it: it serves an older definition of the kind. The cache will not show a newer version.
		logf.FromContext(ctx).Info("Wrote a status that changed nothing; upgrade the CustomResourceDefinition")
	} else {
		r.memory.wrote(p.key, before.ResourceVersion)
	}
	if order := after.Status.Order; order != nil && order.State == aiopsv1.OrderRecorded && (before.Status.Order == nil || before.Status.Order.ID != order.ID) {
		r.memory.setUntried(p.key, order.ID)
	}
	r.tell(ctx, p, after)
	r.count(before, after)
	return r.stalled(p, before)
}

// tell makes an event of each transition, which people see for an hour, and a line of the log, which is kept.
func (r *Reconciler) tell(ctx context.Context, p *pass, after *aiopsv1.AITask) {
	for _, event := range p.decision.Events {
		logf.FromContext(ctx).Info("Reported a transition", "reason", event.Reason, "about", event.Action, "text", event.Message)
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Events.Eventf(after, nil, kind, event.Reason, event.Action, "%s", event.Message)
	}
}

// count counts what the written status newly says.
func (r *Reconciler) count(before, after *aiopsv1.AITask) {
	known := map[string]bool{}
	for _, entry := range before.Status.History {
		known[entry.ID+entry.Result+entry.Reason] = true
	}
	for _, entry := range after.Status.History {
		if !known[entry.ID+entry.Result+entry.Reason] {
			r.Metrics.Finished(entry.Action, entry.Result)
		}
	}
	if after.Status.Phase == aiopsv1.PhaseBlocked && reasonOf(before) != reasonOf(after) {
		r.Metrics.Refused(reasonOf(after))
	}
	if took, recovered := recoveryTime(before.Status.Incident, after.Status.Incident); recovered {
		r.Metrics.Recovered(took)
	}
}

func recoveryTime(before, after *aiopsv1.Incident) (took time.Duration, recovered bool) {
	if after == nil || after.RecoveredTime == nil || (before != nil && before.RecoveredTime != nil) {
		return 0, false
	}
	return after.RecoveredTime.Sub(after.StartTime.Or(after.RecoveredTime.Time)), true
}

func reasonOf(task *aiopsv1.AITask) string {
	if task.Status.Decision == nil {
		return ""
	}
	return task.Status.Decision.Reason
}

// stalled tells the queue, once, that nothing but another spec will help.
func (r *Reconciler) stalled(p *pass, before *aiopsv1.AITask) error {
	problem := p.input.SpecProblem
	if problem == nil || p.decision.Status.Phase != aiopsv1.PhaseFailed || before.Status.Phase == aiopsv1.PhaseFailed {
		return nil
	}
	return reconcile.TerminalError(fmt.Errorf("accept spec of AITask %s: %s: %s", p.key, problem.Reason, problem.Message))
}

// busyTask returns the name of another task with an unfinished order on the target, and when that order is over at the latest.
func busyTask(tasks []aiopsv1.AITask, self, targetUID string) (name string, until time.Time) {
	for i := range tasks {
		status := &tasks[i].Status
		if tasks[i].Name == self || tasks[i].DeletionTimestamp != nil || status.Order == nil || status.Order.Before == nil || status.Order.Before.UID != targetUID ||
			aiopsv1.ActionType(status.Order.Action).Accompanies() {
			continue
		}
		return tasks[i].Name, status.Order.DeadlineTime.Or(time.Time{})
	}
	return "", time.Time{}
}
