package metrics

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// tasks holds what the gauges of each AITask show. The series are made when they are asked for: kept ready, those of a quiet task
// would take several times the memory of what they say.
type tasks struct {
	value, phase *prometheus.Desc

	mutex sync.Mutex
	shown map[types.NamespacedName]shown
}

// shown is one task. Without a signal there is no value, without a phase no phase.
type shown struct {
	signal string
	value  float64
	phase  string
}

var _ prometheus.Collector = &tasks{}

func newTasks() *tasks {
	return &tasks{
		value: prometheus.NewDesc(namespace+"_signal_value", "Latest known value of a signal. Absent while unknown.", []string{"namespace", "name", "signal"}, nil),
		phase: prometheus.NewDesc(namespace+"_phase", "1 for the phase that the AITask is in.", []string{"namespace", "name", "phase"}, nil),
		shown: map[types.NamespacedName]shown{},
	}
}

// change sets what is shown of a task.
func (t *tasks) change(task types.NamespacedName, how func(*shown)) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	next := t.shown[task]
	how(&next)
	t.shown[task] = next
}

func (t *tasks) forget(task types.NamespacedName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.shown, task)
}

// Describe names the two families.
func (t *tasks) Describe(out chan<- *prometheus.Desc) {
	out <- t.value
	out <- t.phase
}

// Collect makes the series. Nobody who evaluates a task waits for whoever reads them.
func (t *tasks) Collect(out chan<- prometheus.Metric) {
	t.mutex.Lock()
	all := maps.Clone(t.shown)
	t.mutex.Unlock()
	for task, now := range all {
		if now.signal != "" {
			out <- gauge(t.value, now.value, task, now.signal)
		}
		if now.phase != "" {
			out <- gauge(t.phase, 1, task, now.phase)
		}
	}
}

func gauge(desc *prometheus.Desc, value float64, task types.NamespacedName, label string) prometheus.Metric {
	metric, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, value, task.Namespace, task.Name, label)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return metric
}
