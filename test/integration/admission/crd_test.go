package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	crdschema "github.com/example/aiops-operator/test/integration/admission/schema"
)

// node is one place of the schema.
type node struct {
	path      string
	belowList bool
	*apiextensionsv1.JSONSchemaProps
}

// walk returns every place of a schema, its root first.
func walk(at node) []node {
	out := []node{at}
	for name := range at.Properties {
		property := at.Properties[name]
		out = append(out, walk(node{at.path + "." + name, at.belowList, &property})...)
	}
	if at.Items != nil {
		out = append(out, walk(node{at.path + "[]", true, at.Items.Schema})...)
	}
	return out
}

func (n node) inSpec() bool { return strings.HasPrefix(n.path, ".spec") }

// scalarProblem says what a string or number lacks.
func scalarProblem(n node) string {
	switch n.Type {
	case "string":
		typeMeta := n.path == ".apiVersion" || n.path == ".kind"
		if n.MaxLength == nil && len(n.Enum) == 0 && !typeMeta && (n.inSpec() || n.Format != "date-time") {
			return "has no maximum length"
		}
	case "integer":
		if n.Minimum == nil || n.Maximum == nil {
			return "has no bounds"
		}
		if n.Format == "int32" && (*n.Minimum < -1<<31 || *n.Maximum > 1<<31-1) {
			return "admits what 32 bits can't hold"
		}
		if *n.Minimum <= -1<<53 || *n.Maximum >= 1<<53 {
			return "admits what a JSON reader would round"
		}
	case "number":
		return "is a float"
	}
	return ""
}

// shapeProblem says what an object or list should not be.
func shapeProblem(n node) string {
	switch {
	case n.Type == "":
		return "has no type"
	case n.AdditionalProperties != nil || n.XPreserveUnknownFields != nil || n.XEmbeddedResource:
		return "is open"
	case n.XIntOrString || n.Nullable:
		return "has two types"
	case n.Default != nil && n.belowList:
		return "has a default below a list"
	case n.Type == "array" && n.MaxItems == nil:
		return "has no maximum of items"
	case n.Type == "array" && n.inSpec() && (n.XListType == nil || *n.XListType != "map" || !slices.Equal(n.XListMapKeys, []string{"name"})):
		return "is no map by name"
	}
	return ""
}

// wordsProblem says what the description does not tell, for kubectl explain.
func wordsProblem(n node) string {
	if n.path == ".metadata" || strings.HasSuffix(n.path, "[]") {
		return ""
	}
	if n.Description == "" {
		return "has no description"
	}
	if !n.inSpec() {
		return ""
	}
	numbers := strings.FieldsFunc(n.Description, func(r rune) bool { return r != '-' && !unicode.IsDigit(r) })
	told := func(number float64) bool {
		return slices.Contains(numbers, fmt.Sprintf("%.0f", number)) || (strings.Contains(n.Description, "2^53-1") && (number == 1<<53-1 || number == -(1<<53-1)))
	}
	switch {
	case n.Type == "integer" && (!told(*n.Minimum) || !told(*n.Maximum)):
		return "does not tell its bounds"
	case n.Type == "integer" && n.Default != nil && !strings.Contains(n.Description, "Default "+string(n.Default.Raw)):
		return "does not tell its default"
	case n.Type == "string" && n.MaxLength != nil && !told(float64(*n.MaxLength)):
		return "does not tell its maximum length"
	}
	return ""
}

func formatProblem(n node) string {
	allowed := map[string][]string{"integer": {"int32", "int64"}}
	if !n.inSpec() {
		allowed["string"] = []string{"date-time"}
	}
	if n.Format != "" && !slices.Contains(allowed[n.Type], n.Format) {
		return "has the format " + n.Format
	}
	return ""
}

var _ = Describe("the CRD", func() {
	var (
		root  *apiextensionsv1.JSONSchemaProps
		judge *crdschema.Admission
	)
	BeforeEach(func() {
		crd := readCRD()
		root = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		var err error
		judge, err = crdschema.New(crd)
		Expect(err).NotTo(HaveOccurred())
	})

	It("is at most 100 KiB", func() {
		text, err := json.Marshal(readCRD())
		Expect(err).NotTo(HaveOccurred())
		Expect(len(text)).To(BeNumerically("<=", 100<<10))
	})

	DescribeTable("has nothing that would bind or break later",
		func(problem func(node) string) {
			found := []string{}
			for _, n := range walk(node{JSONSchemaProps: root}) {
				if text := problem(n); text != "" {
					found = append(found, n.path+" "+text)
				}
			}
			Expect(found).To(BeEmpty())
		},
		Entry("every string and number is bounded", scalarProblem),
		Entry("every object is closed, every list a bounded map, no default stands below a list", shapeProblem),
		Entry("no format is used but those of numbers, and of times in status", formatProblem),
		Entry("every field is described with its bounds and default", wordsProblem),
	)

	It("has the defaults that the operator assumes", func() {
		got := map[string]string{}
		for _, n := range walk(node{JSONSchemaProps: root}) {
			if n.Default != nil {
				got[n.path] = string(n.Default.Raw)
			}
		}
		Expect(got).To(Equal(map[string]string{
			".spec.forSeconds":               fmt.Sprint(aiopsv1.DefaultForSeconds),
			".spec.recoverySeconds":          fmt.Sprint(aiopsv1.DefaultRecoverySeconds),
			".spec.intervalSeconds":          fmt.Sprint(aiopsv1.DefaultIntervalSeconds),
			".spec.startupGraceSeconds":      "0",
			".spec.mode":                     `"Auto"`,
			".spec.limits":                   "{}",
			".spec.limits.cooldownSeconds":   fmt.Sprint(aiopsv1.DefaultCooldownSeconds),
			".spec.limits.recurrenceSeconds": fmt.Sprint(aiopsv1.DefaultRecurrenceSeconds),
			".spec.limits.maxPasses":         fmt.Sprint(aiopsv1.DefaultMaxPasses),
			".spec.limits.maxActions":        fmt.Sprint(aiopsv1.DefaultMaxActions),
			".spec.limits.periodSeconds":     fmt.Sprint(aiopsv1.DefaultPeriodSeconds),
		}))
	})

	// A member is named after its word, and refused under every other word. A new word or member without its rule fails here.
	DescribeTable("keeps its unions",
		func(ctx context.Context, list, discriminator, rest string) {
			item := root.Properties["spec"].Properties[list].Items.Schema
			words := item.Properties[discriminator].Enum
			members := 0
			for name, member := range item.Properties {
				if member.Type != "object" {
					continue
				}
				members++
				matching := 0
				for _, raw := range words {
					var word string
					Expect(json.Unmarshal(raw.Raw, &word)).To(Succeed())
					if strings.EqualFold(word, name) {
						matching++
						continue
					}
					body := fmt.Sprintf(`{"apiVersion":"aiops.example.com/v1","kind":"AITask","metadata":{"name":"web"},"spec":{"targetDeployment":"web",%s:[{"name":"a",%q:%q,%q:%s%s}]}}`,
						`"`+list+`"`, discriminator, word, name, example(member), rest)
					_, err := judge.Admit(ctx, []byte(body))
					Expect(err).To(MatchError(ContainSubstring("when "+discriminator+" is ")), body)
				}
				Expect(matching).To(Equal(1), "%s is the member of no word", name)
			}
			Expect(members).To(BeNumerically(">", 2))
		},
		Entry("of signals", "signals", "type", `,"threshold":1`),
		Entry("of steps", "steps", "action", ""),
	)
})

// example is the smallest object that has what is required.
func example(of apiextensionsv1.JSONSchemaProps) string {
	values := map[string]string{"string": `"a"`, "integer": "1"}
	parts := []string{}
	for _, name := range of.Required {
		property := of.Properties[name]
		value := values[property.Type]
		if len(property.Enum) > 0 {
			value = string(property.Enum[0].Raw)
		}
		parts = append(parts, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
