package check

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// shortForm is the shortest task there is: three fields, everything else as the API defaults it.
func shortForm(name string) *aiopsv1.AITask {
	threshold := int64(1)
	return &aiopsv1.AITask{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       aiopsv1.AITaskSpec{TargetDeployment: &name, Threshold: &threshold, Action: aiopsv1.ShortAction(aiopsv1.ActionRestart)},
	}
}

// untilTask reads a task again and again until nothing is missing any more.
func (s *stage) untilTask(ctx context.Context, task *aiopsv1.AITask, what string, missing func(*aiopsv1.AITask) string) error {
	return s.until(ctx, fmt.Sprintf("AITask %s to %s", task.Name, what), func(ctx context.Context) (string, error) {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(task), task); err != nil {
			return "", err
		}
		return missing(task), nil
	})
}

// unhealthy is why a task is not accepted, measured and judged healthy; empty if it is.
func unhealthy(task *aiopsv1.AITask) string {
	switch {
	case task.Status.ObservedGeneration != task.Generation:
		return "the operator has not looked at it"
	case conditionStatus(task, aiopsv1.ConditionReady) != "True",
		conditionStatus(task, aiopsv1.ConditionBreached) != "False",
		task.Status.Phase != aiopsv1.PhaseWatching:
		return describe(task)
	}
	return ""
}

// describe is what a task says about itself, in one line.
func describe(task *aiopsv1.AITask) string {
	out := fmt.Sprintf("phase %q, Ready %q, Breached %q", task.Status.Phase,
		conditionStatus(task, aiopsv1.ConditionReady), conditionStatus(task, aiopsv1.ConditionBreached))
	if decision := task.Status.Decision; decision != nil {
		out += fmt.Sprintf(", %s: %s", decision.Reason, decision.Message)
	}
	return out
}

func conditionStatus(task *aiopsv1.AITask, name string) string {
	for i := range task.Status.Conditions {
		if task.Status.Conditions[i].Type == name {
			return task.Status.Conditions[i].Status
		}
	}
	return ""
}

// unexecuted is what speaks against one step having been executed, and just one; empty if nothing.
func unexecuted(task *aiopsv1.AITask) string {
	if count := len(task.Status.Executions); count != 1 {
		return fmt.Sprintf("%d steps were executed: %s", count, describe(task))
	}
	return ""
}

// request asks a task for its next step now, and returns when the step was executed.
func (s *stage) request(ctx context.Context, task *aiopsv1.AITask) error {
	patch := client.MergeFrom(task.DeepCopy())
	metav1.SetMetaDataAnnotation(&task.ObjectMeta, aiopsv1.RunAnnotation, string(task.UID)+"/"+s.Clock.Now().UTC().Format(time.RFC3339))
	if err := s.Client.Patch(ctx, task, patch); err != nil {
		return fmt.Errorf("ask AITask %s to run: %w", task.Name, err)
	}
	return s.untilTask(ctx, task, "run the step that it was asked for", unexecuted)
}
