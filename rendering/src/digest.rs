//! Digests of JSON: equal for equal data, whatever the order in which keys were inserted.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// `sha256:<hex>` of the canonical JSON: no blanks, keys sorted by their bytes.
pub(crate) fn of_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    of_bytes(text.as_bytes())
}

/// `sha256:<hex>` of bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(entries) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            text.push('{');
            for (position, (key, value)) in entries.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_canonical(&Value::from(key.as_str()), text);
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        scalar => {
            // Writing to a string cannot fail.
            let _ = write!(text, "{scalar}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digests_are_those_of_canonical_json() {
        let value = json!({ "b": [80, 443, [], {}], "a": { "z": "\"", "y": null, "x": 1.5 }, "": true });
        let canonical = r#"{"":true,"a":{"x":1.5,"y":null,"z":"\""},"b":[80,443,[],{}]}"#;
        assert_eq!(of_json(&value), of_bytes(canonical.as_bytes()));
    }

    #[test]
    fn what_is_split_in_another_way_has_another_digest() {
        for (one, other) in [
            (json!([80, 443]), json!([804, 43])),
            (json!([1, [2]]), json!([[1, 2]])),
            (json!(["a", "b"]), json!(["ab"])),
            (json!(["a,b"]), json!(["a", "b"])),
            (json!({ "a": 1, "b": 2 }), json!({ "a": { "b": 2 } })),
        ] {
            assert_ne!(of_json(&one), of_json(&other), "{one} {other}");
        }
    }
}
