package packaging_test

import (
	"path"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/config"
	"github.com/example/aiops-operator/internal/runbook"
)

const (
	samplesFolder           = configFolder + "/samples"
	configuredSamplesFolder = samplesFolder + "/configured"
	// configurationKey is where the operator's ConfigMap has the configuration file.
	configurationKey = "config.yaml"
)

// A sample is applied as it is, on a cluster where nobody has configured anything.
func TestSamplesNeedNoConfiguration(t *testing.T) {
	for _, file := range sampleFiles(t, samplesFolder) {
		if problem := problemOf(t, file, config.Default()); problem != "" {
			t.Errorf("%s: %s", file, problem)
		}
	}
}

// The samples that need configuration and the example of it belong together: it has all that they name.
func TestConfiguredSamplesHaveTheirConfiguration(t *testing.T) {
	configuration := exampleConfiguration(t)
	for _, file := range sampleFiles(t, configuredSamplesFolder) {
		if problem := problemOf(t, file, configuration); problem != "" {
			t.Errorf("%s: %s", file, problem)
		}
		if problemOf(t, file, config.Default()) == "" {
			t.Errorf("%s needs no configuration: it belongs to the other samples", file)
		}
	}
}

// The example has nothing but what the samples name: whatever is taken out of it, one of them misses it.
func TestExampleConfigurationHasNothingElse(t *testing.T) {
	missed := func(configuration config.Config) bool {
		return slices.ContainsFunc(sampleFiles(t, configuredSamplesFolder), func(file string) bool { return problemOf(t, file, configuration) != "" })
	}
	for i, endpoint := range exampleConfiguration(t).PrometheusEndpoints {
		less := exampleConfiguration(t)
		less.PrometheusEndpoints = slices.Delete(less.PrometheusEndpoints, i, i+1)
		if !missed(less) {
			t.Errorf("no sample names the endpoint %q", endpoint.Name)
		}
	}
	for i, receiver := range exampleConfiguration(t).Receivers {
		less := exampleConfiguration(t)
		less.Receivers = slices.Delete(less.Receivers, i, i+1)
		if !missed(less) {
			t.Errorf("no sample names the receiver %q", receiver.Name)
		}
	}
}

// The operator's Deployment mounts the ConfigMap and the Secret of the example, and each credential that the one names is in the other.
func TestExampleConfigurationIsMounted(t *testing.T) {
	deployment := installed[appsv1.Deployment](t, "Deployment")[0]
	stored, credentials := exampleObjects(t)
	for _, namespace := range []string{stored.Namespace, credentials.Namespace} {
		if namespace != deployment.Namespace {
			t.Errorf("the example is for the namespace %q, want the operator's, %q", namespace, deployment.Namespace)
		}
	}
	folders := mounts(deployment.Spec.Template.Spec)
	flag := "--config=" + path.Join(folders["ConfigMap "+stored.Name], configurationKey)
	if args := deployment.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, flag) {
		t.Errorf("the ConfigMap of the example is not what the operator reads: %q lacks %s", args, flag)
	}
	for _, file := range credentialFiles(exampleConfiguration(t)) {
		if path.Dir(file) != folders["Secret "+credentials.Name] || credentials.StringData[path.Base(file)] == "" {
			t.Errorf("the Secret of the example is not where the operator finds %s", file)
		}
	}
}

// sampleFiles are the samples in a folder itself.
func sampleFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "aiops_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no samples in %s: %v", folder, err)
	}
	return files
}

// problemOf is why the operator refuses a sample; empty if it does not.
func problemOf(t *testing.T, file string, configuration config.Config) string {
	t.Helper()
	var sample aiopsv1.AITask
	decodeFile(t, file, &sample)
	names := runbook.Names{}
	for _, endpoint := range configuration.PrometheusEndpoints {
		names.Endpoints = append(names.Endpoints, endpoint.Name)
	}
	for _, receiver := range configuration.Receivers {
		names.Receivers = append(names.Receivers, receiver.Name)
	}
	if problem := runbook.Validate(&sample.Spec, names); problem != nil {
		return problem.Message
	}
	return ""
}

// exampleObjects are the ConfigMap and the Secret that come with the samples that need configuration.
func exampleObjects(t *testing.T) (*corev1.ConfigMap, *corev1.Secret) {
	t.Helper()
	stored, credentials := &corev1.ConfigMap{}, &corev1.Secret{}
	decodeFile(t, filepath.Join(configuredSamplesFolder, "operator", "configmap.yaml"), stored)
	decodeFile(t, filepath.Join(configuredSamplesFolder, "operator", "secret.yaml"), credentials)
	return stored, credentials
}

func exampleConfiguration(t *testing.T) config.Config {
	t.Helper()
	stored, _ := exampleObjects(t)
	out, err := config.Parse(configurationKey, []byte(stored.Data[configurationKey]))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// credentialFiles are the files that a configuration names.
func credentialFiles(configuration config.Config) []string {
	var out []string
	for _, endpoint := range configuration.PrometheusEndpoints {
		out = append(out, endpoint.BearerTokenFile, endpoint.CAFile)
		if endpoint.BasicAuth != nil {
			out = append(out, endpoint.BasicAuth.PasswordFile)
		}
	}
	for _, receiver := range configuration.Receivers {
		out = append(out, receiver.BearerTokenFile, receiver.CAFile)
	}
	return slices.DeleteFunc(out, func(file string) bool { return file == "" })
}

// mounts are where the first container of a pod finds ConfigMaps and Secrets, by kind and name.
func mounts(pod corev1.PodSpec) map[string]string {
	volumes := map[string]string{}
	for _, volume := range pod.Volumes {
		switch {
		case volume.ConfigMap != nil:
			volumes[volume.Name] = "ConfigMap " + volume.ConfigMap.Name
		case volume.Secret != nil:
			volumes[volume.Name] = "Secret " + volume.Secret.SecretName
		}
	}
	out := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		out[volumes[mount.Name]] = mount.MountPath
	}
	return out
}
