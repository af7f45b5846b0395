//! The class of a stack: which chart becomes no release, and what is said of one that becomes a release.

use std::fs;

use tempfile::TempDir;

use crate::fixture::{create, path, stack_with, text};

#[test]
fn class_chart_that_does_not_render_becomes_no_release() {
    for (template, place, reason) in [
        (
            "\n\na: {{ nosuch }}\n",
            "more.yaml:3: correct this template",
            "function \"nosuch\" not defined",
        ),
        (
            "\na: {{ .Values.no.such }}\n",
            "more.yaml:2: correct this template",
            "nil pointer evaluating interface {}.such",
        ),
        (
            "a: b: c\n",
            "more.yaml: correct what this template renders",
            "mapping values are not allowed in this context",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\n",
            "more.yaml: correct what this template renders",
            "renders an object without metadata",
        ),
    ] {
        let (stack, output) = (stack_with(template), TempDir::new().unwrap());
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        let message = text(&made.stderr);
        assert_eq!(made.status.code(), Some(1), "{message}");
        let start = format!("error: {}/cluster-class/templates/{place}", stack.path().display());
        assert!(message.starts_with(&start), "{message}");
        assert!(message.trim_end().ends_with(reason), "{message}");
        assert_eq!((message.lines().count(), text(&made.stdout)), (1, ""));
        assert_eq!(fs::read_dir(output.path()).unwrap().count(), 0, "{message}");
    }
}

#[test]
fn class_chart_that_only_helm_can_render_yet_becomes_a_release_with_a_warning() {
    let stack = stack_with("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ randAlpha 3 }}\n");
    let output = TempDir::new().unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    let warning = text(&made.stderr);
    assert_eq!(made.status.code(), Some(0), "{warning}");
    let start = format!(
        "warning: {}/cluster-class/templates/more.yaml:4: ",
        stack.path().display()
    );
    assert!(
        warning.starts_with(&start) && warning.contains("function \"randAlpha\""),
        "{warning}"
    );
    assert!(
        text(&made.stdout).starts_with("docker-harbor-1-34-v1 (class not tried out) created: "),
        "{}",
        text(&made.stdout)
    );
}

#[test]
fn stack_with_a_class_that_clusters_of_the_release_do_not_name_becomes_no_release() {
    let class =
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: ClusterClass\nmetadata: {name: docker-harbor-1-34-small}\n";
    let (second, wrong) = (stack_with(class), stack_with(""));
    let template = wrong.path().join("cluster-class/templates/cluster-class.yaml");
    let text_of_template = fs::read_to_string(&template).unwrap();
    let misnamed = text_of_template.replacen("  name: {{ $class }}\n", "  name: docker-harbor-1-34-small\n", 1);
    assert_ne!(misnamed, text_of_template);
    fs::write(&template, misnamed).unwrap();
    for (stack, file) in [(second, "more.yaml"), (wrong, "cluster-class.yaml")] {
        let output = TempDir::new().unwrap();
        let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
        let message = text(&made.stderr);
        assert_eq!(made.status.code(), Some(1), "{message}");
        let start = format!(
            "error: {}/cluster-class/templates/{file}: renders the ClusterClass docker-harbor-1-34-small, but a release brings one, and Clusters \
             of this one name docker-harbor-1-34-v1: ",
            stack.path().display()
        );
        assert!(message.starts_with(&start), "{message}");
        assert_eq!((message.lines().count(), text(&made.stdout)), (1, ""));
        assert!(
            fs::read_dir(output.path()).unwrap().next().is_none(),
            "a release was made"
        );
    }
    let other_group = class.replace("cluster.x-k8s.io", "example.org");
    let (stack, output) = (stack_with(&other_group), TempDir::new().unwrap());
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
}

#[test]
fn stack_that_renders_no_class_is_warned_about() {
    let stack = stack_with("");
    fs::remove_file(stack.path().join("cluster-class/templates/cluster-class.yaml")).unwrap();
    let output = TempDir::new().unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    assert_eq!(made.status.code(), Some(0));
    assert!(
        text(&made.stderr).ends_with("cluster-class/: renders no ClusterClass, so no Cluster can use the release\n"),
        "{}",
        text(&made.stderr)
    );
}

#[test]
fn words_of_a_template_steer_no_terminal() {
    let stack = stack_with(r#"{{ fail "\u001b]0;owned\u0007\u001b[2Jset a region" }}"#);
    let output = TempDir::new().unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    assert_eq!(made.status.code(), Some(1));
    let message = text(&made.stderr).trim_end();
    assert!(message.ends_with("]0;owned [2Jset a region"), "{message:?}");
    assert!(!message.contains(char::is_control), "{message:?}");
}
