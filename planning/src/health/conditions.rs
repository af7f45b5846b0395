//! Reading `status.conditions`, of both shapes: with and without Cluster API's severity. Decides what an untrue condition means.

use serde_json::Value;

use super::Health;

/// The condition of a type, when the object has one.
pub(super) fn condition<'object>(object: &'object Value, kind: &str) -> Option<&'object Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| text(condition, "type") == kind)
}

pub(super) fn is_true(condition: &Value) -> bool {
    text(condition, "status") == "True"
}

pub(super) fn is_false(condition: &Value) -> bool {
    text(condition, "status") == "False"
}

/// A field of a condition; absent is empty.
pub(super) fn text<'object>(condition: &'object Value, field: &str) -> &'object str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The condition in words: its message, else its reason, else its type and status.
pub(super) fn explained(condition: &Value) -> String {
    match (text(condition, "reason"), text(condition, "message")) {
        ("", "") => format!("{} is {}", text(condition, "type"), text(condition, "status")),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// A condition that is to become True. False with Cluster API's severity `Error` will not get there by waiting.
pub(super) fn must_be_true(condition: &Value) -> Health {
    if is_true(condition) {
        Health::current()
    } else if is_false(condition) && text(condition, "severity") == "Error" {
        Health::failed(explained(condition))
    } else {
        Health::in_progress(explained(condition))
    }
}
