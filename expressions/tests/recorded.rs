//! Expressions against what the real cel-go made of them, with the objects and answers recorded in the folder of the same name.
//!
//! `STACKWRIGHT_REGENERATE=1` asks the real one again, which `cargo xtask setup` builds.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use expressions::{Missing, ObjectKind, Outcome, STEPS, Schemas, Severity, check, evaluate, parse};
use serde_json::Value;

/// What the Go operator evaluates and this does not, on purpose; `lib.rs` says why.
const NOT_TAKEN_OVER: [&str; 2] = [".odd.text == \"1\"", "google.protobuf.Int32Value{value: 1} == 1"];

/// What the Go operator refuses because it knows both types, and this evaluates.
const ALLOWED_HERE: [&str; 1] = [r#"{1: "a"}[1.0] == "a""#];

/// What stands before a recorded answer.
const ANSWER: &str = "    => ";

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded"))
}

fn objects() -> BTreeMap<String, Option<Value>> {
    serde_json::from_slice(&fs::read(folder().join("objects.json")).unwrap()).unwrap()
}

/// The lines of the table without their answers, and the answers by their expressions.
fn table() -> (Vec<String>, Vec<(String, String)>) {
    let text = fs::read_to_string(folder().join("cases.txt")).unwrap();
    let (mut lines, mut answers) = (Vec::<String>::new(), Vec::new());
    for line in text.lines() {
        match line.strip_prefix(ANSWER) {
            Some(answer) => answers.push((lines.last().unwrap().clone(), answer.to_owned())),
            None => lines.push(line.to_owned()),
        }
    }
    (lines, answers)
}

fn is_expression(line: &str) -> bool {
    !line.is_empty() && !line.starts_with("# ")
}

/// Where the lab has the real one.
fn oracle() -> PathBuf {
    let description = env::var_os("STACKWRIGHT_LAB").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.lab/lab.json"),
        PathBuf::from,
    );
    let text = fs::read(&description)
        .unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask setup` first", description.display()));
    let lab: Value = serde_json::from_slice(&text).unwrap();
    let path = lab["cel"].as_str().map(PathBuf::from);
    path.filter(|path| path.is_file())
        .expect("the lab has no cel: run `cargo xtask setup` first")
}

/// Asks the real one all expressions of the table and writes what it answered.
fn record() {
    let (lines, _) = table();
    let objects: Value = serde_json::from_slice(&fs::read(folder().join("objects.json")).unwrap()).unwrap();
    let expressions = lines.iter().filter(|line| is_expression(line));
    let questions = expressions.map(|line| format!("{}\n", Value::from(line.as_str())));
    let input = format!("{objects}\n{}", questions.collect::<String>());
    let mut child = Command::new(oracle())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    let mut answers = answers
        .lines()
        .map(|line| serde_json::from_str::<String>(line).unwrap());
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{line}").unwrap();
        if is_expression(&line) {
            writeln!(text, "{ANSWER}{}", answers.next().unwrap()).unwrap();
        }
    }
    fs::write(folder().join("cases.txt"), text).unwrap();
}

/// The same outcome in the words of the real one, as far as it has a word for it.
fn ours(text: &str, objects: &BTreeMap<String, Option<Value>>) -> String {
    let expression = match parse(text) {
        Ok(expression) => expression,
        Err(error) => return format!("refused: {error}"),
    };
    let kinds = objects
        .keys()
        .map(|key| (key.clone(), ObjectKind::new("v1", "Untyped")))
        .collect();
    let findings = check(&expression, &kinds, &Schemas::built_in());
    let error = findings.iter().find(|finding| finding.severity == Severity::Error);
    match (evaluate(&expression, objects, STEPS), error) {
        (Outcome::Holds, None) => "true".to_owned(),
        (Outcome::Fails { .. }, None) => "false".to_owned(),
        (Outcome::Missing(Missing::Path { path }), None) => format!("missing: {path}"),
        (Outcome::Missing(Missing::Object { object }), None) => format!("missing: {object}"),
        (Outcome::Wrong { message }, None) => format!("wrong: {message}"),
        (outcome, Some(finding)) => format!("refused: {}, else {outcome:?}", finding.message),
    }
}

/// Whether ours means the same: what does not compile, and what has a type that can never do, may be found at either moment.
fn agree(real: &str, ours: &str) -> bool {
    let is_missing = ["no such key", "index out of bounds", "no such attribute"]
        .iter()
        .any(|word| real.contains(word));
    match real.split_once(':').map_or(real, |(first, _)| first) {
        "true" | "false" => real == ours,
        "error" if is_missing => ours.starts_with("missing:"),
        _ => ours.starts_with("refused:") || ours.starts_with("wrong:"),
    }
}

#[test]
fn expressions_mean_what_the_real_one_makes_of_them() {
    if env::var_os("STACKWRIGHT_REGENERATE").is_some() {
        record();
    }
    let (lines, answers) = table();
    assert_eq!(answers.len(), lines.iter().filter(|line| is_expression(line)).count());
    assert!(answers.len() > 300, "{}", answers.len());
    let objects = objects();
    let differences: Vec<_> = answers
        .iter()
        .filter(|(expression, _)| {
            let expression = expression.as_str();
            !NOT_TAKEN_OVER.contains(&expression) && !ALLOWED_HERE.contains(&expression)
        })
        .map(|(expression, real)| (expression, real, ours(expression, &objects)))
        .filter(|(_, real, ours)| !agree(real, ours))
        .map(|(expression, real, ours)| format!("{expression}\n  real: {real}\n  ours: {ours}"))
        .collect();
    assert!(
        differences.is_empty(),
        "{} differences\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn what_is_not_taken_over_is_refused_and_not_misunderstood() {
    for text in NOT_TAKEN_OVER {
        assert!(parse(text).is_err(), "{text}");
    }
}
