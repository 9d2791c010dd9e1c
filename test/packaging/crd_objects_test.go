package packaging_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	crdschema "github.com/example/aiops-operator/test/integration/admission/schema"
)

// What a release stored is admitted by the schema of the tree, which drops nothing of it and changes nothing of it.
func TestStoredTasksAreAdmitted(t *testing.T) {
	judge := admission(t, currentCRD)
	for _, stored := range storedTasks(t) {
		t.Run(stored.name, func(t *testing.T) {
			admitted, err := judge.Admit(t.Context(), stored.body)
			if err != nil {
				t.Fatal(err)
			}
			checkKept(t, stored.body, admitted)
		})
	}
}

// What a release stored decodes into the types of the tree, and nothing of it is lost when it is written again.
func TestStoredTasksAreDecoded(t *testing.T) {
	for _, stored := range storedTasks(t) {
		t.Run(stored.name, func(t *testing.T) {
			task := &aiopsv1.AITask{}
			if err := json.Unmarshal(stored.body, task); err != nil {
				t.Fatal(err)
			}
			for _, unknown := range unknownFields(task.Status) {
				t.Errorf("the types do not know %s", unknown)
			}
			encoded, err := json.Marshal(task)
			if err != nil {
				t.Fatal(err)
			}
			checkKept(t, stored.body, encoded)
		})
	}
}

// The fixtures of a release stand for whatever it can have stored only if nothing of its schema is missing from them.
func TestStoredTasksHoldTheWholeSchema(t *testing.T) {
	for _, release := range releases(t) {
		t.Run(release, func(t *testing.T) {
			seen := map[string]bool{}
			for _, stored := range storedTasks(t, release) {
				collect("", decode(t, stored.body), seen)
			}
			for path, schema := range flatten(schemaOf(readCRD(t, filepath.Join(releasesFolder, release, "crd.yaml")))) {
				if !seen[path] && path != "" {
					t.Errorf("no stored task has %s", path)
				}
				for _, word := range schema.Enum {
					if !seen[path+"="+string(word.Raw)] {
						t.Errorf("no stored task has the value %s of %s", word.Raw, path)
					}
				}
			}
		})
	}
}

// unknownFields are those that the elements of lists carry along without being understood.
func unknownFields(status aiopsv1.AITaskStatus) []string {
	var unknown []aiopsv1.UnknownFields
	for _, condition := range status.Conditions {
		unknown = append(unknown, condition.Unknown)
	}
	for _, signal := range status.Signals {
		unknown = append(unknown, signal.Unknown)
	}
	for _, entry := range status.History {
		unknown = append(unknown, entry.Unknown)
	}
	var texts []string
	for _, fields := range unknown {
		if fields != "" {
			texts = append(texts, string(fields))
		}
	}
	return texts
}

// storedTask is an AITask as a release kept it, as JSON.
type storedTask struct {
	name string
	body []byte
}

// storedTasks reads the fixtures of the given releases, by default of all.
func storedTasks(t *testing.T, of ...string) []storedTask {
	t.Helper()
	if len(of) == 0 {
		of = releases(t)
	}
	var tasks []storedTask
	for _, release := range of {
		paths, err := filepath.Glob(filepath.Join(releasesFolder, release, "tasks", "*.yaml"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("release %s has no stored tasks: %v", release, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := yaml.YAMLToJSONStrict(text)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			tasks = append(tasks, storedTask{release + "/" + strings.TrimSuffix(filepath.Base(path), ".yaml"), body})
		}
	}
	return tasks
}

func admission(t *testing.T, path string) *crdschema.Admission {
	t.Helper()
	judge, err := crdschema.New(readCRD(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return judge
}

func decode(t *testing.T, body []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// checkKept reports every value of before that after does not have. What after has more is growth.
func checkKept(t *testing.T, before, after []byte) {
	t.Helper()
	for _, path := range lost("", decode(t, before), decode(t, after)) {
		t.Errorf("lost %s", path)
	}
}

// lost returns where after does not have the value of before.
func lost(path string, before, after any) []string {
	switch before := before.(type) {
	case map[string]any:
		fields, _ := after.(map[string]any)
		var paths []string
		for name, value := range before {
			paths = append(paths, lost(path+"."+name, value, fields[name])...)
		}
		slices.Sort(paths)
		return paths
	case []any:
		items, _ := after.([]any)
		if len(items) != len(before) {
			return []string{fmt.Sprintf("%s: %d of %d items", path, len(items), len(before))}
		}
		var paths []string
		for position := range before {
			paths = append(paths, lost(fmt.Sprintf("%s[%d]", path, position), before[position], items[position])...)
		}
		return paths
	}
	if before != after {
		return []string{fmt.Sprintf("%s: %v, now %v", path, before, after)}
	}
	return nil
}

// collect notes every place of a value as flatten names it, and every place with its word as path="word".
func collect(path string, value any, seen map[string]bool) {
	seen[path] = true
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			collect(path+"."+name, field, seen)
		}
	case []any:
		for _, item := range value {
			collect(path+"[]", item, seen)
		}
	case string:
		seen[fmt.Sprintf("%s=%q", path, value)] = true
	}
}
