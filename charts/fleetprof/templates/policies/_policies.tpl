{{/* Policies that the API server applies by itself (Kubernetes 1.30); before, RBAC and the webhook stand alone. */}}

{{- define "fleetprof.hasPolicies" -}}
{{- if and .Values.webhook.enabled (semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version) -}}
true
{{- end -}}
{{- end }}

{{/* The path of what keeps users from forging requesters: a note older than it counts for nothing. Empty: nothing does. */}}
{{- define "fleetprof.requesterGuard" -}}
{{- if .Values.webhook.enabled -}}
/apis/admissionregistration.k8s.io/v1/
{{- if include "fleetprof.hasPolicies" . -}}
validatingadmissionpolicybindings/{{ include "fleetprof.name" . }}-requester
{{- else -}}
mutatingwebhookconfigurations/{{ include "fleetprof.name" . }}
{{- end -}}
{{- end -}}
{{- end }}
