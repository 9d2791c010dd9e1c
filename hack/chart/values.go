package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// width is where the comments of values.yaml are broken.
const width = 110

// tableMarker stands in the README where the table of values belongs.
const tableMarker = "<!-- values -->\n"

// value is one entry of the schema: the parts of JSON schema that values.yaml and the README are made from.
type value struct {
	Description string    `yaml:"description"`
	Default     yaml.Node `yaml:"default"`
	Examples    yaml.Node `yaml:"examples"`
	Properties  yaml.Node `yaml:"properties"`
}

// named is a value with its key.
type named struct {
	key string
	value
}

// addValues makes values.yaml, values.schema.json and README.md from the schema.
func addValues(files map[string][]byte, schema, readme string) error {
	var root value
	if err := yaml.Unmarshal([]byte(schema), &root); err != nil {
		return fmt.Errorf("read the schema of the values: %w", err)
	}
	defaults, err := writeDefaults(root)
	if err != nil {
		return err
	}
	table, err := writeTable("", root)
	if err != nil {
		return err
	}
	written, err := writeSchema(schema)
	if err != nil {
		return err
	}
	header := "| value | meaning | default |\n|---|---|---|\n"
	files["values.yaml"] = []byte(defaults)
	files["values.schema.json"] = written
	files["README.md"] = []byte(strings.Replace(readme, tableMarker, header+table, 1))
	return nil
}

func writeSchema(schema string) ([]byte, error) {
	var plain map[string]any
	if err := sigsyaml.Unmarshal([]byte(schema), &plain); err != nil {
		return nil, fmt.Errorf("read the schema of the values: %w", err)
	}
	requireDefaults(plain)
	written, err := json.MarshalIndent(plain, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema of the values: %w", err)
	}
	return append(written, '\n'), nil
}

// requireDefaults makes every value required that has a default which is no list and no map. Helm fills defaults in before it
// checks, so nobody has to write them; but a null, which removes a default, and values of an older release that know nothing
// of a new one are refused by name instead of failing somewhere in a template.
func requireDefaults(schema map[string]any) (required bool) {
	properties, _ := schema["properties"].(map[string]any)
	var names []string
	for name, item := range properties {
		if below, ok := item.(map[string]any); ok && (requireDefaults(below) || plainDefault(below)) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		schema["required"] = names
	}
	return len(names) > 0
}

func plainDefault(schema map[string]any) bool {
	switch schema["default"].(type) {
	case string, bool, float64, int64:
		return true
	}
	return false
}

// children are the properties in the order in which they are written.
func (v value) children() ([]named, error) {
	var out []named
	for index := 0; index+1 < len(v.Properties.Content); index += 2 {
		child := named{key: v.Properties.Content[index].Value}
		if err := v.Properties.Content[index+1].Decode(&child.value); err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", child.key, err)
		}
		out = append(out, child)
	}
	return out, nil
}

// silent is a value that has nothing to show in values.yaml: neither a default nor an example nor properties.
func (v value) silent() bool {
	return v.Default.IsZero() && v.Examples.IsZero() && v.Properties.IsZero()
}

func writeDefaults(root value) (string, error) {
	var out strings.Builder
	for _, line := range wrap(root.Description, width-2) {
		out.WriteString("# " + line + "\n")
	}
	children, err := root.children()
	if err != nil {
		return "", err
	}
	for _, child := range children {
		if child.silent() {
			continue
		}
		out.WriteString("\n")
		if err := child.write(&out, ""); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// write adds the value as it stands in values.yaml.
func (n named) write(out *strings.Builder, indent string) error {
	if n.silent() {
		return nil
	}
	for _, line := range wrap(n.Description, width-len(indent)-2) {
		out.WriteString(indent + "# " + line + "\n")
	}
	if err := n.writeDefault(out, indent); err != nil {
		return err
	}
	for _, example := range n.Examples.Content {
		text, err := field(n.key, example)
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			out.WriteString(indent + "# " + line)
		}
	}
	return nil
}

func (n named) writeDefault(out *strings.Builder, indent string) error {
	if !n.Default.IsZero() {
		text, err := field(n.key, &n.Default)
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			out.WriteString(indent + line)
		}
		return nil
	}
	if n.Properties.IsZero() || !n.Examples.IsZero() {
		return nil // what the examples show is absent by default
	}
	children, err := n.children()
	if err != nil {
		return err
	}
	out.WriteString(indent + n.key + ":\n")
	for _, child := range children {
		if err := child.write(out, indent+"  "); err != nil {
			return err
		}
	}
	return nil
}

// field writes a key and its value as YAML.
func field(key string, node *yaml.Node) (string, error) {
	var plain any
	if err := node.Decode(&plain); err != nil {
		return "", fmt.Errorf("read the default of %s: %w", key, err)
	}
	text, err := sigsyaml.Marshal(map[string]any{key: plain})
	if err != nil {
		return "", fmt.Errorf("write the default of %s: %w", key, err)
	}
	return string(text), nil
}

// writeTable writes a row for every value that can be set by itself.
func writeTable(prefix string, parent value) (string, error) {
	children, err := parent.children()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, child := range children {
		path := prefix + child.key
		if child.Default.IsZero() && !child.Properties.IsZero() {
			rows, err := writeTable(path+".", child.value)
			if err != nil {
				return "", err
			}
			out.WriteString(rows)
			continue
		}
		shown, err := child.shownDefault()
		if err != nil {
			return "", err
		}
		description := strings.ReplaceAll(strings.Join(strings.Fields(child.Description), " "), "|", `\|`)
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", path, description, shown)
	}
	return out.String(), nil
}

// shownDefault is the default in one line.
func (n named) shownDefault() (string, error) {
	if n.Default.IsZero() {
		return "", nil
	}
	var plain any
	if err := n.Default.Decode(&plain); err != nil {
		return "", fmt.Errorf("read the default of %s: %w", n.key, err)
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return "", fmt.Errorf("write the default of %s: %w", n.key, err)
	}
	return "`" + string(text) + "`", nil
}

// wrap breaks a text into lines.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > columns {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
