package packaging_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations/property"

	crdschema "github.com/example/aiops-operator/test/integration/admission/schema"
)

const (
	currentCRD     = "../../config/crd/bases/aiops.example.com_aitasks.yaml"
	releasesFolder = "testdata/releases"
	// maxCRDBytes leaves room for the copy that plain kubectl apply keeps in an annotation.
	maxCRDBytes = 100 << 10
)

// The CRD of the tree can replace the CRD of every release, not of the last one alone: nobody upgrades through all of them.
func TestCRDReplacesReleases(t *testing.T) {
	next := readCRD(t, currentCRD)
	for _, release := range releases(t) {
		t.Run(release, func(t *testing.T) {
			old := readCRD(t, filepath.Join(releasesFolder, release, "crd.yaml"))
			for _, problem := range growthProblems(t, old, next) {
				t.Error(problem)
			}
		})
	}
}

func TestCRDSize(t *testing.T) {
	encoded, err := json.Marshal(readCRD(t, currentCRD))
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) > maxCRDBytes {
		t.Errorf("the CRD has %d bytes as JSON, want at most %d", len(encoded), maxCRDBytes)
	}
}

// Status is written by an older operator beside a newer one: a set or a rule that is closed in the schema would refuse its writes.
func TestCRDStatusIsOpen(t *testing.T) {
	for path, schema := range flatten(schemaOf(readCRD(t, currentCRD))) {
		if !strings.HasPrefix(path, ".status") {
			continue
		}
		for what, found := range map[string]bool{
			"an enum": len(schema.Enum) > 0, "a pattern": schema.Pattern != "", "a rule": len(schema.XValidations) > 0, "a default": schema.Default != nil,
		} {
			if found {
				t.Errorf("%s has %s: an older operator could not write beside a newer one", path, what)
			}
		}
	}
}

func releases(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(releasesFolder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s holds no release", releasesFolder)
	}
	return names
}

func readCRD(t *testing.T, path string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, err := crdschema.ReadCRD(path)
	if err != nil {
		t.Fatal(err)
	}
	return crd
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// growthProblems says why an API server that has the old CRD must not be given the next one.
func growthProblems(t *testing.T, old, next *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	return slices.Concat(lifecycleProblems(t, old, next), frameProblems(old, next))
}

// lifecycleProblems asks the rules of OLM v1, which refuses an upgrade by them: crdify with every check on and with everything
// refused that no check knows, but for descriptions, which are free, and new words of a set, which are allowed.
func lifecycleProblems(t *testing.T, old, next *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	rules, err := runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow}},
		},
	}, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	results := rules.Run(old, next)
	if !results.HasFailures() {
		return nil
	}
	return []string{results.RenderPlainText()}
}

// frameProblems judges what stands around the schema, which crdify does not look at: what clients call the kind by, and what the
// API server offers for it.
func frameProblems(old, next *apiextensionsv1.CustomResourceDefinition) []string {
	var problems []string
	refuse := func(what string, before, after any) {
		problems = append(problems, fmt.Sprintf("%s: was %v, is %v", what, before, after))
	}
	for what, values := range map[string][2]string{
		"group":     {old.Spec.Group, next.Spec.Group},
		"kind":      {old.Spec.Names.Kind, next.Spec.Names.Kind},
		"list kind": {old.Spec.Names.ListKind, next.Spec.Names.ListKind},
		"plural":    {old.Spec.Names.Plural, next.Spec.Names.Plural},
		"singular":  {old.Spec.Names.Singular, next.Spec.Names.Singular},
	} {
		if values[0] != values[1] {
			refuse(what, values[0], values[1])
		}
	}
	if before, after := old.Spec.Names.ShortNames, next.Spec.Names.ShortNames; lacks(after, before) {
		refuse("short names", before, after)
	}
	if before, after := old.Spec.Names.Categories, next.Spec.Names.Categories; lacks(after, before) {
		refuse("categories", before, after)
	}
	if conversion := next.Spec.Conversion; conversion != nil && conversion.Strategy != apiextensionsv1.NoneConverter {
		refuse("conversion", apiextensionsv1.NoneConverter, conversion.Strategy)
	}
	for _, version := range old.Spec.Versions {
		problems = append(problems, versionProblems(version, next)...)
	}
	return problems
}

func versionProblems(old apiextensionsv1.CustomResourceDefinitionVersion, crd *apiextensionsv1.CustomResourceDefinition) []string {
	position := slices.IndexFunc(crd.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return version.Name == old.Name
	})
	if position < 0 || old.Served && !crd.Spec.Versions[position].Served {
		return []string{fmt.Sprintf("version %s: is no longer served", old.Name)}
	}
	next := crd.Spec.Versions[position]
	var problems []string
	if lacks(next.SelectableFields, old.SelectableFields) {
		problems = append(problems, fmt.Sprintf("version %s: selectable fields: was %v, is %v", old.Name, old.SelectableFields, next.SelectableFields))
	}
	if hasStatus(old) && !hasStatus(next) {
		problems = append(problems, fmt.Sprintf("version %s: subresource status: is gone", old.Name))
	}
	return problems
}

func hasStatus(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return version.Subresources != nil && version.Subresources.Status != nil
}

// lacks says that something that was there is no longer there.
func lacks[T comparable](now, before []T) bool {
	return slices.ContainsFunc(before, func(one T) bool { return !slices.Contains(now, one) })
}

// flatten returns every place of a schema by its path, such as .spec.steps[].name; the root is "".
func flatten(schema *apiextensionsv1.JSONSchemaProps) map[string]*apiextensionsv1.JSONSchemaProps {
	places := map[string]*apiextensionsv1.JSONSchemaProps{"": schema}
	for name := range schema.Properties {
		property := schema.Properties[name]
		addBelow(places, "."+name, flatten(&property))
	}
	if schema.Items != nil {
		addBelow(places, "[]", flatten(schema.Items.Schema))
	}
	return places
}

func addBelow(places map[string]*apiextensionsv1.JSONSchemaProps, path string, below map[string]*apiextensionsv1.JSONSchemaProps) {
	for _, rest := range slices.Sorted(maps.Keys(below)) {
		places[path+rest] = below[rest]
	}
}
