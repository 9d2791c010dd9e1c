package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// series returns how many series each family has.
func series(t *testing.T, registry *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, family := range families {
		out[family.GetName()] = len(family.GetMetric())
	}
	return out
}

func task(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func TestSeriesVanishWithTheObject(t *testing.T) {
	registry := prometheus.NewRegistry()
	collectors, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		collectors.Evaluated(task(name), "default", "Healthy", 0, true)
		collectors.Phase(task(name), "Pending")
		collectors.Phase(task(name), "Watching")
	}
	collectors.Finished("Restart", "Recovered")
	collectors.Refused("Cooldown")
	collectors.Recovered(time.Minute)

	want := map[string]int{"aitask_evaluations_total": 1, "aitask_actions_total": 1, "aitask_refusals_total": 1,
		"aitask_recovery_seconds": 1, "aitask_signal_value": 2, "aitask_phase": 2}
	if diff := cmp.Diff(want, series(t, registry)); diff != "" {
		t.Errorf("with two tasks (-want +got):\n%s", diff)
	}

	collectors.Forget(task("a"))
	want["aitask_signal_value"], want["aitask_phase"] = 1, 1
	if diff := cmp.Diff(want, series(t, registry)); diff != "" {
		t.Errorf("after one was deleted (-want +got):\n%s", diff)
	}

	collectors.Evaluated(task("b"), "default", "Unknown", 0, false)
	delete(want, "aitask_signal_value")
	want["aitask_evaluations_total"] = 2
	if diff := cmp.Diff(want, series(t, registry)); diff != "" {
		t.Errorf("while the value is unknown (-want +got):\n%s", diff)
	}
}
