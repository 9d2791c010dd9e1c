package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// renderObject turns an object of the manifests into a template.
func renderObject(object *unstructured.Unstructured, rename renamer) (string, error) {
	t := &texts{}
	copied := object.DeepCopy()
	metadata := below(copied.Object, "metadata")
	if object.GetKind() == "CustomResourceDefinition" {
		keepable(metadata, t)
		label(metadata, t)
		return t.write(copied.Object)
	}
	metadata["name"] = namePrefix + object.GetName()
	if edit, found := edits()[object.GetKind()]; found {
		if err := edit(copied.Object, t); err != nil {
			return "", err
		}
	}
	selectOwn(copied.Object, t)
	if !labelled(metadata) {
		label(metadata, t)
	}
	useServiceAccount(copied.Object, t)
	rename.tree(copied.Object, t)
	return t.write(copied.Object)
}

// edits are what the values change in objects of a kind.
func edits() map[string]func(map[string]any, *texts) error {
	return map[string]func(map[string]any, *texts) error{
		"Deployment":          editDeployment,
		"ConfigMap":           editConfigMap,
		"ServiceAccount":      editServiceAccount,
		"PriorityClass":       editPriorityClass,
		"PodDisruptionBudget": editDisruptionBudget,
		"NetworkPolicy":       editNetworkPolicy,
		"ServiceMonitor":      editServiceMonitor,
		"PrometheusRule":      editPrometheusRule,
	}
}

// below returns the map at a key and makes it when there is none.
func below(object map[string]any, key string) map[string]any {
	found, ok := object[key].(map[string]any)
	if !ok {
		found = map[string]any{}
		object[key] = found
	}
	return found
}

// label puts the chart's labels in the place of those that Kustomize sets.
func label(metadata map[string]any, t *texts) {
	replaceLabels(metadata, t.block(`{{- include "`+chartName+`.labels" . | nindent +0 }}`))
}

// labelWith adds those of a value, too.
func labelWith(metadata map[string]any, value string, t *texts) {
	replaceLabels(metadata, t.block(`{{- include "`+chartName+`.labelsWith" (list . `+value+`) | nindent +0 }}`))
}

// labelled says whether the chart's labels are there already.
func labelled(metadata map[string]any) bool {
	for key := range below(metadata, "labels") {
		if blockPlaceholder.MatchString(key) {
			return true
		}
	}
	return false
}

func replaceLabels(metadata map[string]any, block string) {
	labels := below(metadata, "labels")
	for key := range labels {
		if strings.HasPrefix(key, "app.kubernetes.io/") {
			delete(labels, key)
		}
	}
	labels[block] = ""
}

// keepable lets helm uninstall leave an object, and what depends on it, behind.
func keepable(metadata map[string]any, t *texts) {
	below(metadata, "annotations")[t.block(
		"{{- if .Values.crds.keep }}",
		"helm.sh/resource-policy: keep",
		"{{- end }}",
	)] = ""
}

// selectOwn replaces every selector of the operator's pods by the release's own, so that two releases never select each
// other's.
func selectOwn(value any, t *texts) {
	switch typed := value.(type) {
	case map[string]any:
		for key, inner := range typed {
			if labels, ok := inner.(map[string]any); ok && (key == "matchLabels" || key == "selector") && selectsOperator(labels) {
				replaceSelector(labels, t)
			}
			selectOwn(inner, t)
		}
	case []any:
		for _, inner := range typed {
			selectOwn(inner, t)
		}
	}
}

func selectsOperator(labels map[string]any) bool {
	return labels["control-plane"] == "controller-manager" || labels["app.kubernetes.io/name"] == chartName
}

func replaceSelector(labels map[string]any, t *texts) {
	delete(labels, "control-plane")
	delete(labels, "app.kubernetes.io/name")
	labels[t.block(`{{- include "`+chartName+`.selectorLabels" . | nindent +0 }}`)] = ""
}

// useServiceAccount binds roles to the account that the values name.
func useServiceAccount(object map[string]any, t *texts) {
	subjects, _ := object["subjects"].([]any)
	for _, item := range subjects {
		if subject, ok := item.(map[string]any); ok && subject["kind"] == "ServiceAccount" {
			subject["name"] = t.inline(serviceAccountName)
		}
	}
}
