{{/*
The pod of an analyzer Job, without the Job's own words: the operator reads this file and adds name, arguments and number.
It has no right in Kubernetes, reads the store with a role of its own, and is restricted.
*/}}
{{- define "fleetprof.analyzerPod" -}}
metadata:
  labels:
    {{- include "fleetprof.labels" (dict "root" . "component" "analyzer") | nindent 4 }}
spec:
  restartPolicy: Never
  serviceAccountName: {{ include "fleetprof.analyzerAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with include "fleetprof.placement" (dict "root" . "values" .Values.analyzer) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  securityContext:
    {{- include "fleetprof.podSecurityContext" . | nindent 4 }}
  containers:
    - name: analyzer
      image: {{ include "fleetprof.image" (dict "root" . "name" "analyzer") }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [fleetprof-analyzer]
      env:
        {{- include "fleetprof.storeEnvironment" (dict "root" . "secret" .Values.store.credentials.analyzerSecret) | nindent 8 }}
      resources:
        {{- toYaml .Values.analyzer.resources | nindent 8 }}
      securityContext:
        {{- include "fleetprof.containerSecurityContext" . | nindent 8 }}
{{- end }}
