{{/* The namespaces whose Lease `fleetprof` says that this release serves there, as a JSON list. One stands for all. */}}
{{- define "fleetprof.leaseNamespaces" -}}
{{- if .Values.scope.cluster -}}
{{- list .Values.scope.leaseNamespace | toJson -}}
{{- else -}}
{{- include "fleetprof.namespaces" . -}}
{{- end -}}
{{- end }}

{{/* Who this release is, in its Leases and in the requests that it serves. */}}
{{- define "fleetprof.owner" -}}
{{- printf "%s/%s" .Release.Namespace (include "fleetprof.name" .) -}}
{{- end }}

{{/* What operator and release hook are told of it. */}}
{{- define "fleetprof.ownerEnvironment" -}}
- name: FLEETPROF_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: FLEETPROF_NAMESPACES
  value: {{ ternary "" (include "fleetprof.namespaces" . | fromJsonArray | join ",") .Values.scope.cluster | quote }}
- name: FLEETPROF_OWNER
  value: {{ include "fleetprof.owner" . }}
{{- end }}
