//! Which conditions people are told of in an event, besides that the status shows them.

use crds::conditions::{Condition, ConditionStatus, ConditionType, Reason, Severity};

/// What is wrong, in the order of the conditions: everything that does not hold and will not by waiting alone. Who tells it twice
/// tells nothing new.
pub fn warnings(conditions: &[Condition]) -> Vec<(Reason, &str)> {
    let told = |condition: &&Condition| {
        let counts = condition
            .type_
            .parse::<ConditionType>()
            .is_ok_and(ConditionType::is_summarised);
        let severe = matches!(condition.severity, Some(Severity::Error | Severity::Warning));
        counts && severe && condition.status == ConditionStatus::False
    };
    conditions
        .iter()
        .filter(told)
        .filter_map(|condition| {
            let reason = condition.reason.as_deref()?.parse().ok()?;
            Some((reason, condition.message.as_deref().unwrap_or_default()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn condition(
        type_: &str,
        status: ConditionStatus,
        severity: Option<Severity>,
        reason: Option<Reason>,
    ) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status,
            severity,
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
            reason: reason.map(|reason| reason.to_string()),
            message: Some(format!("{type_} in words")),
        }
    }

    #[test]
    fn what_waiting_does_not_mend_is_told_once_and_without_the_summary() {
        let (error, warning, info) = (Some(Severity::Error), Some(Severity::Warning), Some(Severity::Info));
        let broken = Some(Reason::IssueWithReleaseAssets);
        let conditions = [
            condition("Ready", ConditionStatus::False, error, broken),
            condition("ClusterStackReleaseDownloaded", ConditionStatus::False, error, broken),
            condition(
                "HelmChartApplied",
                ConditionStatus::False,
                warning,
                Some(Reason::FailedToApplyObjects),
            ),
            condition(
                "ProviderClusterStackReleaseReady",
                ConditionStatus::False,
                info,
                Some(Reason::ProcessOngoing),
            ),
            condition("ReleasesSynced", ConditionStatus::True, None, None),
            condition("Foreign", ConditionStatus::False, error, broken),
            condition("Stalled", ConditionStatus::True, None, Some(Reason::BrokenRelease)),
        ];
        let told = [
            (Reason::IssueWithReleaseAssets, "ClusterStackReleaseDownloaded in words"),
            (Reason::FailedToApplyObjects, "HelmChartApplied in words"),
        ];
        assert_eq!(warnings(&conditions), told);
    }
}
