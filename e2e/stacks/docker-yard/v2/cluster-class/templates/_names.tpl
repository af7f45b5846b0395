{{/* Every object carries the version in its name: releases stand side by side, and templates never change under a cluster. */}}
{{- define "yard.class" -}}
{{ .Release.Name }}-{{ .Chart.Version }}
{{- end }}
