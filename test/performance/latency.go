package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
	"github.com/example/aiops-operator/test/harness"
)

// patchesPerIncident is how often the API server's own latency is measured before each incident.
const patchesPerIncident = 3

// incident is one measured breach.
type incident struct {
	name  string
	broke time.Time
	// seen is when a watch of this program delivered the breached status of the Deployment.
	seen time.Time
}

// latency breaks one workload after the other and measures how long it takes until the operator's patch is applied.
func (b *bench) latency(ctx context.Context) error {
	if err := b.ensure(ctx, b.tasks); err != nil {
		return err
	}
	if err := b.admin.Create(ctx, harness.Deployment(namespace, "baseline", 0, "bench/web:1")); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the Deployment to patch: %w", err)
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	mark, err := b.cluster.AuditMark()
	if err != nil {
		return err
	}
	progress("measuring %d incidents", b.incidents)
	var patches samples
	var incidents []incident
	for number := range b.incidents {
		taken, err := b.patchBaseline(ctx)
		if err != nil {
			return err
		}
		patches = append(patches, taken...)
		measured, err := b.breakOne(ctx, nameOf(number))
		if err != nil {
			return fmt.Errorf("incident of %s: %w", nameOf(number), err)
		}
		incidents = append(incidents, measured)
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	return b.reportLatency(mark, incidents, patches)
}

// patchBaseline measures plain JSON patches of a Deployment that nobody watches over.
func (b *bench) patchBaseline(ctx context.Context) (samples, error) {
	var out samples
	for range patchesPerIncident {
		deployment := &appsv1.Deployment{}
		deployment.Namespace, deployment.Name = namespace, "baseline"
		content := fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations","value":{"example.com/time":"%d"}}]`, time.Now().UnixNano())
		began := time.Now()
		if err := b.admin.Patch(ctx, deployment, client.RawPatch(types.JSONPatchType, []byte(content))); err != nil {
			return nil, fmt.Errorf("patch the baseline: %w", err)
		}
		out = append(out, time.Since(began))
		// What the patch causes elsewhere must not be measured with the next one.
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// breakOne makes the pod of a workload unready and returns when the operator has proven recovery.
func (b *bench) breakOne(ctx context.Context, name string) (incident, error) {
	pod, err := b.podOf(ctx, name)
	if err != nil {
		return incident{}, err
	}
	var once sync.Once
	out := incident{name: name}
	b.deployments.onEvent(func(deployment *appsv1.Deployment, at time.Time) {
		if deployment.Name == name && deployment.Status.AvailableReplicas == 0 {
			once.Do(func() { out.seen = at })
		}
	})
	defer b.deployments.onEvent(nil)
	out.broke = time.Now()
	if err := b.behave(ctx, pod, string(cluster.NotReady)); err != nil {
		return out, err
	}
	acted := func(all map[string]*appsv1.Deployment) bool {
		return all[name] != nil && all[name].Annotations[aiopsv1.LastOrderAnnotation] != ""
	}
	if err := b.deployments.wait(ctx, "the action", acted); err != nil {
		return out, err
	}
	if b.action == string(aiopsv1.ActionScale) { // one more replica does not heal the broken one
		if err := b.behave(ctx, pod, nil); err != nil {
			return out, err
		}
	}
	return out, b.aitasks.wait(ctx, "recovery", func(all map[string]*aiopsv1.AITask) bool {
		return all[name] != nil && all[name].Status.Incident != nil && all[name].Status.Incident.RecoveredTime != nil
	})
}

func (b *bench) podOf(ctx context.Context, name string) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := b.admin.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{"app": name}); err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	if len(pods.Items) == 0 {
		return nil, errors.New("there is no pod")
	}
	return &pods.Items[0], nil
}

// behave sets how a pod behaves; nil: healthy.
func (b *bench) behave(ctx context.Context, pod *corev1.Pod, behaviour any) error {
	content, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{cluster.BehaviourAnnotation: behaviour}}})
	if err != nil {
		return err
	}
	return b.admin.Patch(ctx, pod, client.RawPatch(types.MergePatchType, content))
}
