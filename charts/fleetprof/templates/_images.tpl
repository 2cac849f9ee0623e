{{/* Images. Takes a dict with `root` (the chart's context) and `name` (operator, sidecar, analyzer or webui). */}}

{{- define "fleetprof.image" -}}
{{- $image := .root.Values.image -}}
{{- $digest := index $image.digests .name -}}
{{- if $digest -}}
{{- printf "%s/%s@%s" $image.registry .name $digest -}}
{{- else -}}
{{- printf "%s/%s:%s" $image.registry .name ($image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end }}
