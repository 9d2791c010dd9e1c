package config

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"
)

// What parses is within its bounds, and written down again it says the same. What does not parse is an error and never a panic.
func FuzzConfiguration(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte("prometheusEndpoints:\n- name: a\n  url: http://user:password@host?x=y\n"))
	f.Add([]byte("a: &a [*a]\nb: {<<: *a}\n"))
	f.Add([]byte("storm: {breachedPercent: !!int '5', calmSeconds: 0x10}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := Parse("fuzz.yaml", data)
		if err != nil {
			if len(err.Error()) > 32<<10 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		checkBounds(t, parsed)
		written, err := yaml.Marshal(parsed)
		if err != nil {
			t.Fatalf("write down what was parsed: %v", err)
		}
		again, err := Parse("again.yaml", written)
		if err != nil {
			t.Fatalf("parse what was written down: %v\n%s", err, written)
		}
		if difference := cmp.Diff(parsed, again, cmpopts.EquateEmpty()); difference != "" {
			t.Fatalf("not the same after writing it down (-before +after):\n%s", difference)
		}
	})
}

func checkBounds(t *testing.T, parsed Config) {
	t.Helper()
	names := map[string]bool{}
	for _, endpoint := range parsed.PrometheusEndpoints {
		checkAddress(t, endpoint.URL)
		if names[endpoint.Name] || endpoint.Name == "" || endpoint.TimeoutSeconds < 1 || endpoint.TimeoutSeconds > 60 {
			t.Fatalf("endpoint %+v", endpoint)
		}
		names[endpoint.Name] = true
	}
	for _, receiver := range parsed.Receivers {
		checkAddress(t, receiver.URL)
		if receiver.Name == "" || receiver.TimeoutSeconds < 1 || receiver.TimeoutSeconds > 60 || receiver.Headers["Authorization"] != "" {
			t.Fatalf("receiver %+v", receiver)
		}
	}
	if storm := parsed.Storm; storm.BreachedPercent < 1 || storm.BreachedPercent > 100 || storm.MinimumTargets < 1 ||
		storm.WithinSeconds < 1 || storm.CalmSeconds < 0 {
		t.Fatalf("storm %+v", storm)
	}
}

func checkAddress(t *testing.T, address string) {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil || parsed.User != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		t.Fatalf("address %q: %v", address, err)
	}
}
