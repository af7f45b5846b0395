//! The oracle: what must be true of the conditions of any status that we write.

use std::collections::BTreeSet;

use strum::Display;

use super::{Condition, ConditionStatus, ConditionType, MESSAGE_BYTES, Reason, find, position, summary};

/// One rule that a list of conditions breaks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Display)]
pub enum Flaw {
    /// There is no Ready, so nobody can wait for the object.
    #[strum(to_string = "there is no condition Ready")]
    ReadyMissing,
    /// `Reconciling` says "wait", `Stalled` says "do not": kstatus could only guess.
    #[strum(to_string = "both Reconciling and Stalled are True")]
    ReconcilingAndStalled,
    /// A stalled object must not look usable.
    #[strum(to_string = "Stalled is True, but Ready is not False")]
    StalledButNotFalse,
    /// A status that is not the last word must say that work goes on.
    #[strum(to_string = "Ready is Unknown, but Reconciling is not True")]
    UnknownWithoutReconciling,
    /// The spec changed since it was looked at, and nothing says that work goes on.
    #[strum(to_string = "observedGeneration is behind, but Reconciling is not True")]
    BehindWithoutReconciling,
    /// A status cannot know of a spec that does not exist yet.
    #[strum(to_string = "observedGeneration is newer than the object")]
    ObservedTheFuture,
    /// `Reconciling`, `Stalled` and `Paused` are present only when True.
    #[strum(to_string = "{0} is present, but not True")]
    PresentButNotTrue(ConditionType),
    /// Two statements about the same thing.
    #[strum(to_string = "{0} is there twice")]
    Duplicate(String),
    /// Ready first, then by name: same facts, same bytes.
    #[strum(to_string = "not sorted: {0}")]
    Unsorted(String),
    /// A word outside the vocabulary.
    #[strum(to_string = "unknown type {0}")]
    UnknownType(String),
    /// A word outside the vocabulary.
    #[strum(to_string = "{0} has the unknown reason {1}")]
    UnknownReason(String, String),
    /// Whoever sees False or Unknown asks why.
    #[strum(to_string = "{0} has no reason")]
    ReasonMissing(String),
    /// Severity is set exactly when the status is False.
    #[strum(to_string = "{0} has no severity though it is False, or one though it is not")]
    SeverityMismatch(String),
    /// The message is longer than [`MESSAGE_BYTES`].
    #[strum(to_string = "the message of {0} is too long")]
    MessageTooLong(String),
    /// Times in Kubernetes are whole seconds; anything else would differ after every read.
    #[strum(to_string = "the time of {0} has fractions of a second")]
    FractionalTime(String),
    /// Ready does not follow from the others.
    #[strum(to_string = "Ready is not the summary of the other conditions")]
    ReadyIsNotTheSummary,
    /// Whoever looks at Ready alone must learn that nobody works on the object.
    #[strum(to_string = "Paused is True, but Ready does not give its reason and message")]
    ReadyHidesThePause,
}

/// Every rule that the conditions break; empty when all is well.
///
/// `generation` is that of the object at the moment of writing, `observed_generation` the one to be written; an object or a status that
/// has none counts as 0.
pub fn lint(conditions: &[Condition], generation: i64, observed_generation: i64) -> Vec<Flaw> {
    let mut flaws: Vec<Flaw> = conditions.iter().flat_map(flaws_of_one).collect();
    flaws.extend(flaws_of_list(conditions));
    flaws.extend(flaws_of_story(conditions, generation, observed_generation));
    flaws
}

fn flaws_of_one(condition: &Condition) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let name = &condition.type_;
    match name.parse::<ConditionType>() {
        Err(_) => flaws.push(Flaw::UnknownType(name.clone())),
        Ok(type_) if type_.is_only_ever_true() => {
            if condition.status != ConditionStatus::True {
                flaws.push(Flaw::PresentButNotTrue(type_));
            }
            if condition.reason.is_none() {
                flaws.push(Flaw::ReasonMissing(name.clone()));
            }
        }
        Ok(_) if condition.status != ConditionStatus::True && condition.reason.is_none() => {
            flaws.push(Flaw::ReasonMissing(name.clone()));
        }
        Ok(_) => {}
    }
    if let Some(reason) = condition
        .reason
        .as_deref()
        .filter(|reason| reason.parse::<Reason>().is_err())
    {
        flaws.push(Flaw::UnknownReason(name.clone(), reason.to_owned()));
    }
    if (condition.status == ConditionStatus::False) != condition.severity.is_some() {
        flaws.push(Flaw::SeverityMismatch(name.clone()));
    }
    if condition
        .message
        .as_ref()
        .is_some_and(|message| message.len() > MESSAGE_BYTES)
    {
        flaws.push(Flaw::MessageTooLong(name.clone()));
    }
    if condition.last_transition_time.0.subsec_nanosecond() != 0 {
        flaws.push(Flaw::FractionalTime(name.clone()));
    }
    flaws
}

fn flaws_of_list(conditions: &[Condition]) -> Vec<Flaw> {
    let mut seen = BTreeSet::new();
    let twice = conditions
        .iter()
        .filter(|condition| !seen.insert(condition.type_.as_str()));
    let mut flaws: Vec<Flaw> = twice
        .map(|condition| Flaw::Duplicate(condition.type_.clone()))
        .collect();
    if !conditions.is_sorted_by_key(|condition| position(&condition.type_)) {
        let order: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        flaws.push(Flaw::Unsorted(order.join(", ")));
    }
    flaws
}

/// The rules between conditions, after the checker of Flux.
fn flaws_of_story(conditions: &[Condition], generation: i64, observed_generation: i64) -> Vec<Flaw> {
    let is_true = |type_| super::is_true(conditions, type_);
    let ready = find(conditions, ConditionType::Ready);
    let paused = find(conditions, ConditionType::Paused);
    let goes_on = is_true(ConditionType::Reconciling) || paused.is_some();
    let rules = [
        (Flaw::ReadyMissing, ready.is_none()),
        (
            Flaw::ReconcilingAndStalled,
            is_true(ConditionType::Reconciling) && is_true(ConditionType::Stalled),
        ),
        (
            Flaw::StalledButNotFalse,
            is_true(ConditionType::Stalled) && ready.is_some_and(|ready| ready.status != ConditionStatus::False),
        ),
        (
            Flaw::UnknownWithoutReconciling,
            ready.is_some_and(|ready| ready.status == ConditionStatus::Unknown) && !goes_on,
        ),
        (
            Flaw::BehindWithoutReconciling,
            observed_generation < generation && !goes_on,
        ),
        (Flaw::ObservedTheFuture, observed_generation > generation),
        (
            Flaw::ReadyIsNotTheSummary,
            ready.is_some_and(|ready| !summarises(ready, conditions, paused)),
        ),
        (
            Flaw::ReadyHidesThePause,
            ready
                .zip(paused)
                .is_some_and(|(ready, paused)| (&ready.reason, &ready.message) != (&paused.reason, &paused.message)),
        ),
    ];
    rules
        .into_iter()
        .filter_map(|(flaw, broken)| broken.then_some(flaw))
        .collect()
}

/// Whether Ready says what the winner of the summary says; while the object is paused, it only has its status and severity.
fn summarises(ready: &Condition, conditions: &[Condition], paused: Option<&Condition>) -> bool {
    match summary::winner(conditions) {
        None => ready.status == ConditionStatus::Unknown,
        Some(winner) => {
            (ready.status, ready.severity) == (winner.status, winner.severity)
                && (paused.is_some() || (&ready.reason, &ready.message) == (&winner.reason, &winner.message))
        }
    }
}
