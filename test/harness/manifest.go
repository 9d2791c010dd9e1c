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
	return ReadManifest(filepath.Join(Root(), "dist", "install.yaml"))
}

// ReadManifest returns the objects of a YAML file, in its order.
func ReadManifest(path string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	out, err := DecodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// DecodeManifest returns the objects of the documents in data, in their order. Empty documents are none.
func DecodeManifest(data []byte) ([]*unstructured.Unstructured, error) {
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
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
}
