{{/* What the operator may do where it serves: exactly what its code calls (tests/chart/test_rights.py). */}}
{{- define "fleetprof.operatorRules" -}}
- apiGroups: [fleetprof.io]
  resources: [profilerequests]
  verbs: [create, delete, list, patch, watch]
- apiGroups: [fleetprof.io]
  resources: [profilepolicies]
  verbs: [list, watch]
- apiGroups: [fleetprof.io]
  resources: [profilerequests/status, profilepolicies/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, {{ if include "fleetprof.sidecarPatience" . }}patch, {{ end }}watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# What stands between pods and a target that is found by its owner references: a Deployment, a CronJob, a Notebook, a
# RayJob, an AppWrapper. A kind that the cluster does not have yet may be named: it works once it is installed.
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [get]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get]
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [get]
- apiGroups: [jobset.x-k8s.io]
  resources: [jobsets]
  verbs: [get]
- apiGroups: [kubeflow.org]
  resources: [mpijobs, pytorchjobs]
  verbs: [get]
{{- range .Values.rbac.owners }}
- apiGroups: [{{ .apiGroup }}]
  resources: {{ toJson .resources }}
  verbs: [get]
{{- end }}
{{- if .Values.scope.cluster }}
# Which namespaces a release of their own serves.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [fleetprof]
  verbs: [list, watch]
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- include "fleetprof.guardRule" . }}
{{- end }}
{{- end }}

{{/* To read, and no more: since when is a requester's name what admission wrote? */}}
{{- define "fleetprof.guardRule" -}}
{{- with include "fleetprof.requesterGuard" . }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [{{ dir . | base }}]
  resourceNames: [{{ base . }}]
  verbs: [get]
{{- end }}
{{- end }}
