{{/* The web UI: where it leads to, and what it is told. */}}

{{/* Address of a report for people; empty where there is none but the store's. */}}
{{- define "fleetprof.reportUrl" -}}
{{- if .Values.operator.reportUrl -}}
{{- .Values.operator.reportUrl -}}
{{- else if and .Values.webui.enabled .Values.webui.url -}}
{{- .Values.webui.url }}/reports/{namespace}/{uid}
{{- end -}}
{{- end }}

{{/* The port of what tells it who people are, for the network policy; empty: the API server alone does. */}}
{{- define "fleetprof.identityPort" -}}
{{- with .Values.webui.oidc.issuerUrl | default .Values.webui.proxy.jwksUrl -}}
{{- $host := (urlParse .).host -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $host) | default "443" -}}
{{- end -}}
{{- end }}

{{- define "fleetprof.webuiEnvironment" -}}
{{- $webui := .Values.webui -}}
- name: FLEETPROF_LOG_LEVEL
  value: {{ .Values.pods.logLevel }}
{{- with $webui.url }}
- name: FLEETPROF_PUBLIC_URL
  value: {{ . | quote }}
{{- end }}
{{- if $webui.kubectl }}
- name: FLEETPROF_KUBECTL_SIGN_IN
  value: "true"
{{- end }}
- name: FLEETPROF_CATALOG
  {{- if $webui.catalog.postgresSecret }}
  valueFrom:
    secretKeyRef: {name: {{ $webui.catalog.postgresSecret }}, key: url}
  {{- else }}
  value: sqlite:////var/lib/fleetprof/catalog.sqlite
  {{- end }}
{{- with $webui.oidc }}
{{- if .issuerUrl }}
- name: FLEETPROF_OIDC_ISSUER_URL
  value: {{ .issuerUrl | quote }}
- name: FLEETPROF_OIDC_CLIENT_ID
  value: {{ .clientId | quote }}
- name: FLEETPROF_OIDC_SCOPES
  value: {{ join "," .scopes | quote }}
{{- if .clientSecret }}
- name: FLEETPROF_OIDC_CLIENT_SECRET_FILE
  value: /etc/fleetprof/client/client-secret
{{- end }}
{{- end }}
{{- end }}
{{- with $webui.proxy }}
{{- if .jwtHeader }}
- name: FLEETPROF_PROXY_JWT_HEADER
  value: {{ .jwtHeader | quote }}
- name: FLEETPROF_PROXY_JWKS_URL
  value: {{ .jwksUrl | quote }}
- name: FLEETPROF_PROXY_JWT_ISSUER
  value: {{ .issuer | quote }}
- name: FLEETPROF_PROXY_JWT_AUDIENCE
  value: {{ .audience | quote }}
{{- end }}
{{- end }}
{{- if $webui.identityAuthority }}
- name: FLEETPROF_IDENTITY_CA_FILE
  value: /etc/fleetprof/identity/ca.crt
{{- end }}
{{- with $webui.names }}
- name: FLEETPROF_USERNAME_CLAIM
  value: {{ .usernameClaim | quote }}
- name: FLEETPROF_USERNAME_PREFIX
  value: {{ .usernamePrefix | quote }}
- name: FLEETPROF_GROUPS_CLAIM
  value: {{ .groupsClaim | quote }}
- name: FLEETPROF_GROUPS_PREFIX
  value: {{ .groupsPrefix | quote }}
{{- end }}
- name: FLEETPROF_WRITES
  value: {{ $webui.writes }}
- name: FLEETPROF_TRACE_DOWNLOADS
  value: {{ $webui.traceDownloads }}
{{ include "fleetprof.storeEnvironment" (dict "root" . "secret" .Values.store.credentials.webuiSecret) }}
{{- end }}
