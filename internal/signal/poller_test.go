package signal

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const interval = minute

// measurement is one call of gated.Measure that waits for its answer.
type measurement struct {
	request Request
	ctx     context.Context
	answer  chan Reading
}

// gated is a polled source whose measurements last until the test answers them. Signals whose query is the same ask the same, of
// the endpoint that they name.
type gated struct {
	begun chan measurement
}

func (*gated) Type() aiopsv1.SignalType { return aiopsv1.SignalPrometheus }

func (*gated) Polled() bool { return true }

func (*gated) question(request Request) question {
	if request.Signal.Prometheus == nil {
		return question{}
	}
	return question{queue: *request.Signal.Prometheus.Endpoint, text: request.Signal.Prometheus.Query, timeout: 5 * second}
}

func (g *gated) Measure(ctx context.Context, request Request) Reading {
	waiting := measurement{request: request, ctx: ctx, answer: make(chan Reading, 1)}
	g.begun <- waiting
	select {
	case reading := <-waiting.answer:
		return reading
	case <-ctx.Done():
		return no(aiopsv1.ReasonTimeout, "cancelled")
	}
}

// bench is a poller on a workbench.
type bench struct {
	*testing.T
	clock    *clocktesting.FakePassiveClock
	poller   *Poller
	source   *gated
	notified chan types.NamespacedName
	stop     context.CancelFunc
	stopped  chan struct{}
}

func newBench(t *testing.T) *bench {
	made := &bench{
		T:        t,
		clock:    clocktesting.NewFakePassiveClock(at(0)),
		source:   &gated{begun: make(chan measurement, 1000)},
		notified: make(chan types.NamespacedName, 1000),
		stopped:  make(chan struct{}),
	}
	made.poller = NewPoller(made.clock, func(task types.NamespacedName) { made.notified <- task })
	ctx, cancel := context.WithCancel(context.Background())
	made.stop = cancel
	go func() {
		defer close(made.stopped)
		_ = made.poller.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-made.stopped
	})
	return made
}

func task(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// of asks an endpoint; without a query the question is the task's own.
func of(endpoint, query string) Request {
	made := request(workload(), aiopsv1.Signal{Type: aiopsv1.SignalPrometheus})
	if query != "" {
		made.Signal.Prometheus = &aiopsv1.PrometheusSignal{Endpoint: &endpoint, Query: query}
	}
	return made
}

func (b *bench) latest(name string, asked Request) (Reading, time.Time) {
	return b.latestNotBefore(name, asked, time.Time{})
}

func (b *bench) latestNotBefore(name string, asked Request, notBefore time.Time) (Reading, time.Time) {
	return b.poller.Latest(task(name), b.source, asked, interval, notBefore)
}

// begins waits for a measurement.
func (b *bench) begins() measurement {
	b.Helper()
	select {
	case begun := <-b.source.begun:
		return begun
	case <-b.Context().Done():
		b.Fatal("no measurement began")
		return measurement{}
	}
}

// beginsNone fails if a measurement began. Whatever the poller was going to begin it has, since a queue takes its work at once.
func (b *bench) beginsNone() {
	b.Helper()
	b.poller.mutex.Lock()
	defer b.poller.mutex.Unlock()
	for name, line := range b.poller.queues {
		if len(line.polls) > 0 && line.workers < measurementsAtOnce {
			b.Fatalf("queue %s has work and free workers", name)
		}
	}
	select {
	case begun := <-b.source.begun:
		b.Fatalf("a measurement began: %+v", begun.request)
	default:
	}
}

// told waits for the notification of these tasks, in any order.
func (b *bench) told(names ...string) {
	b.Helper()
	want, got := map[string]int{}, map[string]int{}
	for _, name := range names {
		want[name]++
	}
	for range names {
		select {
		case told := <-b.notified:
			got[told.Name]++
		case <-b.Context().Done():
			b.Fatalf("told %v, want %v", got, want)
		}
	}
	if difference := cmp.Diff(want, got); difference != "" {
		b.Errorf("notified tasks (-want +got):\n%s", difference)
	}
}

// measured answers the measurement that begins next, and waits until the one task that asked was told.
func (b *bench) measured(name string, number float64) {
	b.Helper()
	b.begins().answer <- value(number)
	b.told(name)
}

// now sets the clock, and returns the reading of a value that was measured then.
func (b *bench) now(offset time.Duration) {
	b.clock.SetTime(at(offset))
}

func (b *bench) reads(name string, asked Request, want Reading) {
	b.Helper()
	got, _ := b.latest(name, asked)
	expect(b.T, want, got)
}

func measuredAt(number float64, offset time.Duration) Reading {
	return Reading{Known: true, Value: number, At: at(offset)}
}

func notMeasured() Reading {
	return Reading{Reason: aiopsv1.ReasonNotMeasured, Message: "The first measurement has not finished yet"}
}

func TestLatestAnswersAtOnceAndMeasuresBehind(t *testing.T) {
	b := newBench(t)
	asked := of("a", "up")
	got, next := b.latest("web", asked)
	expect(t, notMeasured(), got)
	if !next.After(at(0)) || next.After(at(interval)) {
		t.Errorf("next slot at %s", next)
	}
	b.now(second)
	begun := b.begins()
	b.now(3 * second)
	begun.answer <- value(7)
	b.told("web")
	reading, _ := b.latest("web", asked)
	if !reading.Known || reading.Value != 7 || !reading.At.Equal(begun.request.Now) {
		t.Errorf("got %+v, want the value of the measurement that began at %s", reading, begun.request.Now)
	}
	b.beginsNone()
}

func TestLatestMeasuresOnceInEachSlot(t *testing.T) {
	b := newBench(t)
	asked := of("a", "up")
	_, slot := b.latest("web", asked)
	b.measured("web", 1)
	for _, inside := range []time.Time{at(0), at(second), slot.Add(-1)} {
		b.clock.SetTime(inside)
		if _, next := b.latest("web", asked); !next.Equal(slot) {
			t.Fatalf("asked at %s the next slot is %s, want %s", inside, next, slot)
		}
		b.beginsNone()
	}
	for range 3 {
		b.clock.SetTime(slot)
		_, next := b.latest("web", asked)
		if !next.Equal(slot.Add(interval)) {
			t.Fatalf("the slot after %s is %s", slot, next)
		}
		b.measured("web", 2)
		slot = next
	}
}

func TestLatestNeverMeasuresTwiceForOneTask(t *testing.T) {
	for name, asked := range map[string]Request{"shared": of("a", "up"), "of its own": of("a", "")} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for i := range 10 {
				b.now(time.Duration(i) * interval)
				b.latest("web", asked)
			}
			begun := b.begins()
			b.latestNotBefore("web", asked, b.clock.Now())
			b.beginsNone()
			begun.answer <- value(1)
			b.told("web")
		})
	}
}

func TestLatestAsksAfreshWhenTheAnswerMustBeNewer(t *testing.T) {
	b := newBench(t)
	asked := of("a", "up")
	b.latest("web", asked)
	b.measured("web", 1)
	b.now(time.Millisecond)
	got, _ := b.latestNotBefore("web", asked, at(time.Millisecond))
	expect(t, measuredAt(1, 0), got)
	begun := b.begins()
	b.now(2 * time.Millisecond)
	b.latestNotBefore("web", asked, at(2*time.Millisecond)) // what is under way began too early for this
	b.beginsNone()
	begun.answer <- value(2)
	b.told("web")
	got, _ = b.latestNotBefore("web", asked, at(2*time.Millisecond))
	expect(t, measuredAt(2, time.Millisecond), got)
	b.measured("web", 3)
	got, _ = b.latestNotBefore("web", asked, at(2*time.Millisecond))
	expect(t, measuredAt(3, 2*time.Millisecond), got)
	b.beginsNone()
}

func TestLatestDoesNotRunAfterATimeThatLiesAhead(t *testing.T) {
	b := newBench(t)
	asked := of("a", "up")
	_, slot := b.latest("web", asked)
	b.measured("web", 1)
	if _, next := b.latestNotBefore("web", asked, at(second)); !next.Equal(at(second)) || !slot.After(next) {
		t.Errorf("ask again at %s, want %s", next, at(second))
	}
	b.beginsNone()
}

func TestEqualQuestionsAreAskedOnceForAllTasks(t *testing.T) {
	b := newBench(t)
	asked := of("a", "up")
	var names []string
	for i := range 100 {
		name := fmt.Sprintf("task-%d", i)
		names = append(names, name)
		b.latest(name, asked)
	}
	begun := b.begins()
	b.beginsNone()
	begun.answer <- value(4)
	b.told(names...)
	for _, name := range names {
		b.reads(name, asked, measuredAt(4, 0))
	}
	b.reads("late", asked, measuredAt(4, 0))
	b.beginsNone()

	t.Run("but not with another interval, endpoint or query", func(t *testing.T) {
		b.poller.Latest(task("x"), b.source, asked, 2*interval, time.Time{})
		b.latest("y", of("b", "up"))
		b.latest("z", of("a", "down"))
		for range 3 {
			b.begins().answer <- value(1)
		}
		b.told("x", "y", "z")
	})
	t.Run("and a question of the task's own is", func(t *testing.T) {
		b.latest("x", of("", ""))
		b.latest("y", of("", ""))
		for range 2 {
			b.begins().answer <- value(1)
		}
		b.told("x", "y")
	})
}

func TestASlowEndpointDelaysOnlyItsOwnQueue(t *testing.T) {
	b := newBench(t)
	var hanging []measurement
	for i := range measurementsAtOnce + 2 {
		b.latest(fmt.Sprintf("slow-%d", i), of("slow", fmt.Sprint(i)))
	}
	for range measurementsAtOnce {
		hanging = append(hanging, b.begins())
	}
	b.beginsNone()
	b.latest("quick", of("quick", "up"))
	b.measured("quick", 1)
	b.reads("quick", of("quick", "up"), measuredAt(1, 0))

	b.now(second)
	hanging[0].answer <- value(1)
	next := b.begins()
	if !next.request.Now.Equal(at(second)) {
		t.Errorf("the next in the queue began at %s", next.request.Now)
	}
	b.beginsNone()
	for _, begun := range append(hanging[1:], next) {
		begun.answer <- value(1)
	}
	b.begins().answer <- value(1)
}

func TestAMeasurementThatWaitsLooksAtTheNewestPods(t *testing.T) {
	b := newBench(t)
	var hanging []measurement
	for i := range measurementsAtOnce {
		b.latest(fmt.Sprintf("slow-%d", i), of("a", fmt.Sprint(i)))
		hanging = append(hanging, b.begins())
	}
	old, fresh := of("a", "up"), of("a", "up")
	fresh.Target.Replicas = 99
	b.latest("web", old)
	b.latest("web", fresh)
	hanging[0].answer <- value(1)
	begun := b.begins()
	if begun.request.Target.Replicas != 99 {
		t.Error("an older state of the workload was measured")
	}
	for _, waiting := range append(hanging[1:], begun) {
		waiting.answer <- value(1)
	}
}

func TestAnOldReadingIsStale(t *testing.T) {
	b := newBench(t)
	asked := of("a", "up")
	b.latest("web", asked)
	b.measured("web", 1)
	limit := 2*interval + 5*second
	b.now(limit)
	b.reads("web", asked, measuredAt(1, 0))
	begun := b.begins()
	b.now(limit + 1)
	b.reads("web", asked, Reading{Reason: aiopsv1.ReasonStale, Message: "No measurement has finished for two intervals (1m0s each)", At: at(0)})
	begun.answer <- value(2)
	b.told("web")
	b.reads("web", asked, measuredAt(2, limit))
}

func TestWhileJudgementRestsNothingIsAsked(t *testing.T) {
	b := newBench(t)
	asked, moving := of("a", "up"), of("a", "up")
	rollingOut(&moving.Target)
	b.latest("web", asked)
	b.measured("web", 1)

	b.now(10 * interval)
	got, next := b.latest("web", moving)
	want := resting().until(at(9 * minute))
	want.At = at(10 * interval)
	expect(t, want, got)
	if !next.Equal(at(9 * minute)) {
		t.Errorf("ask again at %s, want the deadline of the rollout", next)
	}
	b.beginsNone()

	b.now(10*interval + 1)
	b.reads("web", asked, notMeasured()) // what was measured before the rollout says nothing about now
	b.measured("web", 2)
	b.reads("web", asked, measuredAt(2, 10*interval+1))
}

func TestAnAnswerFromDuringARolloutIsNotUsedAfterIt(t *testing.T) {
	b := newBench(t)
	asked, moving := of("a", "up"), of("a", "up")
	rollingOut(&moving.Target)
	b.latest("another", asked)
	b.measured("another", 1)
	b.now(1)
	b.latest("web", moving)
	b.now(2)
	b.reads("web", asked, notMeasured())
	b.measured("web", 2)
	b.reads("web", asked, measuredAt(2, 2))
}

func TestForgetLeavesNothingBehind(t *testing.T) {
	b := newBench(t)
	asked := of("a", "up")
	b.latest("web", asked)
	b.latest("other", asked)
	begun := b.begins()
	b.poller.Forget(task("web"))
	b.poller.Forget(task("never seen"))
	begun.answer <- value(1)
	b.told("other")
	b.now(interval)
	b.latest("other", asked)
	begun = b.begins()
	b.poller.Forget(task("other"))
	select {
	case <-begun.ctx.Done():
	case <-t.Context().Done():
		t.Fatal("a measurement that nobody waits for goes on")
	}
	b.poller.working.Wait()
	if len(b.poller.watches)+len(b.poller.polls)+len(b.poller.queues)+len(b.notified) != 0 {
		t.Errorf("left: %d watches, %d polls, %d queues, %d notifications",
			len(b.poller.watches), len(b.poller.polls), len(b.poller.queues), len(b.notified))
	}
}

func TestAQueuedMeasurementThatNobodyWaitsForIsNotMade(t *testing.T) {
	b := newBench(t)
	var hanging []measurement
	for i := range measurementsAtOnce {
		b.latest(fmt.Sprintf("slow-%d", i), of("a", fmt.Sprint(i)))
		hanging = append(hanging, b.begins())
	}
	b.latest("web", of("a", "up"))
	b.poller.Forget(task("web"))
	for _, begun := range hanging {
		begun.answer <- value(1)
	}
	b.poller.working.Wait()
	b.beginsNone()
}

func TestAnEditedQuestionReplacesTheOldOne(t *testing.T) {
	b := newBench(t)
	b.latest("web", of("a", "up"))
	b.measured("web", 1)
	b.reads("web", of("a", "down"), notMeasured())
	b.measured("web", 2)
	b.reads("web", of("a", "down"), measuredAt(2, 0))
	if len(b.poller.polls) != 1 {
		t.Errorf("%d questions are kept", len(b.poller.polls))
	}
}

func TestASignalThatIsNoLongerAskedAboutIsDropped(t *testing.T) {
	b := newBench(t)
	renamed := of("a", "down")
	renamed.Signal.Name = "renamed"
	b.latest("web", of("a", "up"))
	b.measured("web", 1)
	b.now(signalExpiry + 2*interval + 1)
	b.latest("web", renamed)
	b.measured("web", 1)
	if len(b.poller.polls) != 1 || len(b.poller.watches[task("web")]) != 1 {
		t.Errorf("%d questions and %d watches are kept", len(b.poller.polls), len(b.poller.watches[task("web")]))
	}
}

func TestThePollerDrainsWhenItStops(t *testing.T) {
	b := newBench(t)
	b.latest("web", of("a", "up"))
	begun := b.begins()
	b.stop()
	<-b.stopped
	if begun.ctx.Err() == nil {
		t.Error("a measurement goes on")
	}
	b.now(10 * interval)
	b.latest("web", of("a", "up"))
	b.beginsNone()
	if NewPoller(b.clock, nil).NeedLeaderElection() {
		t.Error("a standby would not measure")
	}
}

func TestThePollerHasNoGoroutinesAtRest(t *testing.T) {
	b := newBench(t)
	for i := range 50 {
		b.latest(fmt.Sprint(i), of("a", fmt.Sprint(i)))
	}
	for range 50 {
		b.begins().answer <- value(1)
	}
	b.poller.working.Wait()
	if len(b.poller.queues) != 0 {
		t.Error("a queue without work is kept")
	}
}

func TestThePollerIsSafeForConcurrentUse(t *testing.T) {
	b := newBench(t)
	var tasks sync.WaitGroup
	done := make(chan struct{})
	go func() {
		for {
			select {
			case begun := <-b.source.begun:
				begun.answer <- value(1)
			case <-done:
				return
			}
		}
	}()
	for i := range 20 {
		tasks.Go(func() {
			name := fmt.Sprint(i)
			for round := range 50 {
				b.now(time.Duration(round) * second)
				b.latestNotBefore(name, of(fmt.Sprint(i%3), fmt.Sprint(i%5)), at(time.Duration(round)*second))
				if round%10 == 9 {
					b.poller.Forget(task(name))
				}
			}
		})
	}
	tasks.Wait()
	b.poller.working.Wait()
	close(done)
}

func TestSlotsAreSpreadStableAndAsLongAsTheInterval(t *testing.T) {
	if start := slotStart(pollKey{interval: interval}, time.Unix(-90, 0)); start.After(time.Unix(-90, 0)) {
		t.Errorf("a slot that began at %s is yet to begin", start)
	}
	quarters := [4]int{}
	for i := range 1000 {
		key := pollKey{queue: "a", text: fmt.Sprint(i), interval: interval}
		start := slotStart(key, at(0))
		if start.After(at(0)) || !start.Add(interval).After(at(0)) {
			t.Fatalf("the slot of %s begins at %s", at(0), start)
		}
		for _, inside := range []time.Time{start, start.Add(interval - 1)} {
			if again := slotStart(key, inside); !again.Equal(start) {
				t.Fatalf("the slot of %s begins at %s, and that of %s at %s", at(0), start, inside, again)
			}
		}
		if next := slotStart(key, start.Add(interval)); !next.Equal(start.Add(interval)) {
			t.Fatalf("the slot after %s begins at %s", start, next)
		}
		quarters[int(math.Floor(4*float64(at(0).Sub(start))/float64(interval)))]++
	}
	for i, count := range quarters {
		if count < 150 {
			t.Errorf("quarter %d of the interval has %d of 1000 slots", i, count)
		}
	}
}
