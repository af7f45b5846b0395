//! The charts of add-ons: those that can never render become no release, and those of real releases become one again.

use std::{fs, io::Write, path::Path, process::Command};

use tempfile::TempDir;

use crate::fixture::{create, each_is_refused, path, stack_with, text};

#[test]
fn template_of_an_addon_that_can_never_render_becomes_no_release() {
    each_is_refused(&[
        (
            "templates/more.yaml",
            "a: b\n\nc: {{ .Values.c | qote }}\n",
            "templates/more.yaml:3: correct this file (did you mean quote",
            "function \"qote\" not defined",
        ),
        (
            "templates/more.yaml",
            "a: {{ env \"HOME\" }}\n",
            "templates/more.yaml:1: correct this file (charts see nothing of any environment",
            "function \"env\" not defined",
        ),
        (
            "templates/more.yaml",
            "a: b\nb: {{ .Values.b\n",
            "templates/more.yaml:",
            "unclosed action",
        ),
        (
            "templates/_more.tpl",
            "{{ if .Values.b }}\na: b\n",
            "templates/_more.tpl:",
            "unexpected EOF",
        ),
        (
            "templates/more.tera",
            "a: b\nc: {{ Values.c | qote }}\n",
            "templates/more.tera:2: correct this file",
            "qote",
        ),
    ]);
}

#[test]
fn addon_with_a_chart_yaml_that_lets_it_never_render_becomes_no_release() {
    each_is_refused(&[
        (
            "Chart.yaml",
            "apiVersion: v2\nname: network\nversion: 0.1.0\ntype: library\n",
            "Chart.yaml: correct this file",
            "library charts are not installable",
        ),
        (
            "Chart.yaml",
            "apiVersion: v2\nname: network\nversion: 0.1.0\nkubeVersion: <1.30\n",
            "Chart.yaml: correct this file",
            "chart requires kubeVersion: <1.30 which is incompatible with Kubernetes v1.34.0",
        ),
        (
            "Chart.yaml",
            "apiVersion: v2\nname: network\nversion: 0.1.0\nkeywords: one\n",
            "Chart.yaml: correct this file",
            "keywords",
        ),
    ]);
}

#[test]
fn addon_with_malformed_values_schema_or_definitions_becomes_no_release() {
    each_is_refused(&[
        (
            "values.yaml",
            "a: b\nc: d: e\n",
            "values.yaml: correct this file",
            "line 2",
        ),
        (
            "crds/quays.yaml",
            "kind: CustomResourceDefinition\nmetadata:\n  name: {{ .Release.Name }}-quays\n",
            "crds/quays.yaml: correct this file",
            "error converting YAML to JSON",
        ),
        (
            "values.schema.json",
            "{\"type\": \"nonsense\"}",
            "values.schema.json: correct this file",
            "is not valid against metaschema",
        ),
        (
            "values.schema.json",
            "{",
            "values.schema.json: correct this file",
            "EOF",
        ),
    ]);
}

#[test]
fn chart_of_an_addon_that_only_a_newer_helm_renders_becomes_a_release_with_a_note() {
    let (stack, output) = (stack_with(""), TempDir::new().unwrap());
    let file = stack.path().join("cluster-addon/network/templates/more.yaml");
    fs::write(&file, "a: {{ mustToYaml .Values }}\n").unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert_eq!(
        text(&made.stderr),
        format!(
            "note: {}:1: with spec.policy.helmProfile v4.3 alone, not with v3.19: function \"mustToYaml\" not defined\n",
            file.display()
        )
    );
}

/// Puts the add-ons of a real release in the place of our own, and says whether they are in stages.
fn put_addons(stack: &Path, release: &Path) -> bool {
    let addons = stack.join("cluster-addon");
    fs::remove_dir_all(&addons).unwrap();
    fs::create_dir(&addons).unwrap();
    fs::remove_file(stack.join("clusteraddon.yaml")).unwrap();
    let is_staged = release.join("clusteraddon.yaml").exists();
    let mut arguments = vec![
        "-xzf".to_owned(),
        String::new(),
        "-C".to_owned(),
        path(&addons).to_owned(),
    ];
    for file in fs::read_dir(release).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        if name.contains("-cluster-addon-") {
            path(&file).clone_into(&mut arguments[1]);
        } else if name.starts_with("cluster-addon-values") || name == "clusteraddon.yaml" {
            fs::copy(&file, stack.join(name)).unwrap();
        }
    }
    if !is_staged {
        arguments.push("--strip-components=1".to_owned());
    }
    assert!(Command::new("tar").args(&arguments).status().unwrap().success());
    is_staged
}

#[test]
fn addons_of_real_releases_become_a_release_again() {
    let Some(corpus) = std::env::var_os("STACKWRIGHT_CORPUS") else {
        // Not by a macro: the harness keeps what those write to itself when a test passes.
        let said = "REDUCED: STACKWRIGHT_CORPUS is unset, so no add-ons of real releases are packed\n";
        std::io::stderr().write_all(said.as_bytes()).expect("it can be said");
        return;
    };
    let mut packed = 0;
    for release in fs::read_dir(Path::new(&corpus).join("releases")).unwrap() {
        let release = release.unwrap().path();
        let files = fs::read_dir(&release).unwrap();
        let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        if !names.any(|name| name.contains("-cluster-addon-")) {
            continue;
        }
        let (stack, output) = (stack_with(""), TempDir::new().unwrap());
        if !put_addons(stack.path(), &release) {
            let chart = stack.path().join("cluster-addon/Chart.yaml");
            let text_of_chart = fs::read_to_string(&chart).unwrap();
            let ours = text_of_chart.replace("docker-ferrol-1-27-cluster-addon", "docker-harbor-1-34-cluster-addon");
            fs::write(&chart, ours).unwrap();
        }
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        assert_eq!(
            made.status.code(),
            Some(0),
            "{}: {}",
            release.display(),
            text(&made.stderr)
        );
        packed += 1;
    }
    assert!(packed > 8, "{packed}");
}
