package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// facts are what the hand-written sources take from the manifests, most of all the defaults of values.
type facts struct {
	Name              string
	Version           string
	MinimumKubernetes string
	Repository        string
	Tag               string
	Digest            string
	// NameRoom is how long the common beginning of all names may be.
	NameRoom int
	// CustomResourceDefinition is the name of the CRD.
	CustomResourceDefinition string
	// DisruptionBudget is the spec of the PodDisruptionBudget.
	DisruptionBudget map[string]any
	// MetricsFrom are the peers that the network policies let scrape.
	MetricsFrom []any
	// EgressPorts are the ports of endpoints and receivers that the network policies let out to.
	EgressPorts []any
	// Deployment, Pod and Container are the specs of the Deployment, its pods and its container.
	Deployment, Pod, Container map[string]any
}

func factsOf(given release, objects []*unstructured.Unstructured) (facts, error) {
	out := facts{Name: chartName, Version: given.Version, MinimumKubernetes: minKubernetes, NameRoom: longestName}
	out.Repository, out.Tag, out.Digest = splitImage(given.Image)
	if out.Tag == "v"+given.Version {
		out.Tag = "" // the chart's appVersion
	}
	for _, object := range objects {
		if err := out.learn(object); err != nil {
			return facts{}, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if out.Container == nil || out.DisruptionBudget == nil {
		return facts{}, fmt.Errorf("the manifests lack the Deployment or its PodDisruptionBudget")
	}
	if len(out.MetricsFrom) == 0 || len(out.EgressPorts) == 0 {
		return facts{}, fmt.Errorf("the manifests lack the network policies %s and %s", metricsPolicy, endpointsPolicy)
	}
	return out, nil
}

func (f *facts) learn(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "CustomResourceDefinition":
		f.CustomResourceDefinition = object.GetName()
	case "Service":
		f.NameRoom = min(f.NameRoom, longestName-len("-"+object.GetName()))
	case "PodDisruptionBudget":
		f.DisruptionBudget, _, _ = unstructured.NestedMap(object.Object, "spec")
	case "NetworkPolicy":
		f.learnPolicy(object)
	case "Deployment":
		f.Deployment, _, _ = unstructured.NestedMap(object.Object, "spec")
		pod, err := podOf(object.Object)
		if err != nil {
			return err
		}
		container, err := containerOf(pod)
		f.Pod, f.Container = pod, container
		return err
	}
	return nil
}

// learnPolicy reads the lists that are values.
func (f *facts) learnPolicy(policy *unstructured.Unstructured) {
	switch policy.GetName() {
	case metricsPolicy:
		f.MetricsFrom = inRules(policy, "ingress", "from")
	case endpointsPolicy:
		for _, item := range inRules(policy, "egress", "ports") {
			if port, ok := item.(map[string]any); ok {
				f.EgressPorts = append(f.EgressPorts, port["port"])
			}
		}
	}
}

// inRules returns what the rules of one direction have in a list.
func inRules(policy *unstructured.Unstructured, direction, field string) []any {
	rules, _, _ := unstructured.NestedSlice(policy.Object, "spec", direction)
	var out []any
	for _, item := range rules {
		rule, _ := item.(map[string]any)
		list, _ := rule[field].([]any)
		out = append(out, list...)
	}
	return out
}

// SpreadConstraints are the pods' topology spread constraints without their selectors, which the chart's template adds.
func (f facts) SpreadConstraints() []any {
	out := []any{}
	constraints, _ := f.Pod["topologySpreadConstraints"].([]any)
	for _, item := range constraints {
		copied := map[string]any{}
		constraint, _ := item.(map[string]any)
		for key, value := range constraint {
			if key != "labelSelector" {
				copied[key] = value
			}
		}
		out = append(out, copied)
	}
	return out
}

// PodField is a field of the pods' spec, or instead when they have none.
func (f facts) PodField(name string, instead any) any {
	if value, found := f.Pod[name]; found {
		return value
	}
	return instead
}

// Empty helps templates to name a default that YAML writes as {}.
func (facts) Empty() map[string]any { return map[string]any{} }

// None helps templates to name a default that YAML writes as [].
func (facts) None() []any { return []any{} }

// splitImage takes apart repository:tag or repository@digest. A colon before the last slash belongs to a port.
func splitImage(image string) (repository, tag, digest string) {
	if before, after, found := strings.Cut(image, "@"); found {
		return before, "", after
	}
	colon := strings.LastIndex(image, ":")
	if colon <= strings.LastIndex(image, "/") {
		return image, "", ""
	}
	return image[:colon], image[colon+1:], ""
}

func podOf(deployment map[string]any) (map[string]any, error) {
	pod, found, err := unstructured.NestedFieldNoCopy(deployment, "spec", "template", "spec")
	spec, ok := pod.(map[string]any)
	if err != nil || !found || !ok {
		return nil, fmt.Errorf("it has no pod template: %w", err)
	}
	return spec, nil
}

func containerOf(pod map[string]any) (map[string]any, error) {
	containers, _ := pod["containers"].([]any)
	if len(containers) != 1 {
		return nil, fmt.Errorf("it has %d containers, the chart knows one", len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("its container is a %T", containers[0])
	}
	return container, nil
}
