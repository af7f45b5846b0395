use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::next::Next;

#[test]
fn canonical_json_is_compact_and_sorted() {
    let value: Value = serde_json::from_str(r#"{ "b": [1, {"d": null, "c": "\u00e4\n"}], "a": 1.50 }"#).expect("JSON");
    assert_eq!(canonical(&value), r#"{"a":1.5,"b":[1,{"c":"ä\n","d":null}]}"#);
}

/// The expected text is what `printf '{"a":1}' | sha256sum` prints.
#[test]
fn a_digest_names_its_algorithm() {
    assert_eq!(
        digest(&json!({"a": 1})),
        "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    );
}

#[test]
fn times_and_resource_versions_change_nothing() {
    let early =
        json!({"name": "a", "since": "2026-01-01T00:00:00Z", "parts": [{"resourceVersion": "1", "state": "ready"}]});
    let late =
        json!({"name": "a", "since": "2026-02-01T00:00:00Z", "parts": [{"resourceVersion": "2", "state": "ready"}]});
    let other =
        json!({"name": "a", "since": "2026-01-01T00:00:00Z", "parts": [{"resourceVersion": "1", "state": "broken"}]});
    assert_eq!(digest(&early), digest(&late));
    assert_ne!(digest(&early), digest(&other));
    assert_ne!(digest_of_everything(&early), digest_of_everything(&late));
}

#[test]
fn when_to_look_again_is_a_moment_like_any_other() {
    let at = |second| Next::At(Timestamp::from_second(second).expect("a moment"));
    assert_eq!(digest(&at(1)), digest(&at(2)));
    assert_ne!(digest(&at(1)), digest(&Next::Await));
}

/// Any JSON, as text so that the order of keys can be chosen.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Halves, because the reader of serde_json is not exact in the last place of longer fractions.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 2.0)),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(field_name(), inner, 0..5).prop_map(Value::from_iter),
        ]
    })
}

fn field_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,4}",
        ".{0,4}",
        Just("time".to_owned()),
        Just("resourceVersion".to_owned())
    ]
}

/// The same value with the keys of every object written backwards.
fn backwards(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(backwards).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .iter()
                .map(|(name, field)| format!("{}: {}", Value::from(name.as_str()), backwards(field)))
                .collect();
            fields.reverse();
            format!("{{{}}}", fields.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

proptest! {
    #[test]
    fn the_order_of_keys_does_not_matter(value in value()) {
        let turned: Value = serde_json::from_str(&backwards(&value)).expect("still JSON");
        prop_assert_eq!(digest(&turned), digest(&value));
        prop_assert_eq!(digest_of_everything(&turned), digest_of_everything(&value));
    }

    #[test]
    fn canonical_json_is_the_same_value(value in value()) {
        let back: Value = serde_json::from_str(&canonical(&value)).expect("canonical JSON is JSON");
        prop_assert_eq!(canonical(&back), canonical(&value));
    }

    #[test]
    fn another_field_is_another_digest(value in value(), name in "[a-z]{5,8}") {
        let mut fields = Map::new();
        fields.insert("value".to_owned(), value);
        let before = digest(&fields);
        fields.insert(name, Value::Null);
        prop_assert_ne!(digest(&fields), before);
    }
}
