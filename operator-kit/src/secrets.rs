//! What may be told of the API server's answer about a Secret: names, fields and kinds of faults, and no value.
//!
//! Whoever is asked whether a write may be done sees the whole object, also what others have put into it, and may repeat it: admission webhooks and
//! policies. Reads are asked of nobody who sees it.

use std::collections::BTreeSet;

use crds::redaction::{self, MOST};
use http::StatusCode;
use k8s_openapi::ByteString;
use kube::api::{Api, DynamicObject};
use kube::core::response::{Status, StatusCause, StatusDetails};
use serde::de::Error;
use serde_json::Value;

use crate::apply::WRONG_TYPE;
use crate::failure::message_of;
use crate::object::GroupKind;

/// What the reasons of faults of fields begin with (`metav1.CauseType`).
const FAULT_OF_FIELD: &str = "FieldValue";

/// The kinds of faults whose words quote no value (`k8s.io/apimachinery/pkg/util/validation/field`).
const WITHOUT_VALUES: [&str; 4] = ["Forbidden", "Required value", "Too long", "Too many"];

/// What precedes the value where another type was expected (`sigs.k8s.io/structured-merge-diff`, seen with 1.36).
const GOT: &str = ", got ";

/// Where `kubectl apply` keeps the whole object.
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Between texts that are looked through together.
const BETWEEN: &str = "\0";

/// Whether objects of this kind hold what nobody may read.
fn holds_secrets(kind: &GroupKind) -> bool {
    kind.group.is_empty() && kind.kind == "Secret"
}

/// What must not be told of the answer to a write.
pub(crate) enum Guard {
    /// The object holds no secrets.
    Open,
    /// Nobody knows which values the words may repeat: the code alone is told.
    Closed,
    /// Words that say something else than these values.
    Values(BTreeSet<String>),
}

impl Guard {
    /// For a write that has nothing of what is in the object.
    pub(crate) fn of(kind: &GroupKind) -> Self {
        if holds_secrets(kind) { Self::Closed } else { Self::Open }
    }

    /// For a write of `intent` that was refused. The object is read, because it may hold what others have put into it.
    pub(crate) async fn of_apply(kind: &GroupKind, intent: &Value, api: &Api<DynamicObject>, name: &str) -> Self {
        if !holds_secrets(kind) {
            return Self::Open;
        }
        let mut values = BTreeSet::new();
        collect_all(intent, &mut values);
        if values.is_empty() {
            return Self::Closed;
        }
        match api.get_opt(name).await {
            Ok(live) => {
                collect_all(&serde_json::to_value(live).unwrap_or_default(), &mut values);
                Self::Values(values)
            }
            Err(_) => Self::Closed,
        }
    }

    /// An error that may be told.
    pub(crate) fn error(&self, error: kube::Error) -> kube::Error {
        match (self, error) {
            (Self::Open, error) => error,
            (_, kube::Error::Api(status)) => kube::Error::Api(self.status(&status).boxed()),
            // Both quote what they could not read.
            (_, kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) => {
                kube::Error::SerdeError(serde_json::Error::custom("unable to read the answer"))
            }
            // Nobody who says so has seen the object.
            (_, error) => error,
        }
    }

    /// An answer that may be told.
    pub(crate) fn status(&self, status: &Status) -> Status {
        let told = match self {
            Self::Open => return status.clone(),
            Self::Closed => None,
            Self::Values(values) => without_values(status, values),
        };
        told.unwrap_or_else(|| {
            let code =
                StatusCode::from_u16(status.code).map_or_else(|_| status.code.to_string(), |code| code.to_string());
            let words =
                format!("the API server answers {code}; its words are not told, because they may repeat the Secret");
            // Whoever refuses chooses the reason too.
            Status::failure(&words, "").with_code(status.code)
        })
    }
}

/// The API server's answer about a Secret without what is in it; `None` where there is too much to look at.
fn without_values(status: &Status, values: &BTreeSet<String>) -> Option<Status> {
    let message = words_about(status);
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    let mut texts = vec![message.as_str(), status.reason.as_str()];
    for cause in causes {
        // What is told of a fault of a field is among the words.
        let message = if is_of_field(cause) { "" } else { &cause.message };
        texts.extend([&cause.reason, &cause.field, message]);
    }
    let words = texts.join(BETWEEN);
    if words.len() > MOST {
        return None;
    }
    let told = redaction::without(&words, values.iter().map(String::as_str))?;
    let told: Vec<String> = told.split(BETWEEN).map(str::to_owned).collect();
    let [message, reason, causes @ ..] = told.as_slice() else {
        return None;
    };
    let (causes, rest) = causes.as_chunks();
    // A value may have taken what is between two texts with it.
    if told.len() != texts.len() || !rest.is_empty() {
        return None;
    }
    let causes = causes
        .iter()
        .cloned()
        .map(|[reason, field, message]| StatusCause { reason, field, message });
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: causes.collect(),
        retry_after_seconds: 0,
    };
    Some(
        Status::failure(message, reason)
            .with_code(status.code)
            .with_details(details),
    )
}

/// The API server's words about a Secret: faults of fields without what was found there.
fn words_about(status: &Status) -> String {
    let message = message_of(status);
    if message.starts_with(WRONG_TYPE) {
        return without_found_values(&message);
    }
    let Some(details) = status.details.as_ref().filter(|details| !details.causes.is_empty()) else {
        return message;
    };
    if !details.causes.iter().all(is_of_field) {
        return message;
    }
    let mut faults: Vec<String> = details.causes.iter().map(fault).collect();
    faults.sort_unstable();
    faults.dedup();
    format!("Secret {:?} is invalid: {}", details.name, faults.join(", "))
}

fn is_of_field(cause: &StatusCause) -> bool {
    !cause.field.is_empty() && cause.reason.starts_with(FAULT_OF_FIELD)
}

/// What is in a Secret, also as it was when somebody applied it last.
fn collect_all(secret: &Value, values: &mut BTreeSet<String>) {
    let last = secret.pointer(LAST_APPLIED).and_then(Value::as_str);
    let last: Value = last
        .and_then(|last| serde_json::from_str(last).ok())
        .unwrap_or_default();
    for field in ["data", "stringData"] {
        for secret in [secret, &last] {
            collect(secret.get(field).unwrap_or_default(), values);
        }
    }
}

fn collect(value: &Value, values: &mut BTreeSet<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => drop(values.insert(number.to_string())),
        Value::String(text) => {
            let decoded = serde_json::from_value::<ByteString>(value.clone()).ok();
            values.extend(decoded.and_then(|ByteString(bytes)| String::from_utf8(bytes).ok()));
            values.insert(text.clone());
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
    use http::Method;
    use serde_json::json;

    use super::redaction::HIDDEN;
    use super::*;
    use crate::apply::{ApplyError, ApplyOptions, apply};
    use crate::discovery::Discovery;
    use crate::failure::{Class, chain};
    use crate::stub;

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
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login" },
            "data": { "token": "c2VzYW1lIG9wZW4=" },
            "stringData": { "password": "hunter2", "pin": 31337, "all": ["hunter2 and more"] },
        })
    }

    /// The words about a Secret that holds these.
    fn words_about(status: &Status, secret: &Value) -> String {
        let mut values = BTreeSet::new();
        collect_all(secret, &mut values);
        Guard::Values(values).status(status).message
    }

    fn without_values(words: &str, secret: &Value) -> String {
        words_about(&refusal(words, Vec::new()), secret)
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
    fn faults_of_many_fields_are_told_whatever_else_is_said_of_them() {
        let words = format!("Invalid value: {}", "x".repeat(1_000));
        let fields = (0..100).map(|number| format!("data[{number:02}]"));
        let causes: Vec<StatusCause> = fields.map(|field| cause("FieldValueInvalid", &field, &words)).collect();
        let told = words_about(&refusal("invalid", causes), &secret());
        assert!(
            told.starts_with("Secret \"login\" is invalid: data[00]: Invalid value, data[01]"),
            "{told}"
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

    /// Applies the Secret where it is refused with this code and answer, and its reading is answered so.
    async fn applied(intent: &Value, refusal: (u16, Value), live: (u16, Value)) -> ApplyError {
        let client = stub::client(move |asked| {
            stub::discovery(asked).unwrap_or_else(|| {
                assert_eq!(asked.path, "/api/v1/namespaces/fleet/secrets/login");
                match asked.method {
                    Method::PATCH => refusal.clone(),
                    _ => live.clone(),
                }
            })
        });
        let options = ApplyOptions {
            field_manager: "us",
            force: false,
            dry_run: false,
            namespace: "fleet",
            only_new: false,
        };
        let answer = apply(&client, &Discovery::new(client.clone()), intent, &options).await;
        answer.expect_err("a refusal")
    }

    fn denied(words: &str, details: &Value) -> (u16, Value) {
        let message = format!("admission webhook \"strict.example.org\" denied the request: {words}");
        stub::refusal(403, "Forbidden", &message, details)
    }

    /// What others have put into the Secret: now, and before by `kubectl apply`.
    fn live() -> (u16, Value) {
        let before = json!({ "stringData": { "pin": "delphi490" } }).to_string();
        let annotations = json!({ "kubectl.kubernetes.io/last-applied-configuration": before });
        let metadata = json!({ "name": "login", "annotations": annotations });
        let data = json!({ "theirs": "bXljYWxlNDc5" });
        (
            200,
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data }),
        )
    }

    const CODE_ALONE: &str =
        "not allowed: the API server answers 403 Forbidden; its words are not told, because they may repeat the Secret";

    #[tokio::test]
    async fn words_about_an_apply_lose_also_what_others_have_put_into_the_secret() {
        let words = "hunter2, mycale479, bXljYWxlNDc5 and delphi490 are weak";
        let error = applied(&secret(), denied(words, &json!({})), live()).await;
        let told = format!("denied the request: {HIDDEN}, {HIDDEN}, {HIDDEN} and {HIDDEN} are weak");
        assert!(chain(&error).ends_with(&told), "{error}");
    }

    #[tokio::test]
    async fn words_are_not_told_where_nobody_knows_what_they_repeat() {
        let absent = stub::refusal(404, "NotFound", "not found", &json!({}));
        let unread = stub::refusal(403, "Forbidden", "cannot get", &json!({}));
        let mark = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login" } });
        let mut large = secret();
        large["stringData"]["large"] = json!("a".repeat(MOST));
        let (words, long) = ("mycale479 is weak", "mycale479".repeat(MOST));
        for (intent, words, live) in [
            (&mark, words, live()),
            (&secret(), words, unread),
            (&large, words, live()),
            (&secret(), long.as_str(), absent.clone()),
        ] {
            let error = applied(intent, denied(words, &json!({})), live).await;
            assert_eq!(chain(&error), CODE_ALONE);
        }
        let error = applied(&secret(), denied("a Secret needs an owner", &json!({})), absent).await;
        assert!(chain(&error).ends_with("a Secret needs an owner"), "{error}");
    }

    #[tokio::test]
    async fn a_conflict_that_a_webhook_tells_of_names_no_value() {
        let cause = json!({ "reason": "FieldManagerConflict", "field": ".data.mycale479", "message": "conflict with \"hunter2\"" });
        let refusal = stub::refusal(409, "Conflict", "mycale479", &json!({ "causes": [cause] }));
        let ApplyError::Conflict { conflicts, message } = applied(&secret(), refusal, live()).await else {
            panic!("a conflict is none");
        };
        assert_eq!(message, HIDDEN);
        assert_eq!(conflicts[0].field, format!(".data.{HIDDEN}"));
        assert_eq!(conflicts[0].manager, HIDDEN);
    }

    #[tokio::test]
    async fn what_helps_is_known_also_where_the_words_are_not_told() {
        let mark = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login" } });
        let wrong_type = format!("{WRONG_TYPE} (/login; /v1): .data: expected map, got hunter2");
        let ending = json!({ "causes": [{ "reason": "NamespaceTerminating", "message": "is being terminated" }] });
        for (refusal, class) in [
            (stub::refusal(500, "", &wrong_type, &json!({})), Class::Terminal),
            (stub::refusal(403, "Forbidden", "hunter2", &ending), Class::Waiting),
            (
                stub::refusal(500, "InternalError", "hunter2", &json!({})),
                Class::Transient,
            ),
        ] {
            let error = applied(&mark, refusal, live()).await;
            assert_eq!(error.class(), class, "{error}");
            assert!(!format!("{} {error:?}", chain(&error)).contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn answers_that_cannot_be_read_are_not_quoted() {
        let unread = || serde_json::from_str::<u8>("\"hunter2\"").expect_err("no number");
        let secret = GroupKind::new("", "Secret");
        assert!(chain(&kube::Error::SerdeError(unread())).contains("hunter2"));
        let told = chain(&Guard::of(&secret).error(kube::Error::SerdeError(unread())));
        assert!(
            !told.contains("hunter2") && told.contains("unable to read the answer"),
            "{told}"
        );
    }
}
