// Package metrics holds the operator's own Prometheus collectors. Counters add up what was decided and done; gauges speak of one
// AITask and go away with it. Nothing in a label is free text: names come from the API, reasons from closed lists.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

const namespace = "aitask"

// Collectors are all series of the operator. Safe for concurrent use.
type Collectors struct {
	evaluations  *prometheus.CounterVec
	actions      *prometheus.CounterVec
	refusals     *prometheus.CounterVec
	recoveryTime prometheus.Histogram
	tasks        *tasks
}

// New creates the collectors and registers them. It fails when a registry already holds one of these names.
func New(registry prometheus.Registerer) (*Collectors, error) {
	c := &Collectors{
		tasks: newTasks(),
		evaluations: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "evaluations_total",
			Help: "Judgements of a signal, by verdict."}, []string{"verdict"}),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "actions_total",
			Help: "Finished orders, by action and result."}, []string{"action", "result"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "refusals_total",
			Help: "Times that a due step was not run, by reason; counted when the reason is first given."}, []string{"reason"}),
		recoveryTime: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "recovery_seconds",
			Help: "Time from the start of an incident to proven recovery.", Buckets: []float64{1, 5, 15, 60, 120, 300, 600, 1800, 3600, 14400}}),
	}
	for _, collector := range []prometheus.Collector{c.evaluations, c.actions, c.refusals, c.recoveryTime, c.tasks} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Evaluated counts one judgement and shows its value; known false takes the value away.
func (c *Collectors) Evaluated(task types.NamespacedName, signal, verdict string, value float64, known bool) {
	c.evaluations.WithLabelValues(verdict).Inc()
	c.tasks.change(task, func(now *shown) {
		now.signal, now.value = signal, value
		if !known {
			now.signal = ""
		}
	})
}

// Unmeasured takes away the value of a task whose signal is not measured at all.
func (c *Collectors) Unmeasured(task types.NamespacedName) {
	c.tasks.change(task, func(now *shown) { now.signal = "" })
}

// Phase shows the phase of a task, and no other.
func (c *Collectors) Phase(task types.NamespacedName, phase string) {
	c.tasks.change(task, func(now *shown) { now.phase = phase })
}

// Forget takes away every series of a task.
func (c *Collectors) Forget(task types.NamespacedName) {
	c.tasks.forget(task)
}

// Finished counts one order that came to its end.
func (c *Collectors) Finished(action, result string) {
	c.actions.WithLabelValues(action, result).Inc()
}

// Refused counts one reason that was given for not acting.
func (c *Collectors) Refused(reason string) {
	c.refusals.WithLabelValues(reason).Inc()
}

// Recovered observes the time that one incident took.
func (c *Collectors) Recovered(took time.Duration) {
	c.recoveryTime.Observe(took.Seconds())
}
