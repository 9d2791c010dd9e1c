package packaging_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/metrics"
)

const runbooksFolder = "../../docs/runbooks"

// prometheusRule has the fields of the Prometheus operator's kind that are used here.
type prometheusRule struct {
	Spec struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expression  string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// alerts are the rules of config/prometheus by name.
func alerts(t *testing.T) map[string]alert {
	t.Helper()
	var rule struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		prometheusRule
	}
	decodeFile(t, filepath.Join(configFolder, "prometheus", "rules.yaml"), &rule)
	out := map[string]alert{}
	for _, group := range rule.Spec.Groups {
		for _, one := range group.Rules {
			out[one.Alert] = one
		}
	}
	if len(out) == 0 {
		t.Fatal("there is no alert")
	}
	return out
}

// Whoever is woken by an alert is led to a page that says what to do; no page is left over.
func TestEveryAlertHasItsRunbook(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(runbooksFolder, "A*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, page := range pages {
		found = append(found, strings.TrimSuffix(filepath.Base(page), ".md"))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(alerts(t))), found); diff != "" {
		t.Errorf("pages of docs/runbooks (-alerts +pages):\n%s", diff)
	}
	index, err := os.ReadFile(filepath.Join(runbooksFolder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range alerts(t) {
		want := "https://github.com/example/aiops-operator/blob/main/docs/runbooks/" + name + ".md"
		if got := one.Annotations["runbook_url"]; got != want {
			t.Errorf("%s: got the runbook %q, want %q", name, got, want)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, one.Labels["severity"]) || one.Annotations["summary"] == "" || one.Annotations["description"] == "" {
			t.Errorf("%s: has no severity, summary or description", name)
		}
		if !strings.Contains(string(index), "["+name+"]("+name+".md)") {
			t.Errorf("%s: is not in the index of docs/runbooks", name)
		}
		if page, err := os.ReadFile(filepath.Join(runbooksFolder, name+".md")); err == nil && !strings.HasPrefix(string(page), "# "+name+"\n") {
			t.Errorf("%s: the page has another title", name)
		}
	}
}

// registeredSeries are the names of all series that the operator exports, with what Prometheus makes of a histogram.
func registeredSeries(t *testing.T) map[string]bool {
	t.Helper()
	registry := prometheus.NewRegistry()
	collectors, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	task := types.NamespacedName{Namespace: "shop", Name: "web"}
	collectors.Evaluated(task, "default", aiopsv1.VerdictHealthy, 0, true)
	collectors.Phase(task, aiopsv1.PhaseWatching)
	collectors.Finished(string(aiopsv1.ActionRestart), aiopsv1.ResultRecovered)
	collectors.Refused(aiopsv1.ReasonCooldown)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, family := range families {
		if family.GetMetric()[0].GetHistogram() == nil {
			out[family.GetName()] = true
			continue
		}
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			out[family.GetName()+suffix] = true
		}
	}
	return out
}

var (
	selectorPattern = regexp.MustCompile(`\{[^}]*\}`)
	matcherPattern  = regexp.MustCompile(`(\w+)(?:=~|=)"([^"]*)"`)
	namePattern     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
)

// promQL are the words of the alerts' expressions that name no series.
var promQL = []string{"absent", "and", "by", "increase", "max", "name", "namespace", "offset", "or", "rate", "sum", "unless"}

func TestAlertsAskForWhatIsExported(t *testing.T) {
	series := registeredSeries(t)
	known := map[string][]string{
		"phase":   {aiopsv1.PhaseExhausted, aiopsv1.PhaseBlocked, aiopsv1.PhaseFailed, aiopsv1.PhasePending},
		"verdict": {aiopsv1.VerdictBreached, aiopsv1.VerdictHealthy, aiopsv1.VerdictUnknown},
		"result":  {aiopsv1.ResultFailed, aiopsv1.ResultRecovered},
		"reason":  {aiopsv1.ReasonStormProtection},
	}
	for name, one := range alerts(t) {
		asked := 0
		expression := regexp.MustCompile(`\[\w+\]|\b\d+[smhd]\b`).ReplaceAllString(one.Expression, "")
		for _, word := range namePattern.FindAllString(selectorPattern.ReplaceAllString(expression, ""), -1) {
			if slices.Contains(promQL, word) {
				continue
			}
			asked++
			if !series[word] {
				t.Errorf("%s: asks for %s, which the operator does not export", name, word)
			}
		}
		if asked == 0 {
			t.Errorf("%s: asks for nothing", name)
		}
		for _, matcher := range matcherPattern.FindAllStringSubmatch(one.Expression, -1) {
			for _, value := range strings.Split(matcher[2], "|") {
				if !slices.Contains(known[matcher[1]], value) {
					t.Errorf("%s: asks for %s=%q, which the operator does not say", name, matcher[1], value)
				}
			}
		}
	}
}
