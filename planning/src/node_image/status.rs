//! The status of a release object, in an order that never depends on the order of inputs.

use crds::conditions::{ConditionStatus, ConditionType, Finding, Severity, merge};
use crds::providers::image_status::{MOST_IMAGE_ROWS, ProviderPhase, ProviderReleaseStatus};
use jiff::Timestamp;

use super::findings::findings;
use super::observed::{Files, ReleaseObserved};
use super::summary::{Refused, Row, phase, progress};

/// The status that follows from what was seen and decided.
pub(super) fn status(
    observed: &ReleaseObserved,
    rows: &[Row<'_>],
    refused: &[Refused],
    now: Timestamp,
) -> ProviderReleaseStatus {
    let before = &observed.status;
    let findings = findings(observed, rows, refused);
    let ready = findings
        .iter()
        .find(|finding| finding.condition_type() == ConditionType::Ready);
    let unready = rows.iter().find_map(Row::message);
    let told = ready.map(Finding::message).filter(|message| !message.is_empty());
    ProviderReleaseStatus {
        observed_generation: Some(observed.generation),
        ready: is_ready(observed, rows),
        phase: Some(phase_of(observed, rows, ready)),
        message: unready.or_else(|| told.map(str::to_owned)),
        progress: progress(rows).filter(|_| !observed.deleting),
        images: rows.iter().take(MOST_IMAGE_ROWS).map(Row::row).collect(),
        assets: match &observed.files {
            Files::Ready { assets, .. } => Some(assets.clone()),
            _ => before.assets.clone(),
        },
        last_handled_reconcile_at: observed
            .requested_at
            .clone()
            .or_else(|| before.last_handled_reconcile_at.clone()),
        conditions: merge(&before.conditions, findings, now),
    }
}

/// Whether it is known which images the release needs: its files are here, or were.
pub(super) fn is_known(observed: &ReleaseObserved) -> bool {
    matches!(observed.files, Files::Ready { .. }) || observed.status.assets.is_some()
}

/// A source that is away makes no image bad.
pub(super) fn is_ready(observed: &ReleaseObserved, rows: &[Row<'_>]) -> bool {
    !observed.deleting && is_known(observed) && rows.iter().all(Row::is_ready)
}

fn phase_of(observed: &ReleaseObserved, rows: &[Row<'_>], ready: Option<&Finding>) -> ProviderPhase {
    let needs_somebody =
        |finding: &Finding| finding.status() == ConditionStatus::False && finding.severity() == Some(Severity::Error);
    if observed.deleting {
        ProviderPhase::Deleting
    } else if ready.is_some_and(needs_somebody) {
        ProviderPhase::Failed
    } else if !is_known(observed) {
        match observed.files {
            Files::NotRead => ProviderPhase::Reading,
            _ => ProviderPhase::Pending,
        }
    } else {
        phase(rows)
    }
}
