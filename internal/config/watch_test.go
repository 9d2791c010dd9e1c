package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	clocktesting "k8s.io/utils/clock/testing"
)

const before = "storm: {calmSeconds: 7}\n"

func TestAnotherConfigurationIsNoticedUnlessItHasMistakes(t *testing.T) {
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
				if got := w.due(); got != test.want {
					t.Errorf("due: %t, want %t", got, test.want)
				}
			}
			if all := strings.Join(lines, ""); (test.logged == "") != (all == "") || len(lines) > 1 || !strings.Contains(all, test.logged) {
				t.Errorf("logged %q, want one line with %q", lines, test.logged)
			}
		})
	}
}

// The replica that acts must not end before one that stands by has been started anew, nor between two edits.
func TestALeaderWaitsUntilTheChangeHasLasted(t *testing.T) {
	path := written(t, before)
	w := watchOf(t, path, logr.Discard())
	elected := make(chan struct{})
	close(elected)
	w.Leads = elected
	for _, text := range []string{"storm: {calmSeconds: 8}\n", "storm: {calmSeconds: 9}\n", before, "storm: {calmSeconds: 9}\n"} {
		write(t, path, text)
		for look := range leaderLooks - 1 {
			if w.due() {
				t.Fatalf("%q: it ended at look %d", text, look+1)
			}
		}
	}
	if !w.due() {
		t.Error("it did not end")
	}
}

func TestWatchEndsTheProcessOnce(t *testing.T) {
	path := written(t, before)
	w := watchOf(t, path, logr.Discard())
	fake := clocktesting.NewFakeClock(time.Unix(0, 0))
	ended := 0 // written by the watch alone until it is done
	w.Clock, w.End = fake, func() { ended++ }
	write(t, path, "storm: {calmSeconds: 8}\n")
	done := make(chan error)
	go func() { done <- w.Start(t.Context()) }()
	for {
		select {
		case err := <-done:
			if err != nil || ended != 1 {
				t.Errorf("ended %d times, %v", ended, err)
			}
			return
		default:
			fake.Step(watchInterval) // before there is a ticker it does nothing
			runtime.Gosched()
		}
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
