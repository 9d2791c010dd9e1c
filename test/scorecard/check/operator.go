package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	// leaseName is the operator's lease, in its own namespace.
	leaseName = "aiops-operator." + aiopsv1.GroupName

	// upgradeRole is the ClusterRole of rbac.yaml that lets its holder replace pods.
	upgradeRole = "aiops-scorecard-upgrade"

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
	if err := s.untilRunning(limited); apierrors.IsForbidden(err) {
		return err
	} else if err != nil {
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

// rollOperator replaces the operator's pods one after another, as an upgrade does, and returns when one of the new ones leads. It leaves
// the Deployment alone: what installed the operator, such as OLM, owns that and takes changes of its template back.
func (s *stage) rollOperator(ctx context.Context) error {
	if err := s.untilAvailable(ctx, s.operator); err != nil {
		return err
	}
	before, err := s.leader(ctx)
	if err != nil {
		return err
	}
	pods, err := s.operatorPods(ctx)
	if err != nil {
		return err
	}
	old := leaderLast(pods, before)
	for _, name := range old {
		if err := s.replaceOperatorPod(ctx, name); err != nil {
			return err
		}
	}
	return s.until(ctx, "a new pod of the operator to lead", func(ctx context.Context) (string, error) {
		now, err := s.leader(ctx)
		if !succeeds(now, before, old) {
			return fmt.Sprintf("the lease is held by %q", now), err
		}
		s.logf("The lease went from %s to %s", before, now)
		return "", err
	})
}

// replaceOperatorPod evicts a pod, so that a PodDisruptionBudget is kept to, and returns when the Deployment has all its pods again.
func (s *stage) replaceOperatorPod(ctx context.Context, name string) error {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = s.operator.Namespace, name
	err := s.until(ctx, fmt.Sprintf("the eviction of pod %s/%s", pod.Namespace, name), func(ctx context.Context) (string, error) {
		return "", client.IgnoreNotFound(s.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}))
	})
	if err != nil {
		return unmet("the operator's pods cannot be replaced: %w", s.askForUpgradeRole(err))
	}
	s.logf("Evicted pod %s/%s of the operator", pod.Namespace, name)
	return s.until(ctx, fmt.Sprintf("another pod of the operator in place of %s", name), func(ctx context.Context) (string, error) {
		pods, err := s.operatorPods(ctx)
		return incomplete(pods, *s.operator.Spec.Replicas, name), err
	})
}

// operatorPods returns the pods that the operator's Deployment selects, even those that are ending.
func (s *stage) operatorPods(ctx context.Context) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.operator.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read the selector of Deployment %s/%s: %w", s.operator.Namespace, s.operator.Name, err)
	}
	list := &corev1.PodList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.operator.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, s.askForUpgradeRole(fmt.Errorf("list the operator's pods: %w", err))
	}
	return list.Items, nil
}

// askForUpgradeRole says how the rights are given that err may be for want of. rbac.yaml knows one namespace; where the operator is in
// another, applying it again does not help.
func (s *stage) askForUpgradeRole(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return unmet("the ServiceAccount of the scorecard may not replace the operator's pods in namespace %[1]s: `kubectl -n %[1]s create rolebinding %[2]s "+
		"--clusterrole=%[2]s --serviceaccount=aiops-scorecard:scorecard`, after test/scorecard/rbac.yaml is applied: %[3]w", s.operator.Namespace, upgradeRole, err)
}

// leaderLast returns the names of pods in an order in which the lease changes hands once only, from an old pod to a new one.
func leaderLast(pods []corev1.Pod, holder string) []string {
	var standby, leading []string
	for i := range pods {
		if name := pods[i].Name; name == podOf(holder) {
			leading = append(leading, name)
		} else {
			standby = append(standby, name)
		}
	}
	return append(standby, leading...)
}

// incomplete is what a Deployment lacks after one of its pods was evicted; empty if it has all that it wants, ready, and without that
// one. The pods are counted since the Deployment's status may still be that from before the eviction.
func incomplete(pods []corev1.Pod, want int32, evicted string) string {
	var ready int32
	for i := range pods {
		if pods[i].DeletionTimestamp == nil && pods[i].Name != evicted && isReady(&pods[i]) {
			ready++
		}
	}
	if ready >= want {
		return ""
	}
	return fmt.Sprintf("%d pods wanted, %d others ready", want, ready)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// succeeds says whether the lease went from the holder before to one that is none of the old pods.
func succeeds(now, before string, old []string) bool {
	return now != "" && now != before && !slices.Contains(old, podOf(now))
}

// podOf is the pod that holds a lease. A holder is a pod's name, '_' and a random ID.
func podOf(holder string) string {
	pod, _, _ := strings.Cut(holder, "_")
	return pod
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
