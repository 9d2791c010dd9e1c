package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const complete = `# A comment.
prometheusEndpoints:
- name: default
  url: http://prometheus.monitoring.svc:9090
- name: gpu
  url: https://prometheus.example.com/prefix
  timeoutSeconds: 60
  bearerTokenFile: /var/run/secrets/token
  caFile: /var/run/secrets/ca.crt
- name: old
  url: https://10.0.0.1
  basicAuth: {username: reader, passwordFile: /var/run/secrets/password}
  insecureSkipTLSVerify: true
receivers:
- name: on-call
  url: https://hooks.example.com/a?team=b
  timeoutSeconds: 1
  bearerTokenFile: /t
  caFile: /c
  headers: {X-Team: storage, X-Number: "7"}
storm: {breachedPercent: 100, minimumTargets: 1, withinSeconds: 3600, calmSeconds: 0}
`

func TestParseReadsEveryKey(t *testing.T) {
	got, err := Parse("config.yaml", []byte(complete))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		PrometheusEndpoints: []PrometheusEndpoint{
			{Name: "default", URL: "http://prometheus.monitoring.svc:9090", TimeoutSeconds: 10},
			{
				Name: "gpu", URL: "https://prometheus.example.com/prefix", TimeoutSeconds: 60,
				BearerTokenFile: "/var/run/secrets/token", CAFile: "/var/run/secrets/ca.crt",
			},
			{
				Name: "old", URL: "https://10.0.0.1", TimeoutSeconds: 10, InsecureSkipTLSVerify: true,
				BasicAuth: &BasicAuth{Username: "reader", PasswordFile: "/var/run/secrets/password"},
			},
		},
		Receivers: []Receiver{{
			Name: "on-call", URL: "https://hooks.example.com/a?team=b", TimeoutSeconds: 1, BearerTokenFile: "/t", CAFile: "/c",
			Headers: map[string]string{"X-Team": "storage", "X-Number": "7"},
		}},
		Storm: Storm{BreachedPercent: 100, MinimumTargets: 1, WithinSeconds: 3600, CalmSeconds: 0},
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("configuration (-want +got):\n%s", difference)
	}
}

func TestParseFillsInDefaultsWhereNothingIsWritten(t *testing.T) {
	want := Config{Storm: Storm{BreachedPercent: 30, MinimumTargets: 10, WithinSeconds: 60, CalmSeconds: 300}}
	for name, data := range map[string]string{
		"empty":             "",
		"comments alone":    "# nothing\n",
		"null":              "null\n",
		"a document marker": "---\n",
		"an empty mapping":  "{}",
		"keys alone":        "prometheusEndpoints:\nreceivers:\nstorm:\n",
		"empty lists":       "prometheusEndpoints: []\nreceivers: []\nstorm: {}\n",
		"commented entries": "prometheusEndpoints:\n# - name: default\nstorm:\n  calmSeconds:\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("config.yaml", []byte(data))
			if err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(want, got); difference != "" {
				t.Errorf("configuration (-want +got):\n%s", difference)
			}
		})
	}
}

func TestParseNamesTheLineAndSaysWhatToWrite(t *testing.T) {
	endpoint := func(lines ...string) string {
		return "prometheusEndpoints:\n- name: a\n  " + strings.Join(lines, "\n  ") + "\n"
	}
	receiver := func(lines ...string) string {
		return "receivers:\n- name: a\n  url: http://a\n  " + strings.Join(lines, "\n  ") + "\n"
	}
	const notCallable = "config.yaml:3: prometheusEndpoints[0].url: is not a URL that can be called, write http://host:port or https://host:port"
	for name, test := range map[string]struct {
		data string
		want string
	}{
		"not YAML": {
			"storm: {\n  a: [\n", "config.yaml:2: is not YAML at or near this line: look at its indentation, quotes and colons",
		},
		"tab as indentation": {
			"storm:\n\tcalmSeconds: 1\n", "config.yaml:2: is not YAML at or near this line: look at its indentation, quotes and colons",
		},
		"two documents": {"{}\n---\n{}\n", "config.yaml:2: holds more than one document, write one without ---"},
		"a list":        {"- a\n", "config.yaml:1: must be a mapping, write `key: value` lines"},
		"a text":        {"hello\n", "config.yaml:1: must be a mapping, write `key: value` lines"},
		"unknown key": {
			"\nprometheusEndpoint: []\n", `config.yaml:2: unknown key "prometheusEndpoint", write one of prometheusEndpoints, receivers, storm`,
		},
		"unknown key of an endpoint": {
			endpoint("url: http://a", "token: abc"),
			`config.yaml:4: prometheusEndpoints[0]: unknown key "token", write one of basicAuth, bearerTokenFile, caFile, insecureSkipTLSVerify, name, timeoutSeconds, url`,
		},
		"key written twice": {"storm: {}\nstorm: {}\n", "config.yaml:2: storm: is already in line 1, remove one of the two"},
		"anchor": {
			"storm: &a {}\n", "config.yaml:1: storm: uses an anchor or alias, write the value itself",
		},
		"anchor in a list": {
			"storm: {calmSeconds: 1}\nreceivers: [&a {name: b, url: 'http://b'}]\n",
			"config.yaml:2: receivers[0]: uses an anchor or alias, write the value itself",
		},
		"merge key": {
			"storm: {<<: {calmSeconds: 1}}\n", `config.yaml:1: storm: unknown key "<<", write one of breachedPercent, calmSeconds, minimumTargets, withinSeconds`,
		},
		"endpoints are no list": {"prometheusEndpoints: {a: b}\n", "config.yaml:1: prometheusEndpoints: must be a list, write `- ` before each entry"},
		"endpoint is a text":    {"prometheusEndpoints: [a]\n", "config.yaml:1: prometheusEndpoints[0]: must be a mapping, write `key: value` lines"},
		"name missing": {
			"prometheusEndpoints:\n- url: http://a\n", "config.yaml:2: prometheusEndpoints[0].name: is missing, and required",
		},
		"url with a user": {
			"receivers:\n- name: a\n  url: http://user:hunter2@a\n",
			"config.yaml:3: receivers[0].url: holds credentials, write http://host:port and name a file with them by bearerTokenFile",
		},
		"url missing":      {"receivers:\n- name: a\n", "config.yaml:2: receivers[0].url: is missing, and required"},
		"url without text": {endpoint("url:"), "config.yaml:2: prometheusEndpoints[0].url: is missing, and required"},
		"name is no label": {
			"receivers: [{name: On Call, url: 'http://a'}]\n", "config.yaml:1: receivers[0].name: must be a DNS label, write lower-case letters, digits and dashes",
		},
		"name is a number": {"receivers: [{name: 1, url: 'http://a'}]\n", "config.yaml:1: receivers[0].name: must be a text, write it in quotes"},
		"name taken": {
			"receivers:\n- {name: a, url: 'http://a'}\n- {name: a, url: 'http://b'}\n",
			`config.yaml:3: receivers[1].name: "a" is already the name of the entry of line 2, write another`,
		},
		"url without scheme":  {endpoint("url: prometheus:9090"), notCallable},
		"url with host alone": {endpoint("url: prometheus"), notCallable},
		"url without host":    {endpoint("url: http://"), notCallable},
		"url of a file":       {endpoint("url: file:///etc/passwd"), notCallable},
		"url with port 0":     {endpoint("url: http://a:0"), notCallable},
		"url with port 65536": {endpoint("url: http://a:65536"), notCallable},
		"url with empty port": {endpoint("url: 'http://a:'"), notCallable},
		"url with a space":    {endpoint("url: http://a b"), notCallable},
		"url with credentials": {
			endpoint("url: http://user:hunter2@a"),
			"config.yaml:3: prometheusEndpoints[0].url: holds credentials, write http://host:port and name a file with them by bearerTokenFile or basicAuth",
		},
		"url with parameters": {
			endpoint("url: http://a/?token=hunter2"), "config.yaml:3: prometheusEndpoints[0].url: holds parameters, which would be lost, remove them from ? on",
		},
		"url with a fragment": {endpoint("url: http://a/#b"), "config.yaml:3: prometheusEndpoints[0].url: holds a fragment, remove it from # on"},
		"url too long": {
			endpoint("url: http://" + strings.Repeat("a", 2048)), "config.yaml:3: prometheusEndpoints[0].url: has 2055 characters, write 1 to 2048",
		},
		"timeout 0": {
			endpoint("url: http://a", "timeoutSeconds: 0"), "config.yaml:4: prometheusEndpoints[0].timeoutSeconds: must be a whole number within bounds, write 1 to 60",
		},
		"timeout too long": {
			endpoint("url: http://a", "timeoutSeconds: 61"), "config.yaml:4: prometheusEndpoints[0].timeoutSeconds: must be a whole number within bounds, write 1 to 60",
		},
		"timeout as duration": {
			endpoint("url: http://a", "timeoutSeconds: 10s"), "config.yaml:4: prometheusEndpoints[0].timeoutSeconds: must be a whole number within bounds, write 1 to 60",
		},
		"timeout beyond 32 bits": {
			endpoint("url: http://a", "timeoutSeconds: 4294967297"), "config.yaml:4: prometheusEndpoints[0].timeoutSeconds: must be a whole number within bounds, write 1 to 60",
		},
		"truth in quotes": {
			endpoint("url: https://a", "insecureSkipTLSVerify: 'true'"),
			"config.yaml:4: prometheusEndpoints[0].insecureSkipTLSVerify: must be true or false, write it without quotes",
		},
		"file with relative path": {
			endpoint("url: http://a", "bearerTokenFile: token"),
			"config.yaml:4: prometheusEndpoints[0].bearerTokenFile: must name a file by its full path, write /folder/file",
		},
		"two ways to authenticate": {
			endpoint("url: http://a", "bearerTokenFile: /t", "basicAuth: {username: u, passwordFile: /p}"),
			"config.yaml:5: prometheusEndpoints[0].basicAuth: does not go together with bearerTokenFile, write one of the two",
		},
		"basic authentication without password": {
			endpoint("url: http://a", "basicAuth: {username: u}"), "config.yaml:4: prometheusEndpoints[0].basicAuth.passwordFile: is missing, and required",
		},
		"password in the file": {
			endpoint("url: http://a", "basicAuth: {username: u, password: hunter2, passwordFile: /p}"),
			`config.yaml:4: prometheusEndpoints[0].basicAuth: unknown key "password", write one of passwordFile, username`,
		},
		"user with a colon": {
			endpoint("url: http://a", "basicAuth: {username: 'u:hunter2', passwordFile: /p}"),
			"config.yaml:4: prometheusEndpoints[0].basicAuth.username: holds a colon or a line break, which basic authentication has no place for",
		},
		"authority without encryption": {
			endpoint("url: http://a", "caFile: /c"), "config.yaml:4: prometheusEndpoints[0].caFile: means nothing for a url with http, write https or remove it",
		},
		"authority that is not looked at": {
			endpoint("url: https://a", "caFile: /c", "insecureSkipTLSVerify: true"),
			"config.yaml:4: prometheusEndpoints[0].caFile: means nothing with insecureSkipTLSVerify, write one of the two",
		},
		"header that authenticates": {
			receiver("headers: {Authorization: Bearer hunter2}"),
			`config.yaml:4: receivers[0].headers: "Authorization" looks like a credential, which belongs in a file: use bearerTokenFile`,
		},
		"header that carries a key": {
			receiver("headers: {X-Api-Key: hunter2}"),
			`config.yaml:4: receivers[0].headers: "X-Api-Key" looks like a credential, which belongs in a file: use bearerTokenFile`,
		},
		"header of the operator": {
			receiver("headers: {Content-Type: text/plain}"), `config.yaml:4: receivers[0].headers: "Content-Type" is set by the operator, remove it`,
		},
		"header with a bad name": {receiver("headers: {'a b': c}"), `config.yaml:4: receivers[0].headers: "a b" is not the name of a header`},
		"header with a line break": {
			receiver(`headers: {A: "b\nc"}`), "config.yaml:4: receivers[0].headers.A: holds characters that a header cannot have, write printable ASCII",
		},
		"header twice": {
			receiver("headers:", "  A: b", "  a: c"), `config.yaml:6: receivers[0].headers: "a" is already in line 5, remove one of the two`,
		},
		"headers are a list": {
			receiver("headers: [a]"), "config.yaml:4: receivers[0].headers: must be a mapping, write at most 16 `Name: value` lines",
		},
		"storm percent 0":   {"storm: {breachedPercent: 0}\n", "config.yaml:1: storm.breachedPercent: must be a whole number within bounds, write 1 to 100"},
		"storm percent 101": {"storm: {breachedPercent: 101}\n", "config.yaml:1: storm.breachedPercent: must be a whole number within bounds, write 1 to 100"},
		"storm of one":      {"storm: {minimumTargets: 0}\n", "config.yaml:1: storm.minimumTargets: must be a whole number within bounds, write 1 to 100000"},
		"storm within 0":    {"storm: {withinSeconds: 0}\n", "config.yaml:1: storm.withinSeconds: must be a whole number within bounds, write 1 to 3600"},
		"storm calm -1":     {"storm: {calmSeconds: -1}\n", "config.yaml:1: storm.calmSeconds: must be a whole number within bounds, write 0 to 86400"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("config.yaml", []byte(test.data))
			if err == nil {
				t.Fatalf("parsed as %+v, want the error %s", got, test.want)
			}
			if difference := cmp.Diff(test.want, err.Error()); difference != "" {
				t.Errorf("error (-want +got):\n%s", difference)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the error repeats a secret")
			}
		})
	}
}

func TestParseTellsEveryProblemAtOnceButNotWithoutEnd(t *testing.T) {
	data := "receivers:\n" + strings.Repeat("- name: UPPER\n  url: no\n", 30)
	_, err := Parse("config.yaml", []byte(data))
	if err == nil {
		t.Fatal("parsed")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 21 || lines[20] != "config.yaml: and 40 problems more" {
		t.Errorf("got %d lines, the last one %q", len(lines), lines[len(lines)-1])
	}
}

func TestParseRefusesMoreThanItIsMeantFor(t *testing.T) {
	_, err := Parse("config.yaml", make([]byte, 1<<20+1))
	if err == nil || err.Error() != "config.yaml: is larger than 1048576 bytes" {
		t.Errorf("got %v", err)
	}
	entries := "receivers:\n" + strings.Repeat("- {}\n", 65)
	_, err = Parse("config.yaml", []byte(entries))
	if err == nil || err.Error() != "config.yaml:2: receivers: has 65 entries, write at most 64" {
		t.Errorf("got %v", err)
	}
}

func TestLoadReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("storm: {calmSeconds: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, found, err := Load(path)
	if err != nil || !found || got.Storm.CalmSeconds != 7 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := os.WriteFile(path, make([]byte, 1<<20+10), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(path); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("a file that is too large: %v", err)
	}
}

func TestLoadOfAFileThatIsNotThere(t *testing.T) {
	for name, test := range map[string]struct {
		folder string
		files  []string
		want   string
	}{
		"an optional ConfigMap that nobody made": {files: []string{"..data"}},
		"another key":                            {files: []string{"config.yml"}, want: `config.yaml does not exist, and the folder is not empty ("config.yml")`},
		"a folder that does not exist":           {folder: "nowhere", want: "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for _, file := range test.files {
				if err := os.WriteFile(filepath.Join(folder, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, found, err := Load(filepath.Join(folder, test.folder, "config.yaml"))
			if found {
				t.Error("it was found")
			}
			if test.want == "" && (err != nil || !cmp.Equal(got, Default())) {
				t.Errorf("got %+v, %v, want the default", got, err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
