// Package harness sets the operator up for tests and demonstrations: on an embedded cluster, from the very manifests that users
// apply, running as its own ServiceAccount with nothing but its own rights.
package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Where the manifests put the operator.
const (
	Namespace      = "aiops-system"
	ServiceAccount = "aiops-controller-manager"
)

// Root returns the folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Install applies dist/install.yaml without its Deployment: there is no image to pull here, so the operator runs as a process
// beside the cluster, as the same ServiceAccount.
func Install(ctx context.Context, writer client.Client) error {
	objects, err := manifests()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" || object.GetKind() == "PodDisruptionBudget" {
			continue
		}
		if err := apply(ctx, writer, object); err != nil {
			return err
		}
	}
	return waitEstablished(ctx, writer)
}

// apply tries again for a while: an API server that has just started may not yet serve every group, nor know a namespace that was
// made a moment ago.
func apply(ctx context.Context, writer client.Client, object *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 15*time.Second, true, func(ctx context.Context) (bool, error) {
		last = writer.Patch(ctx, object.DeepCopy(), client.Apply, client.FieldOwner("harness"), client.ForceOwnership) //nolint:staticcheck // unstructured objects have no typed apply
		if apierrors.IsInvalid(last) || apierrors.IsBadRequest(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), errors.Join(err, last))
	}
	return nil
}

func manifests() ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(filepath.Join(Root(), "dist", "install.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var out []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode the manifests: %w", err)
		}
		if object.GetKind() != "" {
			out = append(out, object)
		}
	}
}

func waitEstablished(ctx context.Context, reader client.Client) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err := reader.Get(ctx, types.NamespacedName{Name: "aitasks.aiops.example.com"}, crd); err != nil {
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
	})
	if err != nil {
		return fmt.Errorf("wait for the CRD: %w", err)
	}
	return nil
}
