//! What is in words of others that nobody may read of what the charts of a cluster are made with: what somebody has given them, and what they drew
//! at random. Charts, Helm and API servers repeat values in what they say.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crds::redaction;
use planning::objects::Rendering;
use serde_json::Value;

use crate::lanes::{Failed, Unrendered};

/// What is said where nobody can tell what of the words may be said.
const UNTOLD: &str = "its words are not told, because they may repeat values that the Cluster takes from a Secret or ConfigMap, or that its charts drew at random";

/// What was given and what was drawn, apart. Clones share it.
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
