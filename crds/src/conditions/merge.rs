//! From findings to conditions: the only place where a condition gets its time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Condition, ConditionType, Finding, position};

/// The conditions to write: exactly the new findings, Ready first, then by name; of two findings with the same type the last counts.
///
/// `lastTransitionTime` is kept while the status stays the same, also when reason or message change (as in Cluster API); otherwise it
/// is `now`, in whole seconds like every time in Kubernetes.
pub fn merge(old: &[Condition], new: impl IntoIterator<Item = Finding>, now: Timestamp) -> Vec<Condition> {
    let now = whole_seconds(now);
    let latest: BTreeMap<ConditionType, Finding> = new.into_iter().map(|finding| (finding.type_, finding)).collect();
    let mut merged: Vec<Condition> = latest
        .into_values()
        .map(|finding| with_time(old, finding, now))
        .collect();
    merged.sort_by(|left, right| position(&left.type_).cmp(&position(&right.type_)));
    merged
}

fn with_time(old: &[Condition], finding: Finding, now: Timestamp) -> Condition {
    let Finding {
        type_,
        status,
        severity,
        reason,
        message,
    } = finding;
    let since = old
        .iter()
        .find(|condition| condition.type_ == type_.as_str() && condition.status == status)
        .map_or(Time(now), |condition| condition.last_transition_time.clone());
    Condition {
        type_: type_.as_str().to_owned(),
        status,
        severity,
        last_transition_time: since,
        reason: reason.map(|reason| reason.as_str().to_owned()),
        message: (!message.is_empty()).then_some(message),
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    // Truncating moves towards the epoch and so cannot leave the range of `Timestamp`.
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
