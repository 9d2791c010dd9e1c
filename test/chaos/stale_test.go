package chaos_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/operator"
	"github.com/example/aiops-operator/test/harness"
)

// past holds every version of the objects of one kind in a namespace, oldest first.
type past struct {
	mutex    sync.Mutex
	versions map[string][]client.Object
	watch    watch.Interface
}

// remember begins to record, from what there is now.
func remember(ctx context.Context, g Gomega, namespace string, list client.ObjectList) *past {
	watching, err := admin.Watch(ctx, list, client.InNamespace(namespace))
	g.Expect(err).NotTo(HaveOccurred())
	p := &past{versions: map[string][]client.Object{}, watch: watching}
	go func() {
		for event := range watching.ResultChan() {
			if object, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted {
				p.add(object)
			}
		}
	}()
	return p
}

func (p *past) add(object client.Object) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.versions[object.GetName()] = append(p.versions[object.GetName()], object)
}

// ago returns the object as it was that many versions ago, or the oldest that is known. Nil: none is.
func (p *past) ago(name string, versions int) client.Object {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	known := p.versions[name]
	if len(known) == 0 {
		return nil
	}
	object, ok := known[max(0, len(known)-1-versions)].DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	return object
}

// lag makes a process's cache answer with what was true some versions ago.
type lag struct {
	tasks, targets *past

	mutex    sync.Mutex
	versions int
	frozen   *appsv1.Deployment
	served   int
}

// freeze makes the cache answer with this version, until set.
func (l *lag) freeze(deployment *appsv1.Deployment) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.frozen = deployment
}

func (l *lag) set(versions int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.versions, l.frozen = versions, nil
}

// stale returns what to answer with instead of the truth, or nil.
func (l *lag) stale(object client.Object, name string) client.Object {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var from *past
	switch object.(type) {
	case *aiopsv1.AITask:
		from = l.tasks
	case *appsv1.Deployment:
		if l.frozen != nil {
			return l.frozen.DeepCopy()
		}
		from = l.targets
	}
	if from == nil || l.versions == 0 {
		return nil
	}
	old := from.ago(name, l.versions)
	if old != nil {
		l.served++
	}
	return old
}

func (l *lag) servedReads() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.served
}

func (l *lag) wrap(next client.Client) client.Client { return laggingClient{Client: next, lag: l} }

type laggingClient struct {
	client.Client
	lag *lag
}

// Get answers from the past.
func (c laggingClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	switch old := c.lag.stale(into, key.Name).(type) {
	case *aiopsv1.AITask:
		if task, ok := into.(*aiopsv1.AITask); ok {
			*task = *old
		}
		return nil
	case *appsv1.Deployment:
		if deployment, ok := into.(*appsv1.Deployment); ok {
			*deployment = *old
		}
		return nil
	}
	return c.Client.Get(ctx, key, into, options...)
}

// moment is when in an incident something begins.
type moment string

const (
	atBreach    moment = "from the breach on"
	atActing    moment = "while the action is on its way"
	atVerifying moment = "while recovery is proven"
)

func moments() []moment { return []moment{atBreach, atActing, atVerifying} }

// lasts makes a task prove recovery for so long that the moment is not over before it is seen.
func (m moment) lasts(task *aiopsv1.AITask) {
	if m == atVerifying {
		task.Spec.RecoverySeconds = harness.Of[int32](4)
	}
}

// at begins the incident and calls do at the moment.
func (in *incident) at(when moment, process *process, do func()) {
	switch when {
	case atBreach:
		do()
		in.begin()
	case atActing:
		held := process.wire.hold("patch deployments")
		in.begin()
		in.t.Eventually(held.reached).Should(BeClosed())
		do()
		held.release()
	case atVerifying:
		in.begin()
		in.t.Eventually(in.phase).Should(Equal(aiopsv1.PhaseVerifying))
		do()
	}
}

type staleness struct {
	when          moment
	task, target  bool
	versions      int
	actionOnStale aiopsv1.ActionType
}

// String names the variant.
func (s staleness) String() string {
	return fmt.Sprintf("%s: task stale: %t, target stale: %t, by %d versions, %s", s.actionOnStale, s.task, s.target, s.versions, s.when)
}

func stalenesses() []staleness {
	var out []staleness
	for _, when := range moments() {
		for i, versions := range []int{1, 2, 5} {
			action := []aiopsv1.ActionType{aiopsv1.ActionRestart, aiopsv1.ActionScale, aiopsv1.ActionEvict}[i]
			for _, of := range [][2]bool{{true, false}, {false, true}, {true, true}} {
				out = append(out, staleness{when: when, task: of[0], target: of[1], versions: versions, actionOnStale: action})
			}
		}
	}
	return out
}

// faultTime is how long a fault of a process's caches lasts: several of its own retries.
const faultTime = 2500 * time.Millisecond

var _ = Describe("A process whose cache is behind", func() {
	It("does exactly one action", func(ctx context.Context) {
		mark := auditMark()
		incidents := inParallel(stalenesses(), func(t *try, variant staleness) *incident {
			in := prepare(ctx, t, variant.actionOnStale, variant.when.lasts)
			behind := &lag{}
			if variant.task {
				behind.tasks = remember(ctx, t, in.namespace, &aiopsv1.AITaskList{})
				defer behind.tasks.watch.Stop()
			}
			if variant.target {
				behind.targets = remember(ctx, t, in.namespace, &appsv1.DeploymentList{})
				defer behind.targets.watch.Stop()
			}
			process := t.start(in.namespace, func(options *operator.Options) { options.WrapClient = behind.wrap })
			in.settle()
			in.at(variant.when, process, func() { behind.set(variant.versions) })
			over := time.After(faultTime)
			t.Eventually(func() bool {
				in.play()
				return behind.servedReads() > 0 && isOver(over)
			}).Should(BeTrue(), "no read was answered from the past")
			behind.set(0)
			in.touch() // a cache that catches up tells so
			in.ended()
			in.sawOneAction()
			return in
		})
		sawOneActionEach(mark, incidents)
	})

	It("does not undo what it has not seen yet", func(ctx context.Context) {
		alone("a human scales what the operator believes to be smaller", func(t *try) {
			in := prepare(ctx, t, aiopsv1.ActionScale, func(task *aiopsv1.AITask) {
				task.Spec.ForSeconds = harness.Of[int32](5)                                // long enough for a person to scale before the operator does
				task.Spec.Limits = &aiopsv1.Limits{CooldownSeconds: harness.Of[int32](10)} // the time that a person's change is given
			})
			behind := &lag{}
			t.start(in.namespace, func(options *operator.Options) { options.WrapClient = behind.wrap })
			in.settle()
			in.begin()
			t.Eventually(in.phase).Should(Equal(aiopsv1.PhaseBreached))
			breached := in.deployment()
			behind.freeze(breached)
			deployment := breached.DeepCopy()
			deployment.Spec.Replicas = harness.Of[int32](5)
			t.Expect(admin.Patch(ctx, deployment, client.MergeFrom(breached))).To(Succeed())
			t.Eventually(in.results).Should(Equal([]string{"Scale Withdrawn"}))
			t.Expect(*in.deployment().Spec.Replicas).To(BeEquivalentTo(5))
			behind.set(0)
			in.touch()
			t.Eventually(func() int32 { return *in.deployment().Spec.Replicas }).Should(BeEquivalentTo(6))
			t.Expect(in.deployment().Generation).To(Equal(in.generation + 2))
		})
	})
})

func isOver(timer <-chan time.Time) bool {
	select {
	case <-timer:
		return true
	default:
		return false
	}
}
