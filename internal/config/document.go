package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxProblems is how many problems are told at once.
	maxProblems = 20
	// maxQuoted is how much of a key is repeated in a message.
	maxQuoted = 64
	maxPort   = 65535
)

// document is a file while it is read. It keeps the problems, so that all of them are told at once.
type document struct {
	name     string
	problems []error
	omitted  int
}

// reader reads one value. path names it in messages, such as receivers[0].url.
type reader = func(node *yaml.Node, path string)

// keys are the keys that a mapping may have.
type keys map[string]reader

// names are the names that are taken, and the line of each.
type names map[string]int

func (d *document) fail(node *yaml.Node, path, format string, arguments ...any) {
	if path != "" {
		format = strings.ReplaceAll(path, "%", "%%") + ": " + format
	}
	d.failLine(node.Line, fmt.Sprintf(format, arguments...))
}

func (d *document) failLine(line int, text string) {
	if len(d.problems) >= maxProblems {
		d.omitted++
		return
	}
	d.problems = append(d.problems, fmt.Errorf("%s:%d: %s", d.name, line, text))
}

// failSyntax says where a file is not YAML. The library's own words can repeat a piece of the file, and are left out.
func (d *document) failSyntax(err error) {
	line := 1
	if found := regexp.MustCompile(`line (\d+)`).FindStringSubmatch(err.Error()); found != nil {
		line, _ = strconv.Atoi(found[1])
	}
	d.failLine(line, "is not YAML at or near this line: look at its indentation, quotes and colons")
}

func (d *document) err() error {
	if d.omitted > 0 {
		return errors.Join(append(d.problems, fmt.Errorf("%s: and %d problems more", d.name, d.omitted))...)
	}
	return errors.Join(d.problems...)
}

// mapping reads a mapping and returns the nodes of the keys it has. Keys that are unknown or written twice are refused; a key without a
// value is absent. Nil: it is no mapping.
func (d *document) mapping(node *yaml.Node, path string, known keys) map[string]*yaml.Node {
	if !d.plain(node, path) {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		d.fail(node, path, "must be a mapping, write `key: value` lines")
		return nil
	}
	present := map[string]*yaml.Node{}
	seen := names{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		read := known[key.Value]
		switch {
		case read == nil || key.Kind != yaml.ScalarNode:
			d.fail(key, path, "unknown key %s, write one of %s", quoted(key.Value), strings.Join(known.sorted(), ", "))
		case seen[key.Value] != 0:
			d.fail(key, inside(path, key.Value), "is already in line %d, remove one of the two", seen[key.Value])
		default:
			seen[key.Value] = key.Line
			if !isNull(value) {
				present[key.Value] = value
				read(value, inside(path, key.Value))
			}
		}
	}
	return present
}

func (k keys) sorted() []string {
	sorted := make([]string, 0, len(k))
	for key := range k {
		sorted = append(sorted, key)
	}
	slices.Sort(sorted)
	return sorted
}

func (d *document) list(node *yaml.Node, path string, maximum int, each reader) {
	if !d.plain(node, path) {
		return
	}
	if node.Kind != yaml.SequenceNode {
		d.fail(node, path, "must be a list, write `- ` before each entry")
		return
	}
	if len(node.Content) > maximum {
		d.fail(node, path, "has %d entries, write at most %d", len(node.Content), maximum)
		return
	}
	for i, entry := range node.Content {
		each(entry, fmt.Sprintf("%s[%d]", path, i))
	}
}

// text reads a text of 1 to maximum characters.
func (d *document) text(node *yaml.Node, path string, maximum int, into *string) bool {
	if !d.plain(node, path) {
		return false
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
		d.fail(node, path, "must be a text, write it in quotes")
		return false
	}
	if length := utf8.RuneCountInString(node.Value); length < 1 || length > maximum {
		d.fail(node, path, "has %d characters, write 1 to %d", length, maximum)
		return false
	}
	*into = node.Value
	return true
}

func (d *document) number(minimum, maximum int, into *int32) reader {
	return func(node *yaml.Node, path string) {
		if !d.plain(node, path) {
			return
		}
		var value int32
		if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!int" || node.Decode(&value) != nil || int(value) < minimum || int(value) > maximum {
			d.fail(node, path, "must be a whole number within bounds, write %d to %d", minimum, maximum)
			return
		}
		*into = value
	}
}

func (d *document) truth(into *bool) reader {
	return func(node *yaml.Node, path string) {
		if !d.plain(node, path) {
			return
		}
		if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!bool" || node.Decode(into) != nil {
			d.fail(node, path, "must be true or false, write it without quotes")
		}
	}
}

// label reads a name that tasks can refer to, and that no other entry of the list has.
func (d *document) label(taken names, into *string) reader {
	return func(node *yaml.Node, path string) {
		if !d.text(node, path, validation.DNS1123LabelMaxLength, into) {
			return
		}
		if len(validation.IsDNS1123Label(*into)) > 0 {
			d.fail(node, path, "must be a DNS label, write lower-case letters, digits and dashes")
			return
		}
		if line := taken[*into]; line != 0 {
			d.fail(node, path, "%q is already the name of the entry of line %d, write another", *into, line)
			return
		}
		taken[*into] = node.Line
	}
}

// file reads the name of a file. Whether it is there is found when it is used: mounted secrets may come later than the operator.
func (d *document) file(into *string) reader {
	return func(node *yaml.Node, path string) {
		if !d.text(node, path, maxPath, into) {
			return
		}
		if !filepath.IsAbs(*into) || strings.ContainsRune(*into, 0) {
			d.fail(node, path, "must name a file by its full path, write /folder/file")
		}
	}
}

// address reads a URL.
func (d *document) address(withQuery bool, into *string) reader {
	by := "bearerTokenFile or basicAuth"
	if withQuery { // a receiver
		by = "bearerTokenFile"
	}
	return func(node *yaml.Node, path string) {
		if !d.text(node, path, maxAddress, into) {
			return
		}
		parsed, err := url.Parse(*into)
		switch {
		case err != nil || !wellFormed(parsed):
			d.fail(node, path, "is not a URL that can be called, write http://host:port or https://host:port")
		case parsed.User != nil:
			d.fail(node, path, "holds credentials, write http://host:port and name a file with them by %s", by)
		case parsed.Fragment != "" || strings.Contains(*into, "#"):
			d.fail(node, path, "holds a fragment, remove it from # on")
		case !withQuery && (parsed.RawQuery != "" || parsed.ForceQuery):
			d.fail(node, path, "holds parameters, which would be lost, remove them from ? on")
		}
	}
}

func wellFormed(parsed *url.URL) bool {
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" || parsed.Opaque != "" {
		return false
	}
	if parsed.Port() == "" {
		return !strings.HasSuffix(parsed.Host, ":")
	}
	port, err := strconv.Atoi(parsed.Port())
	return err == nil && port >= 1 && port <= maxPort
}

// headers reads names and values of HTTP headers. Those that authenticate are secrets, and secrets are in files.
func (d *document) headers(node *yaml.Node, path string) map[string]string {
	if !d.plain(node, path) {
		return nil
	}
	if node.Kind != yaml.MappingNode || len(node.Content) > 2*maxHeaders {
		d.fail(node, path, "must be a mapping, write at most %d `Name: value` lines", maxHeaders)
		return nil
	}
	read := map[string]string{}
	seen := names{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !d.headerName(key, path, seen) {
			continue
		}
		var text string
		here := inside(path, key.Value)
		if d.text(value, here, maxHeaderValue, &text) && strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			d.fail(value, here, "holds characters that a header cannot have, write printable ASCII")
		}
		read[key.Value] = text
	}
	if len(read) == 0 {
		return nil
	}
	return read
}

func (d *document) headerName(key *yaml.Node, path string, seen names) bool {
	folded := strings.ToLower(key.Value)
	switch {
	case key.Kind != yaml.ScalarNode || len(key.Value) > maxQuoted || !isToken(key.Value):
		d.fail(key, path, "%s is not the name of a header", quoted(key.Value))
	case secretHeader(folded):
		d.fail(key, path, "%s looks like a credential, which belongs in a file: use bearerTokenFile", quoted(key.Value))
	case ownHeader(folded):
		d.fail(key, path, "%s is set by the operator, remove it", quoted(key.Value))
	case seen[folded] != 0:
		d.fail(key, path, "%s is already in line %d, remove one of the two", quoted(key.Value), seen[folded])
	default:
		seen[folded] = key.Line
		return true
	}
	return false
}

// isToken says whether a text can be the name of a header, by RFC 9110.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func secretHeader(name string) bool {
	for _, word := range []string{"auth", "cookie", "token", "secret", "password", "api-key", "apikey", "access-key", "signature"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func ownHeader(name string) bool {
	switch name {
	case "host", "content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "upgrade", "te", "trailer",
		"expect", "keep-alive", "user-agent", "idempotency-key":
		return true
	}
	return false
}

// plain refuses what makes one text stand for another: a reader of the file should see what it says.
func (d *document) plain(node *yaml.Node, path string) bool {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		d.fail(node, path, "uses an anchor or alias, write the value itself")
		return false
	}
	return true
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

func inside(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func quoted(text string) string {
	if runes := []rune(text); len(runes) > maxQuoted {
		text = string(runes[:maxQuoted]) + "..."
	}
	return strconv.Quote(text)
}
