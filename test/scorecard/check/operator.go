package check

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	// leaseName is the operator's lease, in its own namespace.
	leaseName = "aiops-operator." + aiopsv1.GroupName
	// restartedAt is the annotation of a pod template that kubectl rollout restart sets.
	restartedAt = "kubectl.kubernetes.io/restartedAt"

	availableTimeout = 30 * time.Second
)

// findOperator looks for the Deployment that the ClusterServiceVersion describes, wherever it is installed, and for the API.
func (s *stage) findOperator(ctx context.Context) error {
	if err := s.Client.List(ctx, &aiopsv1.AITaskList{}, client.InNamespace(s.Namespace), client.Limit(1)); err != nil {
		return fmt.Errorf("list AITasks: %w", err)
	}
	name := s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name
	found := &appsv1.DeploymentList{}
	if err := s.Client.List(ctx, found, client.MatchingFields{"metadata.name": name}); err != nil {
		return fmt.Errorf("list Deployments in all namespaces: %w", err)
	}
	switch len(found.Items) {
	case 0:
		return unmet("there is no Deployment %s in any namespace: %s", name, installFirst)
	case 1:
		s.operator = &found.Items[0]
	default:
		return unmet("Deployment %s is in %d namespaces, such as %s and %s: leave one operator in the cluster", name,
			len(found.Items), found.Items[0].Namespace, found.Items[1].Namespace)
	}
	limited, cancel := context.WithTimeout(ctx, availableTimeout)
	defer cancel()
	if err := s.untilRunning(limited); err != nil {
		return unmet("the operator does not run; see `kubectl -n %s describe deployment,pods`: %w", s.operator.Namespace, err)
	}
	return nil
}

// untilRunning waits for one pod of the operator: enough to act, and what there is while the operator is being rolled out.
func (s *stage) untilRunning(ctx context.Context) error {
	return s.until(ctx, "a pod of the operator to be available", func(ctx context.Context) (string, error) {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(s.operator), s.operator); err != nil {
			return "", err
		}
		if s.operator.Status.AvailableReplicas == 0 {
			return "none is", nil
		}
		return "", nil
	})
}

// rollOperator replaces every pod of the operator, as an upgrade does, and returns when one of the new ones leads.
func (s *stage) rollOperator(ctx context.Context) error {
	before, err := s.leader(ctx)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{restartedAt: time.Now().UTC().Format(time.RFC3339Nano)},
	}}}})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	if err := s.Client.Patch(ctx, s.operator, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("roll Deployment %s/%s: %w", s.operator.Namespace, s.operator.Name, err)
	}
	if err := s.untilAvailable(ctx, s.operator); err != nil {
		return err
	}
	s.logf("Rolled out Deployment %s/%s", s.operator.Namespace, s.operator.Name)
	return s.until(ctx, "a new pod of the operator to lead", func(ctx context.Context) (string, error) {
		now, err := s.leader(ctx)
		if !succeeds(now, before) {
			return fmt.Sprintf("the lease is held by %q", now), err
		}
		s.logf("The lease went from %s to %s", before, now)
		return "", err
	})
}

// succeeds says whether the holder of the lease is of a later rollout than the one before. While it goes on, the lease may first go to
// another pod of the old ReplicaSet: such a pod's name differs in its last part alone. A holder is a pod's name, '_' and a random ID.
func succeeds(now, before string) bool {
	podNow, _, _ := strings.Cut(now, "_")
	podBefore, _, _ := strings.Cut(before, "_")
	another := podNow != podBefore && replicaSetOf(podNow) == replicaSetOf(podBefore)
	return now != "" && now != before && !another
}

func replicaSetOf(pod string) string {
	return pod[:max(0, strings.LastIndex(pod, "-"))]
}

// leader is who holds the operator's lease; empty if nobody does.
func (s *stage) leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.operator.Namespace, Name: leaseName}, lease); err != nil {
		return "", fmt.Errorf("read the operator's lease: %w", err)
	}
	if lease.Spec.HolderIdentity == nil {
		return "", nil
	}
	return *lease.Spec.HolderIdentity, nil
}
