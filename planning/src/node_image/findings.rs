//! What the conditions of a release object say: of its source, its files and its images, and whether work goes on.

use crds::conditions::{ConditionStatus, ConditionType, Finding, Reason, Severity, cut, with_ready};

use super::observed::{Files, ReleaseObserved};
use super::status::is_known;
use super::summary::{Obstacle, Refused, Row, RowState};

/// Everything there is to say, Ready first.
pub(super) fn findings(observed: &ReleaseObserved, rows: &[Row<'_>], refused: &[Refused]) -> Vec<Finding> {
    let mut obstacles: Vec<Obstacle> = rows.iter().filter_map(Row::obstacle).collect();
    // The worst first; of equal ones the first by name.
    obstacles.sort_by_key(|obstacle| obstacle.severity);
    let findings = if observed.deleting {
        vec![leaving(observed, rows, refused)]
    } else {
        let mut findings = files(observed);
        findings.push(images(observed, &obstacles, refused));
        findings
    };
    let mut findings = with_ready(findings);
    let activity = activity(observed, &findings[0], &obstacles);
    findings.extend(activity);
    findings
}

/// The source and what it gave. What was had is not lost while it is away.
fn files(observed: &ReleaseObserved) -> Vec<Finding> {
    let client = ConditionType::AssetsClientAPIAvailable;
    let type_ = ConditionType::ClusterStackReleaseAssetsReady;
    let had = observed.status.assets.is_some();
    let tell = |type_, severity, reason, message: String| {
        if had {
            Finding::holds_because(type_, reason, message)
        } else {
            Finding::fails(type_, severity, reason, message)
        }
    };
    let with_client = |finding| vec![Finding::holds(client), finding];
    match &observed.files {
        Files::Ready { .. } => with_client(Finding::holds(type_)),
        Files::NotRead if had => with_client(Finding::holds(type_)),
        Files::NotRead => {
            let reason = Reason::ReleaseAssetsNotDownloadedYet;
            let message = "the files of the release are being fetched";
            vec![Finding::fails(type_, Severity::Info, reason, message)]
        }
        Files::Unusable { message } => {
            let reason = Reason::FailedCreateAssetsClient;
            let of_client = tell(client, Severity::Error, reason, message.clone());
            let waits = Reason::ReleaseAssetsNotDownloadedYet;
            let of_files = if had {
                Finding::holds(type_)
            } else {
                Finding::fails(type_, Severity::Info, waits, "the source of the release cannot be used")
            };
            vec![of_client, of_files]
        }
        Files::Unavailable { message, outage } => {
            let reason = Reason::SourceUnavailable;
            let told = &observed.status.conditions;
            let outage = outage.as_ref().map(|outage| outage.as_told_before(told, type_, reason));
            let message = outage.map_or_else(|| message.clone(), |outage| outage.tell(message));
            with_client(tell(type_, Severity::Warning, reason, message))
        }
        Files::Missing { message } => {
            with_client(tell(type_, Severity::Warning, Reason::ReleaseNotFound, message.clone()))
        }
        Files::Broken { message } => {
            let reason = Reason::IssueWithReleaseAssets;
            with_client(tell(type_, Severity::Error, reason, message.clone()))
        }
        Files::DigestDiffers { pinned, found } => {
            let message = format!(
                "the source has other files under the tag: {found} instead of {pinned}; they are not used. \
                 Find out who replaced them, and publish another release"
            );
            with_client(tell(type_, Severity::Error, Reason::DigestChanged, message))
        }
    }
}

fn images(observed: &ReleaseObserved, obstacles: &[Obstacle], refused: &[Refused]) -> Finding {
    let type_ = observed.provider.definition().images_ready;
    if let Some(worst) = obstacles.first() {
        return Finding::fails(
            type_,
            worst.severity,
            worst.reason,
            with_more(&worst.message, obstacles.len() - 1),
        );
    }
    if !is_known(observed) {
        let message = "it is not known yet which images the release needs";
        return Finding::unknown(type_, Reason::NotObservedYet, message);
    }
    match refused.first() {
        Some(refused) => Finding::holds_because(type_, reason_of(refused), told(refused)),
        None => Finding::holds(type_),
    }
}

fn with_more(message: &str, more: usize) -> String {
    match more {
        0 => message.to_owned(),
        1 => format!("{message}; and 1 more"),
        more => format!("{message}; and {more} more"),
    }
}

fn reason_of(refused: &Refused) -> Reason {
    if refused.deletes {
        Reason::FailedToDeleteObjects
    } else {
        Reason::FailedToCreateOrUpdate
    }
}

fn told(refused: &Refused) -> String {
    format!("{}: {}", refused.subject, refused.message)
}

/// What a release that goes waits for.
fn leaving(observed: &ReleaseObserved, rows: &[Row<'_>], refused: &[Refused]) -> Finding {
    let type_ = observed.provider.definition().images_ready;
    if let Some(refused) = refused.first() {
        return Finding::fails(type_, Severity::Warning, reason_of(refused), told(refused));
    }
    let stuck = rows.iter().find_map(|row| match row.state {
        RowState::Image { view } if view.deleting => {
            let severity = view.severity.filter(|severity| *severity != Severity::Info)?;
            let reason = view.reason.as_deref()?.parse().ok()?;
            let message = view.explanation.as_deref().unwrap_or_default();
            Some(Finding::fails(
                type_,
                severity,
                reason,
                format!("{}: {message}", row.name),
            ))
        }
        _ => None,
    });
    stuck.unwrap_or_else(|| {
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        let message = if names.is_empty() {
            "the images are gone".to_owned()
        } else {
            cut(&format!("waits until images are gone: {}", names.join(", ")))
        };
        Finding::fails(type_, Severity::Info, Reason::Deleting, message)
    })
}

/// Whether to wait or to act, for whoever looks at this alone: nobody need act while something goes on by itself.
fn activity(observed: &ReleaseObserved, ready: &Finding, obstacles: &[Obstacle]) -> Option<Finding> {
    if ready.status() == ConditionStatus::True {
        return None;
    }
    let files_are_final = matches!(observed.files, Files::Broken { .. } | Files::DigestDiffers { .. });
    let is_stuck = if obstacles.is_empty() {
        files_are_final && !is_known(observed)
    } else {
        obstacles.iter().all(|obstacle| obstacle.is_final)
    };
    let is_final = is_stuck && !observed.deleting && ready.status() == ConditionStatus::False;
    let type_ = if is_final {
        ConditionType::Stalled
    } else {
        ConditionType::Reconciling
    };
    let reason = ready.reason().unwrap_or(Reason::Progressing);
    Some(Finding::holds_because(type_, reason, ready.message()))
}
