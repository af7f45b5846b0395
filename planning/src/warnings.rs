//! Which conditions people are told of in an event, besides that the status shows them.

use crds::conditions::{Condition, ConditionStatus, ConditionType, Reason, Severity};

/// What is wrong, in the order of the conditions: everything that does not hold and will not by waiting alone. Who tells it twice
/// tells nothing new.
///
/// Of what a stack says about its releases only the beginning is news, told by what its conditions said `before`: their words change with every
/// release, and the releases tell them themselves. So it is of a source that does not answer, of differences that the drift policy leaves, and
/// of a tag that was moved, and of a release that is used though it is not verified.
pub fn warnings<'a>(before: &[Condition], after: &'a [Condition]) -> Vec<(Reason, &'a str)> {
    let mut told: Vec<(Reason, &str)> = Vec::new();
    for condition in after.iter().filter(|condition| counts(condition)) {
        let Some(reason) = reason_of(condition) else { continue };
        let about_releases = is_about_releases(condition, reason);
        let severe = matches!(condition.severity, Some(Severity::Error | Severity::Warning));
        let said = |reason| {
            let mut before = before.iter().filter(|condition| counts(condition));
            before.any(|condition| reason_of(condition) == Some(reason))
        };
        let is_left = matches!(
            reason,
            Reason::Drifted | Reason::DigestChanged | Reason::VerificationFailed
        ) && condition.status == ConditionStatus::True;
        // Its words tell of every try.
        let is_outage = severe && tells_of_tries(reason);
        let is_news = if about_releases || is_left || is_outage {
            !said(reason) && told.iter().all(|(other, _)| *other != reason)
        } else {
            severe && condition.status == ConditionStatus::False
        };
        if is_news {
            told.push((reason, condition.message.as_deref().unwrap_or_default()));
        }
    }
    told
}

/// Whether the words of a condition change with every try, so that only the beginning is news.
fn tells_of_tries(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::FailedToSync
            | Reason::SourceUnavailable
            | Reason::CloudUnavailable
            | Reason::CredentialsRejected
            | Reason::PermissionDenied
            | Reason::QuotaExceeded
            | Reason::SourceBroken
            | Reason::SourceChanged
            | Reason::TransferStalled
            | Reason::ImportFailed
            | Reason::ImageInUse
    )
}

fn counts(condition: &Condition) -> bool {
    let type_ = condition.type_.parse::<ConditionType>();
    type_.is_ok_and(|type_| type_.is_summarised() && !repeats(type_))
}

/// The conditions of the Go provider say of an image what ours say.
fn repeats(type_: ConditionType) -> bool {
    matches!(
        type_,
        ConditionType::OpenStackImageServiceClientAvailable
            | ConditionType::OpenStackImageImportStarted
            | ConditionType::OpenStackImageActive
    )
}

fn reason_of(condition: &Condition) -> Option<Reason> {
    condition.reason.as_deref()?.parse().ok()
}

/// Whether a stack speaks of one of its releases, also where it can be used without it, and waiting does not mend that.
fn is_about_releases(condition: &Condition, reason: Reason) -> bool {
    let of_releases = [
        ConditionType::ReleasesSynced,
        ConditionType::ClusterStackReleasesSynced,
        ConditionType::ClusterStackReleaseAvailable,
    ];
    if of_releases.iter().all(|type_| condition.type_ != type_.as_str()) {
        return false;
    }
    match reason {
        Reason::FailedToSync
        | Reason::FailedToCreateOrUpdate
        | Reason::PruneNotApproved
        | Reason::NotObservedYet
        | Reason::Progressing
        | Reason::Waiting
        | Reason::Paused
        | Reason::Deleting
        | Reason::InUse => false,
        // The stack's own spec, or that of a release that it can be used without.
        Reason::InvalidSpec => condition.status == ConditionStatus::True,
        _ => true,
    }
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
        assert_eq!(warnings(&[], &conditions), told);
        assert_eq!(warnings(&conditions, &conditions), told);
    }

    #[test]
    fn what_is_left_as_it_is_is_told_once() {
        for (type_, reason) in [
            ("HelmChartApplied", Reason::Drifted),
            ("ClusterStackReleaseDownloaded", Reason::DigestChanged),
        ] {
            let left = |message: &str| Condition {
                message: Some(message.to_owned()),
                ..condition(type_, ConditionStatus::True, None, Some(reason))
            };
            let (one, two) = ([left("one field")], [left("two fields")]);
            assert_eq!(warnings(&[], &one), [(reason, "one field")]);
            assert_eq!(warnings(&one, &two), []);
        }
    }

    #[test]
    fn source_that_does_not_answer_is_told_once_however_often_it_is_asked() {
        let silent = |message: &str| Condition {
            message: Some(message.to_owned()),
            ..condition(
                "ReleasesSynced",
                ConditionStatus::False,
                Some(Severity::Warning),
                Some(Reason::FailedToSync),
            )
        };
        let (one, two) = ([silent("tried once")], [silent("tried 2 times")]);
        assert_eq!(warnings(&[], &one), [(Reason::FailedToSync, "tried once")]);
        assert_eq!(warnings(&one, &two), []);
        let answers = [condition("ReleasesSynced", ConditionStatus::True, None, None)];
        assert_eq!(warnings(&answers, &two), [(Reason::FailedToSync, "tried 2 times")]);
    }

    #[test]
    fn a_cloud_that_is_away_is_told_once_and_in_one_word() {
        let away = |type_, reason, message: &str| Condition {
            message: Some(message.to_owned()),
            ..condition(type_, ConditionStatus::False, Some(Severity::Warning), Some(reason))
        };
        let both = |message| {
            let client = ConditionType::OpenStackImageServiceClientAvailable;
            [
                away("CloudAvailable", Reason::CloudUnavailable, message),
                away(client.as_str(), Reason::OpenStackImageServiceClientNotSet, message),
            ]
        };
        let (one, two) = (both("tried once"), both("tried 2 times"));
        assert_eq!(warnings(&[], &one), [(Reason::CloudUnavailable, "tried once")]);
        assert_eq!(warnings(&one, &two), []);
        let stays = [condition(
            "CloudAvailable",
            ConditionStatus::True,
            None,
            Some(Reason::CloudUnavailable),
        )];
        assert_eq!(warnings(&[], &stays), [], "an image that is ready needs nobody");
    }

    #[test]
    fn f45_of_what_a_stack_says_about_its_releases_only_the_beginning_is_told() {
        let broken = |type_, status, severity, message: &str| Condition {
            message: Some(message.to_owned()),
            ..condition(type_, status, severity, Some(Reason::BrokenRelease))
        };
        let (synced, available) = ("ClusterStackReleasesSynced", "ClusterStackReleaseAvailable");
        let well = [condition(available, ConditionStatus::True, None, None)];
        let newest = [broken(available, ConditionStatus::True, None, "v2")];
        let another = [broken(available, ConditionStatus::True, None, "v3")];
        let listed = [
            broken(synced, ConditionStatus::False, Some(Severity::Error), "v2"),
            broken(available, ConditionStatus::True, None, "v3"),
        ];
        assert_eq!(warnings(&well, &newest), [(Reason::BrokenRelease, "v2")]);
        assert_eq!(warnings(&newest, &another), []);
        assert_eq!(warnings(&newest, &listed), []);
        assert_eq!(warnings(&[], &listed), [(Reason::BrokenRelease, "v2")], "once");
        assert_eq!(warnings(&listed, &well), []);
        let drifted = [condition(available, ConditionStatus::True, None, Some(Reason::Drifted))];
        assert_eq!(
            warnings(&newest, &drifted),
            [(Reason::Drifted, "ClusterStackReleaseAvailable in words")]
        );
        assert_eq!(warnings(&drifted, &drifted), []);
        let waiting = [condition(available, ConditionStatus::True, None, Some(Reason::InUse))];
        assert_eq!(warnings(&well, &waiting), [], "time alone mends it");
    }
}
