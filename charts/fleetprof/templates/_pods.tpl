{{/* What all our pods have in common: they pass the `restricted` Pod Security Standard. */}}

{{/* Takes `root`, the `values` of placement, e.g. .Values.pods, its `component` where pods may be spread, and `replicated`. */}}
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
{{- with include "fleetprof.spread" . | trim }}
topologySpreadConstraints:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
How a component's pods are spread: as the values say, else replicas over nodes, as far as that goes. A constraint that says
of no pods is about the component's own: Kubernetes would count none.
*/}}
{{- define "fleetprof.spread" -}}
{{- if .component }}
{{- $own := dict "matchLabels" (include "fleetprof.selectorLabels" (dict "root" .root "component" .component) | fromYaml) }}
{{- $overNodes := list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway") }}
{{- range .values.topologySpreadConstraints | default (ternary $overNodes list (hasKey . "replicated")) }}
{{- $each := ternary . (merge (deepCopy .) (dict "labelSelector" $own)) (hasKey . "labelSelector") }}
- {{ toYaml $each | indent 2 | trim }}
{{- end }}
{{- end }}
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
