package packaging_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/example/aiops-operator/test/harness"
	"github.com/example/aiops-operator/test/packaging/bundle"
)

const (
	treeBundle       = "../../bundle"
	bundleDockerfile = "../../bundle.Dockerfile"
	installManifest  = "../../dist/install.yaml"
	configFolder     = "../../config"
	bundleAccount    = "aiops-controller-manager"
)

func loadBundle(t *testing.T) bundle.Bundle {
	t.Helper()
	out, err := bundle.Load(treeBundle)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// decodeFile decodes the one YAML document of a file.
func decodeFile(t *testing.T, path string, out any) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, out); err != nil {
		t.Fatalf("decoding %s: %v", path, err)
	}
}

// installObjects are the objects of dist/install.yaml, which `make verify` proves to be made from config/ as it is.
func installObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	out, err := harness.ReadManifest(installManifest)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// convert decodes an object of dist/install.yaml into its own type.
func convert[T any](t *testing.T, object *unstructured.Unstructured) T {
	t.Helper()
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &out); err != nil {
		t.Fatalf("decoding %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return out
}

// installed are the objects of dist/install.yaml of one kind, in their own type.
func installed[T any](t *testing.T, kind string) []T {
	t.Helper()
	var out []T
	for _, object := range installObjects(t) {
		if object.GetKind() == kind {
			out = append(out, convert[T](t, object))
		}
	}
	return out
}

func TestBundleHasTheDefinition(t *testing.T) {
	got := loadBundle(t).CRDs
	if len(got) != 1 {
		t.Fatalf("got %d CustomResourceDefinitions, want 1", len(got))
	}
	want := readCRD(t, currentCRD)
	if diff := cmp.Diff(want.Spec, got[0].Spec); diff != "" {
		t.Errorf("spec (-config +bundle):\n%s", diff)
	}
	if got[0].Name != want.Name {
		t.Errorf("got the name %q, want %q", got[0].Name, want.Name)
	}
}

// rulesOf are the rules that the roles of roleKind give to the operator's account through bindings, in the order of the bindings.
func rulesOf(t *testing.T, roleKind string) []rbacv1.PolicyRule {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range installed[rbacv1.ClusterRole](t, roleKind) { // a Role has the same fields
		rules[role.Name] = role.Rules
	}
	var out []rbacv1.PolicyRule
	for _, binding := range installed[rbacv1.ClusterRoleBinding](t, roleKind+"Binding") {
		if slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Kind == rbacv1.ServiceAccountKind && s.Name == bundleAccount }) {
			out = append(out, rules[binding.RoleRef.Name]...)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no %s is bound to %s in %s", roleKind, bundleAccount, installManifest)
	}
	return out
}

func TestBundleGrantsTheRights(t *testing.T) {
	strategy := loadBundle(t).CSV.Spec.InstallStrategy.StrategySpec
	for roleKind, got := range map[string][]operatorsv1alpha1.StrategyDeploymentPermissions{
		"ClusterRole": strategy.ClusterPermissions, "Role": strategy.Permissions,
	} {
		want := []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: bundleAccount, Rules: rulesOf(t, roleKind)}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the rules of each %s (-config +bundle):\n%s", roleKind, diff)
		}
	}
}

func TestBundleHasTheDeployment(t *testing.T) {
	var want []operatorsv1alpha1.StrategyDeploymentSpec
	for _, deployment := range installed[appsv1.Deployment](t, "Deployment") {
		want = append(want, operatorsv1alpha1.StrategyDeploymentSpec{Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec})
	}
	if diff := cmp.Diff(want, loadBundle(t).CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs); diff != "" {
		t.Errorf("deployments (-config +bundle):\n%s", diff)
	}
}

// The rest of the installation is files of the bundle. Not so what OLM makes itself (namespace, account, roles of the operator), and
// the network policies, which OperatorHub does not take. No way of installing brings the configuration, which is the user's: an
// upgrade would overwrite it.
func TestBundleHasEverythingElse(t *testing.T) {
	byOLM := map[string]bool{"Namespace": true, "ServiceAccount": true, "Role": true, "RoleBinding": true, "ClusterRoleBinding": true, "NetworkPolicy": true}
	bound := map[string]bool{}
	for _, binding := range installed[rbacv1.ClusterRoleBinding](t, "ClusterRoleBinding") {
		bound[binding.RoleRef.Name] = true
	}
	want := map[string]*unstructured.Unstructured{}
	for _, object := range installObjects(t) {
		kind := object.GetKind()
		if byOLM[kind] || kind == "CustomResourceDefinition" || kind == "Deployment" || (kind == "ClusterRole" && bound[object.GetName()]) {
			continue
		}
		object.SetNamespace("")
		want[kind+"/"+object.GetName()] = object
	}
	got := map[string]*unstructured.Unstructured{}
	for _, object := range loadBundle(t).Others {
		unstructured.RemoveNestedField(object.Object, "status") // operator-sdk writes an empty one
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		got[object.GetKind()+"/"+object.GetName()] = object
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other objects (-config +bundle):\n%s", diff)
	}
}

func TestBundleShowsTheSamples(t *testing.T) {
	want := map[string]*unstructured.Unstructured{}
	for _, file := range sampleFiles(t, samplesFolder) {
		sample := &unstructured.Unstructured{}
		decodeFile(t, file, sample)
		want[sample.GetName()] = sample
	}
	var examples []*unstructured.Unstructured
	if err := json.Unmarshal([]byte(loadBundle(t).CSV.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	got := map[string]*unstructured.Unstructured{}
	for _, example := range examples {
		got[example.GetName()] = example
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alm-examples (-config/samples +bundle):\n%s", diff)
	}
}

// scorecardPatch is one JSON patch on the configuration of the scorecard.
type scorecardPatch struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// apply adds what the patch adds: a test to the first stage, or a stage.
func (p scorecardPatch) apply(t *testing.T, configuration *scorecardv1alpha3.Configuration) {
	t.Helper()
	decode := func(out any) {
		if err := json.Unmarshal(p.Value, out); err != nil {
			t.Fatalf("decoding the value of a patch at %s: %v", p.Path, err)
		}
	}
	switch {
	case p.Op == "add" && p.Path == "/stages/0/tests/-":
		var test scorecardv1alpha3.TestConfiguration
		decode(&test)
		configuration.Stages[0].Tests = append(configuration.Stages[0].Tests, test)
	case p.Op == "add" && p.Path == "/stages/-":
		var stage scorecardv1alpha3.StageConfiguration
		decode(&stage)
		configuration.Stages = append(configuration.Stages, stage)
	default:
		t.Fatalf("this test does not know the patch %s %s: teach it", p.Op, p.Path)
	}
}

// tagScorecardImage gives the image of the operator's own tests the tag that it has in the bundle: the operator's version.
func tagScorecardImage(t *testing.T, configuration *scorecardv1alpha3.Configuration) {
	t.Helper()
	for _, stage := range configuration.Stages {
		for position := range stage.Tests {
			if test := &stage.Tests[position]; test.Image == "example.com/aiops-operator-scorecard" {
				test.Image += ":v" + loadBundle(t).CSV.Spec.Version.String()
			}
		}
	}
}

func TestBundleHasTheScorecard(t *testing.T) {
	var want scorecardv1alpha3.Configuration
	decodeFile(t, filepath.Join(configFolder, "scorecard", "bases", "config.yaml"), &want)
	var parts struct {
		Patches []struct {
			Path string `json:"path"`
		} `json:"patches"`
	}
	content, err := os.ReadFile(filepath.Join(configFolder, "scorecard", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &parts); err != nil {
		t.Fatal(err)
	}
	for _, part := range parts.Patches {
		var patches []scorecardPatch
		decodeFile(t, filepath.Join(configFolder, "scorecard", part.Path), &patches)
		for _, patch := range patches {
			patch.apply(t, &want)
		}
	}
	tagScorecardImage(t, &want)
	if diff := cmp.Diff(want.Stages, loadBundle(t).Scorecard.Stages); diff != "" {
		t.Errorf("stages (-config/scorecard +bundle):\n%s", diff)
	}
}

// An image is recognized as a bundle by its labels, a folder by its annotations.
func TestBundleLabelsAreItsAnnotations(t *testing.T) {
	content, err := os.ReadFile(bundleDockerfile)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^LABEL ([^=\s]+)=(.*)$`).FindAllStringSubmatch(string(content), -1) {
		labels[match[1]] = match[2]
	}
	annotations := loadBundle(t).Annotations
	if diff := cmp.Diff(annotations, labels); diff != "" {
		t.Errorf("labels of the image (-metadata/annotations.yaml +bundle.Dockerfile):\n%s", diff)
	}
	for _, folder := range []string{"manifests", "metadata", "tests/scorecard"} {
		if line := "\nCOPY bundle/" + folder + " /" + folder + "/\n"; !strings.Contains(string(content), line) {
			t.Errorf("bundle.Dockerfile lacks %q", strings.TrimSpace(line))
		}
	}
}

func TestBundleIcon(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(configFolder, "manifests", "icon.svg"))
	if err != nil {
		t.Fatal(err)
	}
	icons := loadBundle(t).CSV.Spec.Icon
	if len(icons) != 1 || icons[0].MediaType != "image/svg+xml" {
		t.Fatalf("got the icons %v, want one of image/svg+xml", icons)
	}
	got, err := base64.StdEncoding.DecodeString(icons[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("icon (-config/manifests/icon.svg +bundle):\n%s", diff)
	}
}
