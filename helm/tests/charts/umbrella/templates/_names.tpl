{{- define "leaf.name" -}}
named by the parent
{{- end -}}
