package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestAnotherConfigurationIsNoticedUnlessItHasMistakes(t *testing.T) {
	const before = "storm: {calmSeconds: 7}\n"
	for name, test := range map[string]struct {
		then   string // empty: the file goes away
		want   bool
		logged string
	}{
		"the same":              {then: before},
		"only another comment":  {then: "# seven\n" + before},
		"another value":         {then: "storm: {calmSeconds: 8}\n", want: true},
		"a mistake":             {then: "strom: {}\n", logged: "unknown key"},
		"the ConfigMap is gone": {want: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := written(t, before)
			var lines []string
			w := watchOf(t, path, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if test.then != "" {
				write(t, path, test.then)
			}
			for range 2 { // what is said is said once
				if got := w.changed(); got != test.want {
					t.Errorf("changed: %t, want %t", got, test.want)
				}
			}
			if all := strings.Join(lines, ""); (test.logged == "") != (all == "") || len(lines) > 1 || !strings.Contains(all, test.logged) {
				t.Errorf("logged %q, want one line with %q", lines, test.logged)
			}
		})
	}
}

func TestWatchEndsTheProcessOnce(t *testing.T) {
	path := written(t, "storm: {calmSeconds: 7}\n")
	w := watchOf(t, path, logr.Discard())
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	ended := make(chan struct{})
	w.Clock, w.Changed = fake, func() { close(ended) }
	write(t, path, "storm: {calmSeconds: 8}\n")
	done := make(chan error)
	go func() { done <- w.Start(t.Context()) }()
	for !fake.HasWaiters() {
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
	}
	fake.Step(watchInterval)
	<-ended
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func watchOf(t *testing.T, path string, logger logr.Logger) *Watch {
	t.Helper()
	running, _, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return &Watch{Path: path, Running: running, Logger: logger}
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
