package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// document is one Markdown file: where its links lead and which headings others may link to.
type document struct {
	links   []link
	anchors map[string]bool
}

// link is one target as written, with the line it stands on.
type link struct {
	line   int
	target string
}

var (
	// Inline links and images: [text](target "title").
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)`)
	// Reference definitions: [name]: target.
	referenceLink = regexp.MustCompile(`^\s{0,3}\[[^\]^]+\]:\s*<?(\S+?)>?\s*$`)
	// Anchors written as HTML.
	htmlAnchor = regexp.MustCompile(`<a\s+(?:id|name)="([^"]+)"`)
	heading    = regexp.MustCompile(`^#{1,6}\s+(.+?)\s*#*\s*$`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	// The text of a link within a heading: its target is no part of the anchor.
	linkInHeading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// check reads every Markdown file of tree. It returns one line of text for each broken link, and the number of
// links that it could judge.
func check(tree fs.FS) (broken []string, checked int, err error) {
	documents, err := readAll(tree)
	if err != nil {
		return nil, 0, err
	}
	err = fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		for _, one := range documents[name].links {
			if external(one.target) {
				continue
			}
			checked++
			if problem := follow(tree, documents, name, one.target); problem != "" {
				broken = append(broken, fmt.Sprintf("%s:%d: %s: %s", name, one.line, one.target, problem))
			}
		}
		return err
	})
	return broken, checked, err
}

// readAll parses the Markdown files of tree, keyed by their path. Hidden folders other than .github, and bin, are left out.
func readAll(tree fs.FS) (map[string]document, error) {
	documents := map[string]document{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && skipped(entry.Name()) {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		documents[name] = parse(string(content))
		return nil
	})
	return documents, err
}

func skipped(folder string) bool {
	hidden := strings.HasPrefix(folder, ".") && folder != "." && folder != ".github"
	return hidden || folder == "bin" || folder == "node_modules"
}

// parse collects links and anchors; what stands in code blocks and code spans is no link.
func parse(content string) document {
	parsed := document{anchors: map[string]bool{}}
	fence := ""
	for number, line := range strings.Split(content, "\n") {
		trimmed := strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
			continue
		}
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fence = trimmed[:3]
			continue
		}
		parsed.readLine(number+1, line)
	}
	return parsed
}

func (d *document) readLine(number int, line string) {
	if match := heading.FindStringSubmatch(line); match != nil {
		d.addAnchor(anchor(match[1]))
	}
	for _, match := range htmlAnchor.FindAllStringSubmatch(line, -1) {
		d.anchors[match[1]] = true
	}
	prose := codeSpan.ReplaceAllString(line, "")
	for _, match := range inlineLink.FindAllStringSubmatch(prose, -1) {
		d.links = append(d.links, link{line: number, target: match[1]})
	}
	if match := referenceLink.FindStringSubmatch(prose); match != nil {
		d.links = append(d.links, link{line: number, target: match[1]})
	}
}

// addAnchor numbers headings of the same text as GitHub does: usage, usage-1, usage-2.
func (d *document) addAnchor(name string) {
	unique := name
	for count := 1; d.anchors[unique]; count++ {
		unique = fmt.Sprintf("%s-%d", name, count)
	}
	d.anchors[unique] = true
}

// anchor turns a heading's text into the name GitHub gives it: lower case, spaces as hyphens, punctuation dropped.
func anchor(text string) string {
	text = linkInHeading.ReplaceAllString(text, "$1")
	var name strings.Builder
	for _, letter := range strings.ToLower(text) {
		switch {
		case letter == ' ':
			name.WriteRune('-')
		case unicode.IsLetter(letter), unicode.IsDigit(letter), letter == '-', letter == '_':
			name.WriteRune(letter)
		}
	}
	return name.String()
}

func external(target string) bool {
	parsed, err := url.Parse(target)
	return err == nil && (parsed.Scheme != "" || parsed.Host != "")
}

// follow says what is wrong with target as linked from the file at name; empty if nothing is.
func follow(tree fs.FS, documents map[string]document, name, target string) string {
	parsed, err := url.Parse(target)
	if err != nil {
		return "not an address"
	}
	file := name
	if parsed.Path != "" {
		file = path.Join(path.Dir(name), parsed.Path)
		if strings.HasPrefix(parsed.Path, "/") {
			file = path.Clean(strings.TrimPrefix(parsed.Path, "/"))
		}
	}
	if _, err := fs.Stat(tree, file); err != nil {
		return "no such file"
	}
	linked, isDocument := documents[file]
	if parsed.Fragment != "" && isDocument && !linked.anchors[parsed.Fragment] {
		return "no such heading"
	}
	return ""
}
