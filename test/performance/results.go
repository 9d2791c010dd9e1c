package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result is one number.
type result struct {
	Section string  `json:"section"`
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	// Goal is what the number should be at most. Absent: there is no goal.
	Goal *float64 `json:"goal,omitempty"`
}

// results is everything that a run measured, and where.
type results struct {
	Command  string            `json:"command"`
	Cores    int               `json:"cores"`
	Load     string            `json:"loadAverage,omitempty"`
	Versions map[string]string `json:"versions"`
	Numbers  []result          `json:"numbers"`
}

func newResults() *results {
	out := &results{
		Command: "go run ./test/performance " + strings.Join(os.Args[1:], " "), Cores: runtime.NumCPU(), Load: loadAverage(),
		Versions: map[string]string{"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH},
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "k8s.io/client-go" || module.Path == "sigs.k8s.io/controller-runtime" {
				out.Versions[module.Path] = module.Version
			}
		}
	}
	return out
}

// loadAverage says how busy others kept the machine right before.
func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(content))[:3], " ")
}

func (r *results) add(section, name string, value float64, unit string) {
	r.Numbers = append(r.Numbers, result{Section: section, Name: name, Value: value, Unit: unit})
}

func (r *results) addWithGoal(section, name string, value float64, unit string, goal float64) {
	r.Numbers = append(r.Numbers, result{Section: section, Name: name, Value: value, Unit: unit, Goal: &goal})
}

func (r *results) print(out io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	fmt.Fprintf(out, "\n$ %s\n%d cores, load average before %s, %s %s, client-go %s, controller-runtime %s\n\n", r.Command, r.Cores, r.Load,
		r.Versions["go"], r.Versions["platform"], r.Versions["k8s.io/client-go"], r.Versions["sigs.k8s.io/controller-runtime"])
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, number := range r.Numbers {
		goal := ""
		if number.Goal != nil {
			goal = fmt.Sprintf("goal <= %g", *number.Goal)
			if number.Value > *number.Goal {
				goal += "  MISSED"
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", number.Section, number.Name, format(number.Value), number.Unit, goal)
	}
	return table.Flush()
}

func format(value float64) string {
	if value == float64(int64(value)) {
		return fmt.Sprintf("%d", int64(value))
	}
	return fmt.Sprintf("%.2f", value)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// samples are durations of the same thing.
type samples []time.Duration

// percentile returns the smallest sample that so many percent of the samples do not exceed.
func (s samples) percentile(percent int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// addSamples adds the percentiles of a duration.
func (r *results) addSamples(section, name string, s samples) {
	for _, percent := range []int{50, 90, 99} {
		r.add(section, fmt.Sprintf("%s, p%d", name, percent), milliseconds(s.percentile(percent)), "ms")
	}
}
