{{- define "leaf.name" -}}
named by the leaf
{{- end -}}
