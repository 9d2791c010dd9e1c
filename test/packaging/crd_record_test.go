package packaging_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/runbook"
)

// A release is recorded once, from its own tree; see testdata/releases/README.md.
var record = flag.String("record", "", "write the CRD and the stored tasks of this tree to the folder of the named release, such as v0.1.0")

const (
	taskUID   = types.UID("3f0c2c1e-0000-4000-8000-000000000001")
	targetUID = "3f0c2c1e-0000-4000-8000-00000000000a"
	// maxPasses bounds how many passes may follow each other in one scenario.
	maxPasses = 10000
)

// TestRecordRelease writes fixtures: tasks with the status that the runbook of this tree really decides on, in each of its phases and
// with everything that the schema has.
func TestRecordRelease(t *testing.T) {
	folder := t.TempDir() // without -record it still proves that each scenario can be recorded
	if *record != "" {
		folder = filepath.Join(releasesFolder, *record)
		if err := unrecorded(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, "tasks"), 0o755); err != nil {
		t.Fatal(err)
	}
	crd, err := os.ReadFile(currentCRD)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "crd.yaml"), crd)
	phases := map[string]bool{}
	for name, scenario := range scenarios(t) {
		phases[recordTask(t, filepath.Join(folder, "tasks", name+".yaml"), name, scenario)] = true
	}
	for _, phase := range []string{
		aiopsv1.PhaseRunning, aiopsv1.PhasePending, aiopsv1.PhaseWatching, aiopsv1.PhaseBreached, aiopsv1.PhaseBlocked, aiopsv1.PhaseActing,
		aiopsv1.PhaseVerifying, aiopsv1.PhaseExhausted, aiopsv1.PhaseSuspended, aiopsv1.PhaseFailed,
	} {
		if !phases[phase] {
			t.Errorf("no scenario ends in the phase %s", phase)
		}
	}
}

// errRecorded keeps what a release stored: who runs it has it in their cluster.
var errRecorded = errors.New("is recorded already: remove the folder first, if the release was not cut")

// unrecorded demands that nothing is at the folder of a release.
func unrecorded(folder string) error {
	_, err := os.Stat(folder)
	switch {
	case err == nil:
		return fmt.Errorf("%s %w", folder, errRecorded)
	case errors.Is(err, os.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("look for a recorded release: %w", err)
	}
}

func TestRecordReleaseOverwritesNothing(t *testing.T) {
	if err := unrecorded(t.TempDir()); !errors.Is(err, errRecorded) {
		t.Errorf("a folder that exists: got %v, want %v", err, errRecorded)
	}
	if err := unrecorded(filepath.Join(t.TempDir(), "v0.2.0")); err != nil {
		t.Errorf("a new folder: got %v, want no error", err)
	}
}

// recordTask plays one scenario, writes the task as it would be stored at its end, and returns its phase.
func recordTask(t *testing.T, path, name string, scenario scenario) string {
	t.Helper()
	judge := admission(t, currentCRD)
	spec, err := yaml.YAMLToJSONStrict([]byte(scenario.spec))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	created := fmt.Appendf(nil, `{"apiVersion":"aiops.example.com/v1","kind":"AITask","metadata":{"name":%q,"namespace":"shop","uid":%q,"generation":1,`+
		`"creationTimestamp":"2026-01-01T03:00:00Z"},"spec":%s}`, name, taskUID, spec)
	stored, err := judge.Admit(t.Context(), created)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s := newStage(t, stored)
	scenario.play(s)
	body, err := json.Marshal(s.task)
	if err != nil {
		t.Fatal(err)
	}
	if body, err = judge.Admit(t.Context(), body); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text, err := yaml.JSONToYAML(body)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, text)
	return s.task.Status.Phase
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// stage does with each decision what the controller does, over time that only the scenario moves.
type stage struct {
	t           *testing.T
	now         time.Time
	task        *aiopsv1.AITask
	target      *runbook.Target
	reading     runbook.Reading
	observation runbook.Observation
	// refusal is what planning a step comes to. Nil: it can be run.
	refusal *runbook.Refusal
	// held says that the operator ends before a recorded order is run.
	held bool
	// restarted says that another process recorded the order, so that this one cannot know whether it ran.
	restarted bool
	next      time.Time
}

func newStage(t *testing.T, stored []byte) *stage {
	t.Helper()
	s := &stage{
		t: t, now: time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC), task: &aiopsv1.AITask{}, reading: runbook.Reading{Known: true},
		target: &runbook.Target{
			Summary: "Deployment/web", UID: targetUID, Generation: 7, Replicas: 3, AvailablePods: 3, Revision: "web-8", RevisionRunning: true,
			TemplateHash: "hash-7", Available: true,
		},
	}
	if err := json.Unmarshal(stored, s.task); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) breach(value float64) {
	s.reading = runbook.Reading{Known: true, Value: value}
	s.target.Available, s.target.AvailablePods = false, 0
}

func (s *stage) heal() {
	s.reading = runbook.Reading{Known: true}
	s.target.Available, s.target.AvailablePods = true, s.target.Replicas
}

// ask writes a request, as kubectl annotate does.
func (s *stage) ask(annotation string) {
	if s.task.Annotations == nil {
		s.task.Annotations = map[string]string{}
	}
	s.task.Annotations[annotation] = string(taskUID) + "/" + s.now.Format(time.RFC3339)
}

// wait lets the time pass, with a pass of the loop at each moment that the decisions ask for.
func (s *stage) wait(duration time.Duration) {
	s.t.Helper()
	end := s.now.Add(duration)
	for range maxPasses {
		changed := s.pass()
		switch {
		case changed:
		case s.next.IsZero() || s.next.After(end):
			if s.now.Equal(end) {
				return
			}
			s.now = end
		default:
			s.now = s.next
		}
	}
	s.t.Fatalf("%s: passes do not end", s.task.Name)
}

// pass is one pass of the loop. It says whether the status changed.
func (s *stage) pass() bool {
	in := s.input()
	decision := runbook.Next(in)
	for decision.Propose != nil {
		in.Proposals = append(in.Proposals, s.plan(*decision.Propose))
		decision = runbook.Next(in)
	}
	if decision.Execute && !s.held {
		decision = s.act(in)
	}
	s.next = decision.NextTime
	if reflect.DeepEqual(decision.Status, s.task.Status) {
		if !s.next.After(s.now) {
			s.next = time.Time{}
		}
		return false
	}
	s.task.Status = *decision.Status.DeepCopy()
	return true
}

func (s *stage) input() runbook.Input {
	in := runbook.Input{
		Now: s.now, Task: s.task, Plan: runbook.PlanOf(&s.task.Spec), RandomID: "5b1d4a0e-0000-4000-8000-00000000000b",
		SpecProblem: runbook.Validate(&s.task.Spec, runbook.Names{Endpoints: []string{"default"}, Receivers: []string{"default", "on-call"}}),
	}
	if s.target == nil {
		in.TargetSummary, in.TargetProblem = "Deployment/web", &runbook.Problem{Reason: aiopsv1.ReasonTargetNotFound, Message: "Deployment/web does not exist in namespace shop"}
		return in
	}
	target := *s.target
	in.Target = &target
	if in.Plan.Signal == nil || s.task.Spec.Suspend != nil && *s.task.Spec.Suspend {
		return in
	}
	judgement := runbook.Judge(*in.Plan.Signal, s.reading, in.Plan.BreachedBefore(s.observation, &s.task.Status))
	s.observation = runbook.Observe(s.observation, judgement, target.Available, s.now)
	in.Observation = s.observation
	return in
}

// plan is what a step would do, as its action says it.
func (s *stage) plan(step aiopsv1.Step) runbook.Proposal {
	proposal := runbook.Proposal{StepName: step.Name, Refusal: s.refusal, Message: fmt.Sprintf("run %s on %s", step.Action, s.target.Summary)}
	switch step.Action {
	case aiopsv1.ActionScale:
		proposal.Replicas = pointerTo(s.target.Replicas + 1)
	case aiopsv1.ActionRollback:
		proposal.Revision = "web-7"
	case aiopsv1.ActionEvict:
		proposal.PodUIDs = []string{"3f0c2c1e-0000-4000-8000-00000000000c"}
	}
	return proposal
}

// act passes the recorded order through the gate and does what it says.
func (s *stage) act(in runbook.Input) runbook.Decision {
	s.t.Helper()
	order := in.Task.Status.Order
	gate := runbook.Gate{Input: in, TaskUID: s.task.UID, Order: *order, Untried: !s.restarted}
	step, found := in.Plan.Step(order.StepName)
	if !found {
		s.t.Fatalf("%s: order %s is of no step", s.task.Name, order.ID)
	}
	gate.Proposals = []runbook.Proposal{s.plan(step)}
	switch passage, problem := runbook.Pass(gate); passage {
	case runbook.PassageRun:
	case runbook.PassageInterrupt:
		return runbook.Executed(in, runbook.Execution{After: s.target.Image(), Interrupted: true})
	default:
		s.t.Fatalf("%s: the gate came to %s: %s", s.task.Name, passage, problem.Message)
	}
	if !step.Action.Accompanies() {
		s.target.LastOrder, s.target.LastActionTime = order.ID, s.now
		s.target.Generation++
		s.target.TemplateHash = fmt.Sprintf("hash-%d", s.target.Generation)
	}
	if order.Replicas != nil {
		s.target.Replicas = *order.Replicas
	}
	done := fmt.Sprintf("ran %s on %s", step.Action, s.target.Summary)
	return runbook.Executed(in, runbook.Execution{After: s.target.Image(), Message: done})
}
