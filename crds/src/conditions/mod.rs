//! Conditions: what an operator says about an object, in the shape of Cluster API v1beta1.
//!
//! A planner states [`Finding`]s, which know no time; [`merge`] turns them into [`Condition`]s. Both are computed anew on every
//! pass, so nothing is latched: a condition that is not stated again is gone.

mod lint;
mod merge;
mod pause;
mod summary;
mod vocabulary;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use self::{
    lint::{Flaw, lint},
    merge::merge,
    pause::paused,
    summary::{summarise_ready, with_ready},
    vocabulary::{ConditionType, Reason},
};

/// Longest message in bytes; what is longer is cut at a character. Keeps a status with many failures far from the size limit of an object.
pub const MESSAGE_BYTES: usize = 1024;

/// Whether a condition holds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, strum::Display,
)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It could not be found out.
    #[serde(other)]
    Unknown,
}

/// How bad it is that a condition does not hold.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, strum::Display,
)]
pub enum Severity {
    /// Somebody must act.
    Error,
    /// May pass by itself, may not.
    Warning,
    /// Passes by itself.
    Info,
}

/// One statement about an object, and since when it has been so.
// Type and reason are text here, because a status may have been written by another version or by the Go operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition in CamelCase, such as Ready.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the condition holds: True, False or Unknown.
    #[schemars(with = "String")]
    pub status: ConditionStatus,
    /// How bad it is that the condition does not hold: Error (somebody must act), Warning or Info. Set only when status is False.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_severity"
    )]
    #[schemars(with = "Option<String>")]
    pub severity: Option<Severity>,
    /// When the status last changed.
    #[serde(deserialize_with = "known_time")]
    pub last_transition_time: Time,
    /// The cause, as one word in CamelCase for programs; docs/reference/reasons.md says of each what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The cause, in words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The Go operator may write an empty severity; an unknown one is no reason to refuse the object.
fn known_severity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Severity>, D::Error> {
    Ok(match Option::<String>::deserialize(deserializer)?.as_deref() {
        Some("Error") => Some(Severity::Error),
        Some("Warning") => Some(Severity::Warning),
        Some("Info") => Some(Severity::Info),
        _ => None,
    })
}

/// The API server takes texts for times that are none, such as an offset of 99 hours. A whole object must not be unreadable for that: what has
/// no time has been so since ever.
pub(crate) fn known_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(Time(text.parse().unwrap_or(Timestamp::UNIX_EPOCH)))
}

/// The same for a time that need not be there: a text that is none counts as absent.
pub(crate) fn known_time_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Time))
}

/// What a planner found out: a condition without its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    #[serde(rename = "type")]
    type_: ConditionType,
    status: ConditionStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    severity: Option<Severity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    message: String,
}

impl Finding {
    /// The condition holds, and there is nothing to add.
    pub fn holds(type_: ConditionType) -> Self {
        Self {
            type_,
            status: ConditionStatus::True,
            severity: None,
            reason: None,
            message: String::new(),
        }
    }

    /// The condition holds for a reason worth telling, as `Reconciling` and `Stalled` always do.
    pub fn holds_because(type_: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason: Some(reason),
            message: cut(&message.into()),
            ..Self::holds(type_)
        }
    }

    /// The condition does not hold. The message speaks to the person who must act; it is cut at [`MESSAGE_BYTES`].
    pub fn fails(type_: ConditionType, severity: Severity, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            type_,
            status: ConditionStatus::False,
            severity: Some(severity),
            reason: Some(reason),
            message: cut(&message.into()),
        }
    }

    /// It could not be found out whether the condition holds.
    pub fn unknown(type_: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            type_,
            status: ConditionStatus::Unknown,
            severity: None,
            reason: Some(reason),
            message: cut(&message.into()),
        }
    }

    /// What the statement is about.
    pub fn condition_type(&self) -> ConditionType {
        self.type_
    }

    /// Whether it holds.
    pub fn status(&self) -> ConditionStatus {
        self.status
    }

    /// Set exactly when the status is False.
    pub fn severity(&self) -> Option<Severity> {
        self.severity
    }

    /// Why; always set unless the status is True.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// Why, in words; may be empty.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The condition of this type, if it was written.
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == type_.as_str())
}

/// Whether a condition of this type was written and holds.
pub fn is_true(conditions: &[Condition], type_: ConditionType) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Ready first, then by name: the order in which Cluster API writes conditions.
fn position(type_: &str) -> (bool, &str) {
    (type_ != ConditionType::Ready.as_str(), type_)
}

/// The message as [`one_line`] of [`MESSAGE_BYTES`]. Findings do this themselves; it is for messages beside them.
pub fn cut(message: &str) -> String {
    one_line(message, MESSAGE_BYTES)
}

/// Words that may be somebody else's, to be told: on one line, without what would move the cursor of a terminal or turn the direction of text. What is
/// longer than so many bytes ends in an ellipsis.
///
/// Charts, sources and servers choose most of what is told, and terminals obey what is in it. So everything passes here on its way to people: what is
/// said of objects, in events, and of errors.
pub fn one_line(words: &str, bytes: usize) -> String {
    // The marks that Unicode has for embedding, overriding and isolating directions.
    let turns = |letter: char| matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut line = String::new();
    for word in words.split(|letter: char| letter.is_whitespace() || letter.is_control() || turns(letter)) {
        if line.len() > bytes {
            break;
        }
        if !line.is_empty() && !word.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    cut_at(line, bytes)
}

fn cut_at(mut message: String, bytes: usize) -> String {
    const ELLIPSIS: &str = "...";
    if message.len() > bytes {
        message.truncate(message.floor_char_boundary(bytes.saturating_sub(ELLIPSIS.len())));
        message.push_str(ELLIPSIS);
    }
    message
}

#[cfg(test)]
mod tests;
