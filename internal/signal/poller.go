package signal

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

const (
	// measurementsAtOnce is how many measurements of one queue run at a time.
	measurementsAtOnce = 4
	// signalExpiry is how long a signal that its task no longer asks about is kept, beside two intervals.
	signalExpiry = time.Hour
)

// question is what a polled source asks. The zero question is answered for one task alone, in the queue of the source.
type question struct {
	// queue names who is asked: whoever is slow delays only his own queue.
	queue string
	// text holds everything that the answer depends on. Equal texts are asked once. Empty: the answer depends on the task.
	text string
	// timeout is how long the answer may take. Zero: 10 seconds.
	timeout time.Duration
}

// Poller measures polled signals off the path of the reconcile, so that one slow endpoint never delays another task. Each
// question is asked once in each slot of its interval, for all tasks that ask it; the slots of different questions are spread over
// the interval. At rest it has no goroutines and no timers: it measures when a task wants to know and its answer is due.
type Poller struct {
	clock  clock.PassiveClock
	notify func(types.NamespacedName)

	mutex   sync.Mutex
	watches map[types.NamespacedName]map[string]*watch // by task, then by name of the signal
	polls   map[pollKey]*poll
	queues  map[string]*queue
	stopped bool
	working sync.WaitGroup
}

// pollKey is a question with its slots.
type pollKey struct {
	queue    string
	text     string
	interval time.Duration
}

// poll is one question and its latest answer. It lives as long as a task asks it.
type poll struct {
	key     pollKey
	timeout time.Duration
	watched int

	latest Reading
	// started is when the latest finished measurement began: the answer is at least as new. Zero: there is none.
	started time.Time

	state pollState
	// source and request are what the next measurement uses.
	source  Source
	request Request
	// waiting are told when the measurement is done.
	waiting map[types.NamespacedName]struct{}
	cancel  context.CancelFunc
}

type pollState int

const (
	pollIdle pollState = iota
	pollQueued
	pollMeasuring
)

// watch is one signal's interest in a poll.
type watch struct {
	poll *poll
	used time.Time
	// rested is when judgement last rested. What was measured before that says nothing about the workload of now.
	rested time.Time
}

// queue holds the polls that wait for one of its workers.
type queue struct {
	workers int
	polls   []*poll
}

// NewPoller returns a poller. notify is called, from any goroutine, when a task that got an outdated answer can have a new
// one; it must not block.
func NewPoller(clock clock.PassiveClock, notify func(types.NamespacedName)) *Poller {
	return &Poller{
		clock:   clock,
		notify:  notify,
		watches: map[types.NamespacedName]map[string]*watch{},
		polls:   map[pollKey]*poll{},
		queues:  map[string]*queue{},
	}
}

// NeedLeaderElection is false: a standby measures too, so that it can take over at once.
func (*Poller) NeedLeaderElection() bool { return false }

// Start waits until ctx ends, then cancels what is being measured and returns when all of it has ended.
func (p *Poller) Start(ctx context.Context) error {
	<-ctx.Done()
	p.mutex.Lock()
	p.stopped = true
	for _, asked := range p.polls {
		if asked.cancel != nil {
			asked.cancel()
		}
	}
	p.mutex.Unlock()
	p.working.Wait()
	return nil
}

// Latest returns, at once, the latest reading of a polled signal, and when to ask again. Where an answer is due (a slot has begun,
// or the latest measurement began before notBefore) a measurement starts in the background, and the task is notified when it is
// done. Reading.At is when the measurement began. Before the first one the reading is unknown with reason NotMeasured; one that
// is older than two intervals and the timeout is unknown with reason Stale. While judgement rests, nothing is asked.
func (p *Poller) Latest(task types.NamespacedName, source Source, request Request, interval time.Duration, notBefore time.Time) (Reading, time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.clock.Now()
	request.Now = now
	if interval <= 0 {
		interval = time.Duration(aiopsv1.DefaultIntervalSeconds) * time.Second
	}
	watching := p.watch(task, request.Signal.Name, now, interval)
	if reading, rests := rest(request); rests {
		watching.rested = now
		return reading, reading.NextChange
	}
	asked := p.join(watching, task, source, request, interval)
	slot := slotStart(asked.key, now)
	next := slot.Add(interval)
	if notBefore.After(now) {
		next, notBefore = earliest(next, notBefore), time.Time{}
	}
	if asked.started.IsZero() || asked.started.After(now) || asked.started.Before(latest(slot, notBefore, watching.rested)) {
		p.ask(asked, task, source, request)
	}
	return asked.reading(request, watching.rested), next
}

// reading is the latest answer, unless it is too old or from before judgement rested.
func (a *poll) reading(request Request, rested time.Time) Reading {
	if a.started.IsZero() || a.started.Before(rested) {
		reading := unknown(request, aiopsv1.ReasonNotMeasured, "The first measurement has not finished yet")
		reading.At = time.Time{}
		return reading
	}
	if request.Now.Sub(a.started) > 2*a.key.interval+a.timeout {
		reading := unknown(request, aiopsv1.ReasonStale, "No measurement has finished for two intervals (%s each)", a.key.interval)
		reading.At = a.started
		return reading
	}
	return a.latest
}

// watch returns the task's watch on a signal, and drops those that it has not asked about for long.
func (p *Poller) watch(task types.NamespacedName, name string, now time.Time, interval time.Duration) *watch {
	signals := p.watches[task]
	if signals == nil {
		signals = map[string]*watch{}
		p.watches[task] = signals
	}
	for other, watching := range signals {
		if other != name && now.Sub(watching.used) > signalExpiry+2*interval {
			p.leave(watching)
			delete(signals, other)
		}
	}
	if signals[name] == nil {
		signals[name] = &watch{}
	}
	signals[name].used = now
	return signals[name]
}

// join makes the watch follow the question that the signal asks now.
func (p *Poller) join(watching *watch, task types.NamespacedName, source Source, request Request, interval time.Duration) *poll {
	asking := question{}
	if asker, ok := source.(interface {
		question(request Request) question
	}); ok {
		asking = asker.question(request)
	}
	key := pollKey{queue: asking.queue, text: asking.text, interval: interval}
	if key.queue == "" {
		key.queue = string(source.Type())
	}
	if key.text == "" {
		key.text = string(source.Type()) + "\x00" + task.String() + "\x00" + request.Signal.Name
	}
	if watching.poll != nil && watching.poll.key == key {
		return watching.poll
	}
	p.leave(watching)
	if p.polls[key] == nil {
		timeout := asking.timeout
		if timeout <= 0 {
			timeout = defaultTimeout
		}
		p.polls[key] = &poll{key: key, timeout: timeout, waiting: map[types.NamespacedName]struct{}{}}
	}
	watching.poll = p.polls[key]
	watching.poll.watched++
	return watching.poll
}

// leave ends a watch. An answer that nobody asks for is forgotten; one that is being measured when it is done.
func (p *Poller) leave(watching *watch) {
	left := watching.poll
	if left == nil {
		return
	}
	watching.poll = nil
	left.watched--
	if left.watched > 0 {
		return
	}
	if left.cancel != nil {
		left.cancel()
	}
	if p.polls[left.key] == left {
		delete(p.polls, left.key)
	}
}

// Forget drops what is kept of a task.
func (p *Poller) Forget(task types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, watching := range p.watches[task] {
		if watching.poll != nil {
			delete(watching.poll.waiting, task)
		}
		p.leave(watching)
	}
	delete(p.watches, task)
}

// ask puts a poll into its queue, unless it is there or being measured, and notes who waits for it.
func (p *Poller) ask(asked *poll, task types.NamespacedName, source Source, request Request) {
	if p.stopped {
		return
	}
	asked.waiting[task] = struct{}{}
	if asked.state == pollMeasuring {
		return
	}
	asked.source, asked.request = source, request // a measurement that still waits looks at the newest pods
	if asked.state == pollQueued {
		return
	}
	asked.state = pollQueued
	line := p.queues[asked.key.queue]
	if line == nil {
		line = &queue{}
		p.queues[asked.key.queue] = line
	}
	line.polls = append(line.polls, asked)
	if line.workers < measurementsAtOnce {
		line.workers++
		p.working.Go(func() { p.work(asked.key.queue, line) })
	}
}

// work measures what is in the queue, and ends when it is empty.
func (p *Poller) work(name string, line *queue) {
	for {
		asked, ctx := p.begin(name, line)
		if asked == nil {
			return
		}
		reading := asked.source.Measure(ctx, asked.request)
		for _, task := range p.finish(asked, reading) {
			p.notify(task)
		}
	}
}

// begin takes the next poll out of the queue, without those that nobody asks for any more.
func (p *Poller) begin(name string, line *queue) (*poll, context.Context) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for len(line.polls) > 0 && !p.stopped {
		asked := line.polls[0]
		line.polls = line.polls[1:]
		if asked.watched == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), asked.timeout)
		asked.state, asked.cancel = pollMeasuring, cancel
		asked.request.Now = p.clock.Now()
		return asked, ctx
	}
	line.workers--
	if line.workers == 0 && p.queues[name] == line {
		delete(p.queues, name)
	}
	return nil, nil
}

// finish keeps the answer and returns who waits for it.
func (p *Poller) finish(asked *poll, reading Reading) []types.NamespacedName {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	asked.cancel()
	asked.cancel, asked.state = nil, pollIdle
	asked.latest, asked.started = reading, asked.request.Now
	asked.latest.At = asked.started
	asked.source, asked.request = nil, Request{} // a whole workload is not kept for every task
	waiting := make([]types.NamespacedName, 0, len(asked.waiting))
	for task := range asked.waiting {
		waiting = append(waiting, task)
	}
	clear(asked.waiting)
	return waiting
}

// slotStart is when the slot began that now lies in. Slots are an interval long; where they lie is a hash of the question,
// the same in every process, so that questions are spread and equal ones fall together.
func slotStart(key pollKey, now time.Time) time.Time {
	hash := sha256.Sum256([]byte(key.queue + "\x00" + key.text))
	share := float64(binary.BigEndian.Uint32(hash[:])) / (1 << 32)
	offset := time.Duration(share * float64(key.interval))
	elapsed := time.Duration(now.UnixNano()-int64(offset)) % key.interval
	if elapsed < 0 { // of a clock that is before 1970, or of an interval that reaches back as far
		elapsed += key.interval
	}
	return now.Add(-elapsed)
}

func latest(moments ...time.Time) time.Time {
	var out time.Time
	for _, moment := range moments {
		if moment.After(out) {
			out = moment
		}
	}
	return out
}
