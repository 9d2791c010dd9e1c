package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tracker holds the latest version of every object of a kind, as a watch of its own delivers them.
type tracker[T client.Object] struct {
	mutex  sync.Mutex
	latest map[string]T
	// changed is closed, and replaced, with each event.
	changed chan struct{}
	closed  bool
	// notice is called with each event at the moment of its arrival.
	notice func(object T, at time.Time)
}

// track follows the objects until ctx ends. The API server ends the watch of a client that is too slow for it; then another begins.
func track[T client.Object](ctx context.Context, admin client.WithWatch, list client.ObjectList) (*tracker[T], error) {
	stream, err := admin.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	t := &tracker[T]{latest: map[string]T{}, changed: make(chan struct{})}
	go func() {
		for err == nil {
			t.follow(stream)
			t.change(func() { clear(t.latest) })
			stream, err = admin.Watch(ctx, list, client.InNamespace(namespace))
		}
		t.change(func() { t.closed = true })
	}()
	return t, nil
}

func (t *tracker[T]) follow(stream watch.Interface) {
	defer stream.Stop()
	for event := range stream.ResultChan() {
		at := time.Now()
		object, ok := event.Object.(T)
		if !ok {
			continue
		}
		t.change(func() {
			if event.Type == watch.Deleted {
				delete(t.latest, object.GetName())
				return
			}
			t.latest[object.GetName()] = object
			if t.notice != nil {
				t.notice(object, at)
			}
		})
	}
}

// change tells those who wait that something is different now.
func (t *tracker[T]) change(how func()) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	how()
	close(t.changed)
	t.changed = make(chan struct{})
}

// onEvent sets what is called with each event; nil: nothing.
func (t *tracker[T]) onEvent(notice func(object T, at time.Time)) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.notice = notice
}

// wait returns when the objects are as they should be.
func (t *tracker[T]) wait(ctx context.Context, what string, holds func(map[string]T) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		t.mutex.Lock()
		held, changed, closed := holds(t.latest), t.changed, t.closed
		t.mutex.Unlock()
		if held {
			return nil
		}
		if closed {
			return errors.New("the watch ended")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-changed:
		}
	}
}

func count[T any](all map[string]T, holds func(T) bool) int {
	number := 0
	for object := range maps.Values(all) {
		if holds(object) {
			number++
		}
	}
	return number
}

// inParallel calls do for every number of [from, to) and returns what went wrong.
func inParallel(from, to int, do func(int) error) error {
	numbers := make(chan int)
	problems := make(chan error, writers)
	for range writers {
		go func() {
			var failed error
			for number := range numbers {
				if failed == nil {
					failed = do(number)
				}
			}
			problems <- failed
		}()
	}
	for number := from; number < to; number++ {
		numbers <- number
	}
	close(numbers)
	var all []error
	for range writers {
		all = append(all, <-problems)
	}
	return errors.Join(all...)
}

// pause lets time pass: what is measured here is what happens, or does not, meanwhile.
func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
