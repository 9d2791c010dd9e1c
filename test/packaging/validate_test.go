package packaging_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// newestKubernetes is what the bundle is validated for; the Makefile says the same to operator-sdk.
const newestKubernetes = "1.37"

// bundleValidators are those of `operator-sdk bundle validate --select-optional suite=operatorframework`, and the one for single
// objects, which that command does not run.
func bundleValidators() validator.Validators {
	return slices.Concat(validation.DefaultBundleValidators, validator.Validators{
		validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator,
		validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator, validation.ObjectValidator,
	})
}

// findings are all errors and warnings about the bundle.
func findings(bundle *manifests.Bundle) []string {
	objects := append(bundle.ObjectsToValidate(), map[string]string{"k8s-version": newestKubernetes})
	var out []string
	for _, result := range bundleValidators().Validate(objects...) {
		for _, finding := range slices.Concat(result.Errors, result.Warnings) {
			out = append(out, finding.Error())
		}
	}
	return out
}

func readForValidation(t *testing.T) *manifests.Bundle {
	t.Helper()
	out, err := manifests.GetBundleFromDir(treeBundle)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBundleIsValid(t *testing.T) {
	for _, finding := range findings(readForValidation(t)) {
		t.Error(finding)
	}
}

// Each validator is proven to look: a bundle that is changed for the worse has a finding.
func TestBundleValidatorsNotice(t *testing.T) {
	for name, c := range map[string]struct {
		worsen func(*manifests.Bundle)
		want   string
	}{
		"a name without a version":      {func(b *manifests.Bundle) { b.CSV.Name = "aiops" }, "versioning"},
		"a kind that it does not bring": {func(b *manifests.Bundle) { b.V1CRDs = nil }, "AITask"},
		"no icon":                       {func(b *manifests.Bundle) { b.CSV.Spec.Icon = nil }, "Icon"},
		"no provider":                   {func(b *manifests.Bundle) { b.CSV.Spec.Provider.Name = "" }, "Provider"},
		"a maintainer without address":  {func(b *manifests.Bundle) { b.CSV.Spec.Maintainers[0].Email = "" }, "Maintainers"},
		"no oldest Kubernetes":          {func(b *manifests.Bundle) { b.CSV.Spec.MinKubeVersion = "" }, "minKubeVersion"},
		"a level that does not exist":   {func(b *manifests.Bundle) { b.CSV.Annotations["capabilities"] = "Magic" }, "Magic"},
		"an unknown category":           {func(b *manifests.Bundle) { b.CSV.Annotations["categories"] = "AIOps" }, "AIOps"},
		"a channel of another kind":     {func(b *manifests.Bundle) { b.Channels = []string{"alpha"} }, "alpha"},
		"no requests":                   {func(b *manifests.Bundle) { operatorContainer(b).Resources.Requests = nil }, "resource requests"},
		"no description of the kind":    {func(b *manifests.Bundle) { b.CSV.Spec.CustomResourceDefinitions.Owned[0].Description = "" }, "description"},
		"rights over definitions":       {grantDefinitions, "permissions to create CRD"},
		"a budget that blocks draining": {blockDraining, "maxUnavailable"},
		"a sample that is no object":    {func(b *manifests.Bundle) { b.CSV.Annotations["alm-examples"] = `["web"]` }, "example CustomResource"},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := readForValidation(t)
			c.worsen(bundle)
			got := findings(bundle)
			if !slices.ContainsFunc(got, func(finding string) bool { return strings.Contains(finding, c.want) }) {
				t.Errorf("got the findings %q, want one about %q", got, c.want)
			}
		})
	}
}

func operatorContainer(b *manifests.Bundle) *corev1.Container {
	return &b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
}

func grantDefinitions(b *manifests.Bundle) {
	strategy := &b.CSV.Spec.InstallStrategy.StrategySpec
	strategy.ClusterPermissions = append(strategy.ClusterPermissions, operatorsv1alpha1.StrategyDeploymentPermissions{
		ServiceAccountName: bundleAccount,
		Rules:              []rbacv1.PolicyRule{{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"create"}}},
	})
}

func blockDraining(b *manifests.Bundle) {
	for _, object := range b.Objects {
		if object.GetKind() == "PodDisruptionBudget" {
			object.Object["spec"].(map[string]any)["maxUnavailable"] = int64(0)
		}
	}
}
