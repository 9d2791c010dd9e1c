package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/cluster"
)

// traffic is the load on a workload, in thousandths of a CPU, spread evenly over whatever pods it has.
type traffic struct {
	admin client.WithWatch
	total chan int64
	pods  map[string]string // pod -> its share
}

// startTraffic spreads the load until ctx ends. Nothing is spread before the first call of set.
func startTraffic(ctx context.Context, admin client.WithWatch, app string) (*traffic, error) {
	pods, err := admin.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), client.MatchingLabels{"app": app})
	if err != nil {
		return nil, fmt.Errorf("watch the pods of %s: %w", app, err)
	}
	t := &traffic{admin: admin, total: make(chan int64, 1), pods: map[string]string{}}
	go t.run(ctx, pods)
	return t, nil
}

func (t *traffic) set(total int64) { t.total <- total }

func (t *traffic) run(ctx context.Context, pods watch.Interface) {
	defer pods.Stop()
	total := int64(0)
	for {
		select {
		case total = <-t.total:
		case event, open := <-pods.ResultChan():
			if !open {
				return
			}
			t.follow(event)
		}
		t.spread(ctx, total)
	}
}

func (t *traffic) follow(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	if event.Type == watch.Deleted || pod.DeletionTimestamp != nil {
		delete(t.pods, pod.Name)
	} else {
		t.pods[pod.Name] = pod.Annotations[cluster.CPUAnnotation]
	}
}

// spread gives every pod its share. A pod that has gone meanwhile needs none.
func (t *traffic) spread(ctx context.Context, total int64) {
	if total == 0 || len(t.pods) == 0 {
		return
	}
	share := fmt.Sprintf("%dm", total/int64(len(t.pods)))
	for name, has := range t.pods {
		if has == share {
			continue
		}
		content, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{cluster.CPUAnnotation: share}}})
		if err != nil {
			return
		}
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = namespace, name
		if err := t.admin.Patch(ctx, pod, client.RawPatch(types.MergePatchType, content)); err == nil {
			t.pods[name] = share
		}
	}
}
