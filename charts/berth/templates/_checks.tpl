{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- /* What the schema cannot say of the values: each of these fails in words, or says nothing. */ -}}

{{- /* An address range: what, value. */ -}}
{{- define "berth.checkCidr" -}}
{{- $byte := "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])" }}
{{- $four := printf "^(%s\\.){3}%s/(3[0-2]|[12]?[0-9])$" $byte $byte }}
{{- $group := "[0-9a-fA-F]{1,4}" }}
{{- $length := "/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$" }}
{{- $full := printf "^(%s:){7}%s%s" $group $group $length }}
{{- $short := printf "^((%s:)*%s)?::((%s:)*%s)?%s" $group $group $group $group $length }}
{{- $groups := regexFindAll $group (regexReplaceAll "/.*" .value "") -1 | len }}
{{- if not (or (regexMatch $four .value) (regexMatch $full .value) (and (regexMatch $short .value) (le $groups 7))) }}
{{- fail (printf "%s: %q is no address range; write it as 10.0.0.0/24 or fd00::/64, and one address as 10.0.0.1/32 or fd00::1/128" .what .value) }}
{{- end }}
{{- end }}

{{- define "berth.checkNetworkPolicy" -}}
{{- range list "from" "to" }}
{{- $what := printf "networkPolicy.%s" . }}
{{- range index $.Values.networkPolicy . }}{{ include "berth.checkCidr" (dict "what" $what "value" .) }}{{ end }}
{{- end }}
{{- range .Values.networkPolicy.from }}
{{- if include "berth.isWide" . }}
{{- fail (printf "networkPolicy.from: %s is everybody, or a great part of them, and would look like a restriction; name the API servers' addresses, by prefixes of /8 or longer, or leave it empty" .) }}
{{- end }}
{{- end }}
{{- range .Values.networkPolicy.scrapers }}
{{- with .ipBlock }}
{{- range concat (list .cidr) (.except | default list) }}{{ include "berth.checkCidr" (dict "what" "networkPolicy.scrapers" "value" .) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The agent's port is the node's; with webhook.hostNetwork the other two are as well. */ -}}
{{- define "berth.checkPorts" -}}
{{- if .Values.webhook.hostNetwork }}
{{- $ports := dict "agent.port" .Values.agent.port "webhook.port" .Values.webhook.port }}
{{- if eq .Values.certificates.mode "self" }}{{ $_ := set $ports "certificates.issuer.port" .Values.certificates.issuer.port }}{{ end }}
{{- $names := dict }}
{{- range $name, $number := $ports }}
{{- $port := $number | int | toString }}
{{- with get $names $port }}
{{- fail (printf "%s and %s are both %s: with webhook.hostNetwork they are ports of the same node, and must differ" . $name $port) }}
{{- end }}
{{- $_ := set $names $port $name }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Berth's own variables, and others of a part, each with the value of the chart that sets it; `-`: none does, and env may. */ -}}
{{- define "berth.variables" -}}
webhook:
  BERTH_NAMESPACE: the release's namespace
  BERTH_POD_NAME: the pod's name
  BERTH_HOST: "-"
  BERTH_PORT: webhook.port
  BERTH_TLS_SECRET: certificates
  BERTH_SERVICE: the name of the Service
  BERTH_TLS: certificates
  BERTH_CLIENT_CA: webhook.clientCA
  BERTH_CLIENT_NAMES: webhook.clientNames
  BERTH_CLIENT_ORGANIZATIONS: webhook.clientOrganizations
  BERTH_REVIEWERS_BY: networkPolicy
  BERTH_METRICS_TOKEN: webhook.metricsSecret
  BERTH_REFUSALS_NAME: webhook.refusalsName
  BERTH_CHECK_OWNERS: webhook.checkOwners
  BERTH_BOUND_EVENTS: webhook.boundEvents
  BERTH_FOREIGN_REQUESTS: webhook.foreignRequests
  BERTH_NODE_CIDRS: nodeCIDRs.families
  BERTH_CILIUM_IPAM: cilium.ipam
  BERTH_DIALECTS: dialects
  BERTH_KUBECONFIG: "-"
  BERTH_DEPART: webhook.departSeconds
  BERTH_LOG_LEVEL: logLevel
agent:
  BERTH_NODE_NAME: the node's name
  BERTH_SOCKET: "-"
  BERTH_DATA: agent.dataDir
  BERTH_HOST: agent.metricsOnNode
  BERTH_PORT: agent.port
  BERTH_CNI_BIN: cni.binDir
  BERTH_CNI_BINARY: "-"
  BERTH_CNI_ALIASES: cni.aliases
  BERTH_CNI_REPLACE: cni.replace
  BERTH_CNI_RESULTS: "-"
  BERTH_CONFLIST: cni.conflist
  BERTH_CNI_CONF: cni.confDir
  BERTH_ETCD_CERTIFICATES: agent.etcdSecret
  BERTH_REFUSALS_NAME: webhook.refusalsName
  BERTH_DIALECTS: dialects
  BERTH_FAILURE_POLICY: webhook.failurePolicy
  BERTH_KUBECONFIG: "-"
  BERTH_LOG_LEVEL: logLevel
  NODE_COMPILE_CACHE: for a quick start
  MALLOC_ARENA_MAX: for little memory
  MALLOC_TRIM_THRESHOLD_: for little memory
  MALLOC_MMAP_THRESHOLD_: for little memory
{{- end }}

{{- /* A variable that is there twice has one of two values, and an upgrade cannot tell them apart. */ -}}
{{- define "berth.checkEnvironment" -}}
{{- range $part, $own := include "berth.variables" . | fromYaml }}
{{- range $name, $_ := (index $.Values $part).env }}
{{- $value := ternary "apiServer" (get $own $name) (hasPrefix "KUBERNETES_SERVICE_" $name) }}
{{- if and $value (ne $value "-") }}
{{- fail (printf "%s.env: %s is set by the chart (%s); env is for other variables" $part $name $value) }}
{{- else if and (hasPrefix "BERTH_" $name) (not $value) }}
{{- fail (printf "%s.env: Berth reads no variable %s; it has %s" $part $name (regexFindAll "BERTH_[A-Z_]+" (keys $own | sortAlpha | join " ") -1 | join ", ")) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* All the `ipam` in a value of JSON, wherever they are (a plugin may have delegates): their types, each after a space. */ -}}
{{- define "berth.ipamTypes" -}}
{{- if kindIs "map" . }}
{{- range $key, $below := . }}
{{- if and (eq $key "ipam") (kindIs "map" $below) }} {{ $below.type | default "nothing" }}{{ end }}
{{- include "berth.ipamTypes" $below }}
{{- end }}
{{- else if kindIs "slice" . }}
{{- range . }}{{ include "berth.ipamTypes" . }}{{ end }}
{{- end }}
{{- end }}

{{- define "berth.checkConflist" -}}
{{- if and .Values.cni.aliases (not .Values.cni.install) }}
{{- fail "cni.aliases: cni.install is off, so nothing would put the plugin on the nodes under these names" }}
{{- end }}
{{- with .Values.cni.conflist }}
{{- $network := fromJson . }}
{{- with $network.Error }}{{ fail (printf "cni.conflist: it is no JSON object: %s" .) }}{{ end }}
{{- if not (and $network.cniVersion $network.name $network.plugins (kindIs "slice" $network.plugins)) }}
{{- fail "cni.conflist: a network configuration list has cniVersion, name and plugins" }}
{{- end }}
{{- range $network.plugins }}
{{- if not (and (kindIs "map" .) (dig "type" "" (. | default dict))) }}
{{- fail "cni.conflist: each of plugins has a type, such as macvlan" }}
{{- end }}
{{- end }}
{{- $types := splitList " " (include "berth.ipamTypes" $network.plugins) | compact | uniq }}
{{- $asked := false }}
{{- range prepend $.Values.cni.aliases "berth" }}{{ if has . $types }}{{ $asked = true }}{{ end }}{{ end }}
{{- if not $asked }}
{{- fail (printf "cni.conflist: no plugin has \"ipam\": {\"type\": \"berth\"} (there is %s), so nothing would ask Berth for addresses" (join ", " $types | default "no ipam")) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* How many seconds a Go duration has. */ -}}
{{- define "berth.seconds" -}}
{{- $seconds := 0.0 }}
{{- range regexFindAll "[0-9.]+[hms]" . -1 }}
{{- $unit := get (dict "h" 3600 "m" 60 "s" 1) (trimAll "0123456789." .) }}
{{- $seconds = addf $seconds (mulf (trimAll "hms" . | float64) $unit) }}
{{- end }}
{{- $seconds | int64 }}
{{- end }}

{{- define "berth.checkCertificates" -}}
{{- with .Values.certificates }}
{{- if ne .mode "secret" }}
{{- $leaf := include "berth.seconds" .leafLife | int64 }}
{{- range $name, $life := dict "leafLife" .leafLife "authorityLife" .authorityLife }}
{{- if gt (include "berth.seconds" $life | int64) 9223372036 }}{{ fail (printf "certificates.%s: %s is too long; 2562047h at most" $name $life) }}{{ end }}
{{- end }}
{{- if lt $leaf 3600 }}{{ fail (printf "certificates.leafLife: %s is too short; a certificate lasts for an hour at least" .leafLife) }}{{ end }}
{{- if gt (mul $leaf 3) (include "berth.seconds" .authorityLife | int64) }}
{{- fail (printf "certificates.authorityLife: %s is too short; the authority lasts for three times certificates.leafLife (%s) at least" .authorityLife .leafLife) }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.webhook }}
{{- if and (not .clientCA) (or .clientNames .clientOrganizations) }}
{{- fail "webhook.clientNames and webhook.clientOrganizations say which certificates of webhook.clientCA are let in, and there is none: without it anybody is" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Services and policies find the pods by these, so that the chart's own win: another value would do nothing. */ -}}
{{- define "berth.checkLabels" -}}
{{- range $part := list "webhook" "agent" }}
{{- range $name, $_ := (index $.Values $part).podLabels }}
{{- if has $name (list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/component") }}
{{- fail (printf "%s.podLabels: %s is set by the chart; podLabels is for other labels" $part $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "berth.checkPlaces" -}}
{{- $repository := .Values.image.repository }}
{{- if or (contains "@" $repository) (contains ":" (splitList "/" $repository | last)) }}
{{- fail (printf "image.repository: %q has a tag or digest, which is said by image.tag and image.digest" $repository) }}
{{- end }}
{{- with .Values.apiServer.host }}
{{- if or (contains "/" .) (regexMatch "^[^:]*:[^:]*$" .) }}
{{- fail (printf "apiServer.host: %q is more than a name or an address; the port is said by apiServer.port" .) }}
{{- end }}
{{- end }}
{{- end }}
