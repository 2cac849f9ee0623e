{{/* Who reaches our pods, as ingress rules, and where they have to go, as egress rules. */}}

{{- define "fleetprof.fromScrapers" -}}
- ports:
    - {protocol: TCP, port: {{ .port }}}
  from:
    {{- toYaml (.root.Values.networkPolicy.scrapers | default (list (dict "namespaceSelector" dict))) | nindent 4 }}
{{- end }}

{{- define "fleetprof.toNames" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end }}

{{/* The API server's address is not known to a chart, and it is no pod: its ports are all that can be said. */}}
{{- define "fleetprof.toApiServer" -}}
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{- define "fleetprof.toStore" -}}
- ports:
    - {protocol: TCP, port: {{ include "fleetprof.storePort" . }}}
  {{- if .Values.store.bundled.enabled }}
  to:
    - podSelector:
        matchLabels:
          {{- include "fleetprof.selectorLabels" (dict "root" . "component" "store") | nindent 10 }}
  {{- else if .Values.networkPolicy.storeCidrs }}
  to:
    {{- range .Values.networkPolicy.storeCidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}

{{/* Takes `root` and the `annotations` of a service account. A role's credentials come from the cloud's token service (STS). */}}
{{- define "fleetprof.toTokenService" -}}
{{- if and .root.Values.networkPolicy.storeCidrs .annotations }}
- ports:
    - {protocol: TCP, port: 443}
{{- end }}
{{- end }}

{{- define "fleetprof.toOperator" -}}
- ports:
    - {protocol: TCP, port: 8443}
  to:
    - podSelector:
        matchLabels:
          {{- include "fleetprof.selectorLabels" (dict "root" . "component" "operator") | nindent 10 }}
{{- end }}
