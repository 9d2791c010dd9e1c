package packaging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/example/aiops-operator/test/cluster"
)

// servedGraph is what catalog-query prints of a served catalog.
type servedGraph struct {
	Packages []struct {
		Name           string          `json:"name"`
		DefaultChannel string          `json:"defaultChannel"`
		Channels       []servedChannel `json:"channels"`
	} `json:"packages"`
	Bundles []servedBundle `json:"bundles"`
}

type servedChannel struct {
	Name string `json:"name"`
	Head string `json:"head"`
	// DisplayName is what the head calls itself.
	DisplayName string `json:"displayName"`
}

type servedBundle struct {
	Channel     string   `json:"channel"`
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Image       string   `json:"image"`
	Replaces    string   `json:"replaces"`
	Skips       []string `json:"skips"`
	SkipRange   string   `json:"skipRange"`
	Deprecation string   `json:"deprecation"`
}

// catalogPrograms makes opm and catalog-query ready; the first time takes some minutes.
func catalogPrograms(t *testing.T) map[string]string {
	t.Helper()
	programs, err := cluster.Build(t.Context(), os.Stderr, "opm", "catalog-query")
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

// serveCatalog serves the catalog in a folder with opm and asks it over gRPC, as OLM does, what it offers. opm, which
// listens on every address of the machine, has ended when this returns.
func serveCatalog(t *testing.T, programs map[string]string, folder string) servedGraph {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	address, err := cluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	server := exec.CommandContext(ctx, programs["opm"], "serve", folder, "--port", port, "--pprof-addr", "",
		"--termination-log", filepath.Join(temporary, "termination"))
	server.Env = append(os.Environ(), "TMPDIR="+temporary)
	var complaint bytes.Buffer
	server.Stderr = &complaint
	if err := server.Start(); err != nil {
		t.Fatalf("start opm: %v", err)
	}
	query := exec.CommandContext(ctx, programs["catalog-query"], "-address", address, "-timeout", "30s")
	query.Stderr = os.Stderr
	printed, err := query.Output()
	cancel()
	_ = server.Wait() // It was killed.
	if err != nil {
		t.Fatalf("ask the catalog: %v; opm says:\n%s", err, complaint.Bytes())
	}
	var offered servedGraph
	if err := json.Unmarshal(printed, &offered); err != nil {
		t.Fatalf("decode what the catalog offers: %v", err)
	}
	return offered
}

// upgrades lists the versions that OLM installs, one after the other, when a version is installed and the channel is
// followed: from all bundles that replace or skip what is installed, always the nearest to the head.
func (g servedGraph) upgrades(t *testing.T, channel, installed string) []string {
	t.Helper()
	var path []string
	for {
		next, found := g.next(t, channel, installed)
		if !found {
			return path
		}
		if slices.Contains(path, next) {
			t.Fatalf("channel %s: upgrades go round in a circle: %v, then %s", channel, path, next)
		}
		path = append(path, next)
		installed = next
	}
}

func (g servedGraph) next(t *testing.T, channel, installed string) (string, bool) {
	t.Helper()
	var candidates []servedBundle
	for _, bundle := range g.Bundles {
		if bundle.Channel == channel && bundle.takesOver(t, installed) {
			candidates = append(candidates, bundle)
		}
	}
	if len(candidates) == 0 {
		return "", false
	}
	// In these graphs the nearest to the head is the newest.
	newest := slices.MaxFunc(candidates, func(a, b servedBundle) int {
		if version.MustParseSemantic(a.Version).LessThan(version.MustParseSemantic(b.Version)) {
			return -1
		}
		return 1
	})
	return newest.Version, true
}

func (b servedBundle) takesOver(t *testing.T, installed string) bool {
	t.Helper()
	name := bundleName(installed)
	if b.Replaces == name || slices.Contains(b.Skips, name) {
		return true
	}
	if b.SkipRange == "" {
		return false
	}
	var from, to string
	if _, err := fmt.Sscanf(b.SkipRange, ">=%s <%s", &from, &to); err != nil {
		t.Fatalf("bundle %s: skipRange %q is not of the form >=A <B", b.Name, b.SkipRange)
	}
	installedVersion := version.MustParseSemantic(installed)
	return installedVersion.AtLeast(version.MustParseSemantic(from)) && installedVersion.LessThan(version.MustParseSemantic(to))
}
