package packaging_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
	"github.com/example/aiops-operator/internal/runbook"
)

// scenario is a task and what happens to it until it is recorded.
type scenario struct {
	// spec is YAML, as people write it.
	spec string
	play func(*stage)
}

const (
	shortForm = `
targetDeployment: web
threshold: 1
action: Restart
`
	everyStep = `
targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
signals:
- {name: broken, type: CrashLoopingPods, threshold: 1, crashLoopingPods: {container: app}}
forSeconds: 30
recoverySeconds: 120
intervalSeconds: 15
startupGraceSeconds: 20
steps:
- {name: evict, action: Evict, evict: {maxPods: 2, unhealthyPods: IgnoreBudget}, timeoutSeconds: 60}
- {name: restart, action: Restart, mode: Auto, timeoutSeconds: 60, onFailure: Next}
- {name: back, action: Rollback, timeoutSeconds: 60}
- {name: more, action: Scale, scale: {by: 1, min: 1, max: 6}, timeoutSeconds: 60}
- {name: page, action: Notify, notify: {receiver: on-call, message: Nothing helped.}, onFailure: Stop}
mode: Auto
limits: {cooldownSeconds: 60, recurrenceSeconds: 600, maxPasses: 2, maxActions: 20, periodSeconds: 43200}
suspend: false
`
)

// oneStep is a task of the short form's signal with one step.
func oneStep(step string) string {
	return "targetDeployment: web\nthreshold: 1\nlimits: {recurrenceSeconds: 0}\nsteps: [{name: only, " + step + "}]\n"
}

func scenarios(t *testing.T) map[string]scenario {
	t.Helper()
	all := phaseScenarios()
	maps.Copy(all, sampleScenarios(t))
	maps.Copy(all, signalScenarios())
	maps.Copy(all, actionScenarios())
	return all
}

// phaseScenarios end in each of the phases.
func phaseScenarios() map[string]scenario {
	return map[string]scenario{
		"running":  {"targetDeployment: web", watch},
		"pending":  {shortForm, func(s *stage) { s.target = nil; s.wait(time.Minute) }},
		"watching": {shortForm, watch},
		"breached": {oneStep("action: Restart, mode: Observe"), breached},
		"blocked": {shortForm, func(s *stage) {
			s.refusal = &runbook.Refusal{Wait: true, Problem: runbook.Problem{Reason: aiopsv1.ReasonRolloutInProgress, Message: "Deployment/web is rolling out"}}
			breached(s)
		}},
		"acting":    {shortForm, func(s *stage) { s.held = true; breached(s) }},
		"verifying": {shortForm, breached},
		"exhausted": {everyStep, func(s *stage) { s.wait(time.Hour); s.breach(3); s.wait(24 * time.Hour) }},
		"suspended": {shortForm + "suspend: true\n", watch},
		"failed":    {oneStep("action: Notify, notify: {receiver: nobody}"), watch},
		"recovered": {shortForm, func(s *stage) { breached(s); s.heal(); s.wait(10 * time.Minute) }},
		"recurred": {shortForm, func(s *stage) {
			breached(s)
			s.heal()
			s.wait(10 * time.Minute)
			s.breach(2)
			s.wait(5 * time.Minute)
		}},
		"interrupted": {shortForm, func(s *stage) {
			s.held = true
			breached(s)
			s.held, s.restarted = false, true
			s.target.Generation, s.target.TemplateHash = 8, "hash-8"
			s.wait(10 * time.Second)
		}},
		"requested": {shortForm, func(s *stage) {
			watch(s)
			s.ask(aiopsv1.RunAnnotation)
			s.wait(5 * time.Minute)
			s.ask(aiopsv1.ResetAnnotation)
			s.wait(time.Minute)
		}},
		"unknown": {shortForm, func(s *stage) {
			s.reading = runbook.Reading{Reason: aiopsv1.ReasonTimeout, Message: `Prometheus "default" did not answer in 10s`}
			s.wait(5 * time.Minute)
		}},
	}
}

func watch(s *stage) { s.wait(5 * time.Minute) }

func breached(s *stage) {
	watch(s)
	s.breach(3)
	s.wait(2 * time.Minute)
}

// sampleScenarios are what the release shows as examples.
func sampleScenarios(t *testing.T) map[string]scenario {
	t.Helper()
	all := map[string]scenario{}
	for _, path := range append(sampleFiles(t, samplesFolder), sampleFiles(t, configuredSamplesFolder)...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var sample struct {
			Spec json.RawMessage `json:"spec"`
		}
		if err := yaml.Unmarshal(text, &sample); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all["sample-"+strings.TrimSuffix(filepath.Base(path), ".yaml")] = scenario{string(sample.Spec), watch}
	}
	return all
}

// signalScenarios have each type of signal with all that can be said about it.
func signalScenarios() map[string]scenario {
	all := map[string]scenario{}
	for name, signal := range map[string]string{
		"unavailable-replicas": "type: UnavailableReplicas, threshold: 1, comparison: AtLeast",
		"container-restarts":   "type: ContainerRestarts, threshold: 3, containerRestarts: {windowSeconds: 600, container: app}",
		"crash-looping-pods":   "type: CrashLoopingPods, threshold: 1, crashLoopingPods: {container: app}",
		"oom-kills":            "type: OOMKills, threshold: 2, oomKills: {windowSeconds: 600, container: app}",
		"pending-pods":         "type: PendingPods, threshold: 1, pendingPods: {windowSeconds: 120}",
		"rollout-stalled":      "type: RolloutStalled, threshold: 600",
		"cpu-utilization":      "type: CPUUtilization, threshold: 90, recoveryThreshold: 70, cpuUtilization: {container: app}",
		"memory-utilization":   "type: MemoryUtilization, threshold: 90, recoveryThreshold: 70, memoryUtilization: {container: app}",
		"condition":            "type: Condition, threshold: 1, condition: {type: Available, status: 'False'}",
		"condition-true":       "type: Condition, threshold: 1, condition: {type: Stalled, status: 'True'}",
		"condition-unknown":    "type: Condition, threshold: 1, condition: {type: Ready, status: Unknown}",
		"prometheus": "type: Prometheus, threshold: 100, recoveryThreshold: 20, noData: Healthy, " +
			"prometheus: {endpoint: default, query: sum(queue_length), aliveQuery: up, windowSeconds: 300}",
		"prometheus-at-most": "type: Prometheus, threshold: 1, comparison: AtMost, noData: Breached, prometheus: {query: sum(up)}",
		"prometheus-no-data": "type: Prometheus, threshold: 1, noData: Unknown, prometheus: {query: sum(errors)}",
	} {
		all["signal-"+name] = scenario{fmt.Sprintf("targetDeployment: web\nsignals: [{name: watched, %s}]\naction: Restart\n", signal), watch}
	}
	return all
}

// actionScenarios have each action under way, by each of its forms.
func actionScenarios() map[string]scenario {
	all := map[string]scenario{}
	for name, step := range map[string]string{
		"evict":     "action: Evict, evict: {maxPods: 2, unhealthyPods: RespectBudget}",
		"rollback":  "action: Rollback",
		"scale":     "action: Scale, scale: {by: 1, max: 6}",
		"scale-to":  "action: Scale, scale: {to: 4, max: 6}",
		"stop":      "action: Restart, onFailure: Stop",
		"notify":    "action: Notify, notify: {receiver: default, message: Deployment web is down.}",
		"restarted": "action: Restart",
	} {
		all["action-"+name] = scenario{oneStep(step), breached}
	}
	all["short-evict"] = scenario{"targetDeployment: web\nthreshold: 1\naction: Evict\n", watch}
	all["short-rollback"] = scenario{"targetDeployment: web\nthreshold: 1\naction: Rollback\nmode: Observe\n", watch}
	return all
}
