{{/*
The pod of an analyzer Job, without the Job's own words: the operator reads this file and adds name, arguments and number.
It has no right in Kubernetes and no credential of the store: its token is good for the operator alone, which signs
addresses of the Job's own capture.
*/}}
{{- define "fleetprof.analyzerPod" -}}
metadata:
  labels:
    {{- include "fleetprof.labels" (dict "root" . "component" "analyzer") | nindent 4 }}
    # Beside another release's Jobs the operator, and an uninstall, touch those with this name.
    fleetprof.io/release: {{ include "fleetprof.name" . }}
spec:
  restartPolicy: Never
  serviceAccountName: {{ include "fleetprof.analyzerAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with include "fleetprof.placement" (dict "root" . "values" .Values.analyzer "component" "analyzer") | trim }}
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
        - name: FLEETPROF_HUB
          value: {{ include "fleetprof.hubHost" . }}:8443
        {{- if .Values.store.s3.authority }}
        - name: SSL_CERT_FILE
          value: /etc/fleetprof/store/ca.crt
        {{- end }}
        {{- with .Values.analyzer.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      resources:
        {{- toYaml .Values.analyzer.resources | nindent 8 }}
      securityContext:
        {{- include "fleetprof.containerSecurityContext" . | nindent 8 }}
      volumeMounts:
        {{- with include "fleetprof.storeAuthorityMount" . | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        - name: identity
          mountPath: /var/run/secrets/fleetprof.io
          readOnly: true
  volumes:
    {{- with include "fleetprof.storeAuthorityVolume" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    - name: identity
      projected:
        sources:
          - serviceAccountToken:
              audience: analyses.fleetprof.io
              expirationSeconds: 3600
              path: token
          # By name: it never sees the authority's key.
          - secret:
              name: {{ include "fleetprof.name" . }}-tls
              items:
                - {key: ca.crt, path: ca.crt}
{{- end }}
