package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

// annotationsPath is the file of a bundle that says where its parts are.
const annotationsPath = "metadata/annotations.yaml"

// catalogFolder is where a catalog image has its catalog, and catalogLabel tells opm and OLM so.
const (
	catalogFolder = "configs"
	catalogLabel  = "operators.operatorframework.io.index.configs.v1"
)

// Bundle makes the image of an OLM bundle: its folders manifests, metadata and tests, and its annotations as labels.
// A bundle without annotations is an error.
func Bundle(folder fs.FS, created time.Time) (v1.Image, error) {
	encoded, err := fs.ReadFile(folder, annotationsPath)
	if err != nil {
		return nil, fmt.Errorf("read the bundle's annotations: %w", err)
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.UnmarshalStrict(encoded, &metadata); err != nil {
		return nil, fmt.Errorf("decode %s: %w", annotationsPath, err)
	}
	if len(metadata.Annotations) == 0 {
		return nil, fmt.Errorf("%s has no annotations", annotationsPath)
	}
	return folderImage(folder, "", metadata.Annotations, created)
}

// Catalog makes the image of a file-based catalog from the folder of one package. It holds no program: OLM takes the
// catalog out of it, as its CatalogSource says with extractContent.
func Catalog(folder fs.FS, packageName string, created time.Time) (v1.Image, error) {
	return folderImage(folder, catalogFolder+"/"+packageName, map[string]string{catalogLabel: "/" + catalogFolder}, created)
}

// errEmptyFolder says that there is nothing to make an image of.
var errEmptyFolder = errors.New("the folder holds no file")

func folderImage(folder fs.FS, prefix string, labels map[string]string, created time.Time) (v1.Image, error) {
	files, err := filesBelow(folder, prefix)
	if err != nil {
		return nil, fmt.Errorf("read the image's folder: %w", err)
	}
	if len(files) == 0 {
		return nil, errEmptyFolder
	}
	content, err := layer(files, created)
	if err != nil {
		return nil, err
	}
	// There is nothing to run: the platform is the one that container engines write when they are told none.
	return image(v1.ConfigFile{
		OS: "linux", Architecture: "amd64", Config: v1.Config{Labels: maps.Clone(labels)},
	}, created, content)
}
