package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	installerFile = "../../dist/install.yaml"
	chartFolder   = "../../dist/chart"
)

// The committed chart is what comes out of the committed manifests, again and again. The parts that dist/install.yaml does not
// have are compared by make verify.
func TestChartIsCurrent(t *testing.T) {
	manifests, err := os.ReadFile(installerFile)
	if err != nil {
		t.Fatal(err)
	}
	version := committedVersion(t)
	for range 5 { // the order of maps changes
		files, err := generate(release{Version: version, Image: "example.com/aiops-operator:v" + version}, manifests)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			committed, err := os.ReadFile(filepath.Join(chartFolder, name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(committed), string(content)); diff != "" {
				t.Fatalf("make chart changes %s (-committed +made):\n%s", name, diff)
			}
		}
	}
}

// committedVersion is the version of the committed chart.
func committedVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chartFolder, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version string }
	if err := yaml.Unmarshal(content, &chart); err != nil {
		t.Fatal(err)
	}
	return chart.Version
}

func TestGenerateSetsTheImage(t *testing.T) {
	manifests, err := os.ReadFile(installerFile)
	if err != nil {
		t.Fatal(err)
	}
	const digest = "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
	tests := map[string]map[string]any{
		"example.com/aiops-operator:v0.2.0":     {"repository": "example.com/aiops-operator", "tag": "", "digest": ""},
		"example.com/aiops-operator:main":       {"repository": "example.com/aiops-operator", "tag": "main", "digest": ""},
		"localhost:5000/aiops":                  {"repository": "localhost:5000/aiops", "tag": "", "digest": ""},
		"localhost:5000/aiops@" + digest:        {"repository": "localhost:5000/aiops", "tag": "", "digest": digest},
		"registry.example.com:443/a/b:v0.2.0-1": {"repository": "registry.example.com:443/a/b", "tag": "v0.2.0-1", "digest": ""},
	}
	for image, want := range tests {
		files, err := generate(release{Version: "0.2.0", Image: image}, manifests)
		if err != nil {
			t.Fatal(err)
		}
		var values struct{ Image map[string]any }
		if err := yaml.Unmarshal(files["values.yaml"], &values); err != nil {
			t.Fatal(err)
		}
		delete(values.Image, "pullPolicy")
		delete(values.Image, "pullSecrets")
		if diff := cmp.Diff(want, values.Image); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}

// What the program does not understand ends it: a chart that leaves something out would be worse than none.
func TestGenerateRefusesWhatItDoesNotKnow(t *testing.T) {
	manifests, err := os.ReadFile(installerFile)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ manifests, want string }{
		"a new kind":        {string(manifests) + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: aiops-x}\n", "Secret x has no place in the chart"},
		"a new ClusterRole": {string(manifests) + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: aiops-x}\n", "ClusterRole x has no place in the chart"},
		"no Deployment":     {strings.ReplaceAll(string(manifests), "kind: Deployment", "kind: Namespace"), "lack the Deployment"},
		"no port policy":    {strings.ReplaceAll(string(manifests), "allow-endpoints", "allow-others"), "lack the network policies"},
		"no metrics flag":   {strings.ReplaceAll(string(manifests), "--metrics-bind-address", "--metrics"), "no argument --metrics-bind-address="},
		"no YAML":           {"a: b: c", "decode the manifests"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := generate(release{Version: "0.1.0", Image: "a:b"}, []byte(test.manifests)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says: %s", err, test.want)
			}
		})
	}
}

func TestTextsWrite(t *testing.T) {
	pieces := &texts{}
	object := map[string]any{
		"alert": "{{ $value }} of " + pieces.inline("{{ .Values.a }}"),
		"list":  []any{"first", pieces.block("{{- with .Values.b }}", "{{- toYaml . | nindent +0 }}", "{{- end }}")},
		"map": map[string]any{
			"key":   "value",
			"whole": pieces.block("whole:", "  {{- toYaml .Values.c | nindent +2 }}"),
			pieces.block(`{{- include "d" . | nindent +0 }}`): "",
		},
	}
	got, err := pieces.write(object)
	if err != nil {
		t.Fatal(err)
	}
	want := `alert: '{{ "{{" }} $value }} of {{ .Values.a }}'
list:
- first
{{- with .Values.b }}
{{- toYaml . | nindent 0 }}
{{- end }}
map:
  {{- include "d" . | nindent 2 }}
  key: value
  whole:
    {{- toYaml .Values.c | nindent 4 }}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

func TestRenamer(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, name := range []string{"manager", "manager-metrics"} {
		object := &unstructured.Unstructured{Object: map[string]any{"kind": "Service"}}
		object.SetName(name)
		objects = append(objects, object)
	}
	const full = `{{ include "aiops-operator.fullname" . }}`
	rename := newRenamer(objects)
	for given, want := range map[string]string{
		"aiops-manager":                          full + "-manager",
		"aiops-manager-metrics":                  full + "-manager-metrics",
		"aiops-manager-metrics.aiops-system.svc": full + "-manager-metrics.{{ .Release.Namespace }}.svc",
		`up{job="aiops-manager"} == 0`:           `up{job="` + full + `-manager"} == 0`,
		"aiops-system":                           "{{ .Release.Namespace | quote }}",
		"aiops-operator":                         "aiops-operator",
		"/etc/aiops-operator":                    "/etc/aiops-operator",
		"xaiops-manager":                         "xaiops-manager",
	} {
		pieces := &texts{}
		text := rename.text(given, pieces)
		got := inlinePlaceholder.ReplaceAllStringFunc(text, func(found string) string {
			return pieces.piece(inlinePlaceholder.FindStringSubmatch(found)[1])
		})
		if got != want {
			t.Errorf("%s becomes %s, want %s", given, got, want)
		}
	}
}

func TestWriteReplacesOnlyCharts(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "chart")
	if err := write(folder, map[string][]byte{"Chart.yaml": nil, "templates/old.yaml": nil}); err != nil {
		t.Fatal(err)
	}
	if err := write(folder, map[string][]byte{"Chart.yaml": nil}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "templates", "old.yaml")); err == nil {
		t.Error("a template that is no longer made is still there")
	}
	if err := os.Remove(filepath.Join(folder, "Chart.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(folder, map[string][]byte{"Chart.yaml": nil}); err == nil {
		t.Error("a folder that is no chart was replaced")
	}
}
