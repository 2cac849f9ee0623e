{{/* Whether the webhook's certificate is ours to make: "true" or nothing. */}}
{{- define "fleetprof.ownCertificates" -}}
{{- if and .Values.webhook.enabled (not .Values.tls.certManager.enabled) -}}
true
{{- end -}}
{{- end }}
