//! The release as the owner of its objects: what is asked of it, and what is written to it itself, which is its mark, its finalizer and its status.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::conditions::{ConditionType, is_true, lint};
use crds::{ClusterStackRelease, labels};
use kube::{Api, ResourceExt};
use operator_kit::failure::{chain, words_of};
use operator_kit::finalizer::{FinalizerError, Marking, mark, remove};
use operator_kit::object::{GroupKind, ObjectKey};
use operator_kit::status::{StatusWrite, replace_status};
use operator_kit::takeover::{Rename, take_over};
use operator_kit::telemetry::{Change, log_readiness};
use planning::objects::OwnerKind;
use planning::release::ReleaseAction;

use super::marks::is_elsewhere;
use super::memory::ReleaseMemory;
use super::observe::{Sight, render};
use super::provider;
use crate::context::Context;
use crate::lanes::Unrendered;
use crate::objects::{Bodies, Failed, Memory, Owner, Unprepared, lock};

/// What is said of a release that the API server took and did not keep as it was sent.
const MARK_NOT_KEPT: &str = "the API server took the release and dropped or changed its finalizer or its annotations: stop the policy \
    that changes them";

/// A release as one pass over its objects has it.
pub(super) struct ReleaseOwner<'a> {
    pub(super) context: &'a Context,
    pub(super) part_of: &'a str,
    pub(super) memory: &'a Memory<ReleaseMemory>,
    pub(super) sight: &'a Sight,
}

impl Owner for ReleaseOwner<'_> {
    type Object = ClusterStackRelease;
    type Action = ReleaseAction;

    fn kind(&self) -> OwnerKind {
        OwnerKind::Release
    }

    /// Whatever an object says: nothing of a release is in another namespace.
    fn namespace_of<'k>(&'k self, _: &'k ObjectKey) -> &'k str {
        &self.sight.observed.namespace
    }

    /// A watch of releases may be behind one of their objects, and another process may have removed both.
    async fn still_wanted(&self, release: &ClusterStackRelease) -> Result<(), Failed> {
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

    async fn perform(
        &self,
        release: &ClusterStackRelease,
        action: &ReleaseAction,
    ) -> Result<Option<ClusterStackRelease>, Failed> {
        match action {
            ReleaseAction::Mark { group_kinds } => self.mark(release, group_kinds).await.map(Some),
            ReleaseAction::ControlProvider { uid } => provider::control(self.context, release, uid, self.memory)
                .await
                .map(|()| None)
                .map_err(Failed),
            ReleaseAction::RecordInventory { status } => write_status(self.context, release, status)
                .await
                .map(Some)
                .map_err(Failed),
            ReleaseAction::RemoveFinalizer => self.remove_finalizer(release).await.map(Some),
        }
    }

    fn note(&self, newer: &ClusterStackRelease) {
        self.context.releases.note(newer.clone());
    }

    /// Rendered again here. That they were is forgotten where it takes long: then the next look tells how far it is.
    async fn bodies(&self, release: &ClusterStackRelease) -> Result<Option<Bodies>, Unprepared> {
        let Some(files) = self.sight.files.as_ref() else {
            return Ok(None);
        };
        let (namespace, name) = (release.namespace().unwrap_or_default(), release.name_any());
        let rendering = render(self.context, release, files, self.part_of);
        let looking = &self.context.looking;
        match looking.at("ClusterStackRelease", &namespace, &name, rendering).await {
            Some(Err(Unrendered::Awaited)) => {
                lock(&self.memory.own).rendering = None;
                Err(Unprepared::Awaited)
            }
            Some(Err(Unrendered::Failed(failed))) => Ok(Some(Err(failed.message))),
            Some(Ok(intents)) => Ok(Some(Ok(Arc::new(intents)))),
            None => Ok(None),
        }
    }

    async fn is_elsewhere(&self, key: &ObjectKey, part_of: &str) -> Result<bool, String> {
        is_elsewhere(self.context, key, part_of).await
    }

    async fn take_over_status(&self, release: &ClusterStackRelease) -> Result<(), String> {
        let status = [Rename {
            from: labels::PREDECESSOR_STATUS_FIELD_MANAGER,
            operation: "Update",
            subresource: Some("status"),
            to: labels::STATUS_FIELD_MANAGER,
        }];
        let own = ObjectKey::new(
            crds::GROUP,
            "ClusterStackRelease",
            release.namespace().unwrap_or_default(),
            release.name_any(),
        );
        let management = &self.context.management;
        let taken = take_over(&management.client, &management.discovery, &own, &status).await;
        taken.map(drop).map_err(|error| chain(&error))
    }
}

impl ReleaseOwner<'_> {
    /// Before anything of a release is made: the finalizer that keeps it until all is gone, and which kinds it has.
    async fn mark(
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
    async fn remove_finalizer(&self, release: &ClusterStackRelease) -> Result<ClusterStackRelease, Failed> {
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
    Api::namespaced(
        context.management.client.clone(),
        &release.namespace().unwrap_or_default(),
    )
}
