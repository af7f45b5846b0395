//! What two values have in common when only time has passed: canonical JSON and digests of it. Decides which fields are left out, nothing else.

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The field names that [`digest`] leaves out wherever they stand: moments, and versions of stored objects.
///
/// They change without anything having happened that a decision depends on, or that a reviewer would call different. Everything that is named
/// so in an observed or planned value must therefore be a time or a resourceVersion; content that comes from outside (rendered objects) is put
/// in by its [`digest_of_everything`].
pub const VOLATILE_FIELDS: [&str; 16] = [
    "At",
    "at",
    "creationTimestamp",
    "deadline",
    "deletionTimestamp",
    "lastHandledReconcileAt",
    "lastTransitionTime",
    "last_handled_reconcile_at",
    "last_transition_time",
    "now",
    "published_at",
    "publishedAt",
    "resourceVersion",
    "resource_version",
    "since",
    "time",
];

/// `sha256:<hex>` of the canonical JSON without [`VOLATILE_FIELDS`].
///
/// # Panics
/// When the value has map keys that are not strings: a mistake in our types, which no input can cause.
pub fn digest(value: &impl Serialize) -> String {
    let mut value = to_value(value);
    leave_out_volatile(&mut value);
    sha256(&canonical(&value))
}

/// `sha256:<hex>` of the canonical JSON, with every field: for content of which nothing may be overlooked.
///
/// # Panics
/// As [`digest`].
pub fn digest_of_everything(value: &impl Serialize) -> String {
    sha256(&canonical(&to_value(value)))
}

/// JSON without blanks, the keys of every object sorted by their bytes: the same text for every order in which they were inserted.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
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
        // Sorted here, because another crate of the build may have switched serde_json to insertion order.
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| name.as_str());
            text.push('{');
            for (position, (name, field)) in fields.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(field, text);
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

fn leave_out_volatile(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(leave_out_volatile),
        Value::Object(fields) => {
            fields.retain(|name, _| !VOLATILE_FIELDS.contains(&name.as_str()));
            fields.values_mut().for_each(leave_out_volatile);
        }
        _ => {}
    }
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("the maps of our types have strings as keys")
}

fn sha256(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests;
