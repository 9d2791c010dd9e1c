package main

import (
	"fmt"
	"strings"
)

const serviceAccountName = `{{ include "` + chartName + `.serviceAccountName" . | quote }}`

// optional returns the lines of a field that is written when the value is set.
func optional(field, value string) []string {
	return []string{"{{- with " + value + " }}", field + ":", "  {{- toYaml . | nindent +2 }}", "{{- end }}"}
}

// appended returns the lines that add a list of values to the list they stand in.
func appended(value string) []string {
	return []string{"{{- with " + value + " }}", "{{- toYaml . | nindent +0 }}", "{{- end }}"}
}

func editDeployment(object map[string]any, t *texts) error {
	spec := below(object, "spec")
	spec["replicas"] = t.inline("{{ .Values.replicas }}")
	template := below(spec, "template")
	editPodMetadata(below(template, "metadata"), t)
	pod, err := podOf(object)
	if err != nil {
		return err
	}
	editPod(pod, t)
	container, err := containerOf(pod)
	if err != nil {
		return err
	}
	return editContainer(container, t)
}

// editPodMetadata leaves out the chart's version, which changes without anything of the pod changing.
func editPodMetadata(metadata map[string]any, t *texts) {
	labels := below(metadata, "labels")
	replaceSelector(labels, t)
	labels[t.block(
		"{{- with merge (dict) (default dict .Values.podLabels) (default dict .Values.commonLabels) }}",
		"{{- toYaml . | nindent +0 }}",
		"{{- end }}",
	)] = ""
	annotations := below(metadata, "annotations")
	annotations[t.block(appended(".Values.podAnnotations")...)] = ""
}

func editPod(pod map[string]any, t *texts) {
	pod["serviceAccountName"] = t.inline(serviceAccountName)
	pod["priorityClassName"] = t.block(
		`{{- with include "`+chartName+`.priorityClassName" . }}`,
		"priorityClassName: {{ . | quote }}",
		"{{- end }}",
	)
	pod["topologySpreadConstraints"] = t.block(
		"{{- with .Values.topologySpreadConstraints }}",
		"topologySpreadConstraints:",
		`  {{- include "`+chartName+`.topologySpreadConstraints" $ | trim | nindent +2 }}`,
		"{{- end }}",
	)
	for field, value := range map[string]string{
		"imagePullSecrets": ".Values.image.pullSecrets",
		"nodeSelector":     ".Values.nodeSelector",
		"tolerations":      ".Values.tolerations",
		"affinity":         ".Values.affinity",
		"securityContext":  ".Values.podSecurityContext",
	} {
		pod[field] = t.block(optional(field, value)...)
	}
	nameCredentials(pod, t)
	pod["volumes"] = extended(pod["volumes"], "volumes", ".Values.extraVolumes", t)
}

// nameCredentials lets the values name the Secret that every installation may have.
func nameCredentials(pod map[string]any, t *texts) {
	volumes, _ := pod["volumes"].([]any)
	for _, item := range volumes {
		volume, _ := item.(map[string]any)
		if secret, ok := volume["secret"].(map[string]any); ok && volume["name"] == "credentials" {
			secret["secretName"] = t.inline(`{{ default (printf "%s-manager-credentials" (include "` + chartName + `.fullname" .)) .Values.credentialsSecret | quote }}`)
		}
	}
}

// extended adds the value to a list of the manifests, which may have none.
func extended(list any, field, value string, t *texts) any {
	if items, ok := list.([]any); ok && len(items) > 0 {
		return append(items, t.block(appended(value)...))
	}
	return t.block(optional(field, value)...)
}

func editContainer(container map[string]any, t *texts) error {
	container["image"] = t.inline(`{{ include "` + chartName + `.image" . }}`)
	container["imagePullPolicy"] = t.block("{{- with .Values.image.pullPolicy }}", "imagePullPolicy: {{ . }}", "{{- end }}")
	container["resources"] = t.block(optional("resources", ".Values.resources")...)
	container["securityContext"] = t.block(optional("securityContext", ".Values.securityContext")...)
	container["env"] = extended(container["env"], "env", ".Values.extraEnv", t)
	container["volumeMounts"] = extended(container["volumeMounts"], "volumeMounts", ".Values.extraVolumeMounts", t)
	if err := switchMetrics(container, t); err != nil {
		return err
	}
	container["args"] = extended(container["args"], "args", ".Values.extraArgs", t)
	return nil
}

// switchMetrics makes the endpoint and its port depend on metrics.enabled.
func switchMetrics(container map[string]any, t *texts) error {
	const flag = "--metrics-bind-address="
	arguments, _ := container["args"].([]any)
	found := false
	for index, item := range arguments {
		argument, _ := item.(string)
		if address, is := strings.CutPrefix(argument, flag); is {
			arguments[index] = flag + t.inline(fmt.Sprintf("{{ ternary %q \"0\" .Values.metrics.enabled }}", address))
			found = true
		}
	}
	if !found {
		return fmt.Errorf("the container has no argument %s", flag)
	}
	ports, _ := container["ports"].([]any)
	var out []any
	for _, item := range ports {
		if port, ok := item.(map[string]any); ok && port["name"] == "metrics" {
			out = append(out, t.block("{{- if .Values.metrics.enabled }}"), item, t.block("{{- end }}"))
			continue
		}
		out = append(out, item)
	}
	container["ports"] = out
	return nil
}

func editConfigMap(object map[string]any, t *texts) error {
	below(object, "data")["config.yaml"] = t.block("config.yaml: |", "  {{- toYaml (default dict .Values.config) | nindent +2 }}")
	return nil
}

func editServiceAccount(object map[string]any, t *texts) error {
	metadata := below(object, "metadata")
	metadata["name"] = t.inline(serviceAccountName)
	metadata["annotations"] = t.block(optional("annotations", ".Values.serviceAccount.annotations")...)
	return nil
}

func editPriorityClass(object map[string]any, t *texts) error {
	below(object, "metadata")["name"] = t.inline(`{{ include "` + chartName + `.priorityClassName" . | quote }}`)
	return nil
}

// editDisruptionBudget leaves one of the two bounds, of which Kubernetes takes only one.
func editDisruptionBudget(object map[string]any, t *texts) error {
	spec := below(object, "spec")
	delete(spec, "minAvailable")
	spec["maxUnavailable"] = t.block(
		"{{- if kindIs \"invalid\" .Values.podDisruptionBudget.minAvailable }}",
		"maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}",
		"{{- else }}",
		"minAvailable: {{ .Values.podDisruptionBudget.minAvailable }}",
		"{{- end }}",
	)
	return nil
}

// editNetworkPolicy takes from the values who may scrape, and the ports of what only the configuration knows. An empty list
// would allow everything, so placements leave out such a policy altogether.
func editNetworkPolicy(object map[string]any, t *texts) error {
	name, _ := below(object, "metadata")["name"].(string)
	switch strings.TrimPrefix(name, namePrefix) {
	case metricsPolicy:
		return replaceInRules(object, "ingress", "from", t.block("{{- toYaml .Values.networkPolicy.metricsFrom | nindent +0 }}"))
	case endpointsPolicy:
		return replaceInRules(object, "egress", "ports", t.block(
			"{{- range .Values.networkPolicy.egressPorts }}",
			"- port: {{ . }}",
			"  protocol: TCP",
			"{{- end }}",
		))
	}
	return nil
}

// replaceInRules puts a block in the place of the list that the only rule of a direction has.
func replaceInRules(policy map[string]any, direction, field, block string) error {
	rules, _ := below(policy, "spec")[direction].([]any)
	if len(rules) != 1 {
		return fmt.Errorf("it has %d rules of %s, the chart knows one", len(rules), direction)
	}
	rule, ok := rules[0].(map[string]any)
	if !ok {
		return fmt.Errorf("its rule of %s is a %T", direction, rules[0])
	}
	rule[field] = []any{block}
	return nil
}

func editServiceMonitor(object map[string]any, t *texts) error {
	labelWith(below(object, "metadata"), ".Values.metrics.serviceMonitor.labels", t)
	endpoints, _ := below(object, "spec")["endpoints"].([]any)
	for _, item := range endpoints {
		endpoint, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("an endpoint is a %T", item)
		}
		endpoint["interval"] = t.block("{{- with .Values.metrics.serviceMonitor.interval }}", "interval: {{ . }}", "{{- end }}")
	}
	return nil
}

func editPrometheusRule(object map[string]any, t *texts) error {
	labelWith(below(object, "metadata"), ".Values.metrics.prometheusRule.labels", t)
	return nil
}
