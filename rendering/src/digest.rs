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
