//! Schemas that mean harm: each ends with an error that says what it broke, and none reaches beyond the chart.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use std::fmt::Write as _;

use helm::chart::ArchiveLimits;
use helm::yaml::{Node, parse};
use helm::{Chart, RenderOptions};

fn chart(schema: &str, values: &str) -> Chart {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    let files = vec![
        file("Chart.yaml", "{apiVersion: v2, name: checked, version: 1.0.0}"),
        file("values.yaml", values),
        file("values.schema.json", schema),
    ];
    Chart::from_files(files, &ArchiveLimits::default()).unwrap()
}

fn refusal(schema: &str, values: &str) -> String {
    let options = RenderOptions::new("tested", "ns");
    let error = chart(schema, values).render(&Node::Null, &options).unwrap_err();
    error.to_string()
}

/// Definitions of which each is made from the number of the next one.
fn chain(length: usize, link: impl Fn(String) -> String) -> String {
    let mut text = String::from("{\"$ref\": \"#/$defs/0\", \"$defs\": {");
    for number in 0..length {
        let next = format!("{{\"$ref\": \"#/$defs/{}\"}}", number + 1);
        write!(text, "\"{number}\": {}, ", link(next)).unwrap();
    }
    write!(text, "\"{length}\": {{\"type\": \"object\"}}}}}}").unwrap();
    text
}

/// One text after another.
fn numbered(count: usize, part: impl Fn(usize) -> String) -> String {
    let parts: Vec<String> = (0..count).map(part).collect();
    parts.join(", ")
}

#[test]
fn schemas_that_multiply_end_at_the_limit_of_steps() {
    for keyword in ["allOf", "oneOf"] {
        let schema = chain(40, |next| {
            format!("{{\"{keyword}\": [{next}, {{\"not\": {next}}}, {next}]}}")
        });
        let error = refusal(&schema, "{}");
        assert!(
            error.contains("takes more steps than are left"),
            "{keyword}: {error:.300}"
        );
    }
    let names = numbered(30_000, |number| format!("k{number}: x"));
    let patterns = numbered(3_000, |number| format!("\"^x{number}\": {{}}"));
    let schema = format!("{{\"patternProperties\": {{{patterns}}}}}");
    let error = refusal(&schema, &format!("{{{names}}}"));
    assert!(error.contains("takes more steps than are left"), "{error:.300}");
}

#[test]
fn schemas_that_nest_end_at_the_limit_of_depth() {
    let error = refusal(&chain(10_000, |next| next), "{}");
    assert!(error.contains("schema nests too deeply"), "{error:.300}");
    let deep = format!("{}{{}}{}", "{\"not\": ".repeat(5_000), "}".repeat(5_000));
    let error = refusal(&deep, "{}");
    assert!(error.contains("value nests deeper"), "{error:.300}");
}

#[test]
fn schemas_that_are_too_large_are_refused() {
    let many = numbered(100_001, |number| format!("\"k{number}\": {{}}"));
    let error = refusal(&format!("{{\"properties\": {{{many}}}}}"), "{}");
    assert!(
        error.contains("subschemas") || error.contains("too many steps"),
        "{error:.300}"
    );
    let inner = numbered(20_000, |number| format!("\"{number}\": {{}}"));
    let key = "x".repeat(100_000);
    let schema = format!("{{\"$defs\": {{\"{key}\": {{\"$defs\": {{{inner}}}}}}}}}");
    let error = refusal(&schema, "{}");
    assert!(error.contains("schema is too large"), "{error:.300}");
}

#[test]
fn expressions_that_grow_are_refused() {
    let schema = r#"{"properties": {"a": {"pattern": "(\\pL{100}){10}"}}}"#;
    let error = refusal(schema, "a: text");
    assert!(error.contains("is not supported"), "{error:.300}");
    let slow = r#"{"properties": {"a": {"pattern": "^(a+)+$"}}}"#;
    let error = refusal(slow, &format!("a: {}b", "a".repeat(50_000)));
    assert!(error.contains("does not match pattern"), "{error:.300}");
}

#[test]
fn nothing_is_fetched() {
    for (reference, reason) in [
        (
            "https://schemas.example/x.json",
            "schemas are not fetched from the network",
        ),
        ("http://127.0.0.1/x.json", "schemas are not fetched from the network"),
        (
            "file:///etc/hostname",
            "open /etc/hostname: schemas are not read from files",
        ),
        (
            "../../etc/hostname",
            "open /etc/hostname: schemas are not read from files",
        ),
        ("ftp://schemas.example/x", "no URLLoader registered for"),
    ] {
        let error = refusal(&format!("{{\"$ref\": \"{reference}\"}}"), "{}");
        assert!(error.contains(reason), "{reference}: {error}");
        assert!(error.contains("checked:\nfailing loading"), "{reference}: {error}");
    }
}

#[test]
fn a_checked_chart_is_shared_between_threads_and_checked_each_time() {
    let chart = chart(
        r#"{"properties": {"a": {"type": "string", "pattern": "^[a-z]{1,9}$"}}}"#,
        "",
    );
    let render = |values: &str| {
        let values = parse(values.as_bytes()).unwrap();
        chart.render(&values, &RenderOptions::new("tested", "ns")).is_ok()
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(render("a: text") && !render("a: 5") && !render("a: TEXT")));
        }
    });
}
