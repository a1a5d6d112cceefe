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

{{- /* Of the webhook's pods. On the nodes' network they start where nodes wait for a network, which may wait for Berth. */ -}}
{{- /* Empty where there are none. */ -}}
{{- define "berth.webhookTolerations" -}}
{{- $early := list }}
{{- if .hostNetwork }}
{{- range $key := list "not-ready" "network-unavailable" }}
{{- $early = append $early (dict "key" (printf "node.kubernetes.io/%s" $key) "operator" "Exists" "effect" "NoSchedule") }}
{{- end }}
{{- end }}
{{- with concat $early .tolerations }}
{{- toYaml . }}
{{- end }}
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
{{- /* The agents' account is in theirs, and no pod of theirs is reviewed either. */ -}}
{{- define "berth.text" -}}
{{- $release := .root.Release.Namespace }}
{{- $agents := include "berth.agentNamespace" .root }}
{{- $text := .root.Files.Get .path }}
{{- /* No namespace has capitals: neither name is looked for in what the other one was written into. */}}
{{- if ne $agents $release }}
{{- $text = $text | replace "serviceaccount:berth-system:berth-agent" "serviceaccount:AGENTS:berth-agent" }}
{{- $text = $text | replace "name: berth-agent, namespace: berth-system" "name: berth-agent, namespace: AGENTS" }}
{{- $text = $text | replace "[kube-system, berth-system]" "[kube-system, berth-system, AGENTS]" }}
{{- end }}
{{- $text | replace "berth-system" $release | replace "AGENTS" $agents }}
{{- end }}

{{- /* Where the agents are: apart from webhook and issuer, unless the release's own is said. */ -}}
{{- define "berth.agentNamespace" -}}
{{- .Values.agent.namespace | default (printf "%s-agents" (.Release.Namespace | trunc 56 | trimSuffix "-")) }}
{{- end }}

{{- /* Narrows what passes through Berth to what the values select, in place: the object that has the selectors, its values, and whether
       it is about pods themselves, whose labels they may be selected by. */ -}}
{{- define "berth.narrow" -}}
{{- $own := .of.namespaceSelector | default dict }}
{{- with .webhook.namespaceSelector }}
{{- $_ := set $own "matchExpressions" (concat ($own.matchExpressions | default list) (.matchExpressions | default list)) }}
{{- with .matchLabels }}{{ $_ := set $own "matchLabels" . }}{{ end }}
{{- end }}
{{- if .pods }}
{{- with .webhook.objectSelector }}{{ $_ := set $.of "objectSelector" . }}{{ end }}
{{- end }}
{{- end }}

{{- /* An expression as it is with the values dialects: what is not read is another system's (`none`), and what Berth may leave to that
       system no policy can ask a claim for (`own`): root, expression, policy. */ -}}
{{- define "berth.dialects" -}}
{{- $text := .expression }}
{{- $choices := .root.Values.dialects }}
{{- $policy := .policy }}
{{- $ignored := eq (toString .root.Values.webhook.foreignRequests) "ignore" }}
{{- $first := "['cni.projectcalico.org/ipAddrsNoIpam'" }}
{{- $tells := and (contains $first $text) (not $ignored) }}
{{- $told := list }}
{{- range $system, $keys := .root.Files.Get "files/dialects.yaml" | fromYaml }}
{{- $choice := get $choices $system }}
{{- if or (eq $choice "none") (and $policy (eq $choice "own")) }}
{{- range $keys }}{{ $text = $text | replace (printf ", '%s'" .) "" }}{{ end }}
{{- end }}
{{- if eq $choice "none" }}
{{- range $keys }}{{ $told = append $told (printf "'%s'" .) }}{{ end }}
{{- end }}
{{- end }}
{{- range $system, $matches := .root.Files.Get "files/dialect-patterns.yaml" | fromYaml }}
{{- if eq (get $choices $system) "none" }}
{{- $nothing := "key.matches('^$')" }}
{{- $text = ternary ($text | replace $nothing $matches) ($text | replace $matches $nothing) $tells }}
{{- end }}
{{- end }}
{{- range $system, $values := .root.Files.Get "files/dialect-values.yaml" | fromYaml }}
{{- if eq (get $choices $system) "none" }}
{{- range $values }}
{{- if not $tells }}
{{- $text = regexReplaceAll (printf `\s*\|\|\s*[A-Za-z.?()]+%s` (regexQuoteMeta .)) $text "" }}
{{- else if not (contains . $text) }}
{{- $text = printf "%s || object.metadata.?annotations%s" $text . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $told $tells }}
{{- $text = $text | replace $first (printf "[%s, %s" (join ", " $told) (trimPrefix "[" $first)) }}
{{- end }}
{{- $text }}
{{- end }}

{{- /* The same for the processes. */ -}}
{{- define "berth.dialectList" -}}
{{- $items := list }}
{{- range $system, $choice := .Values.dialects }}{{ $items = append $items (printf "%s=%s" $system $choice) }}{{ end }}
{{- join "," $items }}
{{- end }}

{{- /* The policy that pods which ask have a claim, as the values have it, in place: root, object. */ -}}
{{- define "berth.podPolicy" -}}
{{- $values := .root.Values }}
{{- if eq .object.kind "ValidatingAdmissionPolicy" }}
{{- include "berth.narrow" (dict "of" .object.spec.matchConstraints "webhook" $values.webhook "pods" true) }}
{{- range .object.spec.variables }}
{{- $_ := set . "expression" (include "berth.dialects" (dict "root" $.root "expression" .expression "policy" true)) }}
{{- end }}
{{- else if eq $values.webhook.failurePolicy "Ignore" }}
{{- $_ := set .object.spec "validationActions" (list "Warn") }}
{{- end }}
{{- end }}

{{- /* The objects of a file, with the chart's labels, and annotations if there are any: root, path, annotations. */ -}}
{{- /* Pods ask for a token themselves. What only an authority of Berth's own needs goes with it: the issuer, and what the webhook
       sees of its certificate. */ -}}
{{- define "berth.objects" -}}
{{- $labels := include "berth.labels" .root | fromYaml }}
{{- range $text := regexSplit "(?m)^---[ \t]*$" (include "berth.text" .) -1 }}
{{- $object := fromYaml $text }}
{{- with $object.Error }}{{ fail (printf "%s: %s" $.path .) }}{{ end }}
{{- $self := eq $.root.Values.certificates.mode "self" }}
{{- if and $object.kind (or $self (not (has $object.metadata.name (list "berth-issuer" "trust.berth.dev")))) }}
{{- $_ := set $object.metadata "labels" (merge dict ($object.metadata.labels | default dict) $labels) }}
{{- with $.annotations }}{{ $_ := set $object.metadata "annotations" . }}{{ end }}
{{- if eq $object.metadata.name "changes.pods.berth.dev" }}
{{- range $object.spec.matchConditions }}
{{- $_ := set . "expression" (include "berth.dialects" (dict "root" $.root "expression" .expression "policy" false)) }}
{{- end }}
{{- end }}
{{- if eq $object.metadata.name "pods.berth.dev" }}{{ include "berth.podPolicy" (dict "root" $.root "object" $object) }}{{ end }}
{{- if eq $object.kind "ServiceAccount" }}{{ $_ := set $object "automountServiceAccountToken" false }}{{ end }}
{{- if and $object.rules (not $self) }}
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

{{- /* The variables of `env`, which is given. A number is written out, as JSON has it: text would have an exponent from a million on. */ -}}
{{- define "berth.moreEnvironment" -}}
{{- range $name, $value := . }}
- { name: {{ $name }}, value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }} }
{{- end }}
{{- end }}

{{- /*
The CIDRs that reviews come from, with spaces between: those given, else what an API server's packets may have as their
source: its own addresses, those of the nodes of the control plane, and, through a tunnel, those of their pod ranges. Empty
where they cannot be known: a managed control plane has no nodes, and Cilium and OVN-Kubernetes take packets of a node for
those of no address.
*/ -}}
{{- define "berth.reviewSources" -}}
{{- $cidrs := .Values.networkPolicy.from -}}
{{- $odd := or (.Capabilities.APIVersions.Has "cilium.io/v2") (.Capabilities.APIVersions.Has "k8s.ovn.org/v1") -}}
{{- if not (or $cidrs $odd) -}}
{{- range (lookup "v1" "Node" "" "").items -}}
{{- if hasKey (.metadata.labels | default dict) "node-role.kubernetes.io/control-plane" -}}
{{- range .status.addresses -}}
{{- if has .type (list "InternalIP" "ExternalIP") }}{{ $cidrs = append $cidrs (include "berth.hostCidr" .address) }}{{ end -}}
{{- end -}}
{{- range .spec.podCIDRs }}{{ $cidrs = append $cidrs . }}{{ end -}}
{{- range $key, $value := .metadata.annotations -}}
{{- if regexMatch "^projectcalico.org/IPv[46].*(TunnelAddr|InterfaceAddr)$" $key }}{{ $cidrs = append $cidrs (include "berth.hostCidr" $value) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $cidrs -}}
{{- range (lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes").endpoints -}}
{{- range .addresses }}{{ $cidrs = append $cidrs (include "berth.hostCidr" .) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $cidrs | uniq | sortAlpha | join " " -}}
{{- end }}

{{- /* Where webhook and issuer may connect to: the API server, by all ports that it is said to have, and DNS if it has a name alone. */ -}}
{{- define "berth.egress" -}}
{{- $api := .Values.apiServer }}
{{- $ports := .Values.networkPolicy.ports }}
- ports:
    {{- range ternary (append $ports $api.port) $ports (ne $api.host "") | uniq }}
    - { port: {{ . }}, protocol: TCP }
    {{- end }}
  to:
    {{- range .Values.networkPolicy.to }}
    - ipBlock: { cidr: {{ . | quote }} }
    {{- end }}
{{- if not (or (contains ":" $api.host) (regexMatch "^[0-9.]*$" $api.host)) }}
- ports: [{ port: 53, protocol: UDP }, { port: 53, protocol: TCP }]
{{- end }}
{{- end }}

{{- /* Whether a CIDR is so large that a few of its kind are all addresses. */ -}}
{{- define "berth.isWide" -}}
{{- if lt (splitList "/" . | last | int) 8 }}true{{ end -}}
{{- end }}

{{- /* Whether a selector of namespaces names some: by a label, or one that is there. Every namespace has the label with its name, and most
       have not what they must not have. */ -}}
{{- define "berth.namesNamespaces" -}}
{{- $names := not (empty .matchLabels) -}}
{{- range .matchExpressions -}}
{{- if or (eq (toString .operator) "In") (and (eq (toString .operator) "Exists") (ne (toString .key) "kubernetes.io/metadata.name")) }}{{ $names = true }}{{ end -}}
{{- end -}}
{{- if $names }}true{{ end -}}
{{- end }}

{{- /* The first of networkPolicy.scrapers that lets everybody in: every address, or pods of every namespace, whose labels their owners choose. */ -}}
{{- define "berth.openScrapers" -}}
{{- $open := list -}}
{{- range .Values.networkPolicy.scrapers -}}
{{- if .ipBlock -}}
{{- if include "berth.isWide" (.ipBlock.cidr | toString) }}{{ $open = append $open . }}{{ end -}}
{{- else if hasKey . "namespaceSelector" -}}
{{- if not (include "berth.namesNamespaces" (.namespaceSelector | default dict)) }}{{ $open = append $open . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with $open }}{{ first . | toJson }}{{ end -}}
{{- end }}

{{- define "berth.hostCidr" -}}
{{ . }}/{{ if contains ":" . }}128{{ else }}32{{ end -}}
{{- end }}

{{- /* What keeps others from sending reviews: `certificate`, `network-policy`, `elsewhere`, or `nothing`. */ -}}
{{- define "berth.reviewers" -}}
{{- if .Values.webhook.clientCA -}}
certificate
{{- else if and .Values.networkPolicy.enabled (not .Values.webhook.hostNetwork) (not (include "berth.openScrapers" .)) (include "berth.reviewSources" .) -}}
network-policy
{{- else if .Values.networkPolicy.closedElsewhere -}}
elsewhere
{{- else if .Values.networkPolicy.required -}}
{{- with include "berth.openScrapers" . }}{{ fail (printf "networkPolicy.scrapers: %s is everybody, who could send reviews, too, and networkPolicy.required is set: name the namespace of Prometheus, or give webhook.clientCA" .) }}{{ end -}}
{{- fail "nothing would say who sends reviews, and networkPolicy.required is set: give webhook.clientCA, or networkPolicy.from (Helm found no addresses of API servers) without webhook.hostNetwork, or networkPolicy.closedElsewhere; docs/hardening.md says how" -}}
{{- else -}}
nothing
{{- end -}}
{{- end }}
