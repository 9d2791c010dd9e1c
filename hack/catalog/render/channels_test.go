package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const joinInput = `
- {schema: olm.bundle, name: a}
- schema: olm.channel
  name: stable-v10
  package: web
  entries: [{name: web.v10.0.0}]
- schema: olm.channel
  name: stable-v2
  package: web
  entries: [{name: web.v2.0.0}, {name: web.v2.0.1, skips: [web.v2.0.0]}, {name: web.v2.1.0, replaces: web.v2.0.1, skips: [web.v2.0.0]}]
- schema: olm.channel
  name: candidate-v2
  package: web
  entries: [{name: web.v2.0.0}]
- {schema: olm.package, name: web, defaultChannel: stable-v10}
`

const joinOutput = `---
defaultChannel: stable
name: web
schema: olm.package
---
entries:
- name: web.v2.0.0
name: candidate
package: web
schema: olm.channel
---
entries:
- name: web.v2.0.0
- name: web.v2.0.1
  skips:
  - web.v2.0.0
- name: web.v2.1.0
  replaces: web.v2.0.1
  skips:
  - web.v2.0.0
- name: web.v10.0.0
  replaces: web.v2.1.0
name: stable
package: web
schema: olm.channel
---
name: a
schema: olm.bundle
`

func TestJoinMajors(t *testing.T) {
	joined, err := joinMajors(documentsOf(t, joinInput))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encodeDocuments(joined)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(joinOutput, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// From an older major version the way leads to the newest of the first minor version, whatever comes after it.
func TestFirstMinorHead(t *testing.T) {
	for title, test := range map[string]struct {
		entries []entry
		want    string
	}{
		"one release":                {[]entry{{Name: "a"}}, "a"},
		"one minor version":          {[]entry{{Name: "a"}, {Name: "b", Skips: []string{"a"}}}, "b"},
		"a second minor version":     {[]entry{{Name: "a"}, {Name: "b", Replaces: "a"}}, "a"},
		"patches of both":            {[]entry{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d", Replaces: "b"}}, "b"},
		"replacing an unknown entry": {[]entry{{Name: "a"}, {Name: "b", Replaces: "gone"}}, "b"},
	} {
		t.Run(title, func(t *testing.T) {
			if got := firstMinorHead(test.entries).Name; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestJoinMajorsRefuses(t *testing.T) {
	for title, test := range map[string]struct{ documents, want string }{
		"channels of minor versions": {"[{schema: olm.channel, name: stable-v0.1}]", "generateMajorChannels"},
		"a channel of another name":  {"[{schema: olm.channel, name: alpha}]", "alpha"},
		"no entries":                 {"[{schema: olm.channel, name: stable-v0}]", "no entries"},
		"entries of another shape":   {"[{schema: olm.channel, name: stable-v0, entries: {}}]", "read the channel stable-v0"},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := joinMajors(documentsOf(t, test.documents))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestDecodeDocumentsRefuses(t *testing.T) {
	if _, err := decodeDocuments([]byte(`{"schema": "olm.package"} Error: no`)); err == nil {
		t.Error("got no error for what is no JSON")
	}
}

func documentsOf(t *testing.T, encoded string) []document {
	t.Helper()
	var documents []document
	if err := yaml.Unmarshal([]byte(encoded), &documents); err != nil {
		t.Fatal(err)
	}
	return documents
}
