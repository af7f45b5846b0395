//! The templates that give add-ons their values, of Go and of Tera: one with a mistake becomes no release, and is told with its place.

use std::fs;

use tempfile::TempDir;

use crate::fixture::{create, each_is_refused, path, refused_with, stack_with, text};

#[test]
fn template_of_values_with_a_function_that_values_cannot_have_becomes_no_release() {
    each_is_refused(&[
        (
            "overwrite.yaml",
            "a: b\nc: {{ .Cluster.metadata.name | qote }}\n",
            "overwrite.yaml:2: correct this template (did you mean quote",
            "function \"qote\" not defined",
        ),
        (
            "overwrite.yaml",
            "a: b\n{{ if false }}c: {{ env \"HOME\" }}{{ end }}\n",
            "overwrite.yaml:2: correct this template",
            "the function \"env\" reads the environment of the program",
        ),
    ]);
}

#[test]
fn mistake_in_a_template_of_values_is_told_with_its_place_once() {
    for (content, told) in [
        (
            "a: b\nc: {{ .Cluster.metadata.name | qote }}\n",
            "overwrite.yaml:2: correct this template (did you mean quote?), then make the release again: function \"qote\" not defined",
        ),
        (
            "a: {{ toYaml .Cluster }}\n",
            "overwrite.yaml:1: correct this template (Helm's own functions are not there in templates of values), then make the release \
             again: function \"toYaml\" not defined",
        ),
        (
            "a: {{ env \"HOME\" }}\n",
            "overwrite.yaml:1: correct this template, then make the release again: the function \"env\" reads the environment of the \
             program: values follow from the objects of the cluster alone",
        ),
    ] {
        let message = refused_with("overwrite.yaml", content);
        assert_eq!(message, format!("error: cluster-addon/network/{told}"));
    }
}

#[test]
fn tera_template_of_values_that_is_none_becomes_no_release() {
    let (stack, output) = (stack_with(""), TempDir::new().unwrap());
    let folder = stack.path().join("cluster-addon/network");
    fs::remove_file(folder.join("overwrite.yaml")).unwrap();
    fs::write(
        folder.join("overwrite.yaml.tera"),
        "a: b\nc: {{ get_env(name=\"HOME\") }}\n",
    )
    .unwrap();
    let made = create(&[path(stack.path()), "--output", path(output.path()), "--version", "v1"]);
    let message = text(&made.stderr);
    assert_eq!(made.status.code(), Some(1), "{message}");
    let start = format!(
        "error: {}/overwrite.yaml.tera:2: correct this template",
        folder.display()
    );
    assert!(message.starts_with(&start) && message.contains("get_env"), "{message}");
}
