package metrics

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// gauges returns what the gauges of single tasks show, as "name label=value ... = number".
func gauges(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetGauge() == nil {
				continue
			}
			text := family.GetName()
			for _, label := range metric.GetLabel() {
				text += " " + label.GetName() + "=" + label.GetValue()
			}
			out = append(out, fmt.Sprintf("%s = %g", text, metric.GetGauge().GetValue()))
		}
	}
	slices.Sort(out)
	return out
}

func TestGaugesSayWhatIsTrueNow(t *testing.T) {
	registry := prometheus.NewRegistry()
	collectors, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	collectors.Evaluated(task("a"), "queue", "Healthy", 7, true)
	collectors.Phase(task("a"), "Watching")
	collectors.Evaluated(task("a"), "crashes", "Breached", 1, true)
	collectors.Phase(task("a"), "Acting")
	want := []string{
		"aitask_phase name=a namespace=shop phase=Acting = 1",
		"aitask_signal_value name=a namespace=shop signal=crashes = 1",
	}
	if diff := cmp.Diff(want, gauges(t, registry)); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}
