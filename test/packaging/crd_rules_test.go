package packaging_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

type (
	definition = apiextensionsv1.CustomResourceDefinition
	properties = apiextensionsv1.JSONSchemaProps
)

// Each case changes one place of the tree's schema; want is in the reason of the refusal, and empty where the change is allowed.
func TestCRDGrowthOfSchema(t *testing.T) {
	cases := map[string]struct {
		place  string
		change func(*properties)
		want   string
	}{
		// What was stored was judged by the rules of its time, and is judged again by those of today when it is written.
		"a rule's expression changed": {".spec.steps[].scale", func(s *properties) { s.XValidations[0].Rule = "has(self.by)" }, "unhandled"},
		"a rule's message changed":    {".spec.steps[].scale", func(s *properties) { s.XValidations[0].Message = "other words" }, "unhandled"},
		"a rule removed":              {".spec.steps[].scale", func(s *properties) { s.XValidations = s.XValidations[1:] }, "unhandled"},
		"a rule added to what exists": {".spec.limits", func(s *properties) { s.XValidations = rule("self.maxPasses < 50") }, "unhandled"},
		"a rule added to the root":    {"", func(s *properties) { s.XValidations = append(s.XValidations, rule("true")...) }, "unhandled"},
		"a pattern added":             {".spec.targetDeployment", func(s *properties) { s.Pattern = "^[a-z]+$" }, "pattern"},
		"a format changed":            {".spec.forSeconds", func(s *properties) { s.Format = "int64" }, "unhandled"},
		"a format added":              {".spec.targetDeployment", func(s *properties) { s.Format = "hostname" }, "unhandled"},
		"a list's type changed":       {".spec.steps", func(s *properties) { s.XListType = pointerTo("atomic") }, "unhandled"},
		"a list's keys changed":       {".spec.steps", func(s *properties) { s.XListMapKeys = []string{"name", "action"} }, "unhandled"},
		"a default added":             {".spec.suspend", func(s *properties) { s.Default = raw("false") }, "default"},
		"a default changed":           {".spec.forSeconds", func(s *properties) { s.Default = raw("30") }, "default"},
		"a default removed":           {".spec.forSeconds", func(s *properties) { s.Default = nil }, "default"},
		"a maximum lowered":           {".spec.limits.maxActions", func(s *properties) { s.Maximum = pointerTo(50.0) }, "maximum"},
		"a minimum raised":            {".spec.forSeconds", func(s *properties) { s.Minimum = pointerTo(1.0) }, "minimum"},
		"a maximum length lowered":    {".spec.targetDeployment", func(s *properties) { s.MaxLength = pointerTo[int64](63) }, "maxLength"},
		"a maximum length in status":  {".status.phase", func(s *properties) { s.MaxLength = pointerTo[int64](32) }, "maxLength"},
		"a minimum length raised":     {".spec.targetDeployment", func(s *properties) { s.MinLength = pointerTo[int64](2) }, "minLength"},
		"fewer items":                 {".spec.steps", func(s *properties) { s.MaxItems = pointerTo[int64](4) }, "maxItems"},
		"more items at least":         {".spec.steps", func(s *properties) { s.MinItems = pointerTo[int64](2) }, "minItems"},
		"a word removed from a set":   {".spec.mode", func(s *properties) { s.Enum = s.Enum[:1] }, "enum"},
		"a string turned into a set":  {".status.phase", func(s *properties) { s.Enum = []apiextensionsv1.JSON{*raw(`"Watching"`)} }, "enum"},
		"a type changed":              {".spec.suspend", func(s *properties) { s.Type = "string" }, "type"},
		"a field made required":       {".spec.steps[].evict", func(s *properties) { s.Required = []string{"maxPods"} }, "required"},
		"a required field added":      {".spec.targetRef", addField("namespace", text(), required), "required"},
		"a field removed":             {".spec", func(s *properties) { delete(s.Properties, "suspend") }, "removed field"},
		"a field of status removed":   {".status.order", func(s *properties) { delete(s.Properties, "podUIDs") }, "removed field"},
		"an object opened":            {".spec.limits", func(s *properties) { s.XPreserveUnknownFields = pointerTo(true) }, "unhandled"},
		"null admitted":               {".spec.suspend", func(s *properties) { s.Nullable = true }, "nullable"},
		"a rule on a name removed":    {".spec.signals[].name", func(s *properties) { s.XValidations = nil }, "unhandled"},

		"an optional field":              {".spec", addField("approvers", text()), ""},
		"with a default and a rule":      {".spec.limits", addField("burst", withDefaultAndRule()), ""},
		"an optional field of status":    {".status.order", addField("approvedBy", text()), ""},
		"a field below a list":           {".spec.steps[]", addField("undo", text()), ""},
		"a struct with a required field": {".spec", addField("backup", structure()), ""},
		"a word added to a set":          {".spec.mode", func(s *properties) { s.Enum = append(s.Enum, *raw(`"Approve"`)) }, ""},
		"a larger maximum":               {".spec.limits.maxActions", func(s *properties) { s.Maximum = pointerTo(1000.0) }, ""},
		"a smaller minimum":              {".spec.intervalSeconds", func(s *properties) { s.Minimum = pointerTo(1.0) }, ""},
		"a larger maximum length":        {".status.phase", func(s *properties) { s.MaxLength = pointerTo[int64](128) }, ""},
		"more items":                     {".spec.signals", func(s *properties) { s.MaxItems = pointerTo[int64](8) }, ""},
		"a required field made optional": {".spec.steps[].scale", func(s *properties) { s.Required = nil }, ""},
		"other words for people":         {".spec.mode", func(s *properties) { s.Description = "Other words." }, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			old, next := readCRD(t, currentCRD), readCRD(t, currentCRD)
			if !changeAt(schemaOf(next), test.place, test.change) {
				t.Fatalf("the schema has no %q", test.place)
			}
			checkGrowth(t, old, next, test.want)
		})
	}
}

// Each case changes what stands around the tree's schema.
func TestCRDGrowthOfFrame(t *testing.T) {
	cases := map[string]struct {
		change func(*definition)
		want   string
	}{
		"another scope":             {func(crd *definition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }, "scope"},
		"another group":             {func(crd *definition) { crd.Spec.Group = "example.com" }, "group"},
		"another kind":              {func(crd *definition) { crd.Spec.Names.Kind = "Task" }, "kind"},
		"another list kind":         {func(crd *definition) { crd.Spec.Names.ListKind = "Tasks" }, "list kind"},
		"another plural":            {func(crd *definition) { crd.Spec.Names.Plural = "tasks" }, "plural"},
		"another singular":          {func(crd *definition) { crd.Spec.Names.Singular = "task" }, "singular"},
		"a short name removed":      {func(crd *definition) { crd.Spec.Names.ShortNames = nil }, "short names"},
		"a category removed":        {func(crd *definition) { crd.Spec.Names.Categories = nil }, "categories"},
		"a version removed":         {func(crd *definition) { crd.Spec.Versions[0].Name = "v2" }, "no longer served"},
		"a version not served":      {func(crd *definition) { crd.Spec.Versions[0].Served = false }, "no longer served"},
		"a selectable field gone":   {func(crd *definition) { crd.Spec.Versions[0].SelectableFields = nil }, "selectable fields"},
		"the subresource gone":      {func(crd *definition) { crd.Spec.Versions[0].Subresources = nil }, "subresource status"},
		"a conversion by a webhook": {func(crd *definition) { crd.Spec.Conversion = webhook() }, "conversion"},

		"no columns":                      {func(crd *definition) { crd.Spec.Versions[0].AdditionalPrinterColumns = nil }, ""},
		"another short name":              {func(crd *definition) { crd.Spec.Names.ShortNames = append(crd.Spec.Names.ShortNames, "ait") }, ""},
		"another selectable field":        {func(crd *definition) { addSelectableField(crd, ".status.phase") }, ""},
		"a second version that is served": {func(crd *definition) { addVersion(crd, "v2") }, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			old, next := readCRD(t, currentCRD), readCRD(t, currentCRD)
			test.change(next)
			checkGrowth(t, old, next, test.want)
		})
	}
}

func checkGrowth(t *testing.T, old, next *definition, want string) {
	t.Helper()
	if equality.Semantic.DeepEqual(old, next) {
		t.Fatal("the case changes nothing")
	}
	got := strings.Join(growthProblems(t, old, next), "\n")
	switch {
	case want == "" && got != "":
		t.Errorf("refused, want allowed: %s", got)
	case want != "" && !strings.Contains(got, want):
		t.Errorf("got %q, want a refusal that says %q", got, want)
	}
}

// changeAt changes one place of a schema, named as flatten names it, and says whether there is one.
func changeAt(schema *properties, place string, change func(*properties)) bool {
	if place == "" {
		change(schema)
		return true
	}
	if rest, found := strings.CutPrefix(place, "[]"); found {
		return schema.Items != nil && changeAt(schema.Items.Schema, rest, change)
	}
	name, rest := place[1:], ""
	if end := strings.IndexAny(name, ".["); end >= 0 {
		name, rest = name[:end], name[end:]
	}
	property, found := schema.Properties[name]
	if !found || !changeAt(&property, rest, change) {
		return false
	}
	schema.Properties[name] = property
	return true
}

func addField(name string, field properties, changes ...func(*properties, string)) func(*properties) {
	return func(schema *properties) {
		schema.Properties[name] = field
		for _, change := range changes {
			change(schema, name)
		}
	}
}

func required(schema *properties, name string) { schema.Required = append(schema.Required, name) }

func text() properties { return properties{Type: "string", MaxLength: pointerTo[int64](63)} }

func withDefaultAndRule() properties {
	return properties{Type: "integer", Minimum: pointerTo(0.0), Maximum: pointerTo(10.0), Default: raw("1"), XValidations: rule("self != 7")}
}

func structure() properties {
	return properties{Type: "object", Required: []string{"bucket"}, Properties: map[string]properties{"bucket": text()}}
}

func rule(expression string) apiextensionsv1.ValidationRules {
	return apiextensionsv1.ValidationRules{{Rule: expression, Message: "write something else"}}
}

func raw(value string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(value)} }

func pointerTo[T any](value T) *T { return &value }

func webhook() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
}

func addSelectableField(crd *definition, path string) {
	version := &crd.Spec.Versions[0]
	version.SelectableFields = append(version.SelectableFields, apiextensionsv1.SelectableField{JSONPath: path})
}

func addVersion(crd *definition, name string) {
	version := *crd.Spec.Versions[0].DeepCopy()
	version.Name, version.Storage = name, false
	crd.Spec.Versions = append(crd.Spec.Versions, version)
}
