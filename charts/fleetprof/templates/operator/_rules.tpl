{{/* What the operator may do where it serves: exactly what its code calls (tests/chart/test_rights.py). */}}
{{- define "fleetprof.operatorRules" -}}
- apiGroups: [fleetprof.io]
  resources: [profilerequests]
  verbs: [delete, get, list, patch, watch]
- apiGroups: [fleetprof.io]
  resources: [profilerequests/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Owners of pods' owners, to find the pods of a Deployment, of a RayJob, or of a Job that something else made.
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get]
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [get]
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [get]
{{- range .Values.rbac.owners }}
- apiGroups: [{{ .apiGroup }}]
  resources: {{ toJson .resources }}
  verbs: [get]
{{- end }}
{{- if .Values.scope.cluster }}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- if and .Values.webhook.enabled (not .Values.tls.certManager.enabled) }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations]
  resourceNames: [{{ include "fleetprof.name" . }}]
  verbs: [get, patch]
{{- end }}
{{- end }}
{{- end }}
