package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// held is a workload with its task, and the pods that must stay.
type held struct {
	deployment *appsv1.Deployment
	task       *aiopsv1.AITask
	podUIDs    []string
	generation int64
}

// upgradeKeepsPods replaces the operator's pods, as an upgrade does, while one task is in the middle of an incident. Every
// workload must keep its pods, the open action must not be run again, and the new pods must go on with all tasks.
func upgradeKeepsPods(ctx context.Context, s *stage) error {
	var all []*held
	for _, name := range []string{"quiet", "asked", "midway"} {
		deployment, task, err := s.watched(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, &held{deployment: deployment, task: task})
	}
	asked, midway := all[1], all[2]
	if err := s.request(ctx, midway.task); err != nil {
		return err
	}
	if err := s.remember(ctx, all); err != nil {
		return err
	}
	s.logf("AITask %s is in the middle of an incident: %s", midway.task.Name, describe(midway.task))
	if err := s.rollOperator(ctx); err != nil {
		return err
	}
	if err := s.kept(ctx, all); err != nil {
		return err
	}
	if err := s.sameAction(ctx, midway.task); err != nil {
		return err
	}
	if err := s.request(ctx, asked.task); err != nil {
		return fmt.Errorf("after the upgrade: %w", err)
	}
	s.logf("AITask %s goes on: %s", asked.task.Name, describe(asked.task))
	return s.kept(ctx, []*held{all[0], midway})
}

// remember waits until the workloads have the pods that they will keep, and notes them.
func (s *stage) remember(ctx context.Context, all []*held) error {
	for _, one := range all {
		if err := s.untilAvailable(ctx, one.deployment); err != nil {
			return err
		}
		uids, err := s.podUIDs(ctx, one.deployment.Name)
		if err != nil {
			return err
		}
		one.podUIDs, one.generation = uids, one.deployment.Generation
	}
	return nil
}

// kept looks whether each workload still has exactly the pods that were noted.
func (s *stage) kept(ctx context.Context, all []*held) error {
	var problems []error
	for _, one := range all {
		uids, err := s.podUIDs(ctx, one.deployment.Name)
		if err != nil {
			return err
		}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(one.deployment), one.deployment); err != nil {
			return fmt.Errorf("read Deployment %s: %w", one.deployment.Name, err)
		}
		if !slices.Equal(uids, one.podUIDs) || one.deployment.Generation != one.generation {
			problems = append(problems, fmt.Errorf("the upgrade of the operator changed Deployment %s: pods %v became %v, generation %d became %d",
				one.deployment.Name, one.podUIDs, uids, one.generation, one.deployment.Generation))
		}
	}
	return errors.Join(problems...)
}

// sameAction looks whether the new pods go on with the order that the old ones began.
func (s *stage) sameAction(ctx context.Context, task *aiopsv1.AITask) error {
	order := task.Status.Order
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(task), task); err != nil {
		return fmt.Errorf("read AITask %s: %w", task.Name, err)
	}
	if wrong := discontinued(order, task); wrong != "" {
		return fmt.Errorf("AITask %s after the upgrade: %s", task.Name, wrong)
	}
	return nil
}

// discontinued is what speaks against a task still proving the one order that was open before, or having proven it; empty if nothing.
func discontinued(before *aiopsv1.Order, task *aiopsv1.AITask) string {
	if before == nil {
		return "there was no open order before: nothing is shown"
	}
	if wrong := unexecuted(task); wrong != "" {
		return wrong
	}
	if now := task.Status.Order; now != nil && now.ID == before.ID && now.State == aiopsv1.OrderVerifying {
		return ""
	}
	if history := task.Status.History; len(history) > 0 && history[0].ID == before.ID && history[0].Result == aiopsv1.ResultRecovered {
		return ""
	}
	return fmt.Sprintf("the order %s is lost: %s", before.ID, describe(task))
}
