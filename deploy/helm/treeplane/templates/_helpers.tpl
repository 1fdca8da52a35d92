{{- define "treeplane.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "treeplane.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "treeplane.labels" -}}
{{ include "treeplane.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "treeplane.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "treeplane.claim" -}}
{{ .Values.persistence.existingClaim | default (include "treeplane.name" .) }}
{{- end }}

{{- define "treeplane.host" -}}
{{ include "treeplane.name" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- /* The server's settings: those that follow from how it runs here, and whatever the values add. */ -}}
{{- define "treeplane.config" -}}
{{- $host := include "treeplane.host" . -}}
{{- $said := dict "apiVersion" "treeplane.dev/v1alpha1" "kind" "ServerConfiguration" "listen" "0.0.0.0:6443" "dataDir" "/var/lib/treeplane/data" -}}
{{- $_ := set $said "externalUrl" (.Values.externalUrl | default (printf "https://%s:%v" $host .Values.service.port)) -}}
{{- $_ := set $said "tlsSan" (list $host) -}}
{{- if and .Values.repository .Values.repositorySecret.name }}{{ fail "repository and repositorySecret.name: give one of them" }}{{ end -}}
{{- if .Values.repository }}{{ $_ := set $said "repository" .Values.repository }}{{ else if not .Values.repositorySecret.name }}{{ fail "repository: give the URL of the repository to serve, or repositorySecret.name" }}{{ end -}}
{{- range list "apiVersion" "kind" "listen" "dataDir" "externalUrl" "repository" }}{{ if hasKey $.Values.config . }}{{ fail (printf "config.%s: the chart sets it itself" .) }}{{ end }}{{ end -}}
{{- mergeOverwrite $said .Values.config | toYaml -}}
{{- end }}
