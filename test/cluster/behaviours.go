package cluster

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

// Annotations of a pod (set them in a workload's pod template, or on a running pod) that direct the simulation.
const (
	// BehaviourAnnotation selects a [Behaviour] for all containers of the pod, or for the one ContainerAnnotation names. It
	// goes before the image tag. Changing it on a running pod changes the pod; removing it heals the pod.
	BehaviourAnnotation = "fake.aiops.example.com/behaviour"
	// ContainerAnnotation limits BehaviourAnnotation to one container; the others stay healthy. Default: all containers.
	ContainerAnnotation = "fake.aiops.example.com/container"
	// ReadyAfterAnnotation delays the start of a pod by a Go duration such as "5s". Default: none.
	ReadyAfterAnnotation = "fake.aiops.example.com/ready-after"
	// RestartEveryAnnotation is the Go duration between two restarts of a crashing container. Default: 2s.
	RestartEveryAnnotation = "fake.aiops.example.com/restart-every"
	// RunForAnnotation is how long a pod of a Job runs before it succeeds, a Go duration. Default: 100ms.
	RunForAnnotation = "fake.aiops.example.com/run-for"
	// CPUAnnotation is the CPU every container of the pod uses, a quantity such as "250m". Default: 1m.
	CPUAnnotation = "fake.aiops.example.com/cpu"
	// MemoryAnnotation is the memory every container of the pod uses, a quantity such as "64Mi". Default: 1Mi. With "0" the
	// metrics API has no metrics of the pod at all, neither memory nor CPU.
	MemoryAnnotation = "fake.aiops.example.com/memory"
	// BehaviourCondition is the condition on every pod whose reason is the behaviour its status shows at present.
	BehaviourCondition = "fake.aiops.example.com/Behaviour"
)

// Behaviour is what a simulated pod does. It is selected by BehaviourAnnotation or, where a tag is given below, by the tag
// of a container's image, whatever the registry and the repository.
type Behaviour string

// The behaviours.
const (
	// Healthy pods run and are ready at once; pods of Jobs succeed. This is the default.
	Healthy Behaviour = "healthy"
	// NotReady pods run and are never ready. Tags: not-ready, bad.
	NotReady Behaviour = "not-ready"
	// Crash containers are in CrashLoopBackOff after an exit with code 1, and their restart count grows. Tag: crash.
	// A pod that may not restart (a Job's with restartPolicy Never) fails instead.
	Crash Behaviour = "crash"
	// OutOfMemory containers are killed (OOMKilled, exit code 137), run again at once, and are killed again before they are
	// ready: the restart count grows. Tag: oom. A pod that may not restart fails instead.
	OutOfMemory Behaviour = "oom"
	// MissingImage containers wait in ImagePullBackOff. Tag: missing.
	MissingImage Behaviour = "missing"
	// Pending pods are scheduled to a node that never starts them (ContainerCreating). Tag: pending. For a pod that the
	// scheduler really cannot place, request more CPU than a node has (32).
	Pending Behaviour = "pending"
	// Stuck pods run and are ready, but their node does not finish their deletion. Annotation only.
	Stuck Behaviour = "stuck"
)

// behaviour says how the node reports a pod whose affected containers behave in one way. What the pod's other containers
// report is the same for all: running and ready.
type behaviour struct {
	Name Behaviour
	// Tags of an image select the behaviour.
	Tags []string
	// Unstarted pods stay in phase Pending unless they have run before.
	Unstarted bool
	// Ready and Running describe the affected containers.
	Ready, Running bool
	// Waiting is the reason of containers that do not run.
	Waiting string
	// Terminated and ExitCode describe how containers that restart ended the last time; empty if they do not restart.
	Terminated string
	ExitCode   int
}

// behaviours is the whole simulation as a table; simulation.yaml turns each row into Stages of KWOK.
func behaviours() []behaviour {
	return []behaviour{
		{Name: Healthy, Running: true, Ready: true},
		{Name: NotReady, Tags: []string{"not-ready", "bad"}, Running: true},
		{Name: Crash, Tags: []string{"crash"}, Waiting: "CrashLoopBackOff", Terminated: "Error", ExitCode: 1},
		{Name: OutOfMemory, Tags: []string{"oom"}, Running: true, Terminated: "OOMKilled", ExitCode: 137},
		{Name: MissingImage, Tags: []string{"missing"}, Unstarted: true, Waiting: "ImagePullBackOff"},
		{Name: Pending, Tags: []string{"pending"}, Unstarted: true, Waiting: "ContainerCreating"},
		{Name: Stuck, Running: true, Ready: true},
	}
}

//go:embed simulation.yaml
var simulationTemplate string

// simulationConfiguration is KWOK's configuration. Two templates meet in it: [[ ]] is filled in here from the table, and
// {{ }} is filled in by KWOK for each pod.
func simulationConfiguration() ([]byte, error) {
	functions := template.FuncMap{"quote": func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }}
	parsed, err := template.New("simulation").Delims("[[", "]]").Funcs(functions).Parse(simulationTemplate)
	if err != nil {
		return nil, fmt.Errorf("read the simulation's template: %w", err)
	}
	var filled bytes.Buffer
	data := struct {
		Behaviours    []behaviour
		Wanted, Shown string
		CPU, Memory   string
	}{
		Behaviours: behaviours(), Wanted: wantedBehaviour(), Shown: shownBehaviour(),
		CPU: usage(CPUAnnotation, "1m"), Memory: usage(MemoryAnnotation, "1Mi"),
	}
	if err := parsed.Execute(&filled, data); err != nil {
		return nil, fmt.Errorf("fill in the simulation's template: %w", err)
	}
	return filled.Bytes(), nil
}

// wantedBehaviour is the jq expression for the behaviour a pod asks for.
func wantedBehaviour() string {
	var tags []string
	for _, row := range behaviours() {
		for _, tag := range row.Tags {
			tags = append(tags, fmt.Sprintf("%q: %q", tag, row.Name))
		}
	}
	return fmt.Sprintf(`(.metadata.annotations[%q] // first(.spec.containers[].image | split(":")[-1] | {%s}[.] // empty) // %q)`,
		BehaviourAnnotation, strings.Join(tags, ", "), Healthy)
}

// shownBehaviour is the jq expression for the behaviour a pod's status shows.
func shownBehaviour() string {
	return fmt.Sprintf(`(first(.status.conditions[]? | select(.type == %q) | .reason) // "")`, BehaviourCondition)
}

// usage is the CEL expression for what one container uses.
func usage(annotation, otherwise string) string {
	return fmt.Sprintf("%q in pod.metadata.annotations ? Quantity(pod.metadata.annotations[%q]) : Quantity(%q)",
		annotation, annotation, otherwise)
}
