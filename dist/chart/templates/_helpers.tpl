{{/* The chart's name as a label. */}}
{{- define "aiops-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/*
What all names begin with: the release, and the chart unless the release says it already. The longest name has room for
28 characters; a longer beginning is cut and told apart by a hash. A release may have dots in its name, a Service may not.
*/}}
{{- define "aiops-operator.fullname" -}}
{{- $full := .Values.fullnameOverride }}
{{- if not $full }}
{{- $name := include "aiops-operator.name" . }}
{{- $full = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | replace "." "-" }}
{{- end }}
{{- if gt (len $full) 28 }}
{{- $full = printf "%s-%s" ($full | trunc 19 | trimSuffix "-") ($full | sha256sum | trunc 8) }}
{{- end }}
{{- $full }}
{{- end }}

{{/* Labels that never change as long as the release lives: selectors are immutable. */}}
{{- define "aiops-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "aiops-operator.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
control-plane: controller-manager
{{- end }}

{{/* Labels of every object. */}}
{{- define "aiops-operator.labels" -}}
{{- include "aiops-operator.labelsWith" (list . dict) }}
{{- end }}

{{/* Labels of every object and others: a list of the root and the others, which go before commonLabels. */}}
{{- define "aiops-operator.labelsWith" -}}
{{- $others := index . 1 }}
{{- with index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "aiops-operator.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with merge (dict) (default dict $others) (default dict .Values.commonLabels) }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* The account that the operator runs as and that the roles are bound to. */}}
{{- define "aiops-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.name }}
{{- .Values.serviceAccount.name }}
{{- else if .Values.serviceAccount.create }}
{{- include "aiops-operator.fullname" . }}-controller-manager
{{- else }}
{{- fail "serviceAccount.name is needed when serviceAccount.create is false: without it the operator would run as the namespace's default account" }}
{{- end }}
{{- end }}

{{/* The PriorityClass of the pods, if there is one. */}}
{{- define "aiops-operator.priorityClassName" -}}
{{- if and .Values.priorityClass.create (hasPrefix "system-" .Values.priorityClass.name) }}
{{- fail "priorityClass.name: names that begin with system- are Kubernetes' own; set priorityClass.create to false to use an existing PriorityClass" }}
{{- end }}
{{- if .Values.priorityClass.name }}
{{- .Values.priorityClass.name }}
{{- else if .Values.priorityClass.create }}
{{- include "aiops-operator.fullname" . }}-controller-manager
{{- end }}
{{- end }}

{{/* The image. A digest says more than a tag. */}}
{{- define "aiops-operator.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* The constraints, each counting the operator's own pods unless it says what it counts. */}}
{{- define "aiops-operator.topologySpreadConstraints" -}}
{{- $own := dict "labelSelector" (dict "matchLabels" (include "aiops-operator.selectorLabels" . | fromYaml)) }}
{{- range .Values.topologySpreadConstraints }}
{{- $constraint := . }}
{{- if not (kindIs "map" .labelSelector) }}
{{- $constraint = merge (dict) . $own }}
{{- end }}
- {{ $constraint | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}
