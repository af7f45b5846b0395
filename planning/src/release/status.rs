//! The status of a ClusterStackRelease as a whole: what it pins, whether it is ready, and what it takes from rows and findings.

use crds::cluster_stack_release::{ClusterStackReleaseStatus, ReleaseAssets};
use crds::conditions::{ConditionStatus, ConditionType, merge, with_ready};
use jiff::Timestamp;

use super::findings;
use super::objects::moved_from;
use super::observed::{Assets, ReleaseObserved};
use super::waiting::Waiting;
use super::without_files::is_without_files;
use crate::objects::{Decisions, Inventory};

/// The status that follows from what was seen and decided.
pub(super) fn status(
    observed: &ReleaseObserved,
    decisions: &Decisions,
    waiting: &[Waiting],
    now: Timestamp,
) -> ClusterStackReleaseStatus {
    let Inventory {
        resources,
        approved_prune,
    } = observed.set().inventory(decisions);
    let mut findings = with_ready(findings::of_the_parts(observed, decisions, &resources));
    let ready = findings
        .iter()
        .any(|finding| finding.condition_type() == ConditionType::Ready && finding.status() == ConditionStatus::True)
        && !observed.deleting
        && (observed.rendering.intents().is_some() || is_without_files(observed));
    findings.extend(findings::activity(observed, decisions, waiting, ready));
    let (assets, kubernetes_version) = pins(observed);
    ClusterStackReleaseStatus {
        observed_generation: Some(observed.generation),
        ready,
        kubernetes_version,
        resources,
        assets,
        approved_prune,
        last_handled_reconcile_at: observed
            .requested_at
            .clone()
            .or_else(|| observed.status.last_handled_reconcile_at.clone()),
        conditions: merge(&observed.status.conditions, findings, now),
    }
}

/// What the status pins: from the first write of an object on the digest stays, whatever the source says later.
fn pins(observed: &ReleaseObserved) -> (Option<ReleaseAssets>, Option<String>) {
    match &observed.assets {
        Assets::Ready {
            digest,
            size,
            source,
            kubernetes_version,
            verified_by,
            ..
        } if moved_from(observed).is_none() => {
            let assets = ReleaseAssets {
                digest: digest.clone(),
                size: i64::try_from(*size).ok().filter(|size| *size > 0),
                source: source.clone(),
                verified_by: verified_by.clone(),
            };
            (Some(assets), Some(kubernetes_version.clone()))
        }
        _ => (
            observed.status.assets.clone(),
            observed.status.kubernetes_version.clone(),
        ),
    }
}
