package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/target"
)

// stormFleet watches count targets with one task each, and a second task on the first target.
func stormFleet(count int) *Fleet {
	fleet := NewFleet(nil, Storm{BreachedPercent: 30, MinimumTargets: 10, Within: time.Minute, Calm: 5 * time.Minute})
	for i := range count {
		fleet.observed(taskKey(i), targetOf(i), nil)
	}
	fleet.observed(types.NamespacedName{Namespace: "shop", Name: "second"}, targetOf(0), nil)
	return fleet
}

func taskKey(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("task-%d", i)}
}

func targetOf(i int) target.Reference {
	return target.Reference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
}

func TestStormHoldsWhenManyTargetsBreachTogether(t *testing.T) {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	tests := []struct {
		name     string
		watched  int
		breached int
		apart    time.Duration
		want     bool
	}{
		{"a third of many", 80, 24, time.Second, true},
		{"just under a third of many", 80, 23, time.Second, false},
		{"all of a few", 9, 9, time.Second, false},
		{"the minimum", 10, 10, time.Second, true},
		{"one after the other", 80, 24, time.Minute, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fleet := stormFleet(test.watched)
			now := start
			for i := range test.breached {
				fleet.observed(taskKey(i), targetOf(i), &breach{since: now})
				now = now.Add(test.apart)
			}
			if got := fleet.storm(now) != nil; got != test.want {
				t.Errorf("storm = %v, want %v", got, test.want)
			}
		})
	}
}

func TestOneFlappingTargetBesideChronicOnesIsNoStorm(t *testing.T) {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	fleet := stormFleet(10)
	for i := range 9 {
		fleet.observed(taskKey(i), targetOf(i), &breach{since: start})
	}
	now := start.Add(time.Hour)
	for i := range 20 {
		var seen *breach
		if i%2 == 1 {
			seen = &breach{since: now.Add(time.Duration(i) * time.Second)}
		}
		fleet.observed(taskKey(9), targetOf(9), seen)
	}
	if problem := fleet.storm(now.Add(20 * time.Second)); problem != nil {
		t.Errorf("storm = %v, want none", problem)
	}
}

func TestChronicBreachesDoNotKeepAStormAlive(t *testing.T) {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	fleet := stormFleet(40)
	for i := range 11 {
		fleet.observed(taskKey(i), targetOf(i), &breach{since: start})
	}
	now := start.Add(time.Hour)
	for i := 11; i < 40; i++ {
		fleet.observed(taskKey(i), targetOf(i), &breach{since: now})
	}
	if fleet.storm(now) == nil {
		t.Fatal("no storm although 29 of 40 targets breached together")
	}
	for i := 11; i < 40; i++ {
		fleet.observed(taskKey(i), targetOf(i), nil)
	}
	fleet.storm(now)
	if problem := fleet.storm(now.Add(5 * time.Minute)); problem != nil {
		t.Errorf("storm = %v although all of its breaches are over", problem)
	}
}

func TestTasksOnOneTargetCountOnce(t *testing.T) {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	fleet := stormFleet(10)
	for i := range 9 {
		fleet.observed(taskKey(i), targetOf(i), &breach{since: start})
	}
	fleet.observed(types.NamespacedName{Namespace: "shop", Name: "second"}, targetOf(0), &breach{since: start})
	if problem := fleet.storm(start); problem != nil {
		t.Errorf("9 breached targets seen by 10 tasks made a storm: %v", problem)
	}
}

func TestStormSaysTheSameUntilItHasBeenCalmLongEnough(t *testing.T) {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	fleet := stormFleet(80)
	for i := range 37 {
		fleet.observed(taskKey(i), targetOf(i), &breach{since: start})
	}
	problem := fleet.storm(start)
	if problem == nil || problem.Reason != aiopsv1.ReasonStormProtection {
		t.Fatalf("storm = %v", problem)
	}
	want := "37 of 80 watched targets breached within 60s: probably one cause. Acting is held until fewer than 24 of them are breached for 300s"
	if problem.Message != want {
		t.Errorf("message = %q, want %q", problem.Message, want)
	}

	for i := range 14 {
		fleet.observed(taskKey(i), targetOf(i), nil)
	}
	calm := start.Add(2 * time.Minute)
	for _, at := range []time.Time{calm, calm.Add(5*time.Minute - time.Second)} {
		if got := fleet.storm(at); got == nil || got.Message != want {
			t.Errorf("at %s: storm = %v, want it to go on, said the same way", at.Sub(start), got)
		}
	}
	fleet.observed(taskKey(0), targetOf(0), &breach{since: calm.Add(time.Minute)})
	if got := fleet.storm(calm.Add(time.Minute)); got == nil {
		t.Error("the storm ended while as many are breached as began it")
	}
	fleet.forget(taskKey(0))
	again := calm.Add(2 * time.Minute)
	if fleet.storm(again) == nil {
		t.Error("a deleted task ended the storm without any calm")
	}
	if got := fleet.storm(again.Add(5 * time.Minute)); got != nil {
		t.Errorf("after the calm: storm = %v, want none", got)
	}
}

func TestNothingIsDecidedBeforeEveryTaskWasLookedAtOnce(t *testing.T) {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	fleet := stormFleet(1)
	fleet.expect([]types.NamespacedName{taskKey(0), taskKey(1), taskKey(2), taskKey(3)}, start)
	fleet.observed(taskKey(1), targetOf(1), &breach{since: start})
	fleet.forget(taskKey(2))
	if fleet.warm(start) {
		t.Error("warm although task 3 was not looked at")
	}
	if !fleet.warm(start.Add(warmUp)) {
		t.Error("one task that cannot be looked at holds the others for ever")
	}
	fleet.observed(taskKey(3), targetOf(3), nil)
	if !fleet.warm(start) {
		t.Error("not warm although every task was looked at or is gone")
	}
}

func TestBusyTaskIsAnotherTaskWithAnUnfinishedOrderOnTheSameWorkload(t *testing.T) {
	order := func(name, uid string) aiopsv1.AITask {
		task := aiopsv1.AITask{}
		task.Name = name
		task.Status.Order = &aiopsv1.Order{Before: &aiopsv1.TargetImage{UID: uid}}
		return task
	}
	deleting := func(task aiopsv1.AITask) aiopsv1.AITask {
		now := metav1.NewTime(time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC))
		task.DeletionTimestamp = &now
		return task
	}
	telling := func(task aiopsv1.AITask) aiopsv1.AITask {
		task.Status.Order.Action = string(aiopsv1.ActionNotify)
		return task
	}
	idle := aiopsv1.AITask{}
	idle.Name = "idle"
	tests := []struct {
		name  string
		tasks []aiopsv1.AITask
		want  string
	}{
		{"nobody", nil, ""},
		{"oneself", []aiopsv1.AITask{order("self", "u1")}, ""},
		{"one without an order", []aiopsv1.AITask{idle}, ""},
		{"one that is being deleted, whose order nobody brings forward", []aiopsv1.AITask{deleting(order("other", "u1"))}, ""},
		{"one that only tells somebody", []aiopsv1.AITask{telling(order("other", "u1"))}, ""},
		{"one on a predecessor of the workload", []aiopsv1.AITask{order("other", "u0")}, ""},
		{"another one", []aiopsv1.AITask{order("self", "u1"), order("other", "u1")}, "other"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := busyTask(test.tasks, "self", "u1"); got != test.want {
				t.Errorf("busyTask = %q, want %q", got, test.want)
			}
		})
	}
}

func TestARestartNeitherDeclaresNorForgetsAStorm(t *testing.T) {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		since func(i int) time.Time // what status says; zero: nothing
		held  string
		want  string
	}{
		"breaches of another day":            {since: func(i int) time.Time { return start.Add(-time.Duration(i+1) * time.Hour) }},
		"breaches that nobody has seen yet":  {since: func(int) time.Time { return time.Time{} }, want: "12 of 30 watched targets breached within 60s"},
		"breaches that a storm holds so far": {since: func(int) time.Time { return start.Add(-time.Hour) }, held: "As it was said", want: "As it was said"},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := stormFleet(30)
			for i := range 12 {
				task := &aiopsv1.AITask{}
				if since := test.since(i); !since.IsZero() {
					task.Status.Signals = []aiopsv1.SignalStatus{{Name: "pods", Verdict: aiopsv1.VerdictBreached, LastTransitionTime: aiopsv1.TimePointer(since)}}
				}
				if test.held != "" {
					task.Status.Decision = &aiopsv1.Decision{Reason: aiopsv1.ReasonStormProtection, Message: test.held}
				}
				fleet.observed(taskKey(i), targetOf(i), breachOf(task, start))
			}
			got := ""
			if problem := fleet.storm(start); problem != nil {
				got = problem.Message
			}
			if (test.want == "") != (got == "") || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAnInheritedStormSubsides(t *testing.T) {
	start := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	fleet := stormFleet(30)
	fleet.observed(taskKey(0), targetOf(0), &breach{since: start.Add(-time.Hour), held: "As it was said"})
	if fleet.storm(start) == nil {
		t.Error("it was forgotten")
	}
	if fleet.storm(start.Add(4*time.Minute)) == nil {
		t.Error("it was over before the calm was")
	}
	if problem := fleet.storm(start.Add(5 * time.Minute)); problem != nil {
		t.Errorf("it is still in force after the calm: %v", problem)
	}
}
