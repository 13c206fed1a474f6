{{/* The labels of every object. Pods and selectors have only the first. */}}
{{- define "gdr-features.labels" -}}
app.kubernetes.io/name: gdr-features
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Whether the agent needs user 0: "true" or nothing. */}}
{{- define "gdr-features.root" -}}
{{- if or .Values.acs (has "file" .Values.publish) }}true{{ end }}
{{- end }}

{{/* Whether Pod Security admits the Pods only as privileged: "true" or nothing. */}}
{{- define "gdr-features.privileged" -}}
{{- if or .Values.acs .Values.hostSys .Values.kernelConfig (has "file" .Values.publish) }}true{{ end }}
{{- end }}
