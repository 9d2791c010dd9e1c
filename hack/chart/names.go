package main

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// renamer finds the names that config/default gives, wherever they are written: as names, in references, in host names and
// in the queries of alerts.
type renamer struct {
	known *regexp.Regexp
}

func newRenamer(objects []*unstructured.Unstructured) renamer {
	var names []string
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			names = append(names, regexp.QuoteMeta(object.GetName()))
		}
	}
	// The longest first: one name begins with another.
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	return renamer{known: regexp.MustCompile(`\b` + namePrefix + `(` + strings.Join(names, "|") + `)\b`)}
}

// text replaces the names in one value.
func (r renamer) text(value string, t *texts) string {
	if value == namespace {
		return t.inline("{{ .Release.Namespace | quote }}") // it may look like a number
	}
	value = r.known.ReplaceAllStringFunc(value, func(found string) string {
		return t.inline(`{{ include "`+chartName+`.fullname" . }}`) + "-" + strings.TrimPrefix(found, namePrefix)
	})
	return strings.ReplaceAll(value, namespace, t.inline("{{ .Release.Namespace }}"))
}

// tree replaces the names in everything below value.
func (r renamer) tree(value any, t *texts) any {
	switch typed := value.(type) {
	case map[string]any:
		for key, below := range typed {
			typed[key] = r.tree(below, t)
		}
	case []any:
		for index, below := range typed {
			typed[index] = r.tree(below, t)
		}
	case string:
		return r.text(typed, t)
	}
	return value
}
