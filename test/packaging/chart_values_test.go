package packaging_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/example/aiops-operator/internal/config"
)

// effect is what one value does to what is installed.
type effect struct {
	// value is the path of the value.
	value string
	// set is the values file.
	set string
	// kind is the object that shows it: a kind, or kind/name where there are several.
	kind string
	// field is where: keys and positions. Empty: the object itself.
	field string
	// want is what is there. nil: the object or the field is missing.
	want any
}

// Every value has an effect, and it is the one that its description promises.
func TestChartValuesTakeEffect(t *testing.T) {
	const (
		pod       = "spec.template.spec."
		container = pod + "containers.0."
		policy    = "NetworkPolicy/aiops-aiops-operator-controller-manager-allow-"
		digest    = "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
	)
	tests := []effect{
		{"image.repository", "image: {repository: registry.example.com:5000/team/aiops}", "Deployment", container + "image", "registry.example.com:5000/team/aiops:v" + loadBundle(t).CSV.Spec.Version.String()},
		{"image.tag", "image: {tag: v9}", "Deployment", container + "image", "example.com/aiops-operator:v9"},
		{"image.digest", "image: {tag: v9, digest: " + digest + "}", "Deployment", container + "image", "example.com/aiops-operator@" + digest},
		{"image.pullPolicy", "image: {pullPolicy: Always}", "Deployment", container + "imagePullPolicy", "Always"},
		{"image.pullSecrets", "image: {pullSecrets: [{name: a}]}", "Deployment", pod + "imagePullSecrets", []any{map[string]any{"name": "a"}}},
		{"replicas", "replicas: 3", "Deployment", "spec.replicas", int64(3)},
		{"resources", "resources: {limits: {memory: 1Gi}}", "Deployment", container + "resources.limits.memory", "1Gi"},
		{"config.prometheusEndpoints", "config: {prometheusEndpoints: [{name: a, url: 'http://b'}]}", "ConfigMap", "data.config~yaml", "prometheusEndpoints:\n- name: a\n  url: http://b\nreceivers: []\n"},
		{"config.receivers", "config: {receivers: [{name: a, url: 'http://b'}]}", "ConfigMap", "data.config~yaml", "prometheusEndpoints: []\nreceivers:\n- name: a\n  url: http://b\n"},
		{"config.storm.breachedPercent", "config: {storm: {breachedPercent: 1}}", "ConfigMap", "data.config~yaml", "prometheusEndpoints: []\nreceivers: []\nstorm:\n  breachedPercent: 1\n"},
		{"config.storm.minimumTargets", "config: {storm: {minimumTargets: 1}}", "ConfigMap", "data.config~yaml", "prometheusEndpoints: []\nreceivers: []\nstorm:\n  minimumTargets: 1\n"},
		{"config.storm.withinSeconds", "config: {storm: {withinSeconds: 1}}", "ConfigMap", "data.config~yaml", "prometheusEndpoints: []\nreceivers: []\nstorm:\n  withinSeconds: 1\n"},
		{"config.storm.calmSeconds", "config: {storm: {calmSeconds: 0}}", "ConfigMap", "data.config~yaml", "prometheusEndpoints: []\nreceivers: []\nstorm:\n  calmSeconds: 0\n"},
		{"credentialsSecret", "", "Deployment", pod + "volumes.1.secret.secretName", "aiops-aiops-operator-manager-credentials"},
		{"credentialsSecret", "credentialsSecret: mine", "Deployment", pod + "volumes.1.secret.secretName", "mine"},
		{"extraArgs", "extraArgs: [--concurrency=16]", "Deployment", container + "args.4", "--concurrency=16"},
		{"extraEnv", "extraEnv: [{name: A, value: b}]", "Deployment", container + "env", []any{map[string]any{"name": "A", "value": "b"}}},
		{"extraVolumes", "extraVolumes: [{name: a, secret: {secretName: b}}]", "Deployment", pod + "volumes.2", map[string]any{"name": "a", "secret": map[string]any{"secretName": "b"}}},
		{"extraVolumeMounts", "extraVolumeMounts: [{name: a, mountPath: /b}]", "Deployment", container + "volumeMounts.2", map[string]any{"name": "a", "mountPath": "/b"}},
		{"podSecurityContext", "podSecurityContext: {runAsUser: 7}", "Deployment", pod + "securityContext.runAsUser", int64(7)},
		{"securityContext", "securityContext: {runAsUser: 7}", "Deployment", container + "securityContext.runAsUser", int64(7)},
		{"nodeSelector", "nodeSelector: {a: b}", "Deployment", pod + "nodeSelector", map[string]any{"a": "b"}},
		{"tolerations", "tolerations: [{operator: Exists}]", "Deployment", pod + "tolerations", []any{map[string]any{"operator": "Exists"}}},
		{"affinity", "affinity: {nodeAffinity: {}}", "Deployment", pod + "affinity", map[string]any{"nodeAffinity": map[string]any{}}},
		{"topologySpreadConstraints", "topologySpreadConstraints: []", "Deployment", pod + "topologySpreadConstraints", nil},
		{"topologySpreadConstraints", "topologySpreadConstraints: [{maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]", "Deployment", pod + "topologySpreadConstraints.0.labelSelector.matchLabels", map[string]any{
			"app.kubernetes.io/name": "aiops-operator", "app.kubernetes.io/instance": "aiops", "control-plane": "controller-manager"}},
		{"topologySpreadConstraints", "topologySpreadConstraints: [{maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {b: c}}}]", "Deployment", pod + "topologySpreadConstraints.0.labelSelector", map[string]any{"matchLabels": map[string]any{"b": "c"}}},
		{"priorityClass.create", "priorityClass: {create: false}", "PriorityClass", "", nil},
		{"priorityClass.create", "priorityClass: {create: false}", "Deployment", pod + "priorityClassName", nil},
		{"priorityClass.name", "priorityClass: {create: false, name: system-cluster-critical}", "Deployment", pod + "priorityClassName", "system-cluster-critical"},
		{"priorityClass.name", "priorityClass: {name: ours}", "PriorityClass", "metadata.name", "ours"},
		{"podAnnotations", "podAnnotations: {a: b}", "Deployment", "spec.template.metadata.annotations.a", "b"},
		{"podLabels", "podLabels: {a: b}", "Deployment", "spec.template.metadata.labels.a", "b"},
		{"podLabels", "podLabels: {a: b}", "Deployment", "spec.selector.matchLabels.a", nil},
		{"commonLabels", "commonLabels: {a: b}", "Deployment", "spec.template.metadata.labels.a", "b"},
		{"commonLabels", "commonLabels: {a: b}", "Deployment", "spec.selector.matchLabels.a", nil},
		{"commonLabels", "commonLabels: {a: b}", "CustomResourceDefinition", "metadata.labels.a", "b"},
		{"commonLabels", "{commonLabels: {a: b}, podLabels: {a: c}}", "Deployment", "spec.template.metadata.labels.a", "c"},
		{"nameOverride", "nameOverride: other", "Deployment", "metadata.labels.app~kubernetes~io/name", "other"},
		{"nameOverride", "nameOverride: other", "Deployment", "metadata.name", "aiops-other-controller-manager"},
		{"fullnameOverride", "fullnameOverride: other", "Deployment", "metadata.name", "other-controller-manager"},
		{"serviceAccount.create", "serviceAccount: {create: false, name: mine}", "ServiceAccount", "", nil},
		{"serviceAccount.name", "serviceAccount: {create: false, name: mine}", "Deployment", pod + "serviceAccountName", "mine"},
		{"serviceAccount.name", "serviceAccount: {name: mine}", "ServiceAccount", "metadata.name", "mine"},
		{"serviceAccount.name", "serviceAccount: {name: mine}", "RoleBinding", "subjects.0.name", "mine"},
		{"serviceAccount.annotations", "serviceAccount: {annotations: {a: b}}", "ServiceAccount", "metadata.annotations.a", "b"},
		{"rbac.create", "rbac: {create: false}", "Role", "", nil},
		{"rbac.create", "rbac: {create: false}", "RoleBinding", "", nil},
		{"rbac.create", "rbac: {create: false}", "ClusterRole", "", nil},
		{"rbac.create", "rbac: {create: false}", "ClusterRoleBinding", "", nil},
		{"rbac.userRoles", "{rbac: {userRoles: false}, metrics: {enabled: false}}", "ClusterRole", "metadata.name", "aiops-aiops-operator-manager-role"},
		{"metrics.enabled", "metrics: {enabled: false}", "Service", "", nil},
		{"metrics.enabled", "metrics: {enabled: false}", "Deployment", container + "args.2", "--metrics-bind-address=0"},
		{"metrics.enabled", "metrics: {enabled: false}", "Deployment", container + "ports.1", nil},
		{"metrics.enabled", "metrics: {enabled: false}", "ClusterRoleBinding", "metadata.name", "aiops-aiops-operator-manager-rolebinding"},
		{"metrics.enabled", "metrics: {enabled: false, serviceMonitor: {enabled: true}}", "ServiceMonitor", "", nil},
		{"metrics.enabled", "metrics: {enabled: false, prometheusRule: {enabled: true}}", "PrometheusRule", "", nil},
		{"metrics.serviceMonitor.enabled", "metrics: {serviceMonitor: {enabled: true}}", "ServiceMonitor", "spec.selector.matchLabels.app~kubernetes~io/instance", "aiops"},
		{"metrics.serviceMonitor.enabled", "", "ServiceMonitor", "", nil},
		{"metrics.serviceMonitor.interval", "metrics: {serviceMonitor: {enabled: true, interval: 15s}}", "ServiceMonitor", "spec.endpoints.0.interval", "15s"},
		{"metrics.serviceMonitor.labels", "{commonLabels: {a: c}, metrics: {serviceMonitor: {enabled: true, labels: {a: b}}}}", "ServiceMonitor", "metadata.labels.a", "b"},
		{"metrics.prometheusRule.enabled", "metrics: {prometheusRule: {enabled: true}}", "PrometheusRule", "metadata.namespace", "aiops-system"},
		{"metrics.prometheusRule.enabled", "", "PrometheusRule", "", nil},
		{"metrics.prometheusRule.labels", "metrics: {prometheusRule: {enabled: true, labels: {a: b}}}", "PrometheusRule", "metadata.labels.a", "b"},
		{"networkPolicy.enabled", "", "NetworkPolicy", "spec.podSelector.matchLabels.app~kubernetes~io/instance", "aiops"},
		{"networkPolicy.enabled", "networkPolicy: {enabled: false}", "NetworkPolicy", "", nil},
		{"networkPolicy.egressPorts", "networkPolicy: {egressPorts: [3128, 65535]}", policy + "endpoints", "spec.egress", []any{map[string]any{"ports": []any{
			map[string]any{"port": int64(3128), "protocol": "TCP"}, map[string]any{"port": int64(65535), "protocol": "TCP"}}}}},
		{"networkPolicy.egressPorts", "networkPolicy: {egressPorts: []}", policy + "endpoints", "", nil},
		{"networkPolicy.metricsFrom", "networkPolicy: {metricsFrom: [{podSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8}}]}", policy + "metrics", "spec.ingress.0.from", []any{
			map[string]any{"podSelector": map[string]any{}}, map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}}},
		{"networkPolicy.metricsFrom", "networkPolicy: {metricsFrom: []}", policy + "metrics", "", nil},
		{"networkPolicy.metricsFrom", "metrics: {enabled: false}", policy + "metrics", "", nil},
		{"podDisruptionBudget.enabled", "podDisruptionBudget: {enabled: false}", "PodDisruptionBudget", "", nil},
		{"podDisruptionBudget.maxUnavailable", "podDisruptionBudget: {maxUnavailable: 0}", "PodDisruptionBudget", "spec.maxUnavailable", int64(0)},
		{"podDisruptionBudget.minAvailable", "podDisruptionBudget: {minAvailable: 50%}", "PodDisruptionBudget", "spec.minAvailable", "50%"},
		{"podDisruptionBudget.minAvailable", "podDisruptionBudget: {minAvailable: 0}", "PodDisruptionBudget", "spec.maxUnavailable", nil},
		{"crds.enabled", "crds: {enabled: false}", "CustomResourceDefinition", "", nil},
		{"crds.keep", "", "CustomResourceDefinition", "metadata.annotations.helm~sh/resource-policy", "keep"},
		{"crds.keep", "crds: {keep: false}", "CustomResourceDefinition", "metadata.annotations.helm~sh/resource-policy", nil},
	}
	covered := map[string]bool{"global": true} // its effect is that it is taken
	for _, test := range tests {
		covered[test.value] = true
		t.Run(test.set+" "+test.kind+" "+test.field, func(t *testing.T) {
			t.Parallel()
			checkEffect(t, test)
		})
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(chartSchema(t))), slices.Sorted(maps.Keys(covered))); diff != "" {
		t.Errorf("values of the schema (-) and values with a case here (+):\n%s", diff)
	}
}

func checkEffect(t *testing.T, test effect) {
	t.Helper()
	installed := 0
	for name, object := range renderChart(t, test.set+"\nglobal: {shared: true}\n") {
		if object.GetKind() != test.kind && name != test.kind {
			continue
		}
		installed++
		if test.field == "" {
			continue
		}
		if diff := cmp.Diff(test.want, at(object.Object, test.field)); diff != "" {
			t.Errorf("%s %s, %s (-want +got):\n%s", object.GetKind(), object.GetName(), test.field, diff)
		}
	}
	if (installed == 0) != (test.field == "") {
		t.Errorf("there are %d objects of the kind %s", installed, test.kind)
	}
}

// The operator notices a changed configuration by itself: nothing else may replace the pods for it.
func TestChartConfigChangesNothingOfThePods(t *testing.T) {
	template := func(values string) any {
		return at(only(t, renderChart(t, values), "Deployment").Object, "spec.template")
	}
	if diff := cmp.Diff(template(""), template("config: {receivers: [{name: a, url: 'http://b'}]}")); diff != "" {
		t.Errorf("pods without a receiver (-) and with one (+):\n%s", diff)
	}
}

// Mistakes are refused, and the message names the value.
func TestChartRefusesMistakes(t *testing.T) {
	tests := []struct{ set, want string }{
		{"replica: 3", "additional properties 'replica' not allowed"},
		{"replicas: three", "'/replicas': got string, want integer"},
		{"replicas: -1", "'/replicas': minimum: got -1, want 0"},
		{"image: example.com/aiops:v1", "'/image': got string, want object"},
		{"image: {repository: 'foo:bar'}", "'/image/repository': 'foo:bar' does not match pattern"},
		{"image: {repository: 'localhost:5000/aiops:v1'}", "'/image/repository': 'localhost:5000/aiops:v1' does not match pattern"},
		{"image: {digest: 4f53}", "'/image/digest': '4f53' does not match pattern"},
		{"image: {pullPolicy: Sometimes}", "'/image/pullPolicy': value must be one of"},
		{"resources: {limit: {memory: 1Gi}}", "'/resources': additional properties 'limit' not allowed"},
		{"resources: {limits: {memroy: 1Gi}}", "'/resources/limits': additional properties 'memroy' not allowed"},
		{"resources: {requests: {cpu: {}}}", "'/resources/requests/cpu': got object, want "},
		{"resources: {claims: [{request: a}]}", "'/resources/claims/0': missing property 'name'"},
		{"config: {prometheusEndpoints: [{name: a}]}", "'/config/prometheusEndpoints/0': missing property 'url'"},
		{"config: {prometheusEndpoints: [{name: a, url: 'ftp://b'}]}", "'/config/prometheusEndpoints/0/url': 'ftp://b' does not match pattern"},
		{"config: {receivers: [{name: a, url: 'http://b', token: secret}]}", "additional properties 'token' not allowed"},
		{"config: {receivers: [{name: a, url: 'http://b', bearerTokenFile: token}]}", "'/config/receivers/0/bearerTokenFile': 'token' does not match pattern"},
		{"config: {storm: {breachedPercent: 101}}", "'/config/storm/breachedPercent': maximum: got 101, want 100"},
		{"extraVolumes: [{secret: {secretName: a}}]", "'/extraVolumes/0': missing property 'name'"},
		{"nameOverride: Wrong_Name", "'/nameOverride': 'Wrong_Name' does not match pattern"},
		{"fullnameOverride: " + strings.Repeat("a", 64), "'/fullnameOverride': maxLength: got 64"},
		{"commonLabels: {control-plane: mine}", "'/commonLabels/control-plane': false schema"},
		{"podAnnotations: {kubectl.kubernetes.io/default-container: mine}", "'/podAnnotations/kubectl.kubernetes.io~1default-container': false schema"},
		{"podDisruptionBudget: {maxUnavailable: 101%}", "'/podDisruptionBudget/maxUnavailable'"},
		{"metrics: {serviceMonitor: {interval: often}}", "'/metrics/serviceMonitor/interval': 'often' does not match pattern"},
		{"crds: {keep: 'yes'}", "'/crds/keep': got string, want boolean"},
		{"networkPolicy: {egressPorts: [http]}", "'/networkPolicy/egressPorts/0': got string, want integer"},
		{"networkPolicy: {metricsFrom: [{}]}", "'/networkPolicy/metricsFrom/0': minProperties: got 0, want 1"},
		{"networkPolicy: {metricsFrom: [{namespace: a}]}", "additional properties 'namespace' not allowed"},
		{"priorityClass: {name: system-cluster-critical}", "set priorityClass.create to false to use an existing PriorityClass"},
		{"serviceAccount: {create: false}", "serviceAccount.name is needed when serviceAccount.create is false"},
	}
	for _, test := range tests {
		t.Run(test.set, func(t *testing.T) {
			t.Parallel()
			if _, err := template(t, "aiops", "aiops-system", test.set); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant an error that says: %s", err, test.want)
			}
		})
	}
}

var writtenNull = regexp.MustCompile(`(?m)(^ +|: )null$`)

// A null takes a default away. Either the chart does without, or it says which value it needs.
func TestChartValuesMayBeNull(t *testing.T) {
	paths := map[string]bool{}
	for path := range chartSchema(t) {
		for index, character := range path + "." {
			if character == '.' {
				paths[path[:index]] = true // what the value stands in, too
			}
		}
	}
	for path := range paths {
		keys := strings.Split(path, ".")
		set := strings.Join(keys, ": {") + ": null" + strings.Repeat("}", len(keys)-1)
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			printed, err := template(t, "aiops", "aiops-system", set)
			missing, wrong := "missing property '"+keys[len(keys)-1]+"'", "at '/"+strings.Join(keys, "/")+"': "
			if err != nil && !strings.Contains(err.Error(), missing) && !strings.Contains(err.Error(), wrong) {
				t.Error(err)
			}
			if strings.Contains(printed, "nil>") || writtenNull.MatchString(printed) {
				t.Errorf("a template has written:\n%s", printed)
			}
		})
	}
}

// Every value of values.yaml is in the schema with the same default, and every value of the schema is described there and in
// the README.
func TestChartValuesAreDescribed(t *testing.T) {
	schema := chartSchema(t)
	var defaults map[string]any
	if err := yaml.Unmarshal(readFile(t, filepath.Join(chartFolder, "values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.{10,}) \\| .* \\|$").FindAllSubmatch(readFile(t, filepath.Join(chartFolder, "README.md")), -1) {
		documented[string(row[1])] = true
	}
	for path, value := range schema {
		if value["description"] == nil {
			t.Errorf("the schema does not describe %s", path)
		}
		if path != "global" && !documented[path] {
			t.Errorf("the README does not describe %s", path)
		}
		if diff := cmp.Diff(value["default"], at(defaults, path)); diff != "" {
			t.Errorf("the default of %s in the schema (-) and in values.yaml (+):\n%s", path, diff)
		}
		delete(documented, path)
	}
	delete(documented, "global")
	if len(documented) > 0 {
		t.Errorf("the README describes what is no value: %v", slices.Sorted(maps.Keys(documented)))
	}
	for _, path := range leaves(defaults, schema, "") {
		if schema[path] == nil {
			t.Errorf("values.yaml has %s, which the schema does not know", path)
		}
	}
}

// leaves are the paths of the values that values.yaml sets.
func leaves(values map[string]any, schema map[string]map[string]any, prefix string) []string {
	var out []string
	for key, value := range values {
		below, isMap := value.(map[string]any)
		if path := prefix + key; isMap && schema[path] == nil {
			out = append(out, leaves(below, schema, path+".")...)
		} else {
			out = append(out, path)
		}
	}
	return out
}

// The values below config are the keys of the operator's configuration file, no more and no fewer.
func TestChartConfigIsTheOperators(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(readFile(t, filepath.Join(chartFolder, "values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}
	want := keysOf(reflect.TypeFor[config.Config](), "")
	slices.Sort(want)
	got := keysIn(at(root, "properties.config").(map[string]any), "")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys of the operator (-) and of the chart (+):\n%s", diff)
	}
}

// A configuration that uses every key passes the schema, and the operator reads it from the ConfigMap as it was meant.
func TestChartConfigReachesTheOperator(t *testing.T) {
	given := `
prometheusEndpoints:
- {name: a, url: "https://a", timeoutSeconds: 7, bearerTokenFile: /t, caFile: /ca}
- {name: b, url: "https://b", basicAuth: {username: u, passwordFile: /p}, insecureSkipTLSVerify: true}
receivers:
- {name: a, url: "https://c", timeoutSeconds: 60, bearerTokenFile: /t, caFile: /ca, headers: {X-Team: "007"}}
storm: {breachedPercent: 100, minimumTargets: 100000, withinSeconds: 3600, calmSeconds: 0}
`
	want, err := config.Parse("given", []byte(given))
	if err != nil {
		t.Fatal(err)
	}
	installed := renderChart(t, "config:"+strings.ReplaceAll(given, "\n", "\n  "))
	got, err := config.Parse("installed", []byte(at(only(t, installed, "ConfigMap").Object, "data.config~yaml").(string)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as given (-) and as installed (+):\n%s", diff)
	}
}

// keysOf lists the keys that a type of the configuration has, with their paths.
func keysOf(of reflect.Type, prefix string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	var out []string
	for index := range of.NumField() {
		field := of.Field(index)
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		out = append(out, prefix+key)
		out = append(out, keysOf(field.Type, prefix+key+".")...)
	}
	return out
}

// keysIn lists the keys that a schema has.
func keysIn(schema map[string]any, prefix string) []string {
	if items, ok := schema["items"].(map[string]any); ok {
		schema = items
	}
	properties, _ := schema["properties"].(map[string]any)
	var out []string
	for key, value := range properties {
		out = append(out, prefix+key)
		out = append(out, keysIn(value.(map[string]any), prefix+key+".")...)
	}
	return out
}

// chartSchema returns the values that can be set by themselves, by their paths.
func chartSchema(t *testing.T) map[string]map[string]any {
	t.Helper()
	var root map[string]any
	if err := yaml.Unmarshal(readFile(t, filepath.Join(chartFolder, "values.schema.json")), &root); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]any{}
	var walk func(schema map[string]any, prefix string)
	walk = func(schema map[string]any, prefix string) {
		properties, _ := schema["properties"].(map[string]any)
		if schema["additionalProperties"] != false {
			t.Errorf("the schema allows anything in %q", prefix)
		}
		for key, item := range properties {
			value := item.(map[string]any)
			if _, deeper := value["properties"]; deeper {
				walk(value, prefix+key+".")
				continue
			}
			out[prefix+key] = value
		}
	}
	walk(root, "")
	return out
}

// at returns what is at a path of keys and positions, or nil. In a key, ~ stands for a dot.
func at(value any, path string) any {
	for _, key := range strings.Split(path, ".") {
		switch typed := value.(type) {
		case map[string]any:
			value = typed[strings.ReplaceAll(key, "~", ".")]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index >= len(typed) {
				return nil
			}
			value = typed[index]
		default:
			return nil
		}
	}
	return value
}
