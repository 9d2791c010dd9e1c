package action

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/internal/target"
)

const (
	// startupTime is how long a pod that has never been ready counts as starting, unless the task gives it longer.
	startupTime = time.Minute
	// observationTimeout bounds how long a StatefulSet's controller is waited for, within the time that one action has; observationInterval
	// is how often it is looked at.
	observationTimeout  = 3 * time.Second
	observationInterval = 20 * time.Millisecond
	// maxNamed bounds how many pods a message names.
	maxNamed = 4
)

// pods removes single pods, each only while it is the one that was meant.
type pods struct {
	writer Writer
	live   Reader
}

// unhealthyPods returns the pods that removing may help, longest unhealthy first: those that were ready and are not any more, those whose
// container does not come up, and those that have been starting for too long. A pod without a node is not among them: its
// successor would find none either.
func unhealthyPods(request Request) []target.Pod {
	startup := startupTime
	if request.Task != nil && request.Task.Spec.StartupGraceSeconds != nil {
		startup = max(startup, time.Duration(*request.Task.Spec.StartupGraceSeconds)*time.Second)
	}
	var unhealthy []target.Pod
	for _, pod := range request.Target.Pods {
		if pod.Ready || !pod.Scheduled {
			continue
		}
		if pod.EverReady || doesNotComeUp(&pod) || !request.Now.Before(pod.CreationTime.Add(startup)) {
			unhealthy = append(unhealthy, pod)
		}
	}
	slices.SortStableFunc(unhealthy, func(a, b target.Pod) int {
		return cmp.Or(unhealthySince(&a).Compare(unhealthySince(&b)), strings.Compare(a.Name, b.Name))
	})
	return unhealthy
}

func unhealthySince(pod *target.Pod) time.Time {
	if pod.EverReady {
		return pod.ReadyTransitionTime
	}
	return pod.CreationTime
}

// doesNotComeUp says that a container waits for something other than its turn.
func doesNotComeUp(pod *target.Pod) bool {
	for i := range pod.Containers {
		switch pod.Containers[i].WaitingReason {
		case "", "ContainerCreating", "PodInitializing":
		default:
			return true
		}
	}
	return false
}

// choose picks the pods of a plan: the first of those that qualify. Planned again for a recorded order, the choice stands as long
// as every pod in it still qualifies or is gone, even if by now others would come first.
func choose(request Request, qualified []target.Pod, most int) []target.Pod {
	if recorded := recordedPods(request, qualified); len(recorded) > 0 && len(recorded) <= most {
		return recorded
	}
	return qualified[:min(len(qualified), most)]
}

func recordedPods(request Request, qualified []target.Pod) []target.Pod {
	if request.Order == nil {
		return nil
	}
	recorded := make([]target.Pod, 0, len(request.Order.PodUIDs))
	for _, uid := range request.Order.PodUIDs {
		uid := types.UID(uid)
		at := slices.IndexFunc(qualified, func(pod target.Pod) bool { return pod.UID == uid })
		switch {
		case at >= 0:
			recorded = append(recorded, qualified[at])
		case podName(&request.Target, uid) == "":
			recorded = append(recorded, target.Pod{Name: "one that is gone", UID: uid})
		default:
			return nil
		}
	}
	return recorded
}

func uidsOf(pods []target.Pod) []string {
	var uids []string
	for i := range pods {
		uids = append(uids, string(pods[i].UID))
	}
	return uids
}

func namesOf(pods []target.Pod) []string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = pods[i].Name
	}
	return names
}

// list names a few of many.
func list(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

func count(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}

// unready reads the pods of an order past the cache and returns those that are still there, still the same and still not ready.
// The second result counts those that have become ready.
func (p pods) unready(ctx context.Context, request Request) ([]corev1.Pod, int, error) {
	var unready []corev1.Pod
	healthy := 0
	for _, uid := range request.Order.PodUIDs {
		name := podName(&request.Target, types.UID(uid))
		if name == "" {
			continue // gone, finished or being deleted
		}
		pod := corev1.Pod{}
		err := p.live.Get(ctx, client.ObjectKey{Namespace: request.Target.Reference.Namespace, Name: name}, &pod)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read pod %s of %s: %w", name, request.Target.Reference, err)
		}
		switch {
		case string(pod.UID) != uid || pod.DeletionTimestamp != nil:
		case isReady(&pod):
			healthy++
		default:
			unready = append(unready, pod)
		}
	}
	return unready, healthy, nil
}

func podName(state *target.State, uid types.UID) string {
	for i := range state.Pods {
		if state.Pods[i].UID == uid {
			return state.Pods[i].Name
		}
	}
	return ""
}

func isReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// remove deletes a pod, whatever a PodDisruptionBudget says, if it is still the same one.
func (p pods) remove(ctx context.Context, pod *corev1.Pod) error {
	err := p.writer.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	if isGone(err) {
		return nil
	}
	return err
}

// evict asks for a pod's eviction, if it is still the same one. With try nothing is removed: the answer alone counts.
func (p pods) evict(ctx context.Context, pod *corev1.Pod, try bool) error {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	}
	var options []client.SubResourceCreateOption
	if try {
		eviction.DeleteOptions.DryRun = []string{metav1.DryRunAll}
		options = append(options, client.DryRunAll)
	}
	err := p.writer.SubResource("eviction").Create(ctx, pod, eviction, options...)
	if isGone(err) {
		return nil
	}
	return err
}

// isGone says that an object is not there any more, or not the one that was meant.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}

// free removes the unready pods of an order after its change was written. The controller of a StatefulSet with ordered pods replaces nothing
// while a pod is not ready (kubernetes/kubernetes#67250), so a rollout that would cure the pod waits for it for ever. It must
// have seen the new template first: else it would make the pod anew from the old one.
func (p pods) free(ctx context.Context, request Request, outcome Outcome) (Outcome, error) {
	reference := request.Target.Reference
	revision, err := p.observed(ctx, reference, outcome.After.Generation)
	if err != nil {
		return Outcome{}, err
	}
	unready, _, err := p.unready(ctx, request)
	if err != nil {
		return Outcome{}, err
	}
	for i := range unready {
		if unready[i].Labels[appsv1.ControllerRevisionHashLabelKey] == revision {
			continue // made from the new template already
		}
		err := p.remove(ctx, &unready[i])
		if err == nil {
			continue
		}
		if refusal := refusalOf(err, "delete pods", &request.Target); refusal != nil {
			outcome.Message = fmt.Sprintf("%s, but pod %s blocks its rollout: %s", outcome.Message, unready[i].Name, refusal.Message)
			return outcome, nil
		}
		return Outcome{}, fmt.Errorf("free pod %s of %s: %w", unready[i].Name, reference, err)
	}
	return outcome, nil
}

// observed waits until the controller has seen a generation of a StatefulSet, and returns the revision that it makes pods from.
func (p pods) observed(ctx context.Context, reference target.Reference, generation int64) (string, error) {
	var set appsv1.StatefulSet
	key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}
	err := wait.PollUntilContextTimeout(ctx, observationInterval, observationTimeout, true, func(ctx context.Context) (bool, error) {
		if err := p.live.Get(ctx, key, &set); err != nil {
			return false, err
		}
		return set.Status.ObservedGeneration >= generation, nil
	})
	if err != nil {
		return "", fmt.Errorf("wait for the controller of %s to see the new template: %w", reference, err)
	}
	return set.Status.UpdateRevision, nil
}
