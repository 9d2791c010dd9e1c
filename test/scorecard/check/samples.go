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

// samplesHealthy makes every sample of the bundle, with the workload that it targets, and waits until the operator has accepted
// it, measures its signal, and judges it healthy. Nothing of a sample is changed but names, and nothing is configured for it: a sample
// is there to be applied as it is.
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

// settled waits for all tasks at once.
func (s *stage) settled(ctx context.Context, tasks []*aiopsv1.AITask) error {
	err := s.until(ctx, "every sample to be healthy", func(ctx context.Context) (string, error) {
		var missing []string
		for _, task := range tasks {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(task), task); err != nil {
				return "", err
			}
			if problem := unhealthy(task); problem != "" {
				missing = append(missing, fmt.Sprintf("AITask %s: %s", task.Name, problem))
			}
		}
		return strings.Join(missing, "; "), nil
	})
	if err != nil {
		return err
	}
	for _, task := range tasks {
		s.logf("AITask %s is healthy: %s", task.Name, describe(task))
	}
	return nil
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
