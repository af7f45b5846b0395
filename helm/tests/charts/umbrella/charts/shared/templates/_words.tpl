{{- define "shared.words" }}words of {{ .Chart.Name }}{{ end }}
