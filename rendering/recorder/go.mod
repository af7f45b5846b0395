module recorder

go 1.26.0

require (
	github.com/go-task/slim-sprig v0.0.0-20230315185526-52ccab3ef572
	gopkg.in/yaml.v2 v2.4.0
	sigs.k8s.io/yaml v1.4.0
)
