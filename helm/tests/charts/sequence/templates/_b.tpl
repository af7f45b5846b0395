{{ define "named" }}b{{ end }}{{ define "kept" }}
{{/* nothing */}}
{{ end }}