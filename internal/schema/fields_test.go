package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// served returns the OpenAPI document that an API server makes of this tree's definition, after an edit of its schema.
func served(t *testing.T, edit func(*apiextensionsv1.JSONSchemaProps)) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "aiops.example.com_aitasks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, definition); err != nil {
		t.Fatal(err)
	}
	kind := map[string]any{}
	root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	edit(root)
	encoded, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &kind); err != nil {
		t.Fatal(err)
	}
	kind["x-kubernetes-group-version-kind"] = []map[string]string{{"group": "aiops.example.com", "version": "v1", "kind": "AITask"}}
	document, err := json.Marshal(map[string]any{"openapi": "3.0.0", "components": map[string]any{"schemas": map[string]any{
		"com.example.aiops.v1.AITask":     kind,
		"com.example.aiops.v1.AITaskList": map[string]any{"properties": map[string]any{"items": map[string]any{}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// without removes a field, which is named by its path.
func without(path ...string) func(*apiextensionsv1.JSONSchemaProps) {
	return func(at *apiextensionsv1.JSONSchemaProps) {
		field := path[0]
		if field == "[]" {
			without(path[1:]...)(at.Items.Schema)
			return
		}
		if len(path) == 1 {
			delete(at.Properties, field)
			return
		}
		inner := at.Properties[field]
		without(path[1:]...)(&inner)
		at.Properties[field] = inner
	}
}

func TestMissingFields(t *testing.T) {
	tests := map[string]struct {
		edit func(*apiextensionsv1.JSONSchemaProps)
		want []string
	}{
		"the definition of this version": {edit: func(*apiextensionsv1.JSONSchemaProps) {}},
		"a newer one": {edit: func(root *apiextensionsv1.JSONSchemaProps) {
			status := root.Properties["status"]
			status.Properties["newer"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}},
		"one without a field of the order": {edit: without("status", "order", "deadlineTime"), want: []string{"status.order.deadlineTime"}},
		"one without the order":            {edit: without("status", "order"), want: []string{"status.order"}},
		"one without a field in a list":    {edit: without("status", "history", "[]", "result"), want: []string{"status.history[].result"}},
		"one without a field of the spec":  {edit: without("spec", "limits", "cooldownSeconds"), want: []string{"spec.limits.cooldownSeconds"}},
		"one without two fields": {edit: func(root *apiextensionsv1.JSONSchemaProps) {
			without("status", "phase")(root)
			without("spec", "suspend")(root)
		}, want: []string{"spec.suspend", "status.phase"}},
		"one without a status": {edit: without("status"), want: []string{"status"}},
		"one that stores everything": {edit: func(root *apiextensionsv1.JSONSchemaProps) {
			preserves := true
			root.Properties["status"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserves}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := missingFields(served(t, test.edit))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("missing fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADocumentThatDoesNotSayIsAnError(t *testing.T) {
	for name, document := range map[string]string{
		"no JSON":           `<html>`,
		"empty":             `{}`,
		"of another kind":   `{"components": {"schemas": {"Other": {"x-kubernetes-group-version-kind": [{"group": "aiops.example.com", "version": "v1", "kind": "Other"}]}}}}`,
		"of another format": `{"components": {"schemas": []}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if missing, err := missingFields([]byte(document)); err == nil {
				t.Errorf("got %v and no error", missing)
			}
		})
	}
}
