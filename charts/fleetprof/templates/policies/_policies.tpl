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

{{/* For how many seconds pods wait for their sidecar; empty: for good, as no policy bounds what else could be changed. */}}
{{- define "fleetprof.sidecarPatience" -}}
{{- if and .Values.sidecar.patienceSeconds (include "fleetprof.hasPolicies" .) -}}
{{ .Values.sidecar.patienceSeconds | int64 }}
{{- end -}}
{{- end }}

{{/* CEL for what the annotation fleetprof.io/`note` of `of` (object, oldObject) says; '' where it has none. */}}
{{- define "fleetprof.celNote" -}}
(has({{ .of }}.metadata.annotations) && 'fleetprof.io/{{ .note }}' in {{ .of }}.metadata.annotations ? {{ .of }}.metadata.annotations['fleetprof.io/{{ .note }}'] : '')
{{- end }}

{{/*
CEL for "`path` is as `value`, as far as that says": takes both. Fields that Kubernetes adds are left alone; a list has
the same items and no more. Maps whose keys are anybody's are no fields.
*/}}
{{- define "fleetprof.celMatches" -}}
{{- $path := .path }}
{{- $parts := list }}
{{- if kindIs "map" .value }}
{{- range $key, $value := .value }}
{{- if $.open }}
{{- $parts = append $parts (printf "%s in %s && %s[%s] == %s" (toJson $key) $path $path (toJson $key) (toJson $value)) }}
{{- else }}
{{- $field := printf "%s.%s" $path (ternary (printf "__%s__" $key) $key (has $key (list "namespace" "package" "import"))) }}
{{- $open := has $key (list "volumeAttributes" "matchLabels") }}
{{- $parts = append $parts (printf "has(%s)" $field) }}
{{- $parts = append $parts (include "fleetprof.celMatches" (dict "path" $field "value" $value "open" $open)) }}
{{- end }}
{{- end }}
{{- else if kindIs "slice" .value }}
{{- $parts = append $parts (printf "size(%s) == %d" $path (len .value)) }}
{{- range $index, $value := .value }}
{{- $parts = append $parts (include "fleetprof.celMatches" (dict "path" (printf "%s[%d]" $path $index) "value" $value)) }}
{{- end }}
{{- else }}
{{- $parts = append $parts (printf "%s == %s" $path (toJson .value)) }}
{{- end }}
{{- join " && " $parts | default "true" }}
{{- end }}

{{/* CEL for "the volume `v` is one of the analyzer's template": a directory of the pod's own may be any. */}}
{{- define "fleetprof.celAnalyzerVolumes" -}}
{{- $known := list "has(v.emptyDir)" }}
{{- range (include "fleetprof.analyzerPod" . | fromYaml).spec.volumes }}
{{- $volume := . }}
{{- if hasKey . "emptyDir" }}
{{- else if hasKey . "ephemeral" }}
{{- /* A claim that is made for the pod, whose amounts the API server rewrites. */}}
{{- $known = append $known (printf "(v.name == %s && has(v.ephemeral))" (toJson .name)) }}
{{- else }}
{{- $secretless := "" }}
{{- if and (hasKey . "csi") (not (hasKey .csi "nodePublishSecretRef")) }}{{ $secretless = " && !has(v.csi.nodePublishSecretRef)" }}{{ end }}
{{- $known = append $known (printf "(%s%s)" (include "fleetprof.celMatches" (dict "path" "v" "value" $volume)) $secretless) }}
{{- end }}
{{- end }}
{{- join "\n|| " $known }}
{{- end }}

{{/* CEL for "the variable `e` takes its value from where the analyzer's template does, or from nowhere". */}}
{{- define "fleetprof.celAnalyzerVariables" -}}
{{- $known := list "!has(e.valueFrom)" }}
{{- range (index (include "fleetprof.analyzerPod" . | fromYaml).spec.containers 0).env }}
{{- if hasKey . "valueFrom" }}
{{- $known = append $known (printf "(%s)" (include "fleetprof.celMatches" (dict "path" "e" "value" .))) }}
{{- end }}
{{- end }}
{{- join "\n|| " $known }}
{{- end }}
