//! `docs/reference/api.md` is what the generated CRDs say, as tables for people.

use std::fmt::Write as _;
use std::{env, fs, path::PathBuf};

use crds::{
    conditions::{ConditionType, Reason},
    manifests::custom_resource_definitions,
};
use serde_json::Value;
use strum::IntoEnumIterator;

/// It is among the objects that the API server has to accept.
const EXAMPLE: &str = include_str!("objects/good/stack-example.yaml");

#[test]
fn the_reference_of_the_api_is_the_generated_one() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/api.md");
    let text = reference();
    if env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|value| value == "1") {
        fs::write(&path, &text).expect("the file can be written");
    }
    assert_eq!(
        fs::read_to_string(&path).ok().as_deref(),
        Some(text.as_str()),
        "not as generated\nrun: STACKWRIGHT_REGENERATE=1 cargo test -p crds --test reference"
    );
}

/// Each has a row that says what to do, or is named as one that this version does not use.
#[test]
fn every_word_of_a_condition_is_explained() {
    let guide = include_str!("../../docs/reference/operating.md");
    let explained = |word: &str| {
        let rows = guide
            .lines()
            .filter(|line| line.starts_with(&format!("| `{word}` |")))
            .count();
        let is_for_later = [format!("`{word}`,"), format!("`{word}`.")]
            .iter()
            .any(|named| guide.contains(named));
        rows == 1 || rows == 0 && is_for_later || word == "Paused" && rows == 2
    };
    let types = ConditionType::iter().map(ConditionType::as_str);
    let words = types.chain(Reason::iter().map(Reason::as_str));
    let missing: Vec<_> = words.filter(|word| !explained(word)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "in docs/reference/operating.md");
}

fn reference() -> String {
    let mut text = format!(
        "# Reference of the API\n\n<!-- Generated from the crate crds; do not edit. -->\n\n\
         What a provider of clusters writes:\n\n```yaml\n{EXAMPLE}```\n\n\
         `kubectl get clusterstacks,clusterstackreleases` shows what comes of it; [operating.md](operating.md) says what the words there mean, and \
         what to do.\n\n\
         Fields marked * are required. A path ending in `[]` is an item of a list. What is marked \"Not in this version\" can be written, \
         because later versions act on it.\n"
    );
    for crd in custom_resource_definitions() {
        let crd = serde_json::to_value(crd).expect("a CRD is JSON");
        let version = &crd["spec"]["versions"][0];
        let schema = &version["schema"]["openAPIV3Schema"];
        let names = &crd["spec"]["names"];
        writeln!(text, "\n## {}\n", word(&names["kind"])).expect("a String takes text");
        writeln!(text, "{}\n", word(&schema["description"])).expect("a String takes text");
        writeln!(
            text,
            "`{}/{}`, short name `{}`.\n",
            word(&crd["spec"]["group"]),
            word(&version["name"]),
            word(&names["shortNames"][0])
        )
        .expect("a String takes text");
        for part in ["spec", "status"] {
            let mut rows = Vec::new();
            rows_of(&schema["properties"][part], part, false, &mut rows);
            writeln!(text, "| field | type | default | meaning |\n|---|---|---|---|").expect("a String takes text");
            // The first row is the part itself.
            for row in rows.iter().skip(1) {
                writeln!(text, "{row}").expect("a String takes text");
            }
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn rows_of(schema: &Value, path: &str, required: bool, rows: &mut Vec<String>) {
    let star = if required { "*" } else { "" };
    let default = schema
        .get("default")
        .map(|default| format!("`{default}`"))
        .unwrap_or_default();
    let meaning = word(&schema["description"]).replace('\n', " ").replace('|', "\\|");
    rows.push(format!("| `{path}`{star} | {} | {default} | {meaning} |", kind(schema)));
    // An ObjectReference explains itself in the reference of Kubernetes.
    if schema.get("x-kubernetes-map-type").is_some() {
        return;
    }
    let needed: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        rows_of(field, &format!("{path}.{name}"), needed.contains(&name.as_str()), rows);
    }
    if schema["items"]["properties"].is_object() {
        let needed: Vec<&str> = schema["items"]["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, field) in schema["items"]["properties"].as_object().into_iter().flatten() {
            rows_of(
                field,
                &format!("{path}[].{name}"),
                needed.contains(&name.as_str()),
                rows,
            );
        }
    }
}

fn kind(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "number or text".to_owned();
    }
    match (word(&schema["type"]), word(&schema["items"]["type"])) {
        ("array", items) => format!("list of {items}"),
        (kind, _) => kind.to_owned(),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
