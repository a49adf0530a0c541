{{/* Names and labels. */}}
{{- define "msmq-bridge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* At most 52 characters: a CronJob's and a StatefulSet's pods add to it. */}}
{{- define "msmq-bridge.fullname" -}}
{{- $name := include "msmq-bridge.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* A name with an end that must not be cut off. Takes (list $ "end"). */}}
{{- define "msmq-bridge.named" -}}
{{- $end := index . 1 }}
{{- printf "%s-%s" (include "msmq-bridge.fullname" (index . 0) | trunc (sub 52 (add 1 (len $end)) | int) | trimSuffix "-") $end }}
{{- end }}

{{- define "msmq-bridge.selector" -}}
app.kubernetes.io/name: {{ include "msmq-bridge.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "msmq-bridge.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "msmq-bridge.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: msmq-bridge
{{- end }}

{{- define "msmq-bridge.account" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "msmq-bridge.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* Takes (list $ image). */}}
{{- define "msmq-bridge.image" -}}
{{- $image := index . 1 }}
{{- if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository (default (index . 0).Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{/*
The listeners that are on: name in Kubernetes, key in bridge.yaml, port in the pod, port outside.
A pod has no right to ports below 1024. Readers are told the ports of remote read, so those are
the same inside and outside.
*/}}
{{- define "msmq-bridge.listeners" -}}
{{- $all := .Values.listeners }}
{{- $list := list
  (dict "name" "binary" "key" "binary" "inside" 1801 "of" $all.binary)
  (dict "name" "ping" "key" "ping" "inside" 3527 "of" $all.ping "protocol" "UDP")
  (dict "name" "srmp" "key" "srmp" "inside" 8080 "of" $all.srmp)
  (dict "name" "srmp-tls" "key" "srmp_tls" "inside" 8443 "of" $all.srmpTls)
  (dict "name" "rpc" "key" "rpc" "inside" $all.rpc.port "of" $all.rpc)
  (dict "name" "rpc-qp" "key" "rpc_qp" "inside" $all.rpcQp.port "of" $all.rpcQp)
  (dict "name" "epm" "key" "endpoint_mapper" "inside" 10135 "of" $all.endpointMapper) }}
{{- range $list }}
- name: {{ .name }}
  key: {{ .key }}
  enabled: {{ .of.enabled }}
  inside: {{ .inside }}
  outside: {{ .of.port }}
  protocol: {{ default "TCP" .protocol }}
{{- end }}
{{- end }}

{{/* Two pods: by this port the standby sees at once that the leader's process has ended. */}}
{{- define "msmq-bridge.leasePort" -}}
9181
{{- end }}

{{/* What Strimzi's user and cluster say about the connection; what `config.kafka` says wins. */}}
{{- define "msmq-bridge.kafka" -}}
{{- $user := .Values.strimzi.user }}
{{- if $user.enabled }}
{{- $secrets := "/etc/msmq-bridge/secrets" }}
{{- $name := include "msmq-bridge.fullname" . }}
{{- $namespace := default .Release.Namespace .Values.strimzi.namespace }}
bootstrap.servers: {{ .Values.strimzi.cluster }}-kafka-bootstrap.{{ $namespace }}.svc:9093
ssl.ca.location: {{ $secrets }}/{{ .Values.strimzi.cluster }}-cluster-ca-cert/ca.crt
{{- if eq $user.authentication "tls" }}
security.protocol: SSL
ssl.certificate.location: {{ $secrets }}/{{ $name }}/user.crt
ssl.key.location: {{ $secrets }}/{{ $name }}/user.key
{{- else }}
security.protocol: SASL_SSL
sasl.mechanism: SCRAM-SHA-512
sasl.username: {{ $name }}
sasl.password: {file: {{ $secrets }}/{{ $name }}/password}
{{- end }}
{{- end }}
{{- end }}

{{/* HTTP or HTTPS at the admin port. */}}
{{- define "msmq-bridge.adminScheme" -}}
{{- ternary "HTTPS" "HTTP" (or .Values.admin.tls (not (empty (default dict .Values.config.admin).certificate))) }}
{{- end }}

{{/* How browsers in the cluster call the admin port, beside what the user says. */}}
{{- define "msmq-bridge.adminNames" -}}
{{- $name := include "msmq-bridge.named" (list . "admin") }}
{{- $own := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) }}
{{- concat $own (default list (default dict .Values.config.admin).names) | uniq | toYaml }}
{{- end }}

{{/* Whether the user's own bridge.yaml names the token; then the chart has none. */}}
{{- define "msmq-bridge.ownToken" -}}
{{- default "" (default dict .Values.config.admin).token_file }}
{{- end }}

{{/* The Secret that has the token of the admin port. */}}
{{- define "msmq-bridge.tokenSecret" -}}
{{- default (include "msmq-bridge.named" (list . "admin-token")) .Values.admin.tokenSecret }}
{{- end }}

{{/* Networks that the NetworkPolicy lets in; a load balancer keeps `service.sourceRanges` itself. */}}
{{- define "msmq-bridge.senders" -}}
{{- $byNode := or .Values.hostPorts (and .Values.service.enabled (eq .Values.service.type "NodePort")) }}
{{- ternary (default .Values.networkPolicy.senders .Values.service.sourceRanges) .Values.networkPolicy.senders $byNode | toYaml }}
{{- end }}

{{/* bridge.yaml: the user's, with what only the chart can know. */}}
{{- define "msmq-bridge.config" -}}
{{- $listen := dict "host" "0.0.0.0" "admin" .Values.admin.port "admin_host" "0.0.0.0" }}
{{- if eq (int .Values.replicas) 2 }}
{{- $_ := set $listen "lease" (include "msmq-bridge.leasePort" . | int) }}
{{- end }}
{{- range include "msmq-bridge.listeners" . | fromYamlArray }}
{{- $_ := set $listen .key (ternary .inside nil .enabled) }}
{{- end }}
{{- $kafka := include "msmq-bridge.kafka" . | fromYaml }}
{{- $config := mergeOverwrite (dict "kafka" $kafka) (deepCopy .Values.config) }}
{{- $admin := dict "names" (include "msmq-bridge.adminNames" . | fromYamlArray) }}
{{- if not (include "msmq-bridge.ownToken" .) }}
{{- $_ := set $admin "token_file" "/etc/msmq-bridge/admin/token" }}
{{- end }}
{{- $own := dict "listen" $listen "admin" $admin "data" "/var/lib/msmq-bridge" "mappings" "/etc/msmq-bridge/mappings" }}
{{- mergeOverwrite $config $own | toYaml }}
{{- end }}

{{/* Secrets that are mounted. */}}
{{- define "msmq-bridge.secrets" -}}
{{- $names := .Values.secrets }}
{{- if .Values.strimzi.user.enabled }}
{{- $names = concat $names (list (include "msmq-bridge.fullname" .) (printf "%s-cluster-ca-cert" .Values.strimzi.cluster)) }}
{{- end }}
{{- $names | uniq | toYaml }}
{{- end }}

{{/* What no schema can say. */}}
{{- define "msmq-bridge.check" -}}
{{- $from := .Values.configFrom }}
{{- if and $from.configMap $from.secret }}
{{- fail "configFrom: name a ConfigMap or a Secret, not both" }}
{{- end }}
{{- if and .Values.mappingsFrom.configMap .Values.mappingsFrom.secret }}
{{- fail "mappingsFrom: name a ConfigMap or a Secret, not both" }}
{{- end }}
{{- if or $from.configMap $from.secret }}
{{- if .Values.config }}
{{- fail "config and configFrom are both there; keep one" }}
{{- end }}
{{- if .Values.strimzi.user.enabled }}
{{- fail "strimzi.user writes into config, which configFrom replaces; name the Secrets in `secrets` instead" }}
{{- end }}
{{- else }}
{{- $config := include "msmq-bridge.config" . | fromYaml }}
{{- if not (index (default dict $config.kafka) "bootstrap.servers") }}
{{- fail "config.kafka: bootstrap.servers is missing; the image has no Java for a Kafka of its own" }}
{{- end }}
{{- if not (default dict $config.queue_manager).names }}
{{- fail "config.queue_manager.names is missing; list every name and address that senders use" }}
{{- end }}
{{- end }}
{{- if and .Values.mappings (or .Values.mappingsFrom.configMap .Values.mappingsFrom.secret) }}
{{- fail "mappings and mappingsFrom are both there; keep one" }}
{{- end }}
{{- if and (or .Values.strimzi.topics.enabled .Values.strimzi.topics.mapped .Values.strimzi.user.enabled) (not .Values.strimzi.cluster) }}
{{- fail "strimzi.cluster is missing; it is the name of the Kafka object" }}
{{- end }}
{{- $outside := dict }}
{{- range include "msmq-bridge.listeners" . | fromYamlArray }}
{{- if .enabled }}
{{- $place := printf "%s %v" .protocol .outside }}
{{- if hasKey $outside $place }}
{{- fail (printf "listeners %s and %s are both at port %v" (get $outside $place) .name .outside) }}
{{- end }}
{{- $_ := set $outside $place .name }}
{{- end }}
{{- end }}
{{- if not $outside }}
{{- fail "listeners are all off" }}
{{- end }}
{{- if not (or .Values.service.enabled .Values.hostPorts) }}
{{- fail "service.enabled and hostPorts are both off, so nobody can send anything" }}
{{- end }}
{{- include "msmq-bridge.checkOpen" . }}
{{- if and .Values.admin.tokenSecret (include "msmq-bridge.ownToken" .) }}
{{- fail "admin.tokenSecret and config.admin.token_file are both there; keep one" }}
{{- end }}
{{- end }}

{{/* Ports that face the world are open to all only when the values say it in so many words. */}}
{{- define "msmq-bridge.checkOpen" -}}
{{- $service := .Values.service }}
{{- $type := ternary $service.type "ClusterIP" $service.enabled }}
{{- $byNode := or .Values.hostPorts (eq $type "NodePort") }}
{{- $what := ternary "hostPorts" (printf "service.type %s" $type) .Values.hostPorts }}
{{- if $service.openToAll }}
{{- if $service.sourceRanges }}
{{- fail "service.openToAll and service.sourceRanges contradict each other; keep one" }}
{{- end }}
{{- else if or $byNode (eq $type "LoadBalancer") }}
{{- if not $service.sourceRanges }}
{{- fail (printf "%s opens the listeners to every network: list the senders' networks in service.sourceRanges, or set service.openToAll: true" $what) }}
{{- end }}
{{- if $byNode }}
{{- if not .Values.networkPolicy.enabled }}
{{- fail (printf "%s: only the NetworkPolicy keeps service.sourceRanges: set networkPolicy.enabled: true, or service.openToAll: true" $what) }}
{{- end }}
{{- if and $service.enabled (ne $type "ClusterIP") (ne $service.externalTrafficPolicy "Local") }}
{{- fail (printf "%s: service.externalTrafficPolicy Cluster hides the senders' addresses from service.sourceRanges: set Local, or service.openToAll: true" $what) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The pod: who it runs as. */}}
{{- define "msmq-bridge.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ int64 .Values.security.runAsUser }}
runAsGroup: {{ int64 .Values.security.runAsGroup }}
fsGroup: {{ int64 .Values.security.runAsGroup }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Every container. */}}
{{- define "msmq-bridge.containerSecurity" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "msmq-bridge.configMounts" -}}
- name: config
  mountPath: /etc/msmq-bridge/config
  readOnly: true
- name: mappings
  mountPath: /etc/msmq-bridge/mappings
  readOnly: true
{{- range $index, $name := include "msmq-bridge.secrets" . | fromYamlArray }}
- name: secret-{{ $index }}
  mountPath: /etc/msmq-bridge/secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}

{{/*
Where the configuration comes from; beside each other, because nothing mounts into a read-only volume.
288 is 0440: not every reader of YAML knows octal numbers.
*/}}
{{- define "msmq-bridge.configVolumes" -}}
- name: config
  {{- if .Values.configFrom.secret }}
  secret:
    secretName: {{ .Values.configFrom.secret | quote }}
    defaultMode: 288
  {{- else }}
  configMap:
    name: {{ default (include "msmq-bridge.fullname" .) .Values.configFrom.configMap | quote }}
    defaultMode: 288
  {{- end }}
- name: mappings
  {{- if .Values.mappingsFrom.secret }}
  secret:
    secretName: {{ .Values.mappingsFrom.secret | quote }}
    defaultMode: 288
  {{- else }}
  configMap:
    name: {{ default (include "msmq-bridge.named" (list . "mappings")) .Values.mappingsFrom.configMap | quote }}
    defaultMode: 288
  {{- end }}
{{- range $index, $name := include "msmq-bridge.secrets" . | fromYamlArray }}
- name: secret-{{ $index }}
  secret:
    secretName: {{ $name | quote }}
    defaultMode: 288
{{- end }}
{{- end }}

{{- define "msmq-bridge.scheduling" -}}
{{- with .Values.scheduling.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduling.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduling.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.scheduling.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}
