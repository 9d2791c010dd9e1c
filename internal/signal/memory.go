package signal

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// A task that was not measured for this long is forgotten: longer than any window reaches back.
	forgetAfter = 48 * time.Hour
	sweepEvery  = time.Hour
	// Names of signals that a task had before its spec was edited do not pile up.
	maxSignalsPerTask = 16
)

// memory is what a source remembers between two measurements: one Note for each signal of each task. It is never more than
// a help: losing it (a restart, another leader) makes a source see less, and never makes it see what did not happen.
type memory[Note any] struct {
	mutex sync.Mutex
	tasks map[types.UID]*taskNotes[Note]
	swept time.Time
}

type taskNotes[Note any] struct {
	target types.UID
	used   time.Time
	notes  map[string]*Note
}

// with runs measure on the note of the request's task and signal. Another target, even of the same name, has a clean note.
func (m *memory[Note]) with(request Request, measure func(note *Note) Reading) Reading {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.sweep(request.Now)
	task, found := m.tasks[request.Task]
	if !found || task.target != request.Target.UID {
		task = &taskNotes[Note]{target: request.Target.UID}
		m.remember(request.Task, task)
	}
	task.used = request.Now
	note, found := task.notes[request.Signal.Name]
	if !found {
		if len(task.notes) >= maxSignalsPerTask || task.notes == nil {
			task.notes = map[string]*Note{}
		}
		note = new(Note)
		task.notes[request.Signal.Name] = note
	}
	return measure(note)
}

func (m *memory[Note]) remember(uid types.UID, task *taskNotes[Note]) {
	if m.tasks == nil {
		m.tasks = map[types.UID]*taskNotes[Note]{}
	}
	m.tasks[uid] = task
}

// Forget drops what is remembered of a task.
func (m *memory[Note]) Forget(task types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.tasks, task)
}

func (m *memory[Note]) sweep(now time.Time) {
	if now.Sub(m.swept) < sweepEvery {
		return
	}
	m.swept = now
	for uid, task := range m.tasks {
		if now.Sub(task.used) > forgetAfter {
			delete(m.tasks, uid)
		}
	}
}
