//! Cluster classes that somebody broke: our errors are helm's, to the letter, with file, line and words.

use std::sync::atomic::{AtomicUsize, Ordering};

use helm::Profile;

use crate::call::{Call, Files, Source, compare, files_below, files_in};
use crate::lab;

/// What somebody did: the file, the text that was there, the text that is there now.
const MISTAKES: &[(&str, &str, &str)] = &[
    // Texts that are no templates.
    (CLASS, "{{ .Release.Namespace }}", "{{ .Release.Namespace }"),
    (CLASS, "{{ .Release.Namespace }}", "{{ .Release.Namespace"),
    (CLASS, "{{ .Release.Namespace }}", "{{ | quote }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ (.Release.Namespace }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ .Release.Namespace) }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ .Release.Namespace; }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ .Release.Na#me }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ 'ab' }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ \"text }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ `text }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ 0x }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ 1.2.3 }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ /* comment */ }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{/* comment }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ end }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ else }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ break }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ if .Values.nodeImage }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ if }}x{{ end }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ template nosuch . }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ $clazz }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ nil }}"),
    (CLASS, "{{ .Release.Namespace }}", "{{ nosuch .Release }}"),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ .Values.nodeImage | qoute }}",
    ),
    (CLASS, "{{- $class := include", "{{- $class = include"),
    (CLASS, "{{- range .Values.certSANs }}", "{{- rang .Values.certSANs }}"),
    (
        CLASS,
        "            {{- end }}\n            {{ `{{- range",
        "            {{ `{{- range",
    ),
    (NAMES, "{{- end }}", ""),
    (NAMES, "{{- end }}", "{{- end }}{{- end }}"),
    (NAMES, "{{- define \"harbor.class\" -}}", "{{- define harbor.class -}}"),
    (
        NAMES,
        "{{- end }}",
        "{{- end }}{{ define \"harbor.class\" }}again{{ end }}",
    ),
    // Templates that fail.
    (CLASS, "include \"harbor.class\"", "include \"harbour.class\""),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ .Values.node.image | quote }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ .Values.nodeImage.name | quote }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ required \"an image is needed\" .Values.image | quote }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ fail \"no: \\\"never\\\"\" }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ .Values.nodeImage | trunc }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ .Values.nodeImage | trunc \"x\" }}",
    ),
    (CLASS, "{{ .Values.nodeImage | quote }}", "{{ .Values.image | upper }}"),
    (CLASS, "{{ .Values.nodeImage | quote }}", "{{ upper .Values.image }}"),
    (CLASS, "{{ .Values.nodeImage | quote }}", "{{ lt .Values.nodeImage 5 }}"),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ index .Values.certSANs 9 }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ index .Values.image \"name\" }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ .Values.nodeImage | semverCompare \">=1\" }}",
    ),
    (CLASS, "{{ .Values.nodeImage | quote }}", "{{ div 1 0 }}"),
    (CLASS, "{{ .Values.nodeImage | quote }}", "{{ tpl \"{{ nosuch }}\" . }}"),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ tpl \"{{ .a.b }}\" (dict) }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ regexReplaceAll \"[\" \"a\" \"b\" }}",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ first .Values.nodeImage }}",
    ),
    (CLASS, "{{ .Values.nodeImage | quote }}", "{{ .Release.Name.First }}"),
    (CLASS, "{{ .Values.nodeImage | quote }}", "{{ .Chart.Nosuch }}"),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ .Capabilities.KubeVersion.Nosuch }}",
    ),
    (CLASS, "{{ .Values.nodeImage | quote }}", "{{ template \"nosuch\" . }}"),
    (CLASS, "{{- range .Values.certSANs }}", "{{- range .Values.nodeImage }}"),
    (CLASS, "{{- range .Values.certSANs }}", "{{- range $a, $b := 3 }}"),
    (NAMES, "{{ .Release.Name }}", "{{ .Release.Name.First }}"),
    (NAMES, "{{ .Release.Name }}", "{{ include \"harbor.class\" . }}"),
    (NAMES, "{{ .Release.Name }}", "{{ fail \"from within\" }}"),
    // Output that is no manifest.
    (CLASS, "kind: ClusterClass", "kind: ClusterClass:"),
    (CLASS, "kind: ClusterClass", "\tkind: ClusterClass"),
    (CLASS, "kind: ClusterClass", "kind: [ClusterClass"),
    (CLASS, "kind: ClusterClass", "kind: {a: b}"),
    (CLASS, "kind: ClusterClass", "kind: \"ClusterClass"),
    (CLASS, "kind: ClusterClass", "kind: *class"),
    (CLASS, "kind: ClusterClass", "kind ClusterClass"),
    (CLASS, "  namespace: ", " namespace: "),
    (
        CLASS,
        "  name: {{ $class }}\n",
        "  name: {{ $class }}\n  annotations: {a: [b]}\n",
    ),
    (CLASS, "metadata:\n", "metadata: text\nspare:\n"),
    (CLASS, "{{- $class := include", "- list\n---\n{{- $class := include"),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ .Values.nodeImage }}: more",
    ),
    (
        CLASS,
        "{{ .Values.nodeImage | quote }}",
        "{{ toYaml .Values | indent 2 }}",
    ),
    (CLASS, "{{ .Values.nodeImage | quote }}", "\"\\q\""),
    // Files that are no YAML, or say what they must not.
    (VALUES, "nodeImage:", "nodeImage: a:"),
    (VALUES, "nodeImage:", "- nodeImage:"),
    (VALUES, "nodeImage:", "\tnodeImage:"),
    (CHART, "version: v0", "version: latest"),
    (CHART, "version: v0", ""),
    (CHART, "name: docker", "name: ../docker"),
    (CHART, "type: application", "type: library"),
    (CHART, "type: application", "type: class"),
    (CHART, "type: application", "kubeVersion: \">=1.99\""),
    (
        CHART,
        "type: application",
        "dependencies: [{name: other, version: 1.0.0, repository: x}]",
    ),
    (CHART, "type: application", "dependencies: text"),
];

const CHART: &str = "Chart.yaml";
const VALUES: &str = "values.yaml";
const CLASS: &str = "templates/cluster-class.yaml";
const NAMES: &str = "templates/_names.tpl";

fn own_class() -> Files {
    files_below(&lab::room().join("../e2e/stacks/docker-harbor/v1/cluster-class"))
}

/// The chart after one mistake.
fn with_mistake(chart: &Files, (file, before, after): (&str, &str, &str)) -> Files {
    let mut chart = chart.clone();
    let (_, data) = chart.iter_mut().find(|(path, _)| path == file).unwrap();
    let text = str::from_utf8(data).unwrap();
    assert!(text.contains(before), "{file} has no {before:?}");
    *data = text.replacen(before, after, 1).into_bytes();
    chart
}

fn call(name: String, chart: Files) -> Call {
    Call {
        release: "docker-harbor-1-34".to_owned(),
        namespace: "cluster".to_owned(),
        ..Call::new(name, Source::Files(chart))
    }
}

#[test]
fn mistakes_in_a_cluster_class_are_told_as_helm_tells_them() {
    let binary = lab::helm(Profile::V3_19);
    let chart = own_class();
    let calls: Vec<Call> = MISTAKES
        .iter()
        .map(|mistake| {
            call(
                format!("{} -> {}", mistake.1, mistake.2),
                with_mistake(&chart, *mistake),
            )
        })
        .collect();
    compare(&calls, |call| {
        let theirs = call.theirs(&binary);
        assert!(theirs.starts_with("Error: "), "no mistake: {}", call.name);
        theirs
    });
}

/// Damage that nobody thought about: a text that is there, and what takes its place.
const DAMAGES: &[(&str, &str)] = &[
    ("}}", "}"),
    ("{{", "{"),
    ("{{- end }}", ""),
    ("{{ ", "{{ end }}{{ "),
    (".Values.", ".Values.nosuch."),
    (".Release.", ".Relaese."),
    (" | ", " | nosuch | "),
    ("\"", ""),
    (": ", " "),
    (":\n", ": :\n"),
    ("\n  ", "\n\t"),
    ("\n    ", "\n   "),
    ("- ", "-"),
    ("include \"", "include \"no"),
    ("(", ""),
    (")", ""),
];

/// The chart with each damage once in every template, each time at another place.
fn damaged(name: &str, chart: &Files) -> Vec<Call> {
    let mut calls = Vec::new();
    let templates = chart
        .iter()
        .enumerate()
        .filter(|(_, (path, _))| path.starts_with("templates/"));
    for (position, (path, data)) in templates {
        let text = str::from_utf8(data).unwrap();
        for (number, (before, after)) in DAMAGES.iter().enumerate() {
            let places: Vec<usize> = text.match_indices(before).map(|(place, _)| place).collect();
            let Some(place) = places.get((position * 7 + number * 5) % places.len().max(1)) else {
                continue;
            };
            let (head, tail) = text.split_at(*place);
            let mut chart = chart.clone();
            chart[position].1 = [head, after, &tail[before.len()..]].concat().into_bytes();
            calls.push(call(format!("{name} {path}:{place} {before:?} -> {after:?}"), chart));
        }
    }
    calls
}

#[test]
fn damage_in_a_cluster_class_is_told_as_helm_tells_it() {
    let binary = lab::helm(Profile::V3_19);
    let mut calls = damaged("docker-harbor", &own_class());
    if let Some(corpus) = lab::corpus("damaged cluster classes") {
        let chart = "openstack-scs-1-32-v4/openstack-scs-1-32-cluster-class-v4.tgz";
        calls.extend(damaged(chart, &files_in(&corpus.join("releases").join(chart))));
    }
    let refused = AtomicUsize::new(0);
    compare(&calls, |call| {
        let theirs = call.theirs(&binary);
        refused.fetch_add(usize::from(theirs.starts_with("Error: ")), Ordering::Relaxed);
        theirs
    });
    let refused = refused.into_inner();
    lab::say(&format!(
        "{refused} of {} damaged cluster classes are refused in Helm's words\n",
        calls.len()
    ));
    assert!(refused > 40, "only {refused} of {} were refused", calls.len());
}
