package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	// deleteTimeout is how long a deleted task may stay.
	deleteTimeout = 10 * time.Second
	// restSpan is how long a workload must be left alone after its task is gone.
	restSpan = 3 * time.Second
)

// documentedStamps are the annotations that stay on a workload which was acted on: docs/actions.md. They hold the cooldown and the
// proof of execution, which must outlast a task that is deleted and made anew.
func documentedStamps() []string {
	return []string{aiopsv1.LastActionTimeAnnotation, aiopsv1.LastOrderAnnotation, "aiops.example.com/rolled-back-from"}
}

// uninstallLeavesNothing deletes a task that never acted and one in the middle of an action, and looks at what is left. It does not
// uninstall the operator itself, which others in the cluster use: test/lifecycle does, in every order.
func uninstallLeavesNothing(ctx context.Context, s *stage) error {
	idle, idleTask, err := s.watched(ctx, "idle")
	if err != nil {
		return err
	}
	acted, actedTask, err := s.watched(ctx, "acted")
	if err != nil {
		return err
	}
	if err := s.request(ctx, actedTask); err != nil {
		return err
	}
	if actedTask.Status.Order == nil {
		return fmt.Errorf("AITask %s has no open order after its step: %s", actedTask.Name, describe(actedTask))
	}
	if err := s.untilAvailable(ctx, acted); err != nil {
		return err
	}
	s.logf("AITask %s is in the middle of an action: %s", actedTask.Name, describe(actedTask))
	if err := errors.Join(s.deleteTask(ctx, idleTask), s.deleteTask(ctx, actedTask)); err != nil {
		return err
	}
	return errors.Join(
		s.leftAlone(ctx, idle, nil),
		s.leftAlone(ctx, acted, documentedStamps()),
		s.ownsNothing(ctx, idleTask.UID, actedTask.UID),
	)
}

// watched makes a workload and a task on it that the operator has judged healthy.
func (s *stage) watched(ctx context.Context, name string) (*appsv1.Deployment, *aiopsv1.AITask, error) {
	deployment, err := s.deploy(ctx, s.named(name), 1)
	if err != nil {
		return nil, nil, err
	}
	task := shortForm(deployment.Name)
	if err := s.create(ctx, task); err != nil {
		return nil, nil, err
	}
	return deployment, task, s.untilTask(ctx, task, "be healthy", unhealthy)
}

func (s *stage) deleteTask(ctx context.Context, task *aiopsv1.AITask) error {
	if len(task.Finalizers) > 0 {
		return fmt.Errorf("AITask %s has the finalizers %q: without the operator it could not be deleted", task.Name, task.Finalizers)
	}
	if err := s.Client.Delete(ctx, task); err != nil {
		return fmt.Errorf("delete AITask %s: %w", task.Name, err)
	}
	limited, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	return s.untilGone(limited, task)
}

// leftAlone looks whether a workload keeps nothing of a deleted task but the allowed annotations, and is not touched any more.
func (s *stage) leftAlone(ctx context.Context, deployment *appsv1.Deployment, allowed []string) error {
	before := deployment.DeepCopy()
	return s.holds(ctx, restSpan, "after the task was deleted", func(ctx context.Context) (string, error) {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return "", err
		}
		return remains(before, deployment, allowed), nil
	})
}

// remains is what is wrong with a workload after its task is gone; empty if nothing.
func remains(before, now *appsv1.Deployment, allowed []string) string {
	var problems []string
	if now.UID != before.UID || now.Generation != before.Generation {
		problems = append(problems, "it was replaced or changed")
	}
	if len(now.Finalizers) > 0 {
		problems = append(problems, fmt.Sprintf("it has the finalizers %q", now.Finalizers))
	}
	if !slices.Equal(slices.Sorted(maps.Keys(now.Labels)), slices.Sorted(maps.Keys(before.Labels))) {
		problems = append(problems, "its labels changed")
	}
	for _, key := range slices.Sorted(maps.Keys(now.Annotations)) {
		if strings.HasPrefix(key, aiopsv1.GroupName+"/") && !slices.Contains(allowed, key) {
			problems = append(problems, fmt.Sprintf("it keeps the annotation %s", key))
		}
	}
	if len(problems) == 0 {
		return ""
	}
	return fmt.Sprintf("Deployment %s: %s", now.Name, strings.Join(problems, ", "))
}

// ownsNothing looks for objects that name one of the deleted tasks as their owner.
func (s *stage) ownsNothing(ctx context.Context, owners ...types.UID) error {
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "PodList"},
		{Version: "v1", Kind: "ConfigMapList"},
		{Group: "apps", Version: "v1", Kind: "DeploymentList"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSetList"},
		{Group: "apps", Version: "v1", Kind: "StatefulSetList"},
		{Group: "batch", Version: "v1", Kind: "JobList"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := s.Client.List(ctx, list, client.InNamespace(s.Namespace)); err != nil {
			return fmt.Errorf("look for what the tasks left: list %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			for _, reference := range list.Items[i].OwnerReferences {
				if slices.Contains(owners, reference.UID) {
					return fmt.Errorf("%s %s is owned by the deleted AITask %s", strings.TrimSuffix(kind.Kind, "List"), list.Items[i].Name, reference.Name)
				}
			}
		}
	}
	return nil
}
