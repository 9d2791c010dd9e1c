package packaging_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/example/aiops-operator/hack/catalog/render"
	"github.com/example/aiops-operator/hack/image/container"
)

const (
	bundleFolder    = "../../bundle"
	catalogTemplate = "../../catalog/aiops-operator.semver.yaml"
	catalogFolder   = "../../catalog/aiops-operator"
	csvFile         = "manifests/aiops-operator.clusterserviceversion.yaml"
	bundleImage     = "example.com/aiops-operator-bundle:v"
)

func bundleName(version string) string { return "aiops-operator.v" + version }

// bundleOf is the bundle of the tree with another version number.
func bundleOf(t *testing.T, version string) fs.FS {
	t.Helper()
	changed := fstest.MapFS{}
	for path, content := range folderContents(t, bundleFolder, "") {
		changed[path] = &fstest.MapFile{Data: []byte(content)}
	}
	var csv map[string]any
	if err := yaml.Unmarshal(changed[csvFile].Data, &csv); err != nil {
		t.Fatal(err)
	}
	csv["metadata"].(map[string]any)["name"] = bundleName(version)
	csv["spec"].(map[string]any)["version"] = version
	encoded, err := yaml.Marshal(csv)
	if err != nil {
		t.Fatal(err)
	}
	changed[csvFile].Data = encoded
	return changed
}

// rendererOf renders with images of the tree's bundle under other version numbers.
func rendererOf(t *testing.T, opm string, versions ...string) render.Renderer {
	t.Helper()
	images := map[name.Tag]v1.Image{}
	for _, version := range versions {
		image, err := container.Bundle(bundleOf(t, version), time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		reference, err := name.NewTag(bundleImage + version)
		if err != nil {
			t.Fatal(err)
		}
		images[reference] = image
	}
	return render.Renderer{Opm: opm, Unpublished: images}
}

// catalogOf puts a rendered catalog, and files beside it, into a folder and demands that opm finds nothing wrong.
func catalogOf(t *testing.T, renderer render.Renderer, rendered []byte, beside map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	files := map[string]string{"catalog.yaml": string(rendered)}
	maps.Copy(files, beside)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := renderer.Validate(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

// semverTemplate lists bundles by channel.
func semverTemplate(t *testing.T, candidate, fast, stable []string) []byte {
	t.Helper()
	listed := func(versions []string) map[string]any {
		var bundles []any
		for _, version := range versions {
			bundles = append(bundles, map[string]any{"image": bundleImage + version})
		}
		return map[string]any{"bundles": bundles}
	}
	encoded, err := yaml.Marshal(map[string]any{
		"schema": "olm.semver", "generateMajorChannels": true,
		"candidate": listed(candidate), "fast": listed(fast), "stable": listed(stable),
	})
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// The catalog in the tree is what its template, the tree's bundle and the published bundles give. Those are not fetched: what the
// catalog says of them was written by make catalog.
func TestCatalogIsCurrent(t *testing.T) {
	template, err := os.ReadFile(catalogTemplate)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(catalogFolder, "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	references, err := render.References(template)
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range references {
		if !bytes.Contains(got, []byte("\nimage: "+reference+"\n")) {
			t.Fatalf("the catalog does not list %s, which its template names: run make catalog", reference)
		}
	}
	renderer := rendererOf(t, catalogPrograms(t)["opm"])
	renderer.Recorded = got
	reference, err := name.NewTag(bundleImage + loadBundle(t).CSV.Spec.Version.String())
	if err != nil {
		t.Fatal(err)
	}
	if renderer.Unpublished[reference], err = container.Bundle(os.DirFS(bundleFolder), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	want, err := renderer.Semver(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("the catalog is not current: run make catalog (-want +got):\n%s", cmp.Diff(string(want), string(got)))
	}
	if err := renderer.Validate(t.Context(), catalogFolder); err != nil {
		t.Error(err)
	}
}

// A published bundle is read once: later the catalog says what it said then, although nothing can be fetched any more, and the channels
// lead from it to the bundle of the tree.
func TestCatalogKeepsPublishedBundles(t *testing.T) {
	const (
		published = "registry.invalid/aiops-operator-bundle@sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
		old       = bundleImage + "0.1.0"
	)
	programs := catalogPrograms(t)
	renderer := rendererOf(t, programs["opm"], "0.1.0")
	before, err := renderer.Semver(t.Context(), semverTemplate(t, []string{"0.1.0"}, nil, []string{"0.1.0"}))
	if err != nil {
		t.Fatal(err)
	}
	renderer = rendererOf(t, programs["opm"], "0.2.0")
	renderer.Recorded = bytes.ReplaceAll(before, []byte(old), []byte(published))
	template := bytes.ReplaceAll(semverTemplate(t, []string{"0.1.0", "0.2.0"}, nil, []string{"0.1.0"}), []byte(old), []byte(published))
	after, err := renderer.Semver(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}

	for _, kept := range []string{"olm.package", "olm.bundle"} {
		if diff := cmp.Diff(catalogDocument(t, renderer.Recorded, kept), catalogDocument(t, after, kept)); diff != "" {
			t.Errorf("the first document of the schema %s has changed (-want +got):\n%s", kept, diff)
		}
	}
	offered := serveCatalog(t, programs, catalogOf(t, renderer, after, nil))
	checkUpgrades(t, offered, map[string]map[string]string{"candidate": {"0.1.0": "0.2.0"}, "stable": {"0.1.0": ""}})
}

// A tag may be pushed again, so only the tree's bundle may be named by one.
func TestCatalogRefusesTags(t *testing.T) {
	renderer := rendererOf(t, "no-opm", "0.2.0")
	_, err := renderer.Semver(t.Context(), semverTemplate(t, []string{"0.1.0", "0.2.0"}, nil, nil))
	if want := bundleImage + "0.1.0 is a tag, and not that of the tree's bundle"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error with %q", err, want)
	}
}

// catalogDocument is the first document of a schema.
func catalogDocument(t *testing.T, catalog []byte, schema string) string {
	t.Helper()
	for text := range strings.SplitSeq(string(catalog), "---\n") {
		if strings.Contains(text, "\nschema: "+schema+"\n") {
			return text
		}
	}
	t.Fatalf("the catalog has no document of the schema %s", schema)
	return ""
}

// Whatever is installed, following a channel ends at its head; over a major version the way leads through the last of the
// old one and the first minor version of the new one.
func TestCatalogUpgradePaths(t *testing.T) {
	versions := []string{"0.1.0", "0.1.1", "0.2.0", "0.3.0", "1.0.0", "1.0.1", "1.1.0"}
	programs := catalogPrograms(t)
	renderer := rendererOf(t, programs["opm"], versions...)
	rendered, err := renderer.Semver(t.Context(), semverTemplate(t, versions, versions[:5], versions[:3]))
	if err != nil {
		t.Fatal(err)
	}
	offered := serveCatalog(t, programs, catalogOf(t, renderer, rendered, nil))

	if got := offered.Packages[0].DefaultChannel; got != "stable" {
		t.Errorf("default channel: got %s, want stable", got)
	}
	wantChannels := []servedChannel{
		{Name: "candidate", Head: bundleName("1.1.0"), DisplayName: "AIOps Operator"},
		{Name: "fast", Head: bundleName("1.0.0"), DisplayName: "AIOps Operator"},
		{Name: "stable", Head: bundleName("0.2.0"), DisplayName: "AIOps Operator"},
	}
	if diff := cmp.Diff(wantChannels, sortedChannels(offered)); diff != "" {
		t.Errorf("channels (-want +got):\n%s", diff)
	}
	for _, bundle := range offered.Bundles {
		if want := bundleImage + bundle.Version; bundle.Image != want {
			t.Errorf("bundle %s: got image %s, want %s", bundle.Name, bundle.Image, want)
		}
	}

	want := map[string]map[string]string{
		"candidate": {
			"0.1.0": "0.3.0 1.0.1 1.1.0", "0.1.1": "0.3.0 1.0.1 1.1.0", "0.2.0": "0.3.0 1.0.1 1.1.0", "0.3.0": "1.0.1 1.1.0",
			"1.0.0": "1.1.0", "1.0.1": "1.1.0", "1.1.0": "",
		},
		"fast": {
			"0.1.0": "0.3.0 1.0.0", "0.1.1": "0.3.0 1.0.0", "0.2.0": "0.3.0 1.0.0", "0.3.0": "1.0.0", "1.0.0": "",
			"1.0.1": "", "1.1.0": "", // Newer than the head: kept until the channel has caught up.
		},
		"stable": {
			"0.1.0": "0.2.0", "0.1.1": "0.2.0", "0.2.0": "",
			"0.3.0": "", "1.0.0": "", "1.0.1": "", "1.1.0": "",
		},
	}
	checkUpgrades(t, offered, want)
}

func sortedChannels(offered servedGraph) []servedChannel {
	return slices.SortedFunc(slices.Values(offered.Packages[0].Channels), func(a, b servedChannel) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// checkUpgrades compares the way from each version in each channel.
func checkUpgrades(t *testing.T, offered servedGraph, want map[string]map[string]string) {
	t.Helper()
	for channel, paths := range want {
		for version, path := range paths {
			if got := strings.Join(offered.upgrades(t, channel, version), " "); got != path {
				t.Errorf("channel %s, installed %s: upgrades to [%s], want [%s]", channel, version, got, path)
			}
		}
	}
}

// A version that was withdrawn is skipped by who has not installed it and left by who has; a deprecated one says so.
func TestCatalogWithdrawnAndDeprecated(t *testing.T) {
	const template = `schema: olm.template.basic
entries:
- {schema: olm.package, name: aiops-operator, defaultChannel: stable}
- schema: olm.channel
  package: aiops-operator
  name: stable
  entries:
  - name: aiops-operator.v0.1.0
  - {name: aiops-operator.v0.2.0, replaces: aiops-operator.v0.1.0}
  - {name: aiops-operator.v0.4.0, replaces: aiops-operator.v0.2.0, skips: [aiops-operator.v0.3.0]}
- schema: olm.channel
  package: aiops-operator
  name: candidate
  entries:
  - {name: aiops-operator.v0.4.0, skipRange: ">=0.2.0 <0.4.0"}
- {schema: olm.bundle, image: "example.com/aiops-operator-bundle:v0.1.0"}
- {schema: olm.bundle, image: "example.com/aiops-operator-bundle:v0.2.0"}
- {schema: olm.bundle, image: "example.com/aiops-operator-bundle:v0.4.0"}
`
	const message = "Version 0.1.0 forgets an incident when it is restarted: upgrade to 0.2.0 or newer."
	const deprecations = `schema: olm.deprecations
package: aiops-operator
entries:
- reference: {schema: olm.bundle, name: aiops-operator.v0.1.0}
  message: "` + message + `"
`
	programs := catalogPrograms(t)
	renderer := rendererOf(t, programs["opm"], "0.1.0", "0.2.0", "0.4.0")
	rendered, err := renderer.Basic(t.Context(), []byte(template))
	if err != nil {
		t.Fatal(err)
	}
	folder := catalogOf(t, renderer, rendered, map[string]string{"deprecations.yaml": deprecations})
	offered := serveCatalog(t, programs, folder)

	checkUpgrades(t, offered, map[string]map[string]string{
		"stable": {
			"0.1.0": "0.2.0 0.4.0", "0.2.0": "0.4.0", "0.3.0": "0.4.0", "0.4.0": "",
		},
		// 0.2.1 is in no catalog any more.
		"candidate": {"0.1.0": "", "0.2.0": "0.4.0", "0.2.1": "0.4.0", "0.3.0": "0.4.0", "0.4.0": ""},
	})
	got := map[string]string{}
	for _, bundle := range offered.Bundles {
		got[bundle.Channel+" "+bundle.Version] = bundle.Deprecation
	}
	want := map[string]string{"stable 0.1.0": message, "stable 0.2.0": "", "stable 0.4.0": "", "candidate 0.4.0": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deprecations (-want +got):\n%s", diff)
	}
}

// opm refuses a graph in which somebody would be left behind.
func TestCatalogRefusesBrokenGraphs(t *testing.T) {
	renderer := render.Renderer{Opm: catalogPrograms(t)["opm"]}
	bundles := func(versions ...string) string {
		var out strings.Builder
		for _, version := range versions {
			fmt.Fprintf(&out, "---\n{schema: olm.bundle, package: aiops-operator, name: %[1]s, image: %[2]s%[3]s, "+
				"properties: [{type: olm.package, value: {packageName: aiops-operator, version: %[3]s}}]}\n",
				bundleName(version), bundleImage, version)
		}
		return out.String()
	}
	header := func(entries string) string {
		return "---\n{schema: olm.package, name: aiops-operator, defaultChannel: stable}\n" +
			"---\n{schema: olm.channel, package: aiops-operator, name: stable, entries: [" + entries + "]}\n"
	}
	for title, test := range map[string]struct {
		catalog string
		want    string
	}{
		"sound": {
			catalog: header("{name: aiops-operator.v0.1.0}, {name: aiops-operator.v0.2.0, replaces: aiops-operator.v0.1.0}") + bundles("0.1.0", "0.2.0"),
		},
		"two heads": {
			catalog: header("{name: aiops-operator.v0.1.0}, {name: aiops-operator.v0.2.0}") + bundles("0.1.0", "0.2.0"),
			want:    "multiple channel heads found",
		},
		"a circle": {
			catalog: header("{name: aiops-operator.v0.1.0, replaces: aiops-operator.v0.2.0}, "+
				"{name: aiops-operator.v0.2.0, replaces: aiops-operator.v0.1.0}") + bundles("0.1.0", "0.2.0"),
			want: "no channel head found",
		},
		"an entry without its bundle": {
			catalog: header("{name: aiops-operator.v0.1.0}, {name: aiops-operator.v0.2.0, replaces: aiops-operator.v0.1.0}") + bundles("0.1.0"),
			want:    "aiops-operator.v0.2.0",
		},
		"a bundle in no channel": {
			catalog: header("{name: aiops-operator.v0.1.0}") + bundles("0.1.0", "0.2.0"),
			want:    "aiops-operator.v0.2.0",
		},
		"a default channel that is not there": {
			catalog: strings.Replace(header("{name: aiops-operator.v0.1.0}"), "defaultChannel: stable", "defaultChannel: slow", 1) + bundles("0.1.0"),
			want:    "channel must contain at least one bundle",
		},
		"a deprecation of nothing": {
			catalog: header("{name: aiops-operator.v0.1.0}") + bundles("0.1.0") + "---\n{schema: olm.deprecations, package: aiops-operator, " +
				"entries: [{reference: {schema: olm.bundle, name: aiops-operator.v0.0.9}, message: old}]}\n",
			want: "aiops-operator.v0.0.9",
		},
	} {
		t.Run(title, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "catalog.yaml"), []byte(test.catalog), 0o600); err != nil {
				t.Fatal(err)
			}
			err := renderer.Validate(t.Context(), folder)
			if test.want == "" && err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
