//! Where manifests come from: the line of the template that each document begins in, and that wrote each of its lines.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use std::sync::Arc;

use helm::{
    ArchiveLimits, Chart, Manifest, OtherChart, OtherLanguage, OtherProblem, Profile, RenderOptions, Rendering, yaml,
};

const HELPERS: &str = r#"{{- define "labels" -}}
app: {{ .Chart.Name }}
release: {{ .Release.Name }}
{{- end }}
{{- define "body" }}
spec:
  replicas: {{ . }}
{{- end }}
"#;

/// Each line that ends up in a document is numbered by its comment, or by the one before the action that writes it.
const TEMPLATE: &str = r#"{{- $name := .Release.Name -}}
{{- /* nothing is written before line 5 */ -}}
{{ if .Values.first }}
---
kind: First # 5
metadata: # 6
  labels: # 7
    {{- include "labels" . | nindent 4 }}
  name: {{ $name }} # 9
{{- else }}
---
kind: Other # 12
{{- end }}
{{- range $index, $host := .Values.hosts }}
---
kind: Host # 16
{{- if eq $index 1 }}
second: true # 18
{{- end }}
{{- with $host }}
name: {{ . | quote }} # 21
{{- end }}
{{- template "body" $index }}
missing: {{ $.Values.missing }}<no value> # 24
last: {{ list 1
  2 | toJson }} # 26
{{- end }}
---
# 29
---
kind: Last # 31
data: {{ toJson .Values.hosts }}
config: |
  {{ tpl .Values.text . }}
"#;

const VALUES: &str = "first: true\nhosts: [a, b]\ntext: |-\n  kind: {{ .Release.Name }}\n    more\n";

fn render(profile: &'static Profile, values: &str, files: &[(&str, &str)]) -> Rendering {
    let chart = ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), text.as_bytes().to_vec());
    let files = [chart].iter().chain(files).map(owned).collect();
    let chart = Chart::from_files(files, &ArchiveLimits::default()).unwrap();
    let options = RenderOptions {
        profile,
        other_language: Some(Arc::new(Plain)),
        ..RenderOptions::new("r", "ns")
    };
    chart
        .render(&yaml::parse(values.as_bytes()).unwrap(), &options)
        .unwrap()
}

fn of_template(profile: &'static Profile, values: &str) -> Vec<Manifest> {
    let files = [("templates/_h.tpl", HELPERS), ("templates/a.yaml", TEMPLATE)];
    let mut manifests = render(profile, values, &files).manifests;
    manifests.sort_by_key(Manifest::line);
    manifests
}

fn text(manifest: &Manifest) -> &str {
    str::from_utf8(&manifest.text).unwrap()
}

/// The lines of the template that wrote the lines of a manifest.
fn lines(manifest: &Manifest) -> Vec<usize> {
    let lines = 1..=text(manifest).trim_end().lines().count();
    lines.map(|line| manifest.template_line(line).unwrap()).collect()
}

#[test]
fn every_line_of_a_manifest_knows_the_line_of_the_template_that_wrote_it() {
    for profile in Profile::all() {
        let manifests = of_template(profile, VALUES);
        let found: Vec<Vec<usize>> = manifests.iter().map(lines).collect();
        let expected: [&[usize]; 5] = [
            &[5, 6, 7, 8, 8, 9],
            &[16, 21, 23, 23, 24, 25],
            &[16, 18, 21, 23, 23, 24, 25],
            &[29],
            &[31, 32, 33, 34, 34],
        ];
        assert_eq!(found, expected, "{}", profile.name);
    }
}

#[test]
fn a_line_that_is_text_is_the_line_of_the_template() {
    let numbers = |manifest: &Manifest| {
        let numbered = |(index, line): (usize, &str)| {
            let number = line.rsplit_once("# ")?.1.parse::<usize>().ok()?;
            Some((manifest.template_line(index + 1)?, number))
        };
        text(manifest)
            .lines()
            .enumerate()
            .filter_map(numbered)
            .collect::<Vec<_>>()
    };
    let manifests = of_template(Profile::V3_19, VALUES);
    let pairs: Vec<(usize, usize)> = manifests.iter().flat_map(numbers).collect();
    assert_eq!(pairs.len(), 15);
    for (found, written) in pairs {
        // The comment of line 26 stands behind an action that begins a line earlier.
        assert!(
            found == written || (found, written) == (25, 26),
            "{found} for {written}"
        );
    }
}

#[test]
fn a_document_begins_where_its_first_line_is() {
    let lines = |values| {
        of_template(Profile::V3_19, values)
            .iter()
            .map(Manifest::line)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(VALUES), [Some(5), Some(16), Some(16), Some(29), Some(31)]);
    let other = "first: false\nhosts: []\ntext: x";
    assert_eq!(lines(other), [Some(12), Some(29), Some(31)]);
}

#[test]
fn there_are_no_lines_before_the_first_and_behind_the_last() {
    let manifest = &of_template(Profile::V3_19, VALUES)[0];
    assert_eq!(manifest.template_line(0), None);
    assert_eq!(manifest.template_line(7), None);
}

const FIELDS: &str = r#"kind: Fields
base: &base
  shared: {flow: 1}
  own: 1
items:
- name: first
- {name: second, "quoted key": 1}
- *base
twice: 1
<<: [*base, {late: 1}]
other:
  <<: *base
  own: 2
10: |
  text: 1
twice: 2
"#;

#[test]
fn a_field_stands_on_the_line_that_yaml_says() {
    let rendering = render(Profile::V3_19, "", &[("templates/a.yaml", FIELDS)]);
    let manifest = &rendering.manifests[0];
    for (path, line) in [
        ("kind", Some(1)),
        ("base", Some(2)),
        ("base.shared.flow", Some(3)),
        ("items", Some(5)),
        ("items.0", Some(6)),
        ("items.1.name", Some(7)),
        ("items.1.quoted key", Some(7)),
        ("items.2", Some(8)),
        ("items.2.own", Some(4)),
        ("twice", Some(16)),
        ("shared", Some(3)),
        ("late", Some(10)),
        ("other.shared", Some(3)),
        ("other.own", Some(13)),
        ("10", Some(14)),
        ("10.text", None),
        ("items.3", None),
        ("items.name", None),
        ("none", None),
    ] {
        let keys: Vec<&str> = path.split('.').collect();
        assert_eq!(manifest.line_of(&keys), line, "{path}");
    }
    assert_eq!(manifest.line_of(&[]), Some(1));
}

#[test]
fn a_field_is_followed_to_the_line_of_its_template() {
    let manifests = of_template(Profile::V3_19, VALUES);
    let line = |manifest: &Manifest, path: &[&str]| manifest.template_line(manifest.line_of(path).unwrap());
    assert_eq!(line(&manifests[0], &["metadata", "name"]), Some(9));
    assert_eq!(line(&manifests[0], &["metadata", "labels", "release"]), Some(8));
    assert_eq!(line(&manifests[2], &["second"]), Some(18));
    assert_eq!(line(&manifests[2], &["spec", "replicas"]), Some(23));
    assert_eq!(line(&manifests[4], &["data", "1"]), Some(32));
}

#[test]
fn no_line_is_told_where_yaml_counts_others() {
    let rendering = render(
        Profile::V3_19,
        "",
        &[
            ("templates/a.yaml", "kind: A\r\nb: 1\n"),
            ("templates/b.yaml", "kind: A # \u{2028}\nb: 1\n"),
        ],
    );
    let lines: Vec<_> = rendering
        .manifests
        .iter()
        .map(|manifest| manifest.line_of(&["b"]))
        .collect();
    assert_eq!(lines, [Some(2), None]);
}

#[test]
fn hooks_carry_their_events_weight_and_policies_and_their_line() {
    let hook = "\n---\nkind: A\n---\nkind: Job\nmetadata:\n  annotations:\n    helm.sh/hook: pre-install,Test\n    helm.sh/hook-weight: \"-5\"\n    \
                helm.sh/hook-delete-policy: hook-succeeded\n";
    let rendering = render(Profile::V3_19, "", &[("templates/a.yaml", hook)]);
    assert_eq!(rendering.manifests.len(), 1);
    let [manifest] = rendering.hooks.as_slice() else {
        panic!("{rendering:?}");
    };
    assert_eq!(manifest.line(), Some(5));
    let hook = manifest.hook.as_ref().unwrap();
    assert_eq!(hook.events, ["pre-install", "test"]);
    assert_eq!(
        (hook.weight, hook.delete_policies.as_slice()),
        (-5, ["hook-succeeded".to_owned()].as_slice())
    );
}

/// A language whose files are their own output.
#[derive(Debug)]
struct Plain;

impl OtherLanguage for Plain {
    fn suffix(&self) -> &'static str {
        ".plain"
    }

    fn render(&self, charts: &[OtherChart<'_>]) -> Result<Vec<Vec<u8>>, OtherProblem> {
        let files = charts.iter().flat_map(|chart| &chart.files);
        Ok(files.map(|(_, text)| text.to_vec()).collect())
    }

    fn check(&self, _: &[OtherChart<'_>]) -> Result<(), OtherProblem> {
        Ok(())
    }
}

#[test]
fn another_language_has_no_lines_to_tell() {
    let rendering = render(Profile::V3_19, "", &[("templates/a.plain", "kind: A\n")]);
    assert_eq!(rendering.manifests[0].line(), None);
    assert_eq!(rendering.manifests[0].template_line(1), None);
}

fn is_shareable<T: Send + Sync>() {}

#[test]
fn everything_public_goes_to_other_threads() {
    is_shareable::<Chart>();
    is_shareable::<RenderOptions>();
    is_shareable::<Rendering>();
    is_shareable::<helm::RenderError>();
    is_shareable::<helm::LoadError>();
}
