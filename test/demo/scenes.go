package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/test/cluster"
)

// badImage rolls out a version that cannot be pulled. The task is to bring the proven one back and prove that it helped.
func badImage(ctx context.Context, s *scene) error {
	if err := s.apply(ctx, "checkout.yaml"); err != nil {
		return err
	}
	proven, err := s.until(ctx, "checkout", "prove a revision healthy", 30*time.Second, func(task *aiopsv1.AITask) bool {
		return task.Status.Target != nil && task.Status.Target.HealthyRevision != ""
	})
	if err != nil {
		return err
	}
	s.line(proven.Status.Target.HealthyTime.Or(time.Now()), "healthy", "shop/checkout:2.4.0 was watched and is proven healthy")
	if err := s.release(ctx, "checkout", "shop/checkout:2.4.1", cluster.MissingImage); err != nil {
		return err
	}
	s.line(time.Now(), "rolled out", "shop/checkout:2.4.1, an image that nobody pushed")
	if _, err := s.until(ctx, "checkout", "roll back", 30*time.Second, verifying(aiopsv1.ActionRollback)); err != nil {
		return err
	}
	if err := s.show(ctx, "get", "at", "-o", "wide"); err != nil {
		return err
	}
	if _, err := s.until(ctx, "checkout", "prove recovery", time.Minute, recovered); err != nil {
		return err
	}
	live := &appsv1.Deployment{}
	if err := s.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "checkout"}, live); err != nil {
		return fmt.Errorf("read Deployment checkout: %w", err)
	}
	if image := live.Spec.Template.Spec.Containers[0].Image; image != "shop/checkout:2.4.0" {
		return fmt.Errorf("checkout runs %s, not shop/checkout:2.4.0", image)
	}
	return s.describe(ctx, "checkout")
}

// noCure deploys something that no step can cure. The task is to try each, tell somebody, and stop.
func noCure(ctx context.Context, s *scene) error {
	if err := s.apply(ctx, "worker.yaml"); err != nil {
		return err
	}
	s.line(time.Now(), "deployed", "shop/worker:1.7.2, whose database is gone: it crashes whatever is done")
	for _, action := range []aiopsv1.ActionType{aiopsv1.ActionRestart, aiopsv1.ActionEvict} {
		if _, err := s.until(ctx, "worker", "try "+string(action), 30*time.Second, verifying(action)); err != nil {
			return err
		}
	}
	_, err := s.until(ctx, "worker", "tell the receiver", 30*time.Second, func(task *aiopsv1.AITask) bool {
		return len(task.Status.History) > 0 && task.Status.History[0].Result == aiopsv1.ResultDone
	})
	if err != nil {
		return err
	}
	page, err := s.pages.next(ctx)
	if err != nil {
		return err
	}
	s.line(page.at, "page", "%s", page.text)
	if _, err := s.until(ctx, "worker", "end Exhausted", 30*time.Second, func(task *aiopsv1.AITask) bool {
		return task.Status.Phase == aiopsv1.PhaseExhausted
	}); err != nil {
		return err
	}
	if err := s.show(ctx, "get", "at", "worker", "-o", "wide"); err != nil {
		return err
	}
	return s.describe(ctx, "worker")
}

// exhaustedOnce looks, some time after the fact, whether it was said once and not again.
func exhaustedOnce(ctx context.Context, s *stage) error {
	events := &eventsv1.EventList{}
	if err := s.admin.List(ctx, events, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	said := 0
	for i := range events.Items {
		if event := &events.Items[i]; event.Regarding.Name == "worker" && event.Reason == "Exhausted" {
			said++
			if event.Series != nil {
				said += int(event.Series.Count)
			}
		}
	}
	if said != 1 {
		return fmt.Errorf("event Exhausted of AITask worker was to be told once, and was told %d times", said)
	}
	return nil
}

// risingLoad makes a web server busy, then idle. One task is to add replicas until the load is well below its threshold, the
// other to take them away again.
func risingLoad(ctx context.Context, s *scene) error {
	if err := s.apply(ctx, "web.yaml"); err != nil {
		return err
	}
	traffic, err := startTraffic(ctx, s.admin, "web")
	if err != nil {
		return err
	}
	traffic.set(400)
	for _, name := range []string{"web-out", "web-in"} {
		if _, err := s.until(ctx, name, "measure", 30*time.Second, watching); err != nil {
			return err
		}
	}
	traffic.set(1000)
	s.line(time.Now(), "load rises", "to 1000m: 2 replicas with a request of 500m each are at 100 %%")
	if _, err := s.until(ctx, "web-out", "stay breached between 60 and 80", time.Minute, between); err != nil {
		return err
	}
	if _, err := s.until(ctx, "web-out", "recover", time.Minute, recovered); err != nil {
		return err
	}
	if err := s.expectReplicas(ctx, 4); err != nil {
		return err
	}
	traffic.set(300)
	s.line(time.Now(), "load falls", "to 300m: 4 replicas are at 15 %%")
	if _, err := s.until(ctx, "web-in", "recover", time.Minute, recovered); err != nil {
		return err
	}
	if err := s.expectReplicas(ctx, 2); err != nil {
		return err
	}
	return s.show(ctx, "get", "at", "-o", "wide")
}

func verifying(action aiopsv1.ActionType) func(*aiopsv1.AITask) bool {
	return func(task *aiopsv1.AITask) bool {
		order := task.Status.Order
		return order != nil && order.State == aiopsv1.OrderVerifying && order.Action == string(action)
	}
}

func recovered(task *aiopsv1.AITask) bool {
	return task.Status.Incident != nil && task.Status.Incident.RecoveredTime != nil
}

func watching(task *aiopsv1.AITask) bool {
	return task.Status.Phase == aiopsv1.PhaseWatching && len(task.Status.Signals) == 1 && task.Status.Signals[0].Value != ""
}

// between is hysteresis at work: below the threshold, not yet at the recovery threshold, still breached.
func between(task *aiopsv1.AITask) bool {
	if len(task.Status.Signals) == 0 || task.Status.Signals[0].Verdict != aiopsv1.VerdictBreached {
		return false
	}
	var value float64
	if _, err := fmt.Sscanf(task.Status.Signals[0].Value, "%g", &value); err != nil {
		return false
	}
	spec := task.Spec.Signals[0]
	return value < float64(*spec.Threshold) && value > float64(*spec.RecoveryThreshold)
}

// release puts a new image into a Deployment, and makes it behave.
func (s *stage) release(ctx context.Context, name, image string, behaviour cluster.Behaviour) error {
	deployment := &appsv1.Deployment{}
	if err := s.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment); err != nil {
		return fmt.Errorf("read Deployment %s: %w", name, err)
	}
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Template.Spec.Containers[0].Image = image
	deployment.Spec.Template.Annotations = map[string]string{cluster.BehaviourAnnotation: string(behaviour)}
	if err := s.admin.Patch(ctx, deployment, patch); err != nil {
		return fmt.Errorf("release %s: %w", image, err)
	}
	return nil
}

func (s *stage) expectReplicas(ctx context.Context, want int32) error {
	deployment := &appsv1.Deployment{}
	if err := s.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, deployment); err != nil {
		return fmt.Errorf("read Deployment web: %w", err)
	}
	if got := *deployment.Spec.Replicas; got != want {
		return fmt.Errorf("web has %d replicas, not %d", got, want)
	}
	return nil
}
