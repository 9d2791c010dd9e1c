package harness

import (
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// LoadRelease returns the release of this tree.
func LoadRelease() (*Release, error) {
	objects, err := Manifest()
	if err != nil {
		return nil, err
	}
	out := &Release{CSV: &operatorsv1alpha1.ClusterServiceVersion{}}
	out.CSV.Name = "aiops-operator.v0.1.0"
	strategy := &out.CSV.Spec.InstallStrategy.StrategySpec
	bound := map[string]bool{}
	for _, object := range objects {
		if kind := object.GetKind(); kind == "ClusterRoleBinding" || kind == "RoleBinding" {
			name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			bound[name] = true
		}
	}
	cluster := operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: ServiceAccount}
	namespaced := operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: ServiceAccount}
	for _, object := range objects {
		switch kind := object.GetKind(); {
		case kind == "CustomResourceDefinition":
			out.Definitions = append(out.Definitions, object)
		case kind == "ClusterRole" && bound[object.GetName()]:
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
				return nil, fmt.Errorf("decode: %w", err)
			}
			cluster.Rules = append(cluster.Rules, role.Rules...)
		case kind == "Role" && bound[object.GetName()]:
			role := &rbacv1.Role{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
				return nil, fmt.Errorf("decode: %w", err)
			}
			namespaced.Rules = append(namespaced.Rules, role.Rules...)
		case kind == "Deployment":
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
				return nil, fmt.Errorf("decode: %w", err)
			}
			strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, operatorsv1alpha1.StrategyDeploymentSpec{Name: deployment.Name, Spec: deployment.Spec})
		case kind == "Namespace" || kind == "ServiceAccount" || kind == "ClusterRoleBinding" || kind == "RoleBinding":
		default:
			out.Others = append(out.Others, object)
		}
	}
	strategy.ClusterPermissions = append(strategy.ClusterPermissions, cluster)
	strategy.Permissions = append(strategy.Permissions, namespaced)
	return out, nil
}
