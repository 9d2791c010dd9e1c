package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Manifest returns the objects of dist/install.yaml, in its order.
func Manifest() ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(filepath.Join(Root(), "dist", "install.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
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
			return nil, fmt.Errorf("decode the manifest: %w", err)
		}
		if object.GetKind() != "" {
			out = append(out, object)
		}
	}
}
