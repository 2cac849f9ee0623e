{{/* What all our pods have in common: they pass the `restricted` Pod Security Standard. */}}

{{/* Takes `root`, a component's `values`, e.g. .Values.operator, and its `component` where its pods may be spread. */}}
{{- define "fleetprof.placement" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and .component .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- include "fleetprof.spread" . | trim | nindent 2 }}
{{- end }}
{{- end }}

{{/* A constraint that says of no pods is about the component's own: Kubernetes would count none. */}}
{{- define "fleetprof.spread" -}}
{{- $own := dict "matchLabels" (include "fleetprof.selectorLabels" (dict "root" .root "component" .component) | fromYaml) }}
{{- range .values.topologySpreadConstraints }}
{{- $each := ternary . (merge (deepCopy .) (dict "labelSelector" $own)) (hasKey . "labelSelector") }}
- {{ toYaml $each | indent 2 | trim }}
{{- end }}
{{- end }}

{{/* Replicas on nodes of their own, as far as that goes, where the values say nothing else. Takes what labels take. */}}
{{- define "fleetprof.overNodes" -}}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "fleetprof.selectorLabels" . | nindent 6 }}
{{- end }}

{{/* Our images run as uid 65532, and as any other: it is left out where admission gives one (OpenShift). */}}
{{- define "fleetprof.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "fleetprof.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
