// Package schema holds the AITask's generated CRD in a test's hands: the API server's own admission of a body without a server,
// and random bodies made from the schema. It knows nothing of clusters and of the operator.
package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// What kube-apiserver lets one rule, and all rules of an object, cost.
const (
	ruleBudget   = 1_000_000
	objectBudget = 10_000_000
)

// Admission judges bodies as kube-apiserver does, from the same code, without a server.
type Admission struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// ReadCRD reads the only CustomResourceDefinition of a file.
func ReadCRD(path string) (*apiextensionsv1.CustomResourceDefinition, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the CRD: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return nil, fmt.Errorf("decode the CRD: %w", err)
	}
	if len(crd.Spec.Versions) == 0 || crd.Spec.Versions[0].Schema == nil {
		return nil, fmt.Errorf("the CRD of %s has no version with a schema", path)
	}
	return crd, nil
}

// New returns the admission of a CRD's first version.
func New(crd *apiextensionsv1.CustomResourceDefinition) (*Admission, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil); err != nil {
		return nil, fmt.Errorf("convert the schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("read the schema as a structural one: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	return &Admission{structural, validator, cel.NewValidator(structural, true, ruleBudget)}, nil
}

// Admit returns the body as it would be stored, status included, or why it is refused. Fields that the schema does not know are
// dropped, as the API server does for a client that did not ask to be told.
//
// The name and the labels are not checked: they are the API server's own and cannot be written in a schema.
func (a *Admission) Admit(ctx context.Context, body []byte) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("decode the body: %w", err)
	}
	content := object.Object
	metadata, found, err := objectmeta.GetObjectMeta(content, false)
	if err != nil {
		return nil, fmt.Errorf("decode the metadata: %w", err)
	}
	pruning.Prune(content, a.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(content, a.structural)
	defaulting.Default(content, a.structural)
	if found {
		if err := objectmeta.SetObjectMeta(content, metadata); err != nil {
			return nil, fmt.Errorf("encode the metadata: %w", err)
		}
	}
	if problems := a.validate(ctx, content); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	stored, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode the stored body: %w", err)
	}
	return stored, nil
}

// validate asks the rules only about what has the right shape, since they are not written for anything else.
func (a *Admission) validate(ctx context.Context, content map[string]any) field.ErrorList {
	problems := validation.ValidateCustomResource(nil, content, a.validator)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, a.structural, content)...)
	if len(problems) > 0 {
		return problems
	}
	problems, _ = a.rules.Validate(ctx, nil, a.structural, content, nil, objectBudget)
	return problems
}
