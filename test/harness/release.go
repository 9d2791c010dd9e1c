package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/aiops-operator/test/packaging/bundle"
)

// Release is one version of the operator, as its bundle describes it to OLM.
type Release struct {
	// CSV is the bundle's ClusterServiceVersion: rights, command line, name and version.
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// Definitions are the bundle's CustomResourceDefinitions.
	Definitions []*unstructured.Unstructured
	// Others are the bundle's further objects, as they are in it: without a namespace.
	Others []*unstructured.Unstructured
}

// LoadRelease returns the release of this tree.
func LoadRelease() (*Release, error) {
	loaded, err := bundle.Load(filepath.Join(Root(), "bundle"))
	if err != nil {
		return nil, err
	}
	out := &Release{CSV: loaded.CSV, Others: loaded.Others}
	for _, definition := range loaded.CRDs {
		objects, err := encode(definition)
		if err != nil {
			return nil, err
		}
		out.Definitions = append(out.Definitions, objects...)
	}
	return out, nil
}

// OwnerLabel is what OLM puts on the rights that it makes from a ClusterServiceVersion.
const OwnerLabel = "olm.owner"

// Install installs the release as OLM would, without its Deployment: definitions, then everything else.
func (r *Release) Install(ctx context.Context, writer client.Client) error {
	if err := r.InstallDefinitions(ctx, writer); err != nil {
		return err
	}
	return r.InstallRights(ctx, writer)
}

// InstallDefinitions installs the CustomResourceDefinitions, the first thing that OLM does.
func (r *Release) InstallDefinitions(ctx context.Context, writer client.Client) error {
	return Apply(ctx, writer, r.Definitions...)
}

// InstallRights installs what else the operator needs before it is started: its namespace, the bundle's further objects, its
// ServiceAccount, and the rights that the ClusterServiceVersion asks for.
func (r *Release) InstallRights(ctx context.Context, writer client.Client) error {
	objects, err := encode(&corev1.Namespace{TypeMeta: typeMeta(corev1.SchemeGroupVersion.String(), "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	if err != nil {
		return err
	}
	if err := Apply(ctx, writer, objects...); err != nil {
		return err
	}
	further, err := r.placed(writer)
	if err != nil {
		return err
	}
	rights, err := r.Rights()
	if err != nil {
		return err
	}
	return Apply(ctx, writer, slices.Concat(further, rights)...)
}

// Uninstall removes what OLM removes with the ClusterServiceVersion: everything that the release owns in its namespace, and its rights.
// The Deployment is the caller's process. What OLM keeps stays: the CustomResourceDefinitions with every AITask, and ClusterRoles that are
// files of the bundle.
func (r *Release) Uninstall(ctx context.Context, writer client.Client) error {
	rights, err := r.Rights()
	if err != nil {
		return err
	}
	further, err := r.placed(writer)
	if err != nil {
		return err
	}
	owned := slices.DeleteFunc(further, func(object *unstructured.Unstructured) bool { return object.GetNamespace() == "" })
	return Delete(ctx, writer, slices.Concat(owned, rights)...)
}

// Remove removes everything that Install made, files of the bundle and definitions included, and with the definitions every AITask.
func (r *Release) Remove(ctx context.Context, writer client.Client) error {
	if err := r.Uninstall(ctx, writer); err != nil {
		return err
	}
	further, err := r.placed(writer)
	if err != nil {
		return err
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(Namespace)
	return Delete(ctx, writer, slices.Concat(r.Definitions, further, []*unstructured.Unstructured{namespace})...)
}

// RemoveRights removes the rights of a release that another one has replaced. The ServiceAccount is the other one's now.
func (r *Release) RemoveRights(ctx context.Context, writer client.Client) error {
	rights, err := r.Rights()
	if err != nil {
		return err
	}
	return Delete(ctx, writer, slices.DeleteFunc(rights, func(object *unstructured.Unstructured) bool { return object.GetKind() == "ServiceAccount" })...)
}

// placed returns the further objects where OLM puts them: those of a namespace into the operator's.
func (r *Release) placed(reader client.Client) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, object := range r.Others {
		object = object.DeepCopy()
		namespaced, err := reader.IsObjectNamespaced(object)
		if err != nil {
			return nil, fmt.Errorf("place %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if namespaced {
			object.SetNamespace(Namespace)
		}
		out = append(out, object)
	}
	return out, nil
}

// Rights returns what OLM makes of the ClusterServiceVersion's rules: each ServiceAccount, one Role or ClusterRole per entry, its binding.
func (r *Release) Rights() ([]*unstructured.Unstructured, error) {
	var objects []runtime.Object
	strategy := r.CSV.Spec.InstallStrategy.StrategySpec
	for i, entry := range strategy.ClusterPermissions {
		objects = append(objects, r.account(entry), r.role("ClusterRole", i, entry), r.binding("ClusterRole", i, entry))
	}
	for i, entry := range strategy.Permissions {
		objects = append(objects, r.account(entry), r.role("Role", i, entry), r.binding("Role", i, entry))
	}
	return encode(objects...)
}

func (r *Release) account(entry operatorsv1alpha1.StrategyDeploymentPermissions) runtime.Object {
	return &corev1.ServiceAccount{TypeMeta: typeMeta(corev1.SchemeGroupVersion.String(), rbacv1.ServiceAccountKind),
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: entry.ServiceAccountName}}
}

func (r *Release) role(kind string, index int, entry operatorsv1alpha1.StrategyDeploymentPermissions) runtime.Object {
	meta := r.roleMeta(kind, index)
	if kind == "Role" {
		return &rbacv1.Role{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), kind), ObjectMeta: meta, Rules: entry.Rules}
	}
	return &rbacv1.ClusterRole{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), kind), ObjectMeta: meta, Rules: entry.Rules}
}

func (r *Release) binding(kind string, index int, entry operatorsv1alpha1.StrategyDeploymentPermissions) runtime.Object {
	meta := r.roleMeta(kind, index)
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: entry.ServiceAccountName}}
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: meta.Name}
	if kind == "Role" {
		return &rbacv1.RoleBinding{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), kind+"Binding"), ObjectMeta: meta, RoleRef: reference, Subjects: subjects}
	}
	return &rbacv1.ClusterRoleBinding{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), kind+"Binding"), ObjectMeta: meta, RoleRef: reference, Subjects: subjects}
}

// roleMeta names a role after its ClusterServiceVersion, so that the rights of two releases stand beside each other during an upgrade.
func (r *Release) roleMeta(kind string, index int) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", r.CSV.Name, index), Labels: map[string]string{OwnerLabel: r.CSV.Name}}
	if kind == "Role" {
		out.Namespace = Namespace
	}
	return out
}

// Arguments returns the command line that the ClusterServiceVersion gives to the operator.
func (r *Release) Arguments() ([]string, error) {
	for _, deployment := range r.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for i := range deployment.Spec.Template.Spec.Containers {
			if container := &deployment.Spec.Template.Spec.Containers[i]; container.Name == "manager" {
				return slices.Clone(container.Args), nil
			}
		}
	}
	return nil, fmt.Errorf("find the command line in %s: it has no container manager", r.CSV.Name)
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// encode turns objects into what can be applied.
func encode(objects ...runtime.Object) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("encode %T: %w", object, err)
		}
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(content, "status")
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out, nil
}
