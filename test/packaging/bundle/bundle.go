// Package bundle reads a bundle of the Operator Lifecycle Manager (format registry+v1) from its folder, for the tests that compare
// it, install it or ask it for something. It says what is there and judges nothing: what a good bundle is, the tests say.
package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	scorecardv1alpha3 "github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Bundle is what a bundle's folder holds.
type Bundle struct {
	// CSV is the one ClusterServiceVersion of manifests/.
	CSV *operatorsv1alpha1.ClusterServiceVersion
	// CRDs are the CustomResourceDefinitions of manifests/, in the order of their files.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Others are all other objects of manifests/, in the order of their files. They have no namespace: it is where the operator is
	// installed.
	Others []*unstructured.Unstructured
	// Annotations are those of metadata/annotations.yaml: package, channels, the folders of the bundle.
	Annotations map[string]string
	// Scorecard is tests/scorecard/config.yaml.
	Scorecard scorecardv1alpha3.Configuration
}

// Load reads the bundle in folder. It fails for a file that cannot be read, that holds anything but one object, or that has a
// field twice or one that its type does not know, and for a folder without exactly one ClusterServiceVersion.
func Load(folder string) (Bundle, error) {
	var out Bundle
	files, err := os.ReadDir(filepath.Join(folder, "manifests"))
	if err != nil {
		return Bundle{}, fmt.Errorf("listing the manifests of the bundle: %w", err)
	}
	for _, file := range files {
		if err := out.addManifest(filepath.Join(folder, "manifests", file.Name())); err != nil {
			return Bundle{}, err
		}
	}
	if out.CSV == nil {
		return Bundle{}, fmt.Errorf("reading the bundle %s: no ClusterServiceVersion in manifests", folder)
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := read(filepath.Join(folder, "metadata", "annotations.yaml"), &metadata); err != nil {
		return Bundle{}, err
	}
	out.Annotations = metadata.Annotations
	if err := read(filepath.Join(folder, "tests", "scorecard", "config.yaml"), &out.Scorecard); err != nil {
		return Bundle{}, err
	}
	return out, nil
}

// addManifest adds the object in the file at path.
func (b *Bundle) addManifest(path string) error {
	object := &unstructured.Unstructured{}
	if err := read(path, object); err != nil {
		return err
	}
	switch object.GetKind() {
	case operatorsv1alpha1.ClusterServiceVersionKind:
		if b.CSV != nil {
			return fmt.Errorf("reading %s: a second ClusterServiceVersion beside %s", path, b.CSV.Name)
		}
		b.CSV = &operatorsv1alpha1.ClusterServiceVersion{}
		return read(path, b.CSV)
	case "CustomResourceDefinition":
		crd := &apiextensionsv1.CustomResourceDefinition{}
		b.CRDs = append(b.CRDs, crd)
		return read(path, crd)
	default:
		b.Others = append(b.Others, object)
		return nil
	}
}

// read decodes the one YAML document of the file at path into out.
func read(path string, out any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading a file of the bundle: %w", err)
	}
	if bytes.Contains(content, []byte("\n---\n")) {
		return fmt.Errorf("reading %s: more than one document", path)
	}
	encoded, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}
