package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	tests := []struct {
		name    string
		content string
		want    []string
	}{
		{name: "file beside it", content: "[a](other.md)"},
		{name: "file in a folder", content: "[a](../README.md)"},
		{name: "folder", content: "[a](../docs)"},
		{name: "heading of another file", content: "[a](other.md#what-it-is)"},
		{name: "second heading of the same text", content: "[a](other.md#what-it-is-1)"},
		{name: "own heading", content: "# Über `code`, and more\n[a](#über-code-and-more)"},
		{name: "own HTML anchor", content: "<a id=\"here\"></a>\n[a](#here)"},
		{name: "outside", content: "[a](https://example.com/x.md) [b](mailto:a@example.com)"},
		{name: "path from the root", content: "[a](/README.md)"},
		{name: "code span", content: "`[a](missing.md)`"},
		{name: "code block", content: "```\n[a](missing.md)\n```"},
		{name: "title", content: "[a](other.md \"title\")"},
		{name: "missing file", content: "first\n[a](missing.md)", want: []string{"docs/page.md:2: missing.md: no such file"}},
		{name: "missing image", content: "![a](missing.png)", want: []string{"docs/page.md:1: missing.png: no such file"}},
		{name: "missing heading", content: "[a](other.md#nothing)", want: []string{"docs/page.md:1: other.md#nothing: no such heading"}},
		{name: "third heading of two", content: "[a](other.md#what-it-is-2)", want: []string{"docs/page.md:1: other.md#what-it-is-2: no such heading"}},
		{name: "missing own heading", content: "[a](#nothing)", want: []string{"docs/page.md:1: #nothing: no such heading"}},
		{name: "missing reference", content: "[a][b]\n\n[b]: missing.md", want: []string{"docs/page.md:3: missing.md: no such file"}},
		{name: "after a code block", content: "```\n```\n[a](missing.md)", want: []string{"docs/page.md:3: missing.md: no such file"}},
		{name: "out of the repository", content: "[a](../../secret.md)", want: []string{"docs/page.md:1: ../../secret.md: no such file"}},
		{name: "two on a line", content: "[a](x.md) [b](y.md)", want: []string{"docs/page.md:1: x.md: no such file", "docs/page.md:1: y.md: no such file"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tree := fstest.MapFS{
				"README.md":     {Data: []byte("# Hello\n")},
				"docs/page.md":  {Data: []byte(test.content)},
				"docs/other.md": {Data: []byte("# What it is\n## What it is\n")},
				".git/x.md":     {Data: []byte("[a](missing.md)")},
			}
			got, _, err := check(tree)
			if err != nil {
				t.Fatalf("check: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("broken links differ (-want +got):\n%s", diff)
			}
		})
	}
}
