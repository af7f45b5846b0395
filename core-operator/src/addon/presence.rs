//! Does what is decided about the presence of the ClusterAddon of one Cluster: makes it, deletes it, lets it go, or says that it is to be worked on.

use std::sync::Arc;

use crds::ClusterStackRelease;
use crds::cluster_addon::ClusterAddon;
use crds::events::Happening;
use crds::labels;
use crds::names::{ClassName, ReleaseTag};
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Resource, ResourceExt};
use operator_kit::apply::is_namespace_terminating;
use operator_kit::discovery::DiscoveryError;
use operator_kit::events::EventType;
use operator_kit::failure::{chain, words_of};
use operator_kit::finalizer::{FinalizerError, remove};
use operator_kit::read::ReadError;
use planning::addon::{ClassOwner, Pausing, Presence as Decided, ReleaseSeen, presence, stray};

use super::Addons;
use super::made::made_for;
use super::seen::addon_seen;
use super::status::{self, api};
use crate::clusters::ClusterFacts;
use crate::context::Context;

/// What came of it.
pub(super) enum Presence {
    /// Everything that is to be done is done, until something changes.
    Settled,
    /// It is nobody's business here, and neither is its cluster.
    NotOurs,
    /// There is a ClusterAddon to be worked on.
    Tended {
        /// As it is now.
        addon: Arc<ClusterAddon>,
        /// Its Cluster.
        sight: Box<Sight>,
    },
}

/// The Cluster of a ClusterAddon that is to be worked on.
pub(super) struct Sight {
    pub(super) cluster: ClusterFacts,
    /// Who stopped the work, if anybody did: then that is said, and nothing else done.
    pub(super) paused: Option<Pausing>,
}

/// What was decided could not be done. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum PresenceError {
    /// Before something is deleted the API server itself is asked about its Cluster.
    #[error("failed to ask whether the Cluster is still there")]
    ReadCluster(#[source] Box<ReadError>),
    /// The version in which Clusters are served could not be found out.
    #[error("failed to look up the kind Cluster")]
    LookUp(#[source] DiscoveryError),
    /// The ClusterAddon could not be made.
    #[error("failed to create the ClusterAddon {name}")]
    Create {
        /// Its name.
        name: String,
        /// The answer of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// It is there, and the watch does not show it.
    #[error(
        "the ClusterAddon {name} is there, but not in sight: if that stays, give it the label {label} with the value of --watch-filter",
        label = labels::WATCH_FILTER
    )]
    NotInSight {
        /// Its name.
        name: String,
    },
    /// It could not be deleted.
    #[error("failed to delete the ClusterAddon {name}")]
    Delete {
        /// Its name.
        name: String,
        /// The answer of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// Its finalizer could not be taken away.
    #[error("failed to let go of a ClusterAddon")]
    LetGo(#[source] FinalizerError),
}

impl PresenceError {
    /// The error with its causes, for people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Create { source, .. } | Self::Delete { source, .. } => {
                format!("{self}: {}", words_of(source))
            }
            Self::ReadCluster(_) | Self::LookUp(_) | Self::LetGo(_) => chain(self),
            Self::NotInSight { .. } => self.to_string(),
        }
    }

    /// Whether the ClusterAddon can never be made, because its namespace is being deleted.
    pub(super) fn is_of_a_namespace_that_ends(&self) -> bool {
        match self {
            Self::Create { source, .. } => {
                matches!(source.as_ref(), kube::Error::Api(status) if is_namespace_terminating(status))
            }
            Self::ReadCluster(_) | Self::LookUp(_) | Self::NotInSight { .. } | Self::Delete { .. } | Self::LetGo(_) => {
                false
            }
        }
    }
}

/// Sees to it that a Cluster has its ClusterAddon, or has none.
///
/// That a Cluster is gone, or another one, is believed only of the API server itself: the watch may be behind, and what is deleted then is gone. It keeps nothing of
/// Clusters of others, either. For a Cluster that is to go none is made before the API server says that it is still there.
pub(super) async fn see_to(
    context: &Context,
    addons: &Addons,
    namespace: &str,
    name: &str,
) -> Result<Presence, PresenceError> {
    if !context.clusters.is_listed() || !addons.objects.is_listed() {
        // The end of the list looks at everything.
        return Ok(Presence::Settled);
    }
    let addon = addons.of(namespace, name);
    let decide = |cluster: Option<&ClusterFacts>| {
        let owner = class_owner(context, cluster);
        let seen = addon.as_deref().map(addon_seen);
        presence(cluster.map(|cluster| &cluster.seen), owner, seen.as_ref())
    };
    let mut cluster = context.clusters.facts(namespace, name);
    let mut decided = decide(cluster.as_ref());
    let goes = cluster.as_ref().is_some_and(|cluster| cluster.seen.deleting.is_some());
    if matches!(decided, Decided::Delete | Decided::LetGo | Decided::Stray) || (goes && decided == Decided::Create) {
        let read = context.clusters.read(namespace, name).await;
        cluster = read.map_err(|error| PresenceError::ReadCluster(Box::new(error)))?;
        decided = decide(cluster.as_ref());
    }
    match (decided, addon, cluster) {
        (Decided::Create, None, Some(cluster)) => create(context, addons, &cluster).await,
        (Decided::Delete, Some(addon), _) => delete(context, addons, &addon).await,
        (Decided::LetGo, Some(addon), _) => let_go(context, addons, &addon).await,
        (Decided::Stray, Some(addon), _) => {
            tell_stray(context, &addon);
            Ok(())
        }
        (Decided::Tend, Some(addon), Some(cluster)) => {
            let sight = Box::new(Sight { cluster, paused: None });
            return Ok(Presence::Tended { addon, sight });
        }
        (Decided::Paused(by), Some(addon), Some(cluster)) => {
            let paused = Some(by);
            let sight = Box::new(Sight { cluster, paused });
            return Ok(Presence::Tended { addon, sight });
        }
        (Decided::NotOurs, ..) => return Ok(Presence::NotOurs),
        _ => Ok(()),
    }?;
    Ok(Presence::Settled)
}

/// Whose the class of a Cluster is: the name alone does not say.
pub(super) fn class_owner(context: &Context, cluster: Option<&ClusterFacts>) -> ClassOwner {
    let topology = cluster.and_then(|cluster| cluster.seen.topology.as_ref());
    let Some((topology, class)) = topology.and_then(|topology| Some((topology, topology.class_name().ok()?))) else {
        return ClassOwner::Foreign;
    };
    match release_of_class(context, &topology.class_namespace, class) {
        Ok(_) => ClassOwner::Ours,
        Err(ReleaseSeen::NotKnownYet) => ClassOwner::NotKnownYet,
        Err(_) => ClassOwner::Foreign,
    }
}

/// The release of a class, or whether there is none or nobody knows yet.
pub(super) fn release_of_class(
    context: &Context,
    namespace: &str,
    class: ClassName,
) -> Result<Arc<ClusterStackRelease>, ReleaseSeen> {
    // Asked before: a list that ends in between must not count.
    let is_listed = context.releases.is_listed();
    let found = context.releases.get(namespace, &ReleaseTag::from(class).to_string());
    found.ok_or(if is_listed {
        ReleaseSeen::Absent
    } else {
        ReleaseSeen::NotKnownYet
    })
}

async fn create(context: &Context, addons: &Addons, cluster: &ClusterFacts) -> Result<(), PresenceError> {
    let Some(api_version) = context.clusters.api_version().await.map_err(PresenceError::LookUp)? else {
        // Then there are no Clusters either, which the watch tells.
        return Ok(());
    };
    let addon = made_for(&cluster.seen, &api_version, &addons.watch_filter);
    let name = addon.name_any();
    let params = PostParams {
        field_manager: Some(labels::FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let namespace = &cluster.seen.namespace;
    match api(context, namespace).create(&params, &addon).await {
        Ok(created) => {
            tracing::info!(namespace, name, class = cluster.seen.class(), "ClusterAddon created");
            let note = format!(
                "created for the Cluster {} of the class {}",
                cluster.seen.name,
                cluster.seen.class()
            );
            tell(context, &created, Happening::ClusterAddonCreated, &note);
            addons.objects.note(created);
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => Err(PresenceError::NotInSight { name }),
        Err(source) => {
            let source = Box::new(source);
            Err(PresenceError::Create { name, source })
        }
    }
}

/// Late, it must not hit one that was made anew, or that somebody has changed.
pub(super) async fn delete(context: &Context, addons: &Addons, addon: &ClusterAddon) -> Result<(), PresenceError> {
    if addon.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: addon.uid(),
            resource_version: addon.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let (namespace, name) = (addon.namespace().unwrap_or_default(), addon.name_any());
    match api(context, &namespace).delete(&name, &params).await {
        Ok(answer) => {
            tracing::info!(namespace, name, "ClusterAddon deleted: its Cluster is gone");
            let note = "deleted, because the Cluster that it was made for is gone";
            tell(context, addon, Happening::ClusterAddonDeleted, note);
            match answer.left() {
                Some(terminating) => addons.objects.note(terminating),
                None => addons.objects.bury(addon),
            }
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => {
            addons.objects.bury(addon);
            Ok(())
        }
        Err(source) => {
            let source = Box::new(source);
            Err(PresenceError::Delete { name, source })
        }
    }
}

/// Takes our finalizer away. Of what runs in the cluster nothing changes.
pub(super) async fn let_go(context: &Context, addons: &Addons, addon: &ClusterAddon) -> Result<(), PresenceError> {
    let finalizer = labels::ADDON_FINALIZER;
    if !addon.finalizers().iter().any(|present| present == finalizer) {
        return Ok(());
    }
    let (namespace, name) = (addon.namespace().unwrap_or_default(), addon.name_any());
    match remove(&api(context, &namespace), addon, finalizer, labels::FIELD_MANAGER).await {
        Ok(left) if left.finalizers().is_empty() => {
            tracing::info!(namespace, name, "ClusterAddon let go");
            addons.objects.bury(&left);
            Ok(())
        }
        Ok(left) => {
            addons.objects.note(left);
            Ok(())
        }
        Err(FinalizerError::Patch { source, .. }) if is_gone(&source) => {
            addons.objects.bury(addon);
            Ok(())
        }
        Err(error) => Err(PresenceError::LetGo(error)),
    }
}

/// Says of a ClusterAddon that is for no Cluster why nothing comes of it. Nothing is written to it.
pub(super) fn tell_stray(context: &Context, addon: &ClusterAddon) {
    let cluster = addon.spec.cluster_ref.name.as_deref();
    let note = stray(&addon_seen(addon), &addon.name_any(), cluster);
    status::tell(context, addon, &note);
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn tell(context: &Context, addon: &ClusterAddon, happening: Happening, note: &str) {
    context
        .events
        .publish(addon.object_ref(&()), EventType::Normal, happening, note);
}
