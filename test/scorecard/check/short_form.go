package check

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	// gate holds a pod back from being scheduled until the check removes it.
	gate = "scorecard.aiops.example.com/gate"
	// restartedAt is the annotation of a pod template that a restart sets.
	restartedAt = "kubectl.kubernetes.io/restartedAt"
	// onceSpan is how long nothing more may be done after the one action.
	onceSpan = 5 * time.Second
)

// shortFormActs breaks a workload and waits until a task of three fields has restarted it. The fault is real on every kind of
// node: the workload's pod is deleted and the next one is held back by a scheduling gate. With the API's default of forSeconds this
// takes a minute.
func shortFormActs(ctx context.Context, s *stage) error {
	deployment := s.deployment(s.named("short"), 1)
	deployment.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
	if err := s.create(ctx, deployment); err != nil {
		return err
	}
	if err := s.openGates(ctx, deployment); err != nil {
		return err
	}
	task := shortForm(deployment.Name)
	if err := s.create(ctx, task); err != nil {
		return err
	}
	if err := s.untilTask(ctx, task, "be healthy", unhealthy); err != nil {
		return err
	}
	if err := s.breakDown(ctx, deployment.Name); err != nil {
		return err
	}
	s.logf("Deleted the pod of Deployment %s and held the next one back", deployment.Name)
	if err := s.untilTask(ctx, task, "act", unexecuted); err != nil {
		return err
	}
	s.logf("AITask %s acted: %s", task.Name, describe(task))
	return s.actedOnce(ctx, task, deployment)
}

// openGates lets the held pods of a workload go, until it is available.
func (s *stage) openGates(ctx context.Context, deployment *appsv1.Deployment) error {
	return s.until(ctx, fmt.Sprintf("Deployment %s to be available", deployment.Name), func(ctx context.Context) (string, error) {
		pods, err := s.pods(ctx, deployment.Name)
		if err != nil {
			return "", err
		}
		for i := range pods {
			if len(pods[i].Spec.SchedulingGates) == 0 {
				continue
			}
			patch := client.MergeFrom(pods[i].DeepCopy())
			pods[i].Spec.SchedulingGates = nil
			if err := client.IgnoreNotFound(s.Client.Patch(ctx, &pods[i], patch)); err != nil {
				return "", fmt.Errorf("let pod %s go: %w", pods[i].Name, err)
			}
		}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return "", err
		}
		return unavailable(deployment), nil
	})
}

func (s *stage) breakDown(ctx context.Context, name string) error {
	pods, err := s.pods(ctx, name)
	if err != nil {
		return err
	}
	for i := range pods {
		if err := s.Client.Delete(ctx, &pods[i]); err != nil {
			return fmt.Errorf("delete pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

// actedOnce looks whether the workload was changed by exactly one restart, lets it recover, and sees that nothing more is done.
func (s *stage) actedOnce(ctx context.Context, task *aiopsv1.AITask, deployment *appsv1.Deployment) error {
	before := deployment.Generation
	if err := s.openGates(ctx, deployment); err != nil {
		return fmt.Errorf("after the restart: %w", err)
	}
	order := task.Status.Order
	return s.holds(ctx, onceSpan, "after the action", func(ctx context.Context) (string, error) {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return "", err
		}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(task), task); err != nil {
			return "", err
		}
		if wrong := restartedOnce(before, deployment, order); wrong != "" {
			return wrong, nil
		}
		return unexecuted(task), nil
	})
}

// restartedOnce is what speaks against a Deployment having been changed by the one restart of an order since a generation; empty if
// nothing.
func restartedOnce(before int64, deployment *appsv1.Deployment, order *aiopsv1.Order) string {
	switch changes := deployment.Generation - before; {
	case changes != 1:
		return fmt.Sprintf("Deployment %s was changed %d times, not once", deployment.Name, changes)
	case deployment.Spec.Template.Annotations[restartedAt] == "":
		return fmt.Sprintf("Deployment %s was changed, but not restarted", deployment.Name)
	case order == nil || order.ID == "" || deployment.Annotations[aiopsv1.LastOrderAnnotation] != order.ID:
		return fmt.Sprintf("Deployment %s does not carry the order of the AITask", deployment.Name)
	}
	return ""
}
