//! Ready as the summary of the other conditions.

use super::{Condition, ConditionStatus, ConditionType, Finding, Reason, Severity};

/// The finding for Ready that follows from the others, by the rules of Cluster API's `SetSummary`.
///
/// Groups win in this order: False with severity Error, Warning, Info, then True, then Unknown. Within the winning group the first
/// condition by name gives reason and message; where all is True, the first that has any to give. `Reconciling`, `Stalled` and `Paused` do not
/// count. Without anything to summarise Ready is Unknown.
pub fn summarise_ready<'finding>(findings: impl IntoIterator<Item = &'finding Finding>) -> Finding {
    let winner = findings
        .into_iter()
        .filter(|finding| finding.type_.is_summarised())
        .min_by_key(|finding| {
            let group = group(finding.status, finding.severity);
            (
                group,
                is_silent(finding.status, finding.reason.as_ref()),
                finding.type_.as_str(),
            )
        });
    match winner {
        None => Finding::unknown(ConditionType::Ready, Reason::NotObservedYet, ""),
        Some(finding) => Finding {
            type_: ConditionType::Ready,
            ..finding.clone()
        },
    }
}

/// The findings with Ready, as [`summarise_ready`] makes it, in the place of any Ready among them.
pub fn with_ready(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.retain(|finding| finding.type_ != ConditionType::Ready);
    findings.insert(0, summarise_ready(&findings));
    findings
}

/// The condition that Ready must repeat; the same rules over what was written.
pub(super) fn winner(conditions: &[Condition]) -> Option<&Condition> {
    conditions
        .iter()
        .filter(|condition| condition.type_.parse().is_ok_and(ConditionType::is_summarised))
        .min_by_key(|condition| {
            let group = group(condition.status, condition.severity);
            let silent = is_silent(condition.status, condition.reason.as_ref());
            (group, silent, condition.type_.as_str())
        })
}

/// Whether it holds and says no more.
fn is_silent<R>(status: ConditionStatus, reason: Option<&R>) -> bool {
    status == ConditionStatus::True && reason.is_none()
}

/// A False without severity is taken for an error: Cluster API would let it lose against everything, and an object would look ready that is not.
fn group(status: ConditionStatus, severity: Option<Severity>) -> u8 {
    match (status, severity) {
        (ConditionStatus::False, Some(Severity::Error) | None) => 0,
        (ConditionStatus::False, Some(Severity::Warning)) => 1,
        (ConditionStatus::False, Some(Severity::Info)) => 2,
        (ConditionStatus::True, _) => 3,
        (ConditionStatus::Unknown, _) => 4,
    }
}
