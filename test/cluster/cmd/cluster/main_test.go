package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpAndDown proves that both commands may be repeated, and that down leaves nothing of what up started.
func TestUpAndDown(t *testing.T) {
	dir := t.TempDir()
	execute := func(arguments ...string) string {
		t.Helper()
		var out, log bytes.Buffer
		if err := run(t.Context(), append(arguments, "--dir", dir), &out, &log); err != nil {
			t.Fatalf("cluster %s: %v\n%s", strings.Join(arguments, " "), err, log.String())
		}
		return out.String()
	}
	notes := func() map[string]string {
		t.Helper()
		found := map[string]string{}
		paths, err := filepath.Glob(filepath.Join(dir, "run", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.Base(path)] = string(content)
		}
		return found
	}
	t.Cleanup(func() { execute("down") })

	first := execute("up", "--nodes", "1")
	if want := "export KUBECONFIG=" + dir; !strings.HasPrefix(first, want) {
		t.Errorf("up printed %q, want it to begin with %q", first, want)
	}
	processes := notes()
	if len(processes) != 5 {
		t.Errorf("up noted the processes %v, want 5", processes)
	}
	if diff := cmp.Diff(first, execute("up")); diff != "" {
		t.Errorf("the second up printed something else (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(processes, notes()); diff != "" {
		t.Errorf("the second up changed the processes (-first +second):\n%s", diff)
	}
	execute("down")
	if left := notes(); len(left) != 0 {
		t.Errorf("down left %v", left)
	}
	execute("down")
}

func TestUnknownCommands(t *testing.T) {
	for _, arguments := range [][]string{nil, {"sideways"}, {"up", "--depth", "3"}, {"build", "kubelet"}} {
		if err := run(t.Context(), arguments, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("cluster %v succeeded, want an error", arguments)
		}
	}
}
