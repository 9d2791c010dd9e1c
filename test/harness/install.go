// Package harness sets the operator up for tests and demonstrations: on an embedded cluster, from the very package that users
// install, running as its own ServiceAccount with nothing but its own rights.
package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// Where the operator is installed.
const (
	Namespace      = "aiops-system"
	ServiceAccount = "aiops-controller-manager"
)

// DefinitionName is the name of the kind's CustomResourceDefinition.
const DefinitionName = "aitasks." + aiopsv1.GroupName

// Root returns the folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Install installs the bundle of this tree as OLM would, without its Deployment: there is no image to pull here, so the operator
// runs as a process beside the cluster, as the same ServiceAccount.
func Install(ctx context.Context, writer client.Client) error {
	release, err := LoadRelease()
	if err != nil {
		return err
	}
	return release.Install(ctx, writer)
}

// Apply writes objects as kubectl apply --server-side would, in order, and waits until the kind is served if its definition is among
// them. It tries again for a while: an API server that has just started may not yet serve every group, nor know a namespace that was
// made a moment ago, and what is still being deleted has to go first.
func Apply(ctx context.Context, writer client.Client, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := apply(ctx, writer, object); err != nil {
			return err
		}
		if object.GetKind() == "CustomResourceDefinition" {
			if err := waitServed(ctx, writer, object.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

func apply(ctx context.Context, writer client.Client, object *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, DeletionTime, true, func(ctx context.Context) (bool, error) {
		applied := object.DeepCopy()
		last = writer.Patch(ctx, applied, client.Apply, client.FieldOwner("harness"), client.ForceOwnership) //nolint:staticcheck // unstructured objects have no typed apply
		if apierrors.IsInvalid(last) || apierrors.IsBadRequest(last) {
			return false, last
		}
		if last == nil && applied.GetDeletionTimestamp() != nil {
			last = errBeingDeleted
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), errors.Join(err, last))
	}
	return nil
}

// DeletionTime is how long a deletion may take before it hangs. Most take a second and that of a namespace some, but an API server that is
// busy while it deletes a definition may not see that the last object is gone, and then looks again only a minute later.
const DeletionTime = 3 * time.Minute

var errBeingDeleted = errors.New("it is being deleted")

// Delete deletes objects as kubectl delete would, in order. What is gone already, with its kind or without, is no error.
func Delete(ctx context.Context, writer client.Client, objects ...*unstructured.Unstructured) error {
	for _, object := range objects {
		err := writer.Delete(ctx, object.DeepCopy())
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// waitServed waits until the kind can be read and written: the API server serves it a moment after it says so.
func waitServed(ctx context.Context, reader client.Client, name string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(aiopsv1.GroupVersion().WithKind("AITaskList"))
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		established, err := isEstablished(ctx, reader, name)
		if err != nil || !established {
			return false, err
		}
		last = reader.List(ctx, list)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the CRD %s: %w", name, errors.Join(err, last))
	}
	return nil
}

func isEstablished(ctx context.Context, reader client.Client, name string) (bool, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, crd); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	field, _, err := unstructured.NestedFieldNoCopy(crd.Object, "status", "conditions")
	conditions, _ := field.([]any) // null in the first moment
	for _, item := range conditions {
		if condition, ok := item.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true, nil
		}
	}
	return false, err
}
