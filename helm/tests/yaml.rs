//! YAML and JSON against what Helm 3.19.0 answered, recorded in `goldens/yaml-rows.yaml`, and properties of the pair of reader and writer.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops here")]

use std::path::Path;

use helm::json::{self, Escape};
use helm::value::Value;
use helm::yaml::{self, Node};

fn fixture(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The inputs of one kind beside the answers of the real Helm.
fn rows(inputs: &str, answers: &str) -> Vec<(Node, String)> {
    let inputs = json::decode(&fixture(&format!("charts/yaml-rows/{inputs}"))).unwrap();
    let golden = fixture("goldens/yaml-rows.yaml");
    let golden = golden.strip_prefix(b"---\n").unwrap();
    let golden = yaml::parse(golden).unwrap();
    let answers = golden.get(answers).and_then(Node::as_list).unwrap();
    let inputs = inputs.as_list().unwrap();
    assert_eq!(inputs.len(), answers.len());
    inputs
        .iter()
        .cloned()
        .zip(answers.iter().map(|answer| answer.as_text().unwrap().to_owned()))
        .collect()
}

fn differences(rows: Vec<(Node, String)>, ours: impl Fn(&Node) -> String) -> Vec<String> {
    let differing = rows.into_iter().filter_map(|(input, theirs)| {
        let ours = ours(&input);
        (ours != theirs).then(|| format!("{input:?}\n  ours:   {ours:?}\n  theirs: {theirs:?}"))
    });
    differing.collect()
}

#[test]
fn texts_are_read_as_helm_reads_them() {
    let found = differences(rows("parse.json", "parsed"), |input| {
        let value = yaml::from_yaml(input.as_text().unwrap().as_bytes()).unwrap();
        json::encode(&value, Escape::Html).unwrap()
    });
    assert!(found.is_empty(), "{} rows differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn values_are_written_as_helm_writes_them() {
    let found = differences(rows("emit.json", "emitted"), |input| {
        yaml::to_yaml(&input.to_value()).unwrap_or_default()
    });
    assert!(found.is_empty(), "{} rows differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_value_that_contains_itself_is_an_error() {
    let map = helm::value::Map::new();
    map.insert("self", map.clone());
    let error = json::encode(&Value::Map(map.clone()), Escape::Html).unwrap_err();
    assert!(error.to_string().contains("encountered a cycle"), "{error}");
    map.remove("self");
}
