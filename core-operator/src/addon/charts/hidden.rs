//! What is in words of others that nobody may read of what the charts of a cluster are made with: what somebody has given them, what they drew at random, and
//! what Secrets hold that they looked up. Charts, Helm and API servers repeat values in what they say.

use std::collections::BTreeSet;
use std::fmt;
use std::slice;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::redaction;
use planning::objects::Rendering;
use serde_json::Value;

use crate::lanes::{Failed, Unrendered};

/// What is said where nobody can tell what of the words may be said.
const UNTOLD: &str = "its words are not told, because they may repeat values that the Cluster takes from a Secret or ConfigMap, \
     that its charts drew at random, or that they looked up in Secrets";

/// What was given, what was drawn and what was looked up, apart. Clones share it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Hidden(Vec<Arc<BTreeSet<String>>>);

impl fmt::Debug for Hidden {
    /// How much, alone.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Hidden").field(&self.values().count()).finish()
    }
}

impl Hidden {
    /// Of these values.
    pub(super) fn of<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut hidden = BTreeSet::new();
        for value in values {
            collect(value, &mut hidden);
        }
        Self::default().with(&Self(vec![Arc::new(hidden)]))
    }

    /// Of what these Secrets and lists of Secrets hold.
    pub(super) fn of_secrets<'s>(secrets: impl IntoIterator<Item = &'s Value>) -> Self {
        let mut hidden = BTreeSet::new();
        for secret in secrets {
            let items = secret.get("items").and_then(Value::as_array);
            let each = items.map_or_else(|| slice::from_ref(secret), Vec::as_slice);
            let data = each.iter().filter_map(|secret| secret.get("data")?.as_object());
            for encoded in data.flat_map(|data| data.values()).filter_map(Value::as_str) {
                collect_data(encoded, &mut hidden);
            }
        }
        Self::default().with(&Self(vec![Arc::new(hidden)]))
    }

    /// This and that.
    pub(super) fn with(&self, other: &Self) -> Self {
        let mut sources = self.0.clone();
        let others = other.0.iter().filter(|source| !source.is_empty());
        for source in others {
            if !sources.contains(source) {
                sources.push(Arc::clone(source));
            }
        }
        Self(sources)
    }

    fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|source| source.iter()).map(String::as_str)
    }

    /// Words that may be told.
    pub(crate) fn without(&self, words: &str) -> String {
        if self.0.is_empty() {
            return words.to_owned();
        }
        redaction::without(words, self.values()).unwrap_or_else(|| UNTOLD.to_owned())
    }
}

impl Hidden {
    /// A rendering with words that may be told.
    pub(super) fn rendering(&self, rendering: Rendering) -> Rendering {
        match rendering {
            Rendering::Failed { message, transient } => Rendering::Failed {
                message: self.without(&message),
                transient,
            },
            Rendering::Awaited { failed } => Rendering::Awaited {
                failed: failed.map(|message| self.without(&message)),
            },
            Rendering::NotRendered | Rendering::Rendered { .. } => rendering,
        }
    }

    /// Why there is none, in words that may be told.
    pub(super) fn unrendered(&self, unrendered: Unrendered) -> Unrendered {
        match unrendered {
            Unrendered::Awaited => Unrendered::Awaited,
            Unrendered::Failed(failed) => Unrendered::Failed(Failed {
                message: self.without(&failed.message),
                ..failed
            }),
        }
    }
}

/// Texts and numbers; of the names of values nobody makes a secret.
fn collect(value: &Value, hidden: &mut BTreeSet<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => drop(hidden.insert(number.to_string())),
        Value::String(text) => drop(hidden.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, hidden)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, hidden)),
    }
}

/// What a Secret holds under one key, as templates decode it, cut its ends and take it apart.
fn collect_data(encoded: &str, hidden: &mut BTreeSet<String>) {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let Ok(text) = String::from_utf8(bytes) else {
        hidden.insert(encoded.to_owned());
        return;
    };
    if let Ok(parts @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(&text) {
        collect(&parts, hidden);
    }
    hidden.insert(text.trim().to_owned());
    hidden.insert(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_lose_what_was_given_and_stay_otherwise() {
        let given = json!({ "password": "sesame-open", "users": [{ "pin": 4711 }], "on": true });
        let hidden = Hidden::of([&given]);
        assert_eq!(
            hidden.without("password sesame-open and pin 4711 are true in c2VzYW1lLW9wZW4="),
            "password (not shown) and pin (not shown) are true in (not shown)"
        );
        assert_eq!(Hidden::default().without("sesame-open"), "sesame-open");
        assert!(!format!("{hidden:?}").contains("sesame"));
    }

    #[test]
    fn words_lose_what_secrets_hold_however_a_template_takes_it_out() {
        let secret = json!({ "metadata": { "name": "login" }, "data": {
            "password": STANDARD.encode("sesame\n"),
            "config": STANDARD.encode(r#"{"auths":{"registry":{"token":"salamis"}}}"#),
            "key": STANDARD.encode([0xff, 0xfe, 0x80]),
        } });
        let hidden = Hidden::of_secrets([&json!({ "items": [secret] }), &Value::Null, &secret]);
        assert_eq!(
            hidden.without("login: sesame, c2VzYW1lCg==, c2VzYW1l, salamis of registry, //6A"),
            "login: (not shown), (not shown), (not shown), (not shown) of registry, (not shown)"
        );
    }

    #[test]
    fn nothing_is_told_where_too_much_was_given_to_look_for() {
        let hidden = Hidden::of([&json!("x".repeat(redaction::MOST + 1))]);
        assert_eq!(hidden.without("whatever"), UNTOLD);
    }

    #[test]
    fn what_comes_from_several_sources_is_hidden_together() {
        let [given, drawn] = ["sesame-open", "salamis-480"].map(|value| Hidden::of([&json!(value)]));
        let both = given.with(&drawn).with(&Hidden::default()).with(&given);
        assert_eq!(
            both.without("sesame-open, salamis-480, and 490"),
            "(not shown), (not shown), and 490"
        );
        assert_eq!(both, given.with(&drawn));
    }
}
