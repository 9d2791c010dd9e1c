package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// board keeps every version of every AITask as a watch delivers it, so that nobody who waits for one misses it.
type board struct {
	mutex    sync.Mutex
	versions map[string][]*aiopsv1.AITask
	// changed is closed, and replaced, with each new version.
	changed chan struct{}
	closed  bool
}

// watchTasks follows the AITasks until ctx ends.
func watchTasks(ctx context.Context, admin client.WithWatch) (*board, error) {
	stream, err := admin.Watch(ctx, &aiopsv1.AITaskList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watch the AITasks: %w", err)
	}
	b := &board{versions: map[string][]*aiopsv1.AITask{}, changed: make(chan struct{})}
	go func() {
		defer stream.Stop()
		for event := range stream.ResultChan() {
			if task, ok := event.Object.(*aiopsv1.AITask); ok {
				b.add(task)
			}
		}
		b.add(nil)
	}()
	return b, nil
}

// add takes a version, or with nil the end of the watch.
func (b *board) add(task *aiopsv1.AITask) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if task == nil {
		b.closed = true
	} else {
		b.versions[task.Name] = append(b.versions[task.Name], task)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// version waits for the version of a task with this number, from 0.
func (b *board) version(ctx context.Context, name string, number int) (*aiopsv1.AITask, error) {
	for {
		b.mutex.Lock()
		versions, changed, closed := b.versions[name], b.changed, b.closed
		b.mutex.Unlock()
		if number < len(versions) {
			return versions[number], nil
		}
		if closed {
			return nil, errors.New("the watch of the AITasks ended")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}
