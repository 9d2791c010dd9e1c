package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// What config/default calls the operator. The chart's names take their place.
const (
	chartName     = "aiops-operator"
	namePrefix    = "aiops-"
	namespace     = "aiops-system"
	longestName   = 63 // of a Service
	minKubernetes = "1.34.0"
)

//go:embed source
var source embed.FS

// release is what differs from one build of the chart to the next.
type release struct {
	Version string
	Image   string
}

// generate returns the files of the chart by their names.
func generate(given release, manifests []byte) (map[string][]byte, error) {
	objects, err := decode(manifests)
	if err != nil {
		return nil, err
	}
	facts, err := factsOf(given, objects)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if err := addTemplates(files, objects); err != nil {
		return nil, err
	}
	filled := map[string]string{}
	for from, to := range map[string]string{
		"Chart.yaml": "Chart.yaml", "helpers.tpl": "templates/_helpers.tpl", "notes.txt": "templates/NOTES.txt",
		"values.schema.yaml": "", "readme.md": "",
	} {
		text, err := fill(from, facts)
		if err != nil {
			return nil, err
		}
		filled[from] = text
		if to != "" {
			files[to] = []byte(text)
		}
	}
	return files, addValues(files, filled["values.schema.yaml"], filled["readme.md"])
}

// decode reads the objects. It drops the Namespace, which Helm is told to make or not to make by whoever installs, and puts the
// chart's own ConfigMap in the place of whatever configuration there is.
func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	out := []*unstructured.Unstructured{configuration()}
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode the manifests: %w", err)
		}
		if object.GetKind() == "" || object.GetKind() == "Namespace" {
			continue
		}
		if object.GetKind() != "CustomResourceDefinition" {
			object.SetName(strings.TrimPrefix(object.GetName(), namePrefix))
		}
		if !slices.ContainsFunc(out, func(other *unstructured.Unstructured) bool {
			return other.GetKind() == object.GetKind() && other.GetName() == object.GetName()
		}) {
			out = append(out, object)
		}
	}
}

// configuration is the ConfigMap that the Deployment mounts. Its content is a value.
func configuration() *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	out.SetNamespace(namespace)
	out.SetName("manager-config")
	return out
}

// addTemplates renders every object into the file that its placement names.
func addTemplates(files map[string][]byte, objects []*unstructured.Unstructured) error {
	rename := newRenamer(objects)
	for _, object := range objects {
		where, err := placementOf(object)
		if err != nil {
			return err
		}
		text, err := renderObject(object, rename)
		if err != nil {
			return fmt.Errorf("render %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		name := path.Join("templates", where.file)
		if len(files[name]) > 0 {
			files[name] = append(files[name], "---\n"...)
		}
		if where.when != "" {
			text = "{{- if " + where.when + " }}\n" + text + "{{- end }}\n"
		}
		files[name] = append(files[name], text...)
	}
	return nil
}

// fill executes one of the hand-written sources. Its delimiters leave those of Helm alone.
func fill(name string, facts facts) (string, error) {
	functions := template.FuncMap{
		"json": func(value any) (string, error) {
			text, err := json.Marshal(value)
			return string(text), err
		},
		"sub": func(a, b int) int { return a - b },
	}
	parsed, err := template.New(name).Delims("[[", "]]").Funcs(functions).Option("missingkey=error").ParseFS(source, "source/"+name)
	if err != nil {
		return "", fmt.Errorf("parse %s: %w", name, err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, facts); err != nil {
		return "", fmt.Errorf("fill %s: %w", name, err)
	}
	return out.String(), nil
}
