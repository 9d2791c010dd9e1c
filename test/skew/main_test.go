package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	printed := "Running Suite: a b c\n" +
		"ok  \texample.com/operator/test/integration/action\t12.345s\n" +
		"--- FAIL: TestRunbook (3.21s)\n" +
		"FAIL\n" +
		"FAIL\texample.com/operator/test/integration/runbook\t3.211s\n" +
		"FAIL\texample.com/operator/test/lifecycle [build failed]\n" +
		"?   \texample.com/operator/test/harness\t[no test files]\n" +
		"FAIL\n"
	want := map[string]string{
		"example.com/operator/test/integration/action":  "12.345s",
		"example.com/operator/test/integration/runbook": "FAILED",
		"example.com/operator/test/lifecycle":           "FAILED",
	}
	if diff := cmp.Diff(want, parse(printed)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWriteTable(t *testing.T) {
	var out strings.Builder
	writeTable(&out, []string{"1.34", "1.35"}, map[string]map[string]string{
		"1.34": {"example.com/operator/test/integration/runbook": "3s", "example.com/operator/test/lifecycle": "FAILED"},
		"1.35": {"example.com/operator/test/integration/runbook": "4s"},
	})
	want := `| suite | 1.34 | 1.35 |
|---|---|---|
| integration/runbook | 3s | 4s |
| lifecycle | FAILED | not run |
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
