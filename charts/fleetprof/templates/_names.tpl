{{/* Names. Within one release every object's name begins with the same word. */}}

{{- define "fleetprof.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "fleetprof" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-fleetprof" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "fleetprof.hubHost" -}}
{{- printf "%s-hub.%s.svc" (include "fleetprof.name" .) .Release.Namespace -}}
{{- end }}

{{- define "fleetprof.webhookHost" -}}
{{- printf "%s-webhook.%s.svc" (include "fleetprof.name" .) .Release.Namespace -}}
{{- end }}

{{- define "fleetprof.operatorAccount" -}}
{{- .Values.operator.serviceAccount.name | default (printf "%s-operator" (include "fleetprof.name" .)) -}}
{{- end }}

{{- define "fleetprof.webhookAccount" -}}
{{- printf "%s-webhook" (include "fleetprof.name" .) -}}
{{- end }}

{{- define "fleetprof.certificatesAccount" -}}
{{- printf "%s-certificates" (include "fleetprof.name" .) -}}
{{- end }}

{{- define "fleetprof.analyzerAccount" -}}
{{- printf "%s-analyzer" (include "fleetprof.name" .) -}}
{{- end }}

{{- define "fleetprof.webuiAccount" -}}
{{- .Values.webui.serviceAccount.name | default (printf "%s-webui" (include "fleetprof.name" .)) -}}
{{- end }}

{{/* The namespaces that are served when the whole cluster is not, as a JSON list. */}}
{{- define "fleetprof.namespaces" -}}
{{- .Values.scope.namespaces | default (list .Release.Namespace) | sortAlpha | toJson -}}
{{- end }}

{{/* Where the webhook is asked, as an expression of a selector of namespaces; empty: everywhere. */}}
{{- define "fleetprof.webhookPlaces" -}}
{{- if not .Values.scope.cluster -}}
- key: kubernetes.io/metadata.name
  operator: In
  values: {{ include "fleetprof.namespaces" . }}
{{- end -}}
{{- end }}

{{/*
What our own ServiceMonitor writes into the label `job`. A Service's name and a label's value hold no "/", and before it
stands the scraped namespace, so that no other namespace's monitor has this name unless it writes labels itself.
*/}}
{{- define "fleetprof.scrapeJob" -}}
{{- .Values.rules.job | default (printf "%s/%s" .Release.Namespace (include "fleetprof.name" .)) -}}
{{- end }}
