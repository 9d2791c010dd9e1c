package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// texts holds pieces of Helm's template language that stand in an object as placeholders while it is still data: a template
// is not YAML, so the object is written first and the placeholders are replaced in the written text.
type texts struct {
	pieces []string
}

var (
	// A piece within a value.
	inlinePlaceholder = regexp.MustCompile(`HELMINLINE([0-9]+)X`)
	// A piece that takes the place of a whole line: an item of a list, or a key with its value.
	blockPlaceholder = regexp.MustCompile(`^( *)(?:- )?(?:[\w./-]+: )?HELMBLOCK([0-9]+)X(?:: "")?$`)
	// In a block, nindent +n means n columns right of the block.
	relativeIndent = regexp.MustCompile(`nindent \+([0-9]+)`)
)

// inline returns a placeholder for a piece within a value.
func (t *texts) inline(piece string) string {
	t.pieces = append(t.pieces, piece)
	return fmt.Sprintf("HELMINLINE%03dX", len(t.pieces)-1)
}

// block returns a placeholder for lines. It stands as an item of a list, as the value of a key, which it replaces together
// with the key, or as a key with an empty value, which comes before all others.
func (t *texts) block(lines ...string) string {
	t.pieces = append(t.pieces, strings.Join(lines, "\n"))
	return fmt.Sprintf("HELMBLOCK%03dX", len(t.pieces)-1)
}

// write turns an object with placeholders into a template.
func (t *texts) write(object map[string]any) (string, error) {
	written, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("write as YAML: %w", err)
	}
	// What looks like a template in the manifests, as in the annotations of alerts, is meant for somebody else.
	escaped := strings.ReplaceAll(string(written), "{{", `{{ "{{" }}`)
	var out strings.Builder
	for line := range strings.Lines(escaped) {
		line = strings.TrimSuffix(line, "\n")
		if match := blockPlaceholder.FindStringSubmatch(line); match != nil {
			line = t.indented(len(match[1]), match[2])
		}
		out.WriteString(inlinePlaceholder.ReplaceAllStringFunc(line, func(found string) string {
			return t.piece(inlinePlaceholder.FindStringSubmatch(found)[1])
		}))
		out.WriteByte('\n')
	}
	return out.String(), nil
}

func (t *texts) piece(number string) string {
	index, err := strconv.Atoi(number)
	if err != nil || index >= len(t.pieces) {
		return ""
	}
	return t.pieces[index]
}

func (t *texts) indented(column int, number string) string {
	var lines []string
	for _, line := range strings.Split(t.piece(number), "\n") {
		line = relativeIndent.ReplaceAllStringFunc(line, func(found string) string {
			offset, _ := strconv.Atoi(relativeIndent.FindStringSubmatch(found)[1])
			return fmt.Sprintf("nindent %d", column+offset)
		})
		lines = append(lines, strings.Repeat(" ", column)+line)
	}
	return strings.Join(lines, "\n")
}
