package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// No container engine runs here, so what a Dockerfile needs is compared with what .dockerignore lets it have.
func TestImageContext(t *testing.T) {
	ignored := readLines(t, ".dockerignore")
	if !slices.Contains(ignored, "*") {
		t.Fatal(".dockerignore does not keep everything away first: it has no line *")
	}
	var allowed []string
	for _, line := range ignored {
		if path, found := strings.CutPrefix(line, "!"); found {
			allowed = append(allowed, path)
		}
	}
	for _, file := range []string{"Dockerfile", "bundle.Dockerfile", "catalog.Dockerfile"} {
		for _, source := range copiedBy(readLines(t, file)) {
			// A folder may be copied of which only a part is let through.
			if !slices.ContainsFunc(allowed, func(path string) bool { return isBelow(source, path) || isBelow(path, source) }) {
				t.Errorf("%s copies %s, which .dockerignore keeps away", file, source)
			}
		}
	}
	copied := copiedBy(readLines(t, "Dockerfile"))
	for _, folder := range packageFolders(t, "./cmd", "./test/scorecard") {
		if !slices.ContainsFunc(allowed, func(path string) bool { return isBelow(folder, path) }) {
			t.Errorf("%s is linked into an image, but .dockerignore keeps it away", folder)
		}
		if !slices.ContainsFunc(copied, func(path string) bool { return isBelow(folder, path) }) {
			t.Errorf("%s is linked into an image, but the Dockerfile does not copy it", folder)
		}
	}
}

func readLines(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(sourceRoot, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(content), "\n")
}

// copiedBy lists what a Dockerfile copies out of its context.
func copiedBy(lines []string) []string {
	var sources []string
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "COPY" || strings.HasPrefix(words[1], "--from") {
			continue
		}
		for _, source := range words[1 : len(words)-1] {
			sources = append(sources, filepath.Clean(source))
		}
	}
	return sources
}

func isBelow(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// packageFolders lists the folders of this module's packages that the programs are made of.
func packageFolders(t *testing.T, programs ...string) []string {
	t.Helper()
	arguments := append([]string{"list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"}, programs...)
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = sourceRoot
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(sourceRoot)
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for line := range strings.Lines(string(printed)) {
		folder, err := filepath.Rel(root, strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, folder)
	}
	return folders
}
