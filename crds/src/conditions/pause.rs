//! What an object says that nobody works on: what was found last, and that it is paused.

use jiff::Timestamp;

use super::{Condition, ConditionStatus, ConditionType, Finding, Reason, cut, find, merge, position};

/// The stored conditions without `Reconciling` and with `Paused`, and a Ready that keeps its status and says the same; without a stored Ready it
/// is Unknown.
///
/// Made from what is stored and from nothing else: the same again changes nothing.
pub fn paused(stored: &[Condition], reason: Reason, message: &str, now: Timestamp) -> Vec<Condition> {
    let ready = find(stored, ConditionType::Ready);
    let says = |type_, status, severity| Finding {
        type_,
        status,
        severity,
        reason: Some(reason),
        message: cut(message),
    };
    let findings = [
        says(
            ConditionType::Ready,
            ready.map_or(ConditionStatus::Unknown, |ready| ready.status),
            ready.and_then(|ready| ready.severity),
        ),
        says(ConditionType::Paused, ConditionStatus::True, None),
    ];
    let mut conditions = merge(stored, findings, now);
    let kept = stored.iter().filter(|condition| {
        // Nobody works on it, so nothing goes on.
        let left_out = [ConditionType::Ready, ConditionType::Paused, ConditionType::Reconciling];
        left_out.iter().all(|type_| condition.type_ != type_.as_str())
    });
    conditions.extend(kept.cloned());
    conditions.sort_by(|left, right| position(&left.type_).cmp(&position(&right.type_)));
    conditions
}
