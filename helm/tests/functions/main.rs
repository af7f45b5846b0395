//! Which functions each profile has, and what they make of their arguments, against what the four Helm versions said.
//!
//! Recorded in `*.txt` beside this file, so the tests need no binary. `STACKWRIGHT_REGENERATE=1` asks the real helms of the lab again and
//! rewrites the answers; the name of a file instead of `1` rewrites those of that file alone.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

mod certificates;
mod facts;
mod helms;
mod names;

use facts::Facts;

/// Compares our answers with the recorded ones; fails when there are fewer facts than expected.
fn check(file: &str, at_least: usize) {
    let mut facts = Facts::read(file);
    if helms::is_recording(file) {
        facts.record();
    }
    let differences = facts.differences();
    assert!(differences.is_empty(), "{file}:\n{}", differences.join("\n"));
    assert!(facts.count() >= at_least, "{file} has only {} facts", facts.count());
}

#[test]
fn toml_is_read_as_helm_read_it() {
    check("toml.txt", 250);
}

#[test]
fn wrong_arguments_are_refused_as_helm_refused_them() {
    check("signatures.txt", 700);
}

#[test]
fn functions_of_few_profiles_answer_as_helm_answered() {
    check("profiles.txt", 80);
}

#[test]
fn rare_arguments_give_what_helm_gave() {
    check("edges.txt", 200);
}

#[test]
fn yaml_is_read_as_helm_read_it() {
    check("yaml.txt", 500);
}

#[test]
fn yaml_in_brackets_is_read_as_helm_read_it() {
    check("brackets.txt", 40);
}

#[test]
fn different_types_are_refused_as_helm_refused_them() {
    check("comparisons.txt", 14);
}
