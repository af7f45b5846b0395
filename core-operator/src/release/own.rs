//! What is written to the release itself: its mark, its finalizer, its status.

use std::collections::BTreeSet;

use crds::conditions::{ConditionType, is_true, lint};
use crds::{ClusterStackRelease, labels};
use kube::{Api, ResourceExt};
use operator_kit::failure::{chain, words_of};
use operator_kit::finalizer::{FinalizerError, Marking, mark, remove};
use operator_kit::object::GroupKind;
use operator_kit::status::{StatusWrite, replace_status};
use operator_kit::telemetry::{Change, log_readiness};
use planning::release::{ReleaseAction, Step};

use super::execute::{Failed, Pass};
use super::refusal::MARK_NOT_KEPT;
use crate::context::Context;

impl Pass<'_> {
    /// Fails when the release is not there any more, or is to go, whatever the watch shows: what would be made for it now, nobody would ever remove.
    /// A watch of releases may be behind one of their objects, and another process may have removed both.
    pub(super) async fn still_wanted(&self, release: &ClusterStackRelease) -> Result<(), Failed> {
        let found = api(self.context, release).get_metadata_opt(&release.name_any()).await;
        let found = found.map_err(|error| Failed(words_of(&error)))?;
        let there = found.filter(|found| found.metadata.uid == release.metadata.uid);
        match there {
            None => Err(Failed("the release is gone".to_owned())),
            Some(found) if found.metadata.deletion_timestamp.is_some() => {
                Err(Failed("the release is being deleted".to_owned()))
            }
            Some(_) => Ok(()),
        }
    }

    /// Before anything of a release is made: the finalizer that keeps it until all is gone, and which kinds it has.
    pub(super) async fn mark(
        &self,
        release: &ClusterStackRelease,
        kinds: &BTreeSet<GroupKind>,
    ) -> Result<ClusterStackRelease, Failed> {
        let kinds = labels::format_group_kinds(kinds.iter().map(|kind| (kind.group.as_str(), kind.kind.as_str())));
        let noted = [(labels::CONTAINS_GROUP_KINDS, kinds.as_str())];
        let api = api(self.context, release);
        let marked = mark(&api, release, labels::RELEASE_FINALIZER, &noted, labels::FIELD_MANAGER).await;
        match marked.map_err(unwritten)? {
            Marking::Kept(marked) => Ok(*marked),
            Marking::Changed(marked) => {
                self.context.releases.note(*marked);
                Err(Failed(MARK_NOT_KEPT.to_owned()))
            }
        }
    }

    /// Lets it go.
    pub(super) async fn remove_finalizer(&self, release: &ClusterStackRelease) -> Result<ClusterStackRelease, Failed> {
        let api = api(self.context, release);
        let left = remove(&api, release, labels::RELEASE_FINALIZER, labels::FIELD_MANAGER).await;
        left.map_err(unwritten)
    }
}

/// What the API server says to it.
fn unwritten(error: FinalizerError) -> Failed {
    let FinalizerError::Patch { source, .. } = error;
    Failed(words_of(&source))
}

/// Whether a step is about the release itself: what follows rests on it.
pub(super) fn writes_itself(step: &Step) -> bool {
    step.actions.iter().any(|action| {
        matches!(
            action,
            ReleaseAction::Mark { .. }
                | ReleaseAction::ControlProvider { .. }
                | ReleaseAction::RecordInventory { .. }
                | ReleaseAction::RemoveFinalizer
        )
    })
}

/// Writes a status where it differs from the one that was read.
pub(crate) async fn write_status(
    context: &Context,
    release: &ClusterStackRelease,
    status: &crds::ClusterStackReleaseStatus,
) -> Result<ClusterStackRelease, String> {
    // What is not looked at keeps what it has, even if that is nothing.
    if release.status.clone().unwrap_or_default() == *status {
        return Ok(release.clone());
    }
    let wanted = ClusterStackRelease {
        status: Some(status.clone()),
        ..release.clone()
    };
    debug_assert!(
        // A paused release keeps what it says, whoever wrote it.
        is_true(&status.conditions, ConditionType::Paused)
            || lint(
                &status.conditions,
                release.metadata.generation.unwrap_or(0),
                status.observed_generation.unwrap_or(0)
            )
            .is_empty(),
        "{:?}",
        status.conditions
    );
    match replace_status(&api(context, release), release, &wanted, labels::STATUS_FIELD_MANAGER).await {
        Ok(StatusWrite::Written(written)) => {
            let before = release.status.as_ref().map(|status| status.conditions.as_slice());
            let change = Change {
                before: before.unwrap_or_default(),
                after: &status.conditions,
                by_words: true,
                objects: Some(status.resources.len()),
            };
            log_readiness("ClusterStackRelease", release, change, context.now());
            Ok(*written)
        }
        Ok(StatusWrite::Unchanged) => Ok(release.clone()),
        Ok(StatusWrite::Conflict) => Err("somebody else wrote the release in between".to_owned()),
        Ok(StatusWrite::Gone) => Err("the release is gone".to_owned()),
        Err(error) => Err(chain(&error)),
    }
}

/// The releases of one namespace.
fn api(context: &Context, release: &ClusterStackRelease) -> Api<ClusterStackRelease> {
    Api::namespaced(context.client.clone(), &release.namespace().unwrap_or_default())
}
