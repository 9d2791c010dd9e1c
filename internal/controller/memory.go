package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/action"
	"github.com/example/aiops-operator/internal/runbook"
)

// memory is what this process keeps between passes. All of it may be lost at any time: durations then count anew, and orders are
// treated as if they might have run. Nothing that safety rests on is only here.
type memory struct {
	mutex sync.Mutex
	tasks map[types.NamespacedName]*taskMemory
}

type taskMemory struct {
	uid         types.UID
	planHash    string
	revision    string
	observation runbook.Observation
	// writtenFrom is the resource version that this process's last write replaced: a cache that still shows it is behind.
	writtenFrom string
	// untried is the order that this process wrote and has not handed to its action.
	untried string
	// outcome is what came of an order whose result is not yet written.
	outcome *knownOutcome
}

type knownOutcome struct {
	orderID string
	outcome action.Outcome
}

func keyOf(task *aiopsv1.AITask) types.NamespacedName {
	return types.NamespacedName{Namespace: task.Namespace, Name: task.Name}
}

// of returns the memory of a task. The caller holds the mutex.
func (m *memory) of(key types.NamespacedName) *taskMemory {
	if m.tasks == nil {
		m.tasks = map[types.NamespacedName]*taskMemory{}
	}
	task := m.tasks[key]
	if task == nil {
		task = &taskMemory{}
		m.tasks[key] = task
	}
	return task
}

// replaced says whether the name belonged to another object before.
func (m *memory) replaced(key types.NamespacedName, uid types.UID) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	task := m.tasks[key]
	return task != nil && task.uid != "" && task.uid != uid
}

func (m *memory) forget(key types.NamespacedName) types.UID {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	task := m.tasks[key]
	delete(m.tasks, key)
	if task == nil {
		return ""
	}
	return task.uid
}

// observation returns what was seen of a plan's signal. Another plan was not seen yet, and another revision has yet to recover.
func (m *memory) observation(key types.NamespacedName, planHash, revision string) runbook.Observation {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	task := m.of(key)
	if task.planHash != planHash {
		return runbook.Observation{}
	}
	seen := task.observation
	if task.revision != revision {
		seen.RecoveringSince = time.Time{}
	}
	return seen
}

func (m *memory) observe(key types.NamespacedName, uid types.UID, planHash, revision string, observation runbook.Observation) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	task := m.of(key)
	task.uid, task.planHash, task.revision, task.observation = uid, planHash, revision, observation
}

// unobserve breaks every duration: nothing was looked at.
func (m *memory) unobserve(key types.NamespacedName, uid types.UID) {
	m.observe(key, uid, "", "", runbook.Observation{})
}

// wrote notes that a status was written: what came of an order is on the object now, and its ID may come again.
func (m *memory) wrote(key types.NamespacedName, from string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	task := m.of(key)
	task.writtenFrom, task.outcome = from, nil
}

func (m *memory) outdated(key types.NamespacedName, resourceVersion string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	task := m.tasks[key]
	return task != nil && task.writtenFrom != "" && task.writtenFrom == resourceVersion
}

func (m *memory) setUntried(key types.NamespacedName, orderID string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.of(key).untried = orderID
}

func (m *memory) isUntried(key types.NamespacedName, orderID string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.of(key).untried == orderID
}

func (m *memory) setOutcome(key types.NamespacedName, orderID string, outcome action.Outcome) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.of(key).outcome = &knownOutcome{orderID, outcome}
}

func (m *memory) outcomeOf(key types.NamespacedName, orderID string) *action.Outcome {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.of(key).outcome
	if known == nil || known.orderID != orderID {
		return nil
	}
	return &known.outcome
}
