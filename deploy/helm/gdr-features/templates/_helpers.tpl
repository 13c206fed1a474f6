{{/* The labels of every object. The DaemonSet's Pods have only the first. */}}
{{- define "gdr-features.labels" -}}
app.kubernetes.io/name: gdr-features
{{ include "gdr-features.commonLabels" . }}
{{- end }}

{{- define "gdr-features.commonLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: agent
app.kubernetes.io/part-of: gdr-features
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Whether the agent needs user 0: "true" or nothing. */}}
{{- define "gdr-features.root" -}}
{{- if or .Values.acs (has "file" .Values.publish) }}true{{ end }}
{{- end }}

{{/* Whether Pod Security admits the Pods only as privileged: "true" or nothing. */}}
{{- define "gdr-features.privileged" -}}
{{- if or .Values.acs .Values.hostSys .Values.kernelConfig .Values.probeVerbs (has "file" .Values.publish) }}true{{ end }}
{{- end }}

{{/* The image, by digest or by tag. */}}
{{- define "gdr-features.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Fails if a value is missing or contradicts others. The DaemonSet alone includes it, so that
     errors name its template. */}}
{{- define "gdr-features.check" -}}
{{- if not .Values.image.repository }}
{{- fail "image.repository: there is no public registry yet; push the image to your own and set it, such as --set image.repository=registry.example.com/gdr-features" }}
{{- end }}
{{- range .Values.extraArgs }}
{{- if hasPrefix "--listen" . }}
{{- fail "extraArgs: --listen must stay :9400, where the probes and the metrics port are" }}
{{- end }}
{{- end }}
{{- end }}
