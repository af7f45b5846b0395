//! Schemas and values against what the Helm versions say of them, recorded in `schemas/*.txt`: a schema in the first line, values in the second.
//!
//! Helm tells several findings about one object in random order; no case has them.

use helm::Profile;

use crate::call::{Call, Files, Source};
use crate::{lab, recorded};

const CHART: &str = "apiVersion: v2\nname: checked\nversion: 1.2.3\n";

fn call(question: &str) -> Call {
    let (schema, values) = question.split_once('\n').unwrap_or((question, "{}"));
    let text = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    let files: Files = vec![
        text("Chart.yaml", CHART),
        text("values.yaml", values),
        text("values.schema.json", schema),
        text("templates/out.yaml", "ok: true\n"),
    ];
    Call::new(question, Source::Files(files))
}

/// The lines of an error, or nothing.
fn answer(result: &str) -> String {
    match result.strip_prefix("Error: ") {
        Some(error) => format!("! {}", error.trim_end().escape_debug()),
        None => format!("= {}", result.lines().last().unwrap_or_default()),
    }
}

#[test]
fn values_are_checked_as_helm_checked_them() {
    let files = recorded::files(&lab::room().join("tests/schemas"));
    let ours = |question: &str, profile| answer(&call(question).of(profile).ours());
    recorded::compare(Profile::all(), &files, 150, ours, |question, binary| {
        answer(&call(question).theirs(binary))
    });
}
