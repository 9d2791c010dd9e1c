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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/aiops-operator/test/harness"
	"github.com/example/aiops-operator/test/helm"
)

const (
	chartFolder   = "../../dist/chart"
	installerFile = "../../dist/install.yaml"
	// kubernetesVersion is what helm is told about the cluster when there is none.
	kubernetesVersion = "1.37"
)

// objects are what a chart or a file installs, by kind and name.
type objects map[string]*unstructured.Unstructured

func TestChartLints(t *testing.T) {
	if printed, err := helmProgram(t).Run(t.Context(), "lint", "--strict", "--kube-version", kubernetesVersion, chartFolder); err != nil {
		t.Errorf("%v\n%s", err, printed)
	}
}

// The chart, told to use the same names, installs what dist/install.yaml installs. What may differ are the namespace, which helm
// makes, the configuration, which only the chart has values for, and the labels and annotations of Helm and of Kustomize.
func TestChartInstallsWhatTheOneFileInstalls(t *testing.T) {
	const configMap = "ConfigMap/aiops-manager-config"
	want := alike(readObjects(t, readFile(t, installerFile)))
	delete(want, "Namespace/aiops-system")
	got := alike(renderChart(t, "fullnameOverride: aiops\n"))
	delete(got, configMap)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("objects of the one file (-) and of the chart (+):\n%s", diff)
	}
	for name := range want {
		if diff := cmp.Diff(want[name].Object, got[name].Object); diff != "" {
			t.Errorf("%s in the one file (-) and in the chart (+):\n%s", name, diff)
		}
	}
}

// The parts that stand beside config/default are those below config/, too.
func TestChartOptionalPartsAreThoseOfConfig(t *testing.T) {
	got := alike(renderChart(t, `
fullnameOverride: aiops
metrics: {serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}}
`))
	found := map[string]int{}
	for _, folder := range []string{"prometheus", "network-policy"} {
		files, err := filepath.Glob(filepath.Join("../../config", folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			for name, object := range readObjects(t, readFile(t, file)) {
				found[object.GetKind()]++
				if !holdsSpec(got, object) {
					t.Errorf("no %s of the chart has the spec of %s in %s", object.GetKind(), name, file)
				}
			}
		}
	}
	if found["NetworkPolicy"] == 0 || found["ServiceMonitor"] != 1 || found["PrometheusRule"] != 1 {
		t.Errorf("config/ has %v: nothing was compared", found)
	}
}

func holdsSpec(chart objects, wanted *unstructured.Unstructured) bool {
	for _, object := range chart {
		if object.GetKind() == wanted.GetKind() && cmp.Equal(object.Object["spec"], wanted.Object["spec"]) {
			return true
		}
	}
	return false
}

// Without being told names, two releases have no object in common but the CRD, and none takes the other's pods.
func TestChartKeepsReleasesApart(t *testing.T) {
	first, second := renderRelease(t, "aiops-operator", "one", ""), renderRelease(t, "another", "two", "")
	for name := range first {
		if _, both := second[name]; both && !strings.HasPrefix(name, "CustomResourceDefinition/") {
			t.Errorf("both releases have %s", name)
		}
	}
	for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
		one, _, _ := unstructured.NestedStringMap(only(t, first, "Deployment").Object, path...)
		two, _, _ := unstructured.NestedStringMap(only(t, second, "Deployment").Object, path...)
		if len(one) == 0 || cmp.Equal(one, two) {
			t.Errorf("both releases have %v at %v", one, path)
		}
	}
}

// What Helm takes as the name of a release gives names that Kubernetes takes, and different ones.
func TestChartNamesAreValid(t *testing.T) {
	longest := strings.Repeat("a-very-long-name-", 3)
	seen := map[string]string{}
	for release, want := range map[string]string{
		"aiops-operator": "aiops-operator-controller-manager-metrics-service",
		"prod":           "prod-aiops-operator-controller-manager-metrics-service",
		"prod.eu":        "prod-eu-aiops-operator-controller-manager-metrics-service",
		"0815":           "",
		longest + "a":    "",
		longest + "b":    "",
	} {
		service := only(t, renderRelease(t, release, "aiops-system", ""), "Service").GetName()
		if want != "" && service != want {
			t.Errorf("release %s: the Service is called %s, want %s", release, service, want)
		}
		if len(service) > 63 {
			t.Errorf("release %s: %s has %d characters", release, service, len(service))
		}
		if other, taken := seen[service]; taken {
			t.Errorf("releases %s and %s both have a Service %s", release, other, service)
		}
		seen[service] = release
	}
}

// One version: that of the chart, of its application, of the image in dist/install.yaml; and one oldest Kubernetes.
func TestChartVersions(t *testing.T) {
	var chart struct{ Version, AppVersion, KubeVersion string }
	if err := yaml.Unmarshal(readFile(t, filepath.Join(chartFolder, "Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	image := at(only(t, readObjects(t, readFile(t, installerFile)), "Deployment").Object, "spec.template.spec.containers.0.image")
	if _, tag, _ := strings.Cut(image.(string), ":"); tag != chart.AppVersion || tag != "v"+chart.Version {
		t.Errorf("version %s and appVersion %s beside the image %s", chart.Version, chart.AppVersion, image)
	}
	minimum := regexp.MustCompile(`(?m)^  minKubeVersion: (\S+)$`).
		FindSubmatch(readFile(t, "../../config/manifests/bases/aiops-operator.clusterserviceversion.yaml"))
	if minimum == nil || chart.KubeVersion != ">="+string(minimum[1])+"-0" {
		t.Errorf("kubeVersion %s beside minKubeVersion %s", chart.KubeVersion, minimum)
	}
	if _, err := helmProgram(t).Run(t.Context(), "template", "aiops", chartFolder, "--kube-version", "1.33.9"); err == nil {
		t.Error("installs on a Kubernetes that is too old")
	}
}

// alike takes out what the chart and the one file are meant to differ in.
func alike(from objects) objects {
	for _, object := range from {
		object.SetLabels(ownLabels(object.GetLabels()))
		annotations := object.GetAnnotations()
		delete(annotations, "helm.sh/resource-policy")
		object.SetAnnotations(annotations)
		dropInstance(object.Object)
	}
	return from
}

// ownLabels are those that neither Helm nor Kustomize sets.
func ownLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		if !strings.HasPrefix(key, "helm.sh/") && !strings.HasPrefix(key, "app.kubernetes.io/") {
			out[key] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// dropInstance removes the name of the release, which the one file does not have, from labels and selectors.
func dropInstance(value any) {
	switch typed := value.(type) {
	case map[string]any:
		delete(typed, "app.kubernetes.io/instance")
		for _, below := range typed {
			dropInstance(below)
		}
	case []any:
		for _, below := range typed {
			dropInstance(below)
		}
	}
}

func helmProgram(t *testing.T) helm.Program {
	t.Helper()
	program, err := helm.New(t.Context(), t.Output(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// renderChart returns what a release with these values installs.
func renderChart(t *testing.T, values string) objects {
	t.Helper()
	return renderRelease(t, "aiops", "aiops-system", values)
}

func renderRelease(t *testing.T, release, namespace, values string) objects {
	t.Helper()
	printed, err := template(t, release, namespace, values)
	if err != nil {
		t.Fatalf("values:\n%s\n%v", values, err)
	}
	return readObjects(t, []byte(printed))
}

// template runs helm template.
func template(t *testing.T, release, namespace, values string) (string, error) {
	t.Helper()
	// Not in t.TempDir(), whose name may have a comma: for helm that is the end of a file's name.
	folder, err := os.MkdirTemp("", "chart-values-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return helmProgram(t).Run(t.Context(), "template", release, chartFolder,
		"--namespace", namespace, "--kube-version", kubernetesVersion, "--values", file)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func readObjects(t *testing.T, manifests []byte) objects {
	t.Helper()
	decoded, err := harness.DecodeManifest(manifests)
	if err != nil {
		t.Fatal(err)
	}
	out := objects{}
	for _, object := range decoded {
		name := object.GetKind() + "/" + object.GetName()
		if _, twice := out[name]; twice {
			t.Fatalf("%s is there twice", name)
		}
		out[name] = object
	}
	return out
}

// only returns the one object of a kind.
func only(t *testing.T, from objects, kind string) *unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, object := range from {
		if object.GetKind() == kind {
			found = append(found, object)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d objects of the kind %s", len(found), kind)
	}
	return found[0]
}
