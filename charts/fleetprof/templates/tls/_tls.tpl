{{/* Certificates. The hub's and the webhook's are apart, with a key each: who has one cannot speak for the other. */}}

{{- define "fleetprof.hubSecret" -}}
{{ include "fleetprof.name" . }}-tls
{{- end }}

{{- define "fleetprof.webhookSecret" -}}
{{ include "fleetprof.name" . }}-webhook-tls
{{- end }}

{{/* Named items: a pod waits until they are there, and never sees an authority's key. Takes the Secret's name. */}}
{{- define "fleetprof.tlsVolume" -}}
- name: tls
  secret:
    secretName: {{ . }}
    items:
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
{{- end }}
