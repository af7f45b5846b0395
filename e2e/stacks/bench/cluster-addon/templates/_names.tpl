{{/* What an upgrade changes: the version of the add-ons is in every object. */}}
{{- define "agent.labels" -}}
app: {{ .Values.cluster }}-agent
version: << .ClusterAddonVersion >>
{{- end }}
