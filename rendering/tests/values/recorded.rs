//! What Go and Helm made of templates, and what we make of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use helm::functions::FunctionTable;
use helm::{Limits, go_text, yaml};
use serde_json::Value;

use crate::questions::{self, Question};
use crate::{chain, folder, values_of};

/// As Go reads numbers of JSON.
fn root() -> yaml::Node {
    yaml::read(include_bytes!("roots.json")).unwrap().node
}

/// Fails with all differences, or when there are fewer questions than expected.
fn compare(questions: &[Question], at_least: usize, ours: impl Fn(&str) -> Result<String, String>) {
    let mut differences = String::new();
    for Question { template, answer } in questions {
        let ours = ours(template);
        if ours != *answer {
            writeln!(differences, "{template}\n  Go:   {answer:?}\n  ours: {ours:?}").unwrap();
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(
        questions.len() >= at_least,
        "only {} questions were found",
        questions.len()
    );
}

#[test]
fn templates_write_and_fail_as_in_go() {
    let root = root();
    compare(&questions::read("functions.txt"), 900, |template| {
        let written = go_text::execute("values", template.as_bytes(), &root, Limits::default(), &Arc::default());
        match written {
            Ok(written) => Ok(String::from_utf8_lossy(&written).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    });
}

#[test]
fn templates_have_exactly_the_functions_of_go_and_slim_sprig() {
    questions::regenerate("names.txt");
    let recorded = std::fs::read_to_string(folder().join("names.txt")).unwrap();
    let theirs: BTreeSet<&str> = recorded.lines().collect();
    let ours: BTreeSet<&str> = FunctionTable::of_slim_sprig().names().collect();
    assert_eq!(ours, theirs);
    assert!(ours.len() > 180, "{}", ours.len());
}

/// Values as JSON. Go writes every number as a float.
fn as_written(values: &str) -> Value {
    fn with_whole(value: Value) -> Value {
        match value {
            Value::Number(number) => match number.as_f64() {
                #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
                Some(float) if float.fract() == 0.0 && float.abs() < 9e18 => Value::from(float as i64),
                _ => Value::Number(number),
            },
            Value::Array(items) => items.into_iter().map(with_whole).collect(),
            Value::Object(entries) => {
                let entries = entries.into_iter().map(|(key, value)| (key, with_whole(value)));
                Value::Object(entries.collect())
            }
            other => other,
        }
    }
    with_whole(serde_json::from_str(values).unwrap())
}

/// The values of a template; errors alike, whatever they say: half of them are ours and half of them Helm's.
fn values(template: &str, theirs: &Result<String, String>) -> Result<(), String> {
    match (values_of("values", template), theirs) {
        (Ok(ours), Ok(theirs)) if ours.values == as_written(theirs) => Ok(()),
        (Err(_), Err(_)) => Ok(()),
        (Ok(ours), theirs) => Err(format!("{template}\n  Go:   {theirs:?}\n  ours: {}\n", ours.values)),
        (Err(error), theirs) => Err(format!("{template}\n  Go:   {theirs:?}\n  ours: {}\n", chain(&error))),
    }
}

#[test]
fn values_are_those_that_helm_takes_of_what_go_writes() {
    let questions = questions::read("values.txt");
    let differences = questions
        .iter()
        .filter_map(|question| values(&question.template, &question.answer).err());
    let differences: Vec<String> = differences.collect();
    assert!(differences.is_empty(), "{}", differences.concat());
    assert!(questions.len() >= 70, "only {} questions were found", questions.len());
}

#[test]
fn values_templates_of_real_releases_give_what_they_give_in_go() {
    let Some(releases) = questions::releases("values_templates_of_real_releases_give_what_they_give_in_go") else {
        return;
    };
    let questions = questions::read("values-of-releases.txt");
    for Question { template, answer } in &questions {
        let reference = template.strip_prefix('@').unwrap();
        let text = questions::file_of_release(&releases, reference).unwrap();
        assert!(answer.is_ok(), "{reference}: {answer:?}");
        assert_eq!(values(&text, answer), Ok(()), "{reference}");
    }
    assert_eq!(questions.len(), 15);
    // The stages of these have none.
    for chart in ["cni", "metrics-server"] {
        let file = format!("docker-scs-1-30-v1/{chart}/overwrite.yaml");
        assert_eq!(questions::file_of_release(&releases, &file), None);
        let chart = format!("docker-scs-1-30-v1/{chart}/Chart.yaml");
        assert!(questions::file_of_release(&releases, &chart).is_some());
    }
}
