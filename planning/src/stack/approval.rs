//! Whether as many releases may go as left the source: few always, many when somebody has approved just these.
//!
//! An approval is written into the status before the first release goes. From then on it holds for each of them, whatever has become of the others:
//! the digest names all, and nobody can make it again once some are gone.

use std::collections::BTreeSet;

use crds::cluster_stack::ApprovedPrune;
use crds::names::ReleaseTag;

use super::observed::StackObserved;
use crate::digest::digest;

/// Whether releases may go that left the source.
pub(super) enum Permission {
    /// They may.
    Given,
    /// They were approved, and the status has to say so first.
    Unrecorded,
    /// Somebody has to approve them by this digest.
    Missing(String),
}

/// Decides about the releases that left the source and are not going yet.
pub(super) fn permission(observed: &StackObserved, left_source: &BTreeSet<ReleaseTag>) -> Permission {
    if left_source.len() <= observed.spec.prune_limit.of(observed.releases.len()) {
        return Permission::Given;
    }
    let is_in = |approved: &ApprovedPrune| {
        let mut tags = left_source.iter().map(ToString::to_string);
        tags.all(|tag| approved.releases.contains(&tag))
    };
    if recorded(observed).is_some_and(is_in) {
        return Permission::Given;
    }
    let digest = digest(left_source);
    if observed.approved_prune.as_ref() == Some(&digest) {
        Permission::Unrecorded
    } else {
        Permission::Missing(digest)
    }
}

/// What the status will say is approved.
pub(super) fn status(observed: &StackObserved, left_source: &BTreeSet<ReleaseTag>) -> Option<ApprovedPrune> {
    match permission(observed, left_source) {
        Permission::Unrecorded => Some(ApprovedPrune {
            digest: digest(left_source),
            releases: left_source.iter().map(ToString::to_string).collect(),
        }),
        Permission::Given | Permission::Missing(_) => recorded(observed).filter(|_| !left_source.is_empty()).cloned(),
    }
}

/// What the status says, as long as the annotation says it too.
fn recorded(observed: &StackObserved) -> Option<&ApprovedPrune> {
    let approved = observed.status.approved_prune.as_ref()?;
    (observed.approved_prune.as_ref() == Some(&approved.digest)).then_some(approved)
}
