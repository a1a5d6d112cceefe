{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- /* What every object of the chart carries. */ -}}
{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* What tells the pods of a component, which is given. */ -}}
{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- /* What its pods carry: nothing that changes with the chart alone, for that would start them anew. */ -}}
{{- define "berth.podLabels" -}}
{{- $own := merge (include "berth.selector" .component | fromYaml) (include "berth.labels" .root | fromYaml) }}
{{- merge (omit $own "helm.sh/chart" "app.kubernetes.io/managed-by") .labels | toYaml }}
{{- end }}

{{- define "berth.image" -}}
{{- with .Values.image -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}
{{- end }}
{{- end }}

{{- /* The file of a manifest, with the release's namespace in the place of the one that it is written for. */ -}}
{{- define "berth.text" -}}
{{- .root.Files.Get .path | replace "berth-system" .root.Release.Namespace }}
{{- end }}

{{- /* The objects of a file, with the chart's labels, and annotations if there are any: root, path, annotations. */ -}}
{{- /* Pods ask for a token themselves. What only the webhook's own authority needs goes with it. */ -}}
{{- define "berth.objects" -}}
{{- $labels := include "berth.labels" .root | fromYaml }}
{{- range $text := regexSplit "(?m)^---[ \t]*$" (include "berth.text" .) -1 }}
{{- $object := fromYaml $text }}
{{- with $object.Error }}{{ fail (printf "%s: %s" $.path .) }}{{ end }}
{{- if $object.kind }}
{{- $_ := set $object.metadata "labels" (merge dict ($object.metadata.labels | default dict) $labels) }}
{{- with $.annotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end }}
{{- if eq $object.kind "ServiceAccount" }}{{ $_ := set $object "automountServiceAccountToken" false }}{{ end }}
{{- if and $object.rules (ne $.root.Values.certificates.mode "self") }}
{{- $rules := list }}
{{- range $object.rules }}
{{- if not (or (has "secrets" .resources) (has "mutatingwebhookconfigurations" .resources)) }}
{{- $rules = append $rules . }}
{{- end }}
{{- end }}
{{- $_ := set $object "rules" $rules }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}

{{- /* `self`: certificates that the webhook keeps in a Secret; else a Secret that is mounted: its name. */ -}}
{{- define "berth.certificates" -}}
{{- with .Values.certificates -}}
{{- if eq .mode "cert-manager" -}}
berth-webhook-cert
{{- else if eq .mode "secret" -}}
{{- required "certificates.secret.name: with certificates.mode secret, name the Secret that has tls.crt and tls.key" .secret.name -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* The variables that both processes have. */ -}}
{{- define "berth.environment" -}}
- { name: BERTH_LOG_LEVEL, value: {{ .Values.logLevel | quote }} }
{{- with .Values.apiServer }}
{{- if .host }}
- { name: KUBERNETES_SERVICE_HOST, value: {{ .host | quote }} }
- { name: KUBERNETES_SERVICE_PORT, value: {{ .port | quote }} }
{{- end }}
{{- end }}
{{- end }}
