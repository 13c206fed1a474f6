{{/* The labels of every object. The DaemonSet's Pods have only the first and those of the user. */}}
{{- define "gdr-features.labels" -}}
app.kubernetes.io/name: gdr-features
{{ include "gdr-features.otherLabels" . }}
{{- end }}

{{- define "gdr-features.otherLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: agent
app.kubernetes.io/part-of: gdr-features
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- include "gdr-features.commonLabels" . }}
{{- end }}

{{/* The labels of commonLabels, each on a line of its own. */}}
{{- define "gdr-features.commonLabels" -}}
{{- range $name, $value := .Values.commonLabels }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Whether the agent needs user 0: "true" or nothing. */}}
{{- define "gdr-features.root" -}}
{{- if or .Values.acs (has "file" .Values.publish) }}true{{ end }}
{{- end }}

{{/* Whether Pod Security admits the Pods only as privileged: "true" or nothing. */}}
{{- define "gdr-features.privileged" -}}
{{- if or .Values.acs .Values.hostSys .Values.kernelConfig .Values.probeVerbs (has "file" .Values.publish) }}true{{ end }}
{{- end }}

{{/* The image, by digest or by tag. global.imageRegistry takes the place of a registry in its name. */}}
{{- define "gdr-features.image" -}}
{{- $image := .Values.image.repository -}}
{{- with .Values.global.imageRegistry -}}
{{- $path := splitList "/" ($image | default "gdr-features") -}}
{{- if and (rest $path) (regexMatch "[.:]|^localhost$" (first $path)) }}{{ $path = rest $path }}{{ end -}}
{{- $image = printf "%s/%s" . (join "/" $path) -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{ $image }}@{{ .Values.image.digest }}
{{- else -}}
{{ $image }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* imagePullSecrets and those of global, which may be plain names. */}}
{{- define "gdr-features.imagePullSecrets" -}}
{{- $all := list -}}
{{- range concat .Values.imagePullSecrets (.Values.global.imagePullSecrets | default list) -}}
{{- $all = append $all (ternary (dict "name" .) . (kindIs "string" .)) -}}
{{- end -}}
{{- with uniq $all }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* Fails if a value is missing or contradicts others. The DaemonSet alone includes it, so that
     errors name its template. `helm lint`, which neither installs nor upgrades, has no image. */}}
{{- define "gdr-features.check" -}}
{{- if not (or .Values.image.repository .Values.global.imageRegistry) }}
{{- fail "image.repository: there is no public registry yet; push the image to your own and set it, such as --set image.repository=registry.example.com/gdr-features" }}
{{- end }}
{{- range .Values.extraArgs }}
{{- if hasPrefix "--listen" . }}
{{- fail "extraArgs: --listen must stay :9400, where the probes and the metrics port are" }}
{{- end }}
{{- end }}
{{- if and .Values.monitoring.enabled .Values.monitoring.podMonitor.enabled .Values.monitoring.serviceMonitor.enabled }}
{{- fail "monitoring.serviceMonitor.enabled: each agent would be scraped twice; also set monitoring.podMonitor.enabled=false" }}
{{- end }}
{{- if and .Values.topologyFile .Values.topologyFiles }}
{{- fail "topologyFile and topologyFiles: set only one of them" }}
{{- end }}
{{- include "gdr-features.checkNamespace" . }}
{{- end }}

{{/* Fails if the namespace enforces a level of Pod Security that refuses the Pods. `helm template`
     asks no API server, and finds no namespace. */}}
{{- define "gdr-features.checkNamespace" -}}
{{- if include "gdr-features.privileged" . }}
{{- $labels := (((lookup "v1" "Namespace" "" .Release.Namespace).metadata).labels) | default dict }}
{{- $level := get $labels "pod-security.kubernetes.io/enforce" }}
{{- if has $level (list "baseline" "restricted") }}
{{- printf "the namespace %s enforces Pod Security %q, which refuses Pods with acs, hostSys, kernelConfig, probeVerbs or publish={file}: kubectl label --overwrite namespace %s pod-security.kubernetes.io/enforce=privileged" .Release.Namespace $level .Release.Namespace | fail }}
{{- end }}
{{- end }}
{{- end }}
