package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	csv         = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: web.v1.2.3}\n"
	crd         = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: webs.example.com}\n"
	service     = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: web}\n"
	scorecard   = "apiVersion: scorecard.operatorframework.io/v1alpha3\nkind: Configuration\nmetadata: {name: config}\nstages: []\n"
)

// write makes a bundle's folder of a sound bundle with the given files changed; an empty content takes a file away.
func write(t *testing.T, changed map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{"manifests/a.yaml": csv, "manifests/b.yaml": crd, "manifests/c.yaml": service,
		"metadata/annotations.yaml": annotations, "tests/scorecard/config.yaml": scorecard}
	for name, content := range changed {
		files[name] = content
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if content == "" {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLoad(t *testing.T) {
	got, err := Load(write(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{got.CSV.Name, got.CRDs[0].Name, got.Others[0].GetName(), got.Scorecard.Metadata.Name}
	if diff := cmp.Diff([]string{"web.v1.2.3", "webs.example.com", "web", "config"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"operators.operatorframework.io.bundle.package.v1": "web"}, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		changed map[string]string
		want    string
	}{
		"no ClusterServiceVersion":   {map[string]string{"manifests/a.yaml": ""}, "no ClusterServiceVersion"},
		"two ClusterServiceVersions": {map[string]string{"manifests/d.yaml": csv}, "a second ClusterServiceVersion"},
		"two documents":              {map[string]string{"manifests/c.yaml": service + "---\n" + service}, "more than one document"},
		"an unknown field":           {map[string]string{"manifests/b.yaml": crd + "specs: {}\n"}, "unknown field"},
		"a field twice":              {map[string]string{"manifests/c.yaml": service + "kind: Secret\n"}, "already set"},
		"no object":                  {map[string]string{"manifests/c.yaml": "a: b"}, "Kind"},
		"no YAML":                    {map[string]string{"manifests/c.yaml": "a: b: c"}, "decoding"},
		"no annotations":             {map[string]string{"metadata/annotations.yaml": ""}, "annotations.yaml"},
		"no scorecard":               {map[string]string{"tests/scorecard/config.yaml": ""}, "config.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, c.changed))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestLoadRefusesWhatIsNotThere(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("got no error")
	}
}
