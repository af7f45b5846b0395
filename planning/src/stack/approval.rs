//! What a stack says of the approval to delete the releases that left its source.

use std::collections::BTreeSet;

use crds::cluster_stack::ApprovedPrune;
use crds::names::ReleaseTag;

use super::observed::StackObserved;
use crate::approval::{Approval, Permission};
use crate::digest::digest;

/// Decides about the releases that left the source and are not going yet.
pub(super) fn permission(observed: &StackObserved, left_source: &BTreeSet<ReleaseTag>) -> Permission {
    let approved = observed.status.approved_prune.as_ref();
    let is_recorded = |tag: &ReleaseTag| approved.is_some_and(|approved| approved.releases.contains(&tag.to_string()));
    let limit = observed.spec.prune_limit.of(observed.releases.len());
    approval(observed).permission(left_source, limit, is_recorded)
}

/// What the status will say is approved.
pub(super) fn status(observed: &StackObserved, left_source: &BTreeSet<ReleaseTag>) -> Option<ApprovedPrune> {
    if let Permission::Unrecorded = permission(observed, left_source) {
        return Some(ApprovedPrune {
            digest: digest(left_source),
            releases: left_source.iter().map(ToString::to_string).collect(),
        });
    }
    let holds = approval(observed).recorded().is_some() && !left_source.is_empty();
    observed.status.approved_prune.clone().filter(|_| holds)
}

fn approval(observed: &StackObserved) -> Approval<'_> {
    let approved = observed.status.approved_prune.as_ref();
    Approval {
        annotation: observed.approved_prune.as_deref(),
        status: approved.map(|approved| approved.digest.as_str()),
    }
}
