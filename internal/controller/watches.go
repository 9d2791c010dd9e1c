package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// SetupWithManager wires the reconciler to everything that can change a decision: AITasks, workloads, their pods, revisions and
// autoscalers, finished measurements, and the moment of being elected. The controller runs in every replica, so that a standby
// has observed for as long as the leader; writing waits for the election.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, concurrency int) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &aiopsv1.AITask{}, targetIndex, indexTarget); err != nil {
		return fmt.Errorf("index AITasks by target: %w", err)
	}
	if err := target.IndexFields(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := mgr.Add(whenElected{reconciler: r}); err != nil {
		return fmt.Errorf("add the election's runnable: %w", err)
	}
	everywhere := false
	build := ctrl.NewControllerManagedBy(mgr).
		Named("aitask").
		For(&aiopsv1.AITask{}).
		Watches(&aiopsv1.AITask{}, r.whenFinished()).
		WatchesRawSource(&r.waker).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, NeedLeaderElection: &everywhere})
	for _, kind := range target.Kinds() {
		build = build.Watches(kind, handler.EnqueueRequestsFromMapFunc(r.tasksOf))
		// Asked for now, and not first when the controller starts: a process that is ready has filled all of its caches.
		if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil {
			return fmt.Errorf("cache %T: %w", kind, err)
		}
	}
	return build.Complete(r)
}

// Wake asks for a pass of a task.
func (r *Reconciler) Wake(task types.NamespacedName) {
	r.waker.wake(task)
}

func indexTarget(object client.Object) []string {
	task, ok := object.(*aiopsv1.AITask)
	if !ok {
		return nil
	}
	return []string{target.ReferenceOf(task.Namespace, &task.Spec).String()}
}

// tasksOf returns the tasks whose target an object is part of.
func (r *Reconciler) tasksOf(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, ref := range target.ReferencesFor(object) {
		requests = append(requests, r.tasksOn(ctx, ref, "")...)
	}
	return requests
}

// whenFinished wakes the other tasks of a target when a task's order is over: they may have waited for it.
func (r *Reconciler) whenFinished() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	finished := func(ctx context.Context, before client.Object, requests queue) {
		task, ok := before.(*aiopsv1.AITask)
		if !ok || task.Status.Order == nil {
			return
		}
		for _, request := range r.tasksOn(ctx, target.ReferenceOf(task.Namespace, &task.Spec), task.Name) {
			requests.Add(request)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, update event.UpdateEvent, requests queue) {
			if after, ok := update.ObjectNew.(*aiopsv1.AITask); ok && after.Status.Order == nil {
				finished(ctx, update.ObjectOld, requests)
			}
		},
		DeleteFunc: func(ctx context.Context, deletion event.DeleteEvent, requests queue) {
			finished(ctx, deletion.Object, requests)
		},
	}
}

func (r *Reconciler) tasksOn(ctx context.Context, ref target.Reference, except string) []reconcile.Request {
	tasks := &aiopsv1.AITaskList{}
	if err := r.Client.List(ctx, tasks, client.InNamespace(ref.Namespace), client.MatchingFields{targetIndex: ref.String()}); err != nil {
		logf.FromContext(ctx).Error(err, "Failed to list the tasks of a target", "target", ref.String())
		return nil
	}
	var requests []reconcile.Request
	for i := range tasks.Items {
		if tasks.Items[i].Name != except {
			requests = append(requests, reconcile.Request{NamespacedName: keyOf(&tasks.Items[i])})
		}
	}
	return requests
}

// waker is a source of passes that no object's event asks for.
type waker struct {
	mutex sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start keeps the controller's queue.
func (w *waker) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.queue = queue
	return nil
}

func (w *waker) wake(task types.NamespacedName) {
	w.mutex.Lock()
	queue := w.queue
	w.mutex.Unlock()
	if queue != nil {
		queue.Add(reconcile.Request{NamespacedName: task})
	}
}

// whenElected lets this process act from the moment that it is the leader, and wakes every task.
type whenElected struct {
	reconciler *Reconciler
}

var _ manager.LeaderElectionRunnable = whenElected{}

// NeedLeaderElection makes Start run on election only.
func (whenElected) NeedLeaderElection() bool {
	return true
}

// Start wakes every task once. A process that loses the lease ends; it never goes back to standing by.
func (w whenElected) Start(ctx context.Context) error {
	r := w.reconciler
	tasks := &aiopsv1.AITaskList{}
	if err := r.Client.List(ctx, tasks); err != nil {
		return fmt.Errorf("list AITasks on election: %w", err)
	}
	var keys []types.NamespacedName
	for i := range tasks.Items {
		if tasks.Items[i].DeletionTimestamp == nil {
			keys = append(keys, keyOf(&tasks.Items[i]))
		}
	}
	r.Fleet.expect(keys, r.Clock.Now())
	r.elected.Store(true)
	for _, key := range keys {
		r.waker.wake(key)
	}
	<-ctx.Done()
	return nil
}
