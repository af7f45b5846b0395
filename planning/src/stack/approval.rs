//! What a stack says of the approval to delete the releases that left its source.

use std::collections::BTreeSet;

use crds::cluster_stack::ApprovedPrune;
use crds::names::ReleaseTag;

use super::observed::StackObserved;
use crate::approval::{Approval, Doomed, Permission};

/// Decides about the releases that left the source and are not going yet.
pub(super) fn permission(observed: &StackObserved, left_source: &BTreeSet<ReleaseTag>) -> Permission {
    let approved = observed.status.approved_prune.as_ref();
    let is_recorded = |tag: &ReleaseTag| approved.is_some_and(|approved| approved.releases.contains(&tag.to_string()));
    let limit = observed.spec.prune_limit.of(observed.releases.len());
    let doomed = left_source.iter().map(|tag| Doomed {
        uid: uid(observed, tag),
        name: tag.clone(),
    });
    approval(observed).permission(&doomed.collect(), limit, is_recorded)
}

fn uid(observed: &StackObserved, tag: &ReleaseTag) -> String {
    let release = observed.releases.get(&tag.to_string());
    release.map(|view| view.uid.clone()).unwrap_or_default()
}

/// What the status will say is approved: what goes already, or is wanted again, is no part of it any more, so that one that comes back and leaves the
/// source once more needs another approval.
pub(super) fn status(observed: &StackObserved, left_source: &BTreeSet<ReleaseTag>) -> Option<ApprovedPrune> {
    let left: Vec<String> = left_source.iter().map(ToString::to_string).collect();
    if let Permission::Unrecorded = permission(observed, left_source) {
        return observed
            .approved_prune
            .clone()
            .map(|digest| ApprovedPrune { digest, releases: left });
    }
    let mut approved = observed.status.approved_prune.clone()?;
    approved.releases.retain(|release| left.contains(release));
    let holds = approval(observed).recorded().is_some() && !approved.releases.is_empty();
    holds.then_some(approved)
}

fn approval(observed: &StackObserved) -> Approval<'_> {
    let approved = observed.status.approved_prune.as_ref();
    Approval {
        annotation: observed.approved_prune.as_deref(),
        status: approved.map(|approved| approved.digest.as_str()),
    }
}
