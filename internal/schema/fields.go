package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// node is the part of an OpenAPI schema that says which fields are stored.
type node struct {
	Properties map[string]node `json:"properties"`
	Items      *node           `json:"items"`
	// Preserves says that unknown fields are stored, too.
	Preserves bool                         `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds     []apischema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// missingFields returns the fields of an AITask that an OpenAPI v3 document does not have, such as "status.order.id", in the order of
// the types. Of a field that is missing nothing below is named. Fields that only the document has are not looked at: they are those
// of a newer version.
func missingFields(document []byte) ([]string, error) {
	var served struct {
		Components struct {
			Schemas map[string]node `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &served); err != nil {
		return nil, fmt.Errorf("decode the OpenAPI document of %s: %w", aiopsv1.GroupVersion(), err)
	}
	kind := aiopsv1.GroupVersion().WithKind("AITask")
	for _, candidate := range served.Components.Schemas {
		if slices.Contains(candidate.Kinds, kind) {
			return missingIn("", reflect.TypeFor[aiopsv1.AITask](), candidate), nil
		}
	}
	return nil, fmt.Errorf("find %s in its OpenAPI document: it is not there", kind.Kind)
}

// missingIn compares what stands at one place. Types of other packages, such as ObjectMeta, are the API server's own affair.
func missingIn(place string, own reflect.Type, served node) []string {
	switch own.Kind() {
	case reflect.Pointer:
		return missingIn(place, own.Elem(), served)
	case reflect.Slice:
		if served.Items == nil {
			return nil
		}
		return missingIn(place+"[]", own.Elem(), *served.Items)
	case reflect.Struct:
		return missingInStruct(place, own, served)
	default:
		return nil
	}
}

func missingInStruct(place string, own reflect.Type, served node) []string {
	if own.PkgPath() != reflect.TypeFor[aiopsv1.AITask]().PkgPath() || served.Preserves {
		return nil
	}
	var missing []string
	for i := range own.NumField() {
		name, _, _ := strings.Cut(own.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		path := strings.TrimPrefix(place+"."+name, ".")
		if field, found := served.Properties[name]; found {
			missing = append(missing, missingIn(path, own.Field(i).Type, field)...)
		} else {
			missing = append(missing, path)
		}
	}
	return missing
}
