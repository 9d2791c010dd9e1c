package packaging_test

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/example/aiops-operator/test/cluster"
)

// OLM installs the operator on no Kubernetes older than the oldest that make test-skew runs.
func TestOldestKubernetesIsTested(t *testing.T) {
	text, err := os.ReadFile("../../config/manifests/bases/aiops-operator.clusterserviceversion.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var csv struct {
		Spec struct {
			MinKubeVersion string `json:"minKubeVersion"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &csv); err != nil {
		t.Fatal(err)
	}
	tested := cluster.KubernetesVersions()
	if want := tested[len(tested)-1] + ".0"; csv.Spec.MinKubeVersion != want {
		t.Errorf("minKubeVersion is %s, want %s, the oldest that is tested", csv.Spec.MinKubeVersion, want)
	}
}
