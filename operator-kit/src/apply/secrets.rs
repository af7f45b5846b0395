//! What may be told of the API server's answer about a Secret: names, fields and kinds of faults, and no value. Pure.

use crds::redaction;
use k8s_openapi::ByteString;
use kube::core::GroupVersionKind;
use kube::core::response::{Status, StatusCause};
use serde_json::Value;

use super::answer::{WRONG_TYPE, causes};
use crate::failure::message_of;

/// What the reasons of faults of fields begin with (`metav1.CauseType`).
const FAULT_OF_FIELD: &str = "FieldValue";

/// The kinds of faults whose words quote no value (`k8s.io/apimachinery/pkg/util/validation/field`).
const WITHOUT_VALUES: [&str; 4] = ["Forbidden", "Required value", "Too long", "Too many"];

/// What precedes the value where another type was expected (`sigs.k8s.io/structured-merge-diff`, seen with 1.36).
const GOT: &str = ", got ";

/// Whether objects of this kind hold what nobody may read.
pub(super) fn holds_secrets(gvk: &GroupVersionKind) -> bool {
    gvk.group.is_empty() && gvk.kind == "Secret"
}

/// The API server's words about a Secret without its values.
pub(super) fn words_about(status: &Status, secret: &Value) -> String {
    let message = message_of(status);
    if message.starts_with(WRONG_TYPE) {
        return without_found_values(&message);
    }
    let causes = causes(status);
    let of_fields = |cause: &StatusCause| !cause.field.is_empty() && cause.reason.starts_with(FAULT_OF_FIELD);
    if !causes.is_empty() && causes.iter().all(of_fields) {
        let mut faults: Vec<String> = causes.iter().map(fault).collect();
        faults.sort_unstable();
        faults.dedup();
        let name = secret.pointer("/metadata/name").unwrap_or_default();
        return format!("Secret {name} is invalid: {}", faults.join(", "));
    }
    without_values(&message, secret)
}

/// Words of others without what is in the Secret: plain, encoded or escaped, whole or in part.
pub(super) fn without_values(words: &str, secret: &Value) -> String {
    let mut values = Vec::new();
    for field in ["data", "stringData"] {
        collect(secret.get(field).unwrap_or_default(), &mut values);
    }
    redaction::without(words, values.iter().map(String::as_str))
}

fn collect(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => values.push(number.to_string()),
        Value::String(text) => {
            let decoded = serde_json::from_value::<ByteString>(value.clone()).ok();
            values.extend(decoded.and_then(|ByteString(bytes)| String::from_utf8(bytes).ok()));
            values.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, values)),
    }
}

/// A field and what is wrong with it; most kinds of faults quote the value.
fn fault(StatusCause { field, message, .. }: &StatusCause) -> String {
    let kind = message.split(": ").next().unwrap_or_default();
    let told = if WITHOUT_VALUES.contains(&kind) { message } else { kind };
    format!("{field}: {told}")
}

/// The first line and those about further fields, each up to what was found there. A value may have lines of its own.
fn without_found_values(message: &str) -> String {
    let told = |line: &str| line.split(GOT).next().unwrap_or_default().to_owned();
    let mut lines = message.lines();
    let first = lines.next().map(told);
    let about_fields = lines.filter(|line| line.trim_start().starts_with('.')).map(told);
    first.into_iter().chain(about_fields).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;
    use serde_json::json;

    use super::redaction::HIDDEN;
    use super::*;

    /// Parts of values that are longer are not told.
    const SHORTEST_PART: usize = 16;

    fn cause(reason: &str, field: &str, message: &str) -> StatusCause {
        StatusCause {
            reason: reason.to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
        }
    }

    fn refusal(message: &str, causes: Vec<StatusCause>) -> Status {
        let details = StatusDetails {
            name: "login".to_owned(),
            group: String::new(),
            kind: "Secret".to_owned(),
            uid: String::new(),
            causes,
            retry_after_seconds: 0,
        };
        Status::failure(message, "Invalid").with_details(details)
    }

    fn secret() -> Value {
        json!({
            "metadata": { "name": "login" },
            "data": { "token": "c2VzYW1lIG9wZW4=" },
            "stringData": { "password": "hunter2", "pin": 31337, "all": ["hunter2 and more"] },
        })
    }

    #[test]
    fn wrong_types_are_told_without_what_was_found() {
        let one = "failed to create typed patch object (fleet/login; /v1, Kind=Secret): .stringData.pin: expected string, got &value.valueUnstructured{Value:31337}";
        assert_eq!(
            words_about(&refusal(one, Vec::new()), &secret()),
            "failed to create typed patch object (fleet/login; /v1, Kind=Secret): .stringData.pin: expected string"
        );
        let several = "failed to create typed patch object (fleet/login; /v1, Kind=Secret): errors:\n  .stringData.pin: expected string, got &value.valueUnstructured{Value:31337}\n  .stringData.all: expected string, got &{[hunter2\nand more]}";
        assert_eq!(
            words_about(&refusal(several, Vec::new()), &secret()),
            "failed to create typed patch object (fleet/login; /v1, Kind=Secret): errors:\n  .stringData.all: expected string\n  .stringData.pin: expected string"
        );
    }

    #[test]
    fn faults_of_fields_are_told_by_their_kinds() {
        let causes = vec![
            cause(
                "FieldValueInvalid",
                "type",
                "Invalid value: \"hunter2\": field is immutable",
            ),
            cause(
                "FieldValueForbidden",
                "data",
                "Forbidden: field is immutable when `immutable` is set",
            ),
        ];
        let message = "Secret \"login\" is invalid: [type: Invalid value: \"hunter2\": field is immutable, data: Forbidden: field is immutable when `immutable` is set]";
        assert_eq!(
            words_about(&refusal(message, causes), &secret()),
            "Secret \"login\" is invalid: data: Forbidden: field is immutable when `immutable` is set, type: Invalid value"
        );
    }

    #[test]
    fn words_of_others_lose_the_values_and_stay_otherwise() {
        let denied = |words: &str| {
            let message = format!("admission webhook \"strict.example.org\" denied the request: {words}");
            let told = words_about(&refusal(&message, vec![cause("", "", words)]), &secret());
            told.split_once("request: ").map(|(_, told)| told.to_owned())
        };
        let cases = [
            ("hunter2 is no password", "(not shown) is no password"),
            ("31337 and sesame open", "(not shown) and (not shown)"),
            ("c2VzYW1lIG9wZW4= is weak", "(not shown) is weak"),
            // What is given as text the API server holds encoded.
            ("data is {password: aHVudGVyMg==}", "data is {password: (not shown)}"),
            (
                "see https://me:sesame%20open@example.org",
                "see https://me:(not shown)@example.org",
            ),
            ("hunter2 and more", "(not shown)"),
            ("a Secret needs an owner", "a Secret needs an owner"),
        ];
        for (words, told) in cases {
            assert_eq!(denied(words).as_deref(), Some(told));
        }
    }

    #[test]
    fn a_key_of_many_lines_is_hidden_however_it_is_quoted() {
        let lines = [
            "-----BEGIN EC PRIVATE KEY-----",
            "MHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49",
            "AwEHoUQDQgAEPR3tU2Fta9ktY+6P9G0cWO+0kETA6SFs38GecTyudlHz6xvCdz8q",
            "-----END EC PRIVATE KEY-----",
        ];
        let key = lines.join("\n") + "\n";
        let secret = json!({ "data": { "tls.key": ByteString(key.clone().into_bytes()) } });
        let middle = &lines[1][20..50];
        for quoted in [
            key.clone(),
            format!("{key:?}"),
            json!({ "key": key }).to_string(),
            json!(json!({ "key": key }).to_string()).to_string(),
            key.replace('\n', "\r\n"),
            format!("{:?}", &key[..120]),
            lines[2].to_owned(),
            format!("...{middle}..."),
        ] {
            let told = without_values(&format!("the key {quoted} is weak"), &secret);
            for line in &lines[1..3] {
                let parts = line.as_bytes().windows(SHORTEST_PART);
                for part in parts.map(|part| std::str::from_utf8(part).unwrap()) {
                    assert!(!told.contains(part), "{told}");
                }
            }
            assert!(told.starts_with("the key ") && told.ends_with(" is weak"), "{told}");
            assert!(told.contains(HIDDEN), "{told}");
        }
    }

    #[test]
    fn a_short_value_with_quotes_is_hidden_in_its_escaped_form() {
        let secret = json!({ "stringData": { "password": "pa\"ss\nwd" } });
        let told = without_values(r#"password "pa\"ss\nwd" is weak"#, &secret);
        assert_eq!(told, format!(r#"password "{HIDDEN}" is weak"#));
    }
}
