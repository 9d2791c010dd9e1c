package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/runbook"
	"github.com/example/aiops-operator/internal/target"
)

// targetIndex is the cache index of AITasks by the workload that they name.
const targetIndex = "spec.target"

// Storm says when so many targets are breached at once that one cause is likelier than many, and acting is held.
type Storm struct {
	// BreachedPercent of the watched targets makes a storm, from 1 to 100.
	BreachedPercent int
	// MinimumTargets is how many targets must be breached at least.
	MinimumTargets int
	// Within is how close together the breaches must have begun.
	Within time.Duration
	// Calm is how long fewer must be breached before acting goes on.
	Calm time.Duration
}

// Fleet collects facts across tasks: who is busy on a target, and how many targets are breached. Safe for concurrent use.
type Fleet struct {
	reader client.Reader
	rule   Storm

	mutex    sync.Mutex
	watched  map[types.NamespacedName]string            // task -> target
	breached map[string]map[types.NamespacedName]breach // target -> tasks that see it breached
	targets  map[string]int                             // target -> number of tasks
	// problem is the storm in force, said the same way until it is over; it is about the breaches that began from stormFrom on.
	problem   *runbook.Problem
	stormFrom time.Time
	calmSince time.Time
	// judged says that a storm that an earlier process declared was looked for.
	judged bool
	// unseen are the tasks that were there on election and that this process has not looked at yet.
	unseen    map[types.NamespacedName]struct{}
	warmUntil time.Time
}

// breach is what one task that sees its target breached says of it.
type breach struct {
	since time.Time
	// held is what storm protection says on the task while it holds it.
	held string
}

// breachOf dates a breach by what the task's status says, if an earlier process saw it begin.
func breachOf(task *aiopsv1.AITask, now time.Time) *breach {
	out := &breach{since: now}
	for i := range task.Status.Signals {
		began := task.Status.Signals[i].LastTransitionTime.Or(now)
		if task.Status.Signals[i].Verdict == aiopsv1.VerdictBreached && began.Before(out.since) {
			out.since = began
		}
	}
	if decision := task.Status.Decision; decision != nil && decision.Reason == aiopsv1.ReasonStormProtection {
		out.held = decision.Message
	}
	return out
}

// warmUp is how long a process that has just been elected waits at most until it has looked at every task.
const warmUp = 10 * time.Second

// NewFleet returns a fleet that reads AITasks from the caches.
func NewFleet(reader client.Reader, rule Storm) *Fleet {
	return &Fleet{reader: reader, rule: rule, watched: map[types.NamespacedName]string{},
		breached: map[string]map[types.NamespacedName]breach{}, targets: map[string]int{}}
}

// facts returns what the other tasks mean for this one now, from the caches.
func (f *Fleet) facts(ctx context.Context, p *pass) runbook.Fleet {
	facts := runbook.Fleet{Storm: f.storm(p.now)}
	if p.input.Target == nil {
		return facts
	}
	tasks := &aiopsv1.AITaskList{}
	if err := f.reader.List(ctx, tasks, client.InNamespace(p.key.Namespace), client.MatchingFields{targetIndex: p.ref.String()}); err != nil {
		logf.FromContext(ctx).Error(err, "Failed to list the tasks of a target", "target", p.ref.String())
		return facts // the gate asks the API server before anything is done
	}
	facts.BusyTask, facts.BusyUntil = busyTask(tasks.Items, p.key.Name, p.input.Target.UID)
	return facts
}

// observed notes that a task sees its target breached, or, with nil, that it does not.
func (f *Fleet) observed(key types.NamespacedName, ref target.Reference, seen *breach) {
	name := ref.Namespace + "/" + ref.String()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.unseen, key)
	if before, found := f.watched[key]; !found || before != name {
		f.remove(key)
		f.watched[key] = name
		f.targets[name]++
	}
	if seen == nil {
		f.heal(key, name)
		return
	}
	if f.breached[name] == nil {
		f.breached[name] = map[types.NamespacedName]breach{}
	}
	now := *seen
	if before, found := f.breached[name][key]; found {
		now.since = before.since
	}
	f.breached[name][key] = now
}

func (f *Fleet) heal(key types.NamespacedName, name string) {
	delete(f.breached[name], key)
	if len(f.breached[name]) == 0 {
		delete(f.breached, name)
	}
}

// expect names the tasks that there are on election. Nothing is decided before each was looked at once: a process that acts on the
// first breach that it sees cannot know that everything is breached.
func (f *Fleet) expect(keys []types.NamespacedName, now time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.unseen = map[types.NamespacedName]struct{}{}
	for _, key := range keys {
		if _, seen := f.watched[key]; !seen {
			f.unseen[key] = struct{}{}
		}
	}
	f.warmUntil = now.Add(warmUp)
}

func (f *Fleet) warm(now time.Time) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.unseen) == 0 || !now.Before(f.warmUntil)
}

// remove takes a task out of the count. The caller holds the mutex.
func (f *Fleet) remove(key types.NamespacedName) {
	delete(f.unseen, key)
	name, found := f.watched[key]
	if !found {
		return
	}
	delete(f.watched, key)
	f.heal(key, name)
	if f.targets[name]--; f.targets[name] <= 0 {
		delete(f.targets, name)
	}
}

func (f *Fleet) forget(key types.NamespacedName) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.remove(key)
}

// storm returns why acting is held, or nil.
func (f *Fleet) storm(now time.Time) *runbook.Problem {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	limit := max(f.rule.MinimumTargets, (len(f.targets)*f.rule.BreachedPercent+99)/100)
	if !f.judged {
		f.judged = true
		f.inherit()
	}
	if f.problem == nil {
		f.gather(limit, now)
		return f.problem
	}
	f.subside(limit, now)
	return f.problem
}

// since counts the targets whose present breach began at this time or later. The caller holds the mutex.
func (f *Fleet) since(from time.Time) int {
	count := 0
	for _, tasks := range f.breached {
		for _, seen := range tasks {
			if !seen.since.Before(from) {
				count++
				break
			}
		}
	}
	return count
}

// inherit goes on with the storm that holds tasks since before this process was elected: a restart must not let them all act at
// once. The caller holds the mutex.
func (f *Fleet) inherit() {
	for _, tasks := range f.breached {
		for _, seen := range tasks {
			if seen.held != "" && (f.problem == nil || seen.since.Before(f.stormFrom)) {
				f.stormFrom = seen.since
				f.problem = &runbook.Problem{Reason: aiopsv1.ReasonStormProtection, Message: seen.held}
			}
		}
	}
}

// gather begins a storm when enough targets breached close together. Those that have been breached for long say nothing about a
// common cause. The caller holds the mutex.
func (f *Fleet) gather(limit int, now time.Time) {
	if len(f.breached) < limit {
		return
	}
	from := now.Add(-f.rule.Within)
	together := f.since(from)
	if together < limit {
		return
	}
	f.stormFrom, f.calmSince = from, time.Time{}
	f.problem = &runbook.Problem{Reason: aiopsv1.ReasonStormProtection, Message: fmt.Sprintf(
		"%d of %d watched targets breached within %ds: probably one cause. Acting is held until fewer than %d of them are breached for %ds",
		together, len(f.targets), int(f.rule.Within.Seconds()), limit, int(f.rule.Calm.Seconds()))}
}

// subside ends a storm when fewer of its breaches, and of those that came later, are left for long enough. The caller holds the mutex.
func (f *Fleet) subside(limit int, now time.Time) {
	switch {
	case f.since(f.stormFrom) >= limit:
		f.calmSince = time.Time{}
	case f.calmSince.IsZero():
		f.calmSince = now
	case now.Sub(f.calmSince) >= f.rule.Calm:
		f.problem = nil
	}
}
