package knownfailures

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// testSources returns the text of every test of the repository.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"api", "cmd", "internal", "test"} {
		err := fs.WalkDir(os.DirFS(root), folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(root + "/" + path)
			all.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

func TestEveryNamedTestExists(t *testing.T) {
	sources := testSources(t)
	for page, least := range map[string]int{"known-failures.md": 45, "architecture.md": 14, "capability-levels.md": 15} {
		t.Run(page, func(t *testing.T) { checkPage(t, page, least, sources) })
	}
}

// checkPage reads the rows of tables whose last column says what a claim is shown by.
func checkPage(t *testing.T, name string, least int, sources string) {
	page, err := os.ReadFile(root + "/docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || strings.Contains(cells[3], "shown by") {
			continue
		}
		rows++
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1)
		if len(names) == 0 {
			t.Errorf("no test is named in: %s", line)
		}
		for _, name := range names {
			declaration := `"` + name[1] + `"`
			if strings.HasPrefix(name[1], "Test") || strings.HasPrefix(name[1], "Fuzz") {
				declaration = "func " + name[1] + "("
			}
			if !strings.Contains(sources, declaration) {
				t.Errorf("there is no test %q", name[1])
			}
		}
	}
	if rows < least {
		t.Errorf("only %d rows were read, not %d", rows, least)
	}
}
