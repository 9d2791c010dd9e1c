package packaging_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestBundleNamesOneVersionAndOneImage(t *testing.T) {
	csv := loadBundle(t).CSV
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^VERSION \?= (\S+)$`).FindStringSubmatch(string(makefile))[1]
	image := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image
	for what, c := range map[string]struct{ got, want string }{
		"the version":                {csv.Spec.Version.String(), version},
		"the name":                   {csv.Name, "aiops-operator.v" + version},
		"the tag of the image":       {image[strings.LastIndex(image, ":")+1:], "v" + version},
		"the annotated image":        {csv.Annotations["containerImage"], image},
		"the package":                {loadBundle(t).Annotations["operators.operatorframework.io.bundle.package.v1"], "aiops-operator"},
		"the oldest Kubernetes":      {csv.Spec.MinKubeVersion, "1.34.0"},
		"amd64":                      {csv.Labels["operatorframework.io/arch.amd64"], "supported"},
		"arm64":                      {csv.Labels["operatorframework.io/arch.arm64"], "supported"},
		"Linux":                      {csv.Labels["operatorframework.io/os.linux"], "supported"},
		"the maturity":               {csv.Spec.Maturity, "alpha"},
		"the version it takes over":  {csv.Spec.Replaces, ""}, // the catalog's channels say that
		"the suggested namespace":    {csv.Annotations["operatorframework.io/suggested-namespace"], "aiops-system"},
		"the namespace of the label": {csv.Namespace, "placeholder"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", what, c.got, c.want)
		}
	}
	if diff := cmp.Diff([]operatorsv1alpha1.RelatedImage{{Name: "manager", Image: image}}, csv.Spec.RelatedImages); diff != "" {
		t.Errorf("related images (-want +got):\n%s", diff)
	}
}

// The level of capability that is claimed is the one that docs/capability-levels.md gives the evidence for.
func TestBundleClaimsTheLevelThatIsShown(t *testing.T) {
	page, err := os.ReadFile("../../docs/capability-levels.md")
	if err != nil {
		t.Fatal(err)
	}
	level := loadBundle(t).CSV.Annotations["capabilities"]
	for _, want := range []string{"\nClaimed: **" + level + "**.\n", " " + level + ": reached\n"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/capability-levels.md lacks %q", strings.TrimSpace(want))
		}
	}
}

// OLM v1 installs what watches all namespaces, brings no webhook and depends on nobody.
func TestBundleSuitsOLMv1(t *testing.T) {
	b := loadBundle(t)
	modes := map[operatorsv1alpha1.InstallModeType]bool{}
	for _, mode := range b.CSV.Spec.InstallModes {
		modes[mode.Type] = mode.Supported
	}
	want := map[operatorsv1alpha1.InstallModeType]bool{operatorsv1alpha1.InstallModeTypeOwnNamespace: false, operatorsv1alpha1.InstallModeTypeSingleNamespace: false,
		operatorsv1alpha1.InstallModeTypeMultiNamespace: false, operatorsv1alpha1.InstallModeTypeAllNamespaces: true}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("install modes (-want +got):\n%s", diff)
	}
	spec := b.CSV.Spec
	if n := len(spec.WebhookDefinitions) + len(spec.APIServiceDefinitions.Owned) + len(spec.APIServiceDefinitions.Required) +
		len(spec.CustomResourceDefinitions.Required) + len(spec.NativeAPIs); n != 0 {
		t.Errorf("got %d webhooks, API services, required kinds and native APIs, want none", n)
	}
	if b.CSV.Spec.CustomResourceDefinitions.Owned[0].Name != b.CRDs[0].Name {
		t.Errorf("the bundle owns %q, want %q", spec.CustomResourceDefinitions.Owned[0].Name, b.CRDs[0].Name)
	}
	for _, file := range []string{"dependencies.yaml", "properties.yaml"} {
		if _, err := os.Stat(treeBundle + "/metadata/" + file); err == nil {
			t.Errorf("there is metadata/%s: depend on nobody", file)
		}
	}
	if b.CSV.Spec.Cleanup.Enabled {
		t.Error("uninstalling would delete every AITask")
	}
}

// What can be in a bundle at all, less what a package catalog refuses (NetworkPolicy) or a cluster may not know (ServiceMonitor,
// PrometheusRule), and less a ServiceAccount, which OLM makes itself.
func TestBundleHoldsAllowedKinds(t *testing.T) {
	allowed := []string{"ClusterRole", "PodDisruptionBudget", "PriorityClass", "Service"}
	for _, object := range loadBundle(t).Others {
		if !slices.Contains(allowed, object.GetKind()) {
			t.Errorf("%s %s: want one of %v", object.GetKind(), object.GetName(), allowed)
		}
		if object.GetNamespace() != "" {
			t.Errorf("%s %s: is in namespace %q, want none: OLM decides", object.GetKind(), object.GetName(), object.GetNamespace())
		}
	}
}

func TestBundleTellsEveryFeature(t *testing.T) {
	const prefix = "features.operators.openshift.io/"
	got := map[string]string{}
	for name, value := range loadBundle(t).CSV.Annotations {
		if feature, ok := strings.CutPrefix(name, prefix); ok {
			got[feature] = value
		}
	}
	want := map[string]string{"cnf": "false", "cni": "false", "csi": "false", "fips-compliant": "false", "tls-profiles": "false",
		"token-auth-aws": "false", "token-auth-azure": "false", "token-auth-gcp": "false",
		"disconnected": "false", // needs images by digest: true with USE_IMAGE_DIGESTS=true
		"proxy-aware":  "true"}  // internal/outbound asks HTTPS_PROXY for each request
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
}

func TestBundlePodsAreRestricted(t *testing.T) {
	spec := loadBundle(t).CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
	pod, container := spec.Template.Spec, spec.Template.Spec.Containers[0]
	for what, ok := range map[string]bool{
		"two replicas":             spec.Replicas != nil && *spec.Replicas == 2,
		"one container":            len(pod.Containers) == 1 && len(pod.InitContainers) == 0,
		"no root":                  *pod.SecurityContext.RunAsNonRoot,
		"the default seccomp":      pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"no escalation":            !*container.SecurityContext.AllowPrivilegeEscalation,
		"a read-only root":         *container.SecurityContext.ReadOnlyRootFilesystem,
		"no capabilities":          slices.Equal(container.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
		"requests":                 !container.Resources.Requests.Cpu().IsZero() && !container.Resources.Requests.Memory().IsZero(),
		"a limit of memory":        !container.Resources.Limits.Memory().IsZero(),
		"its own priority class":   pod.PriorityClassName == "aiops-controller-manager",
		"spread over nodes":        len(pod.TopologySpreadConstraints) == 1,
		"an optional config":       *pod.Volumes[0].ConfigMap.Optional,
		"optional credentials":     *pod.Volumes[1].Secret.Optional,
		"leader election":          slices.Contains(container.Args, "--leader-elect"),
		"probes":                   container.LivenessProbe != nil && container.ReadinessProbe != nil,
		"no access to the node":    !pod.HostNetwork && !pod.HostPID && !pod.HostIPC,
		"no user that it asks for": pod.SecurityContext.RunAsUser == nil, // OpenShift gives one out of the namespace's range
	} {
		if !ok {
			t.Errorf("the operator's pods lack: %s", what)
		}
	}
}

// A console offers what descriptors name: each field at the top has one, and none speaks of a field or value that is not there.
func TestBundleDescribesTheFields(t *testing.T) {
	b := loadBundle(t)
	owned := b.CSV.Spec.CustomResourceDefinitions.Owned[0]
	fields := flatten(schemaOf(b.CRDs[0]))
	described := map[string][]string{}
	for _, descriptor := range owned.SpecDescriptors {
		described[".spec."+descriptor.Path] = descriptor.XDescriptors
	}
	for _, descriptor := range owned.StatusDescriptors {
		described[".status."+descriptor.Path] = descriptor.XDescriptors
	}
	for path := range fields {
		if _, ok := described[path]; !ok && strings.Count(path, ".") == 2 && !strings.HasPrefix(path, ".metadata") && !strings.HasSuffix(path, "[]") {
			t.Errorf("%s has no descriptor", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(described)) {
		schema, ok := fields[strings.ReplaceAll(path, "[0]", "[]")]
		if !ok {
			t.Errorf("the descriptor of %s speaks of no field", path)
			continue
		}
		checkSelect(t, path, described[path], schema)
	}
}

// checkSelect checks that a descriptor offers exactly the values that the schema allows.
func checkSelect(t *testing.T, path string, descriptors []string, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	var offered, allowed []string
	for _, descriptor := range descriptors {
		if value, ok := strings.CutPrefix(descriptor, "urn:alm:descriptor:com.tectonic.ui:select:"); ok {
			offered = append(offered, value)
		}
	}
	for _, value := range schema.Enum {
		allowed = append(allowed, strings.Trim(string(value.Raw), `"`))
	}
	if path == ".spec.targetRef.kind" { // the operator says which kinds it knows, so that more can come
		allowed = []string{"Deployment", "StatefulSet", "DaemonSet"}
	}
	slices.Sort(offered)
	slices.Sort(allowed)
	if diff := cmp.Diff(allowed, offered); diff != "" {
		t.Errorf("%s offers other values than the schema allows (-schema +descriptor):\n%s", path, diff)
	}
}
