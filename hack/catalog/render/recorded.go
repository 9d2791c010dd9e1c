package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/example/aiops-operator/hack/image/container"
)

// errUnknownTag asks for a reference that cannot come to mean another bundle.
var errUnknownTag = errors.New("is a tag, and not that of the tree's bundle: name a published bundle by its digest")

// semverTemplate is what a template of the schema olm.semver lists.
type semverTemplate struct {
	Candidate listedBundles `json:"candidate"`
	Fast      listedBundles `json:"fast"`
	Stable    listedBundles `json:"stable"`
}

type listedBundles struct {
	Bundles []struct {
		Image string `json:"image"`
	} `json:"bundles"`
}

// standIns take the place of bundles that were read before, so that opm has nothing to fetch.
type standIns struct {
	// images are what opm is given.
	images map[name.Tag]v1.Image
	// documents are what the catalog says of the bundles that they stand for, by the bundle's name.
	documents map[string]document
}

// References lists the images of a template of the schema olm.semver, each once and in order.
func References(template []byte) ([]string, error) {
	var read semverTemplate
	if err := yaml.Unmarshal(template, &read); err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	var references []string
	for _, listed := range slices.Concat(read.Candidate.Bundles, read.Fast.Bundles, read.Stable.Bundles) {
		references = append(references, listed.Image)
	}
	slices.Sort(references)
	return slices.Compact(references), nil
}

// substitute replaces the recorded bundles of a template by images that stand in for them.
func (r Renderer) substitute(template []byte) ([]byte, standIns, error) {
	out := standIns{images: maps.Clone(r.Unpublished), documents: map[string]document{}}
	recorded, icon, err := recordedBundles(r.Recorded)
	if err != nil {
		return nil, standIns{}, err
	}
	references, err := References(template)
	if err != nil {
		return nil, standIns{}, err
	}
	for _, reference := range references {
		digest, err := name.NewDigest(reference)
		if err != nil {
			if tag, err := name.NewTag(reference); err != nil || r.Unpublished[tag] == nil {
				return nil, standIns{}, r.refuse(reference)
			}
			continue
		}
		known, found := recorded[reference]
		if !found {
			continue
		}
		tag := digest.Tag("recorded-" + digest.DigestStr()[len("sha256:"):])
		if out.images[tag], err = standIn(known, icon); err != nil {
			return nil, standIns{}, fmt.Errorf("make an image that stands in for %s: %w", reference, err)
		}
		out.documents[fmt.Sprint(known["name"])] = known
		template = bytes.ReplaceAll(template, []byte(reference), []byte(tag.String()))
	}
	return template, out, nil
}

// refuse says what may stand in the place of a tag that is not known: after a change of the tree's version the template still names
// the old one.
func (r Renderer) refuse(reference string) error {
	var tags []string
	for tag := range r.Unpublished {
		tags = append(tags, tag.TagStr())
	}
	slices.Sort(tags)
	return fmt.Errorf("%s %w, or, if it was never published, write %s in its place in catalog/aiops-operator.semver.yaml",
		reference, errUnknownTag, strings.Join(tags, " or "))
}

// restore puts what the catalog says of the recorded bundles in the place of what opm says of the images that stood in.
func (s standIns) restore(documents []document) []document {
	for position, next := range documents {
		if known, found := s.documents[fmt.Sprint(next["name"])]; found && next["schema"] == bundleSchema {
			documents[position] = known
		}
	}
	return documents
}

// recordedBundles are the bundles of a catalog by their images, and the icon of its package.
func recordedBundles(catalog []byte) (map[string]document, any, error) {
	bundles := map[string]document{}
	var icon any
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(catalog), len(catalog)+1)
	for {
		var next document
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return bundles, icon, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the recorded catalog: %w", err)
		}
		switch next["schema"] {
		case packageSchema:
			icon = next["icon"]
		case bundleSchema:
			bundles[fmt.Sprint(next["image"])] = next
		}
	}
}

// standIn makes an image of the few things that opm's template takes from a bundle: its name and version for the channels, and its
// description and icon for the package.
func standIn(recorded document, icon any) (v1.Image, error) {
	var read struct {
		Name       string `json:"name"`
		Package    string `json:"package"`
		Properties []struct {
			Type  string `json:"type"`
			Value any    `json:"value"`
		} `json:"properties"`
	}
	if err := convert(recorded, &read); err != nil {
		return nil, err
	}
	spec := map[string]any{}
	for _, property := range read.Properties {
		value, _ := property.Value.(map[string]any)
		switch property.Type {
		case "olm.package":
			spec["version"] = value["version"]
		case "olm.csv.metadata":
			spec["description"] = value["description"]
		}
	}
	if icon != nil {
		spec["icon"] = []any{icon}
	}
	const format = "operators.operatorframework.io.bundle."
	files := fstest.MapFS{}
	for path, content := range map[string]any{
		"manifests/csv.yaml": map[string]any{
			"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
			"metadata": map[string]any{"name": read.Name}, "spec": spec,
		},
		"metadata/annotations.yaml": map[string]any{"annotations": map[string]string{
			format + "mediatype.v1": "registry+v1", format + "manifests.v1": "manifests/", format + "metadata.v1": "metadata/",
			format + "package.v1": read.Package, format + "channels.v1": "candidate",
		}},
	} {
		encoded, err := yaml.Marshal(content)
		if err != nil {
			return nil, err
		}
		files[path] = &fstest.MapFile{Data: encoded}
	}
	return container.Bundle(files, time.Unix(0, 0))
}
