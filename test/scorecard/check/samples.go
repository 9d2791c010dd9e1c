package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aiopsv1 "github.com/example/aiops-operator/api/v1"
)

// samplesAnnotation is where a ClusterServiceVersion keeps its samples, as a JSON list.
const samplesAnnotation = "alm-examples"

// notConfigured is how the operator says that it does not know a name: the API has one reason for all that is wrong with a spec.
const notConfigured = "is not in the operator's configuration"

// samplesHealthy makes every sample of the bundle, with the workload that it targets, and waits until the operator has accepted
// it, measures its signal, and judges it healthy, as far as the operator's configuration lets it. Nothing of a sample is changed but
// names.
func samplesHealthy(ctx context.Context, s *stage) error {
	var samples []map[string]any
	if err := json.Unmarshal([]byte(s.CSV.Annotations[samplesAnnotation]), &samples); err != nil {
		return fmt.Errorf("read the annotation %s of the ClusterServiceVersion: %w", samplesAnnotation, err)
	}
	if len(samples) == 0 {
		return fmt.Errorf("the annotation %s of the ClusterServiceVersion holds no sample", samplesAnnotation)
	}
	var tasks []*aiopsv1.AITask
	var problems []error
	for _, content := range samples {
		task, err := s.createSample(ctx, &unstructured.Unstructured{Object: content})
		if err != nil {
			problems = append(problems, err)
			continue
		}
		tasks = append(tasks, task)
	}
	return errors.Join(append(problems, s.settled(ctx, tasks))...)
}

// settled waits for all tasks at once. It does not judge a task, and says so, where the operator refuses it for an endpoint or a
// receiver which the administrator has not configured: a fresh installation knows none, and no task can be healthy without it.
func (s *stage) settled(ctx context.Context, tasks []*aiopsv1.AITask) error {
	err := s.until(ctx, "every sample to be healthy", func(ctx context.Context) (string, error) {
		var missing []string
		for _, task := range tasks {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(task), task); err != nil {
				return "", err
			}
			if problem := unhealthy(task); problem != "" && !unconfigured(task) {
				missing = append(missing, fmt.Sprintf("AITask %s: %s", task.Name, problem))
			}
		}
		return strings.Join(missing, "; "), nil
	})
	if err != nil {
		return err
	}
	for _, task := range tasks {
		s.tell(task)
	}
	return nil
}

func (s *stage) tell(task *aiopsv1.AITask) {
	if !unconfigured(task) {
		s.logf("AITask %s is healthy: %s", task.Name, describe(task))
		return
	}
	said := conditionOf(task, aiopsv1.ConditionReady).Message
	s.logf("AITask %s is not judged: needs configuration: %s", task.Name, said)
	s.suggestf("add to the operator's configuration what sample %s names, to have it judged: %s", task.Name, said)
}

// createSample creates a sample under a name of this run's own, and its target likewise.
func (s *stage) createSample(ctx context.Context, sample *unstructured.Unstructured) (*aiopsv1.AITask, error) {
	original := sample.GetName()
	if sample.GetKind() != "AITask" {
		return nil, fmt.Errorf("sample %s is a %s, which no check knows", original, sample.GetKind())
	}
	kind, field := "Deployment", []string{"spec", "targetDeployment"}
	if named, found, _ := unstructured.NestedString(sample.Object, "spec", "targetRef", "kind"); found {
		kind, field = named, []string{"spec", "targetRef", "name"}
	}
	target, _, err := unstructured.NestedString(sample.Object, field...)
	if err != nil || target == "" {
		return nil, fmt.Errorf("sample %s names no target", original)
	}
	sample.SetName(s.named(original))
	if err := unstructured.SetNestedField(sample.Object, s.named(target), field...); err != nil {
		return nil, fmt.Errorf("rename the target of sample %s: %w", original, err)
	}
	workload, err := s.workload(kind, s.named(target))
	if err != nil {
		return nil, fmt.Errorf("sample %s: %w", original, err)
	}
	if err := errors.Join(s.create(ctx, workload), s.create(ctx, sample)); err != nil {
		return nil, fmt.Errorf("sample %s: %w", original, err)
	}
	task := &aiopsv1.AITask{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sample.Object, task); err != nil {
		return nil, fmt.Errorf("decode sample %s: %w", original, err)
	}
	return task, s.untilAvailable(ctx, workload)
}

// unconfigured says that a task which names an endpoint or a receiver is refused for that name, and for nothing else.
func unconfigured(task *aiopsv1.AITask) bool {
	ready := conditionOf(task, aiopsv1.ConditionReady)
	return ready != nil && ready.Status == "False" && ready.Reason == aiopsv1.ReasonInvalidSpec &&
		strings.Contains(ready.Message, notConfigured) && ready.ObservedGeneration == task.Generation && namesConfiguration(&task.Spec)
}

func namesConfiguration(spec *aiopsv1.AITaskSpec) bool {
	for i := range spec.Signals {
		if spec.Signals[i].Type == aiopsv1.SignalPrometheus {
			return true
		}
	}
	for i := range spec.Steps {
		if spec.Steps[i].Action == aiopsv1.ActionNotify {
			return true
		}
	}
	return false
}
