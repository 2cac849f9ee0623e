{{/* Certificates. */}}

{{/* What the one certificate of hub and webhook is for, as a JSON list. */}}
{{- define "fleetprof.tlsNames" -}}
{{- $names := list (include "fleetprof.hubHost" .) -}}
{{- if .Values.webhook.enabled }}{{ $names = append $names (include "fleetprof.webhookHost" .) }}{{ end -}}
{{- $names | toJson -}}
{{- end }}

{{/* Named items: a pod waits until they are there, and never sees the authority's key. */}}
{{- define "fleetprof.tlsVolume" -}}
- name: tls
  secret:
    secretName: {{ include "fleetprof.name" . }}-tls
    items:
      - {key: ca.crt, path: ca.crt}
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
{{- end }}
