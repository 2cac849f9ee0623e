{{/* The object store, as the processes are told of it. */}}

{{- define "fleetprof.bundledBucket" -}}
fleetprof
{{- end }}

{{- define "fleetprof.storeEndpoint" -}}
{{- if .Values.store.bundled.enabled -}}
{{- printf "http://%s-store.%s.svc:7070" (include "fleetprof.name" .) .Release.Namespace -}}
{{- else -}}
{{- .Values.store.s3.endpoint -}}
{{- end -}}
{{- end }}

{{/* The store's name, where the cluster alone knows it. */}}
{{- define "fleetprof.storeHost" -}}
{{- $host := regexReplaceAll ":[0-9]+$" (include "fleetprof.storeEndpoint" . | urlParse).host "" -}}
{{- regexFind "^[a-z0-9-]+\\.[a-z0-9-]+\\.svc(\\.[a-z0-9.-]+)?$" $host -}}
{{- end }}

{{/* The bundled server's keys, and those of the server that only reads; empty: there is none. */}}
{{- define "fleetprof.bundledSecret" -}}
{{- .Values.store.bundled.existingSecret | default (printf "%s-store" (include "fleetprof.name" .)) -}}
{{- end }}

{{- define "fleetprof.bundledReaderSecret" -}}
{{- $bundled := .Values.store.bundled -}}
{{- if $bundled.readerSecret -}}
{{- $bundled.readerSecret -}}
{{- else if not $bundled.existingSecret -}}
{{- printf "%s-store-reader" (include "fleetprof.name" .) -}}
{{- end -}}
{{- end }}

{{/* The form of fleetprof_store.location. */}}
{{- define "fleetprof.storeLocation" -}}
{{- $s3 := .Values.store.s3 -}}
{{- $settings := list -}}
{{- with include "fleetprof.storeEndpoint" . }}{{ $settings = append $settings (printf "endpoint=%s" .) }}{{ end -}}
{{- if ne $s3.addressing "auto" }}{{ $settings = append $settings (printf "path_style=%t" (eq $s3.addressing "path")) }}{{ end -}}
{{- with $s3.region }}{{ $settings = append $settings (printf "region=%s" .) }}{{ end -}}
s3://
{{- if .Values.store.bundled.enabled }}{{ include "fleetprof.bundledBucket" . }}{{ else }}{{ $s3.bucket }}{{ end }}
{{- with $s3.prefix }}/{{ . }}{{ end }}
{{- with $settings }}?{{ join "&" . }}{{ end }}
{{- end }}

{{/* The store's port, for network policies. */}}
{{- define "fleetprof.storePort" -}}
{{- $endpoint := include "fleetprof.storeEndpoint" . -}}
{{- $host := ($endpoint | default "https://s3.amazonaws.com" | urlParse).host -}}
{{- if regexMatch ":[0-9]+$" $host -}}
{{- regexFind "[0-9]+$" $host -}}
{{- else if hasPrefix "http://" $endpoint -}}
80
{{- else -}}
443
{{- end -}}
{{- end }}

{{/* Takes `root` and `secret`, the name of a Secret that may be empty: then the role of the service account counts. */}}
{{- define "fleetprof.storeEnvironment" -}}
{{- $secret := .secret -}}
{{- if .root.Values.store.bundled.enabled }}{{ $secret = include "fleetprof.bundledSecret" .root }}{{ end -}}
- name: FLEETPROF_STORE
  value: {{ include "fleetprof.storeLocation" .root | quote }}
{{- with .root.Values.store.cluster }}
- name: FLEETPROF_CLUSTER
  value: {{ . | quote }}
{{- end }}
{{- if .root.Values.store.s3.authority }}
- name: AWS_CA_BUNDLE
  value: /etc/fleetprof/store/ca.crt
{{- end }}
{{- with $secret }}
{{- range list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whose certificate a private store shows: where the container has it, and its volume. Both may be empty. */}}
{{- define "fleetprof.storeAuthorityMount" -}}
{{- if .Values.store.s3.authority }}
- name: store-authority
  mountPath: /etc/fleetprof/store
  readOnly: true
{{- end }}
{{- end }}

{{- define "fleetprof.storeAuthorityVolume" -}}
{{- with .Values.store.s3.authority }}
- name: store-authority
  configMap:
    name: {{ . }}
    items:
      - {key: ca.crt, path: ca.crt}
{{- end }}
{{- end }}
