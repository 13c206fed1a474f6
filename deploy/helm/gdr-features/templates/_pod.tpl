{{/* The spec of a Pod that runs the agent with the arguments in .args; its container has
     probes and a port if .serves. The rest of the dictionary is .root, the chart's context. */}}
{{- define "gdr-features.pod" -}}
{{- $values := .root.Values -}}
serviceAccountName: gdr-features
automountServiceAccountToken: {{ has "nodefeature" $values.publish }}
enableServiceLinks: false
terminationGracePeriodSeconds: 5
{{- with include "gdr-features.imagePullSecrets" .root }}
imagePullSecrets:
  {{- . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "gdr-features.podSecurityContext" .root | nindent 2 }}
containers:
  - name: gdr-features
    image: {{ include "gdr-features.image" .root }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args:
      {{- toYaml .args | nindent 6 }}
      {{- with include "gdr-features.args" .root | trim }}
      {{- . | nindent 6 }}
      {{- end }}
    env:
      - name: NODE_NAME
        valueFrom:
          fieldRef:
            fieldPath: spec.nodeName
      - name: POD_NAMESPACE
        valueFrom:
          fieldRef:
            fieldPath: metadata.namespace
      {{- with $values.goMemLimit }}
      - name: GOMEMLIMIT
        value: {{ . }}
      {{- end }}
      {{- with include "gdr-features.env" .root | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with $values.extraEnv }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- if .serves }}
    ports:
      - name: metrics
        containerPort: 9400
    {{- with $values.livenessProbe }}
    livenessProbe:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $values.readinessProbe }}
    readinessProbe:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- with $values.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      {{- include "gdr-features.securityContext" .root | nindent 6 }}
    {{- with include "gdr-features.volumeMounts" .root | trim }}
    volumeMounts:
      {{- . | nindent 6 }}
    {{- end }}
{{- with include "gdr-features.volumes" .root | trim }}
volumes:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "gdr-features.podSecurityContext" -}}
{{- $root := eq (include "gdr-features.root" .) "true" -}}
{{- $user := ternary 0 65532 $root -}}
{{- $own := dict "runAsNonRoot" (not $root) "runAsUser" $user "runAsGroup" $user "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- mustMergeOverwrite $own (deepCopy .Values.podSecurityContext) | toYaml }}
{{- end }}

{{- define "gdr-features.securityContext" -}}
{{- $capabilities := dict "drop" (list "ALL") -}}
{{- if .Values.acs }}{{ $_ := set $capabilities "add" (list "SYS_ADMIN") }}{{ end -}}
{{- $own := dict "readOnlyRootFilesystem" true "capabilities" $capabilities -}}
{{/* The API server refuses a privileged container that may not gain privileges. */}}
{{- if .Values.probeVerbs }}{{ $_ := set $own "privileged" true }}
{{- else }}{{ $_ := set $own "allowPrivilegeEscalation" false }}{{ end -}}
{{/* With SELinux, the type of an ordinary container may not write below /etc. */}}
{{- if has "file" .Values.publish }}{{ $_ := set $own "seLinuxOptions" (dict "type" "spc_t") }}{{ end -}}
{{- mustMergeOverwrite $own (deepCopy .Values.securityContext) | toYaml }}
{{- end }}

{{/* The arguments that both the agent and the test have. */}}
{{- define "gdr-features.args" -}}
{{- if has "file" .Values.publish }}
- --publish={{ join "," .Values.publish }}
{{- end }}
{{- with .Values.interval }}
- --interval={{ . }}
{{- end }}
{{- with .Values.settle }}
- --settle={{ . }}
{{- end }}
{{- if .Values.metricsPairs }}
- --metrics-pairs
{{- end }}
{{- with .Values.logLevel }}
- --log-level={{ . }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What the agent judges, as environment variables: a command in its Pod, which does not
     see its arguments, judges the same. */}}
{{- define "gdr-features.env" -}}
{{- if .Values.hostSys }}
- name: GDR_FEATURES_SYSFS
  value: /host/sys
{{- end }}
{{- if .Values.probeVerbs }}
- name: GDR_FEATURES_PROBE_VERBS
  value: "true"
{{- end }}
{{- if or .Values.topologyFile .Values.topologyFiles }}
- name: GDR_FEATURES_TOPOLOGY_FILE
  value: /etc/gdr-features-topology/{{ ternary "topology.xml" "types.yaml" (ne .Values.topologyFile "") }}
{{- end }}
{{- if .Values.expect }}
- name: GDR_FEATURES_EXPECT
  value: /etc/gdr-features/expect.yaml
{{- end }}
{{- with .Values.nicFamilies }}
- name: GDR_FEATURES_NIC_FAMILIES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.nicExclude }}
- name: GDR_FEATURES_NIC_EXCLUDE
  value: {{ join "," . | quote }}
{{- end }}
{{- end }}

{{- define "gdr-features.volumeMounts" -}}
{{- if has "file" .Values.publish }}
# The parent of features.d: the file is staged here, then renamed into place, which does
# not work from one mount to another.
- name: nfd
  mountPath: /etc/kubernetes/node-feature-discovery
{{- end }}
{{- if .Values.hostSys }}
- name: host-sys
  mountPath: /host/sys
  readOnly: true
  {{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}
  # Also what is mounted below /sys, if the node supports it.
  recursiveReadOnly: IfPossible
  {{- end }}
{{- end }}
{{- if .Values.kernelConfig }}
- name: boot
  mountPath: /boot
  readOnly: true
{{- end }}
{{- if or .Values.topologyFile .Values.topologyFiles }}
- name: topology
  mountPath: /etc/gdr-features-topology
  readOnly: true
{{- end }}
{{- if .Values.expect }}
# The directory, because a file mounted by itself is never updated.
- name: expect
  mountPath: /etc/gdr-features
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gdr-features.volumes" -}}
{{- if has "file" .Values.publish }}
- name: nfd
  hostPath:
    path: /etc/kubernetes/node-feature-discovery
    type: DirectoryOrCreate
{{- end }}
{{- if .Values.hostSys }}
- name: host-sys
  hostPath:
    path: /sys
    type: Directory
{{- end }}
{{- if .Values.kernelConfig }}
- name: boot
  hostPath:
    path: /boot
    type: Directory
{{- end }}
{{- if or .Values.topologyFile .Values.topologyFiles }}
- name: topology
  configMap:
    name: gdr-features-topology
{{- end }}
{{- if .Values.expect }}
- name: expect
  configMap:
    name: gdr-features-expect
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
