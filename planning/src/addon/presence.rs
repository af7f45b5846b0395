//! Whether a Cluster has a ClusterAddon, and whose business it is.

use crds::cluster_addon::{ClusterAddon, ClusterAddonStatus};
use crds::labels::{ADDON_FINALIZER, CONTAINS_GROUP_KINDS};
use serde::{Deserialize, Serialize};

use super::answer::has_annotation;
use super::cluster::{ClusterSeen, PausedBy};

/// What is seen of a ClusterAddon besides its status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub struct AddonSeen {
    /// Uid of the Cluster that owns it. `clusterctl move` writes it anew, `spec.clusterRef.uid` it does not.
    pub owner: Option<String>,
    /// `spec.clusterRef.uid`, which counts where no owner is.
    pub reference: Option<String>,
    /// It is to go.
    pub deleting: bool,
    /// It has the annotation of a pause.
    pub paused: bool,
    /// `clusterctl` has made it in another management cluster, and will delete it here.
    pub moving: bool,
    /// We have begun to work on it, see [`is_begun`].
    pub begun: bool,
}

/// Whose a class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClassOwner {
    /// There is a ClusterStackRelease for it in its namespace. Its name alone says nothing: others may name theirs alike.
    Ours,
    /// There is none, or the Cluster has no class.
    Foreign,
    /// Not all releases are known yet.
    NotKnownYet,
}

/// What is to be done about the ClusterAddon of a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// There is none, and there shall be none.
    None,
    /// It cannot be told yet.
    NotKnownYet,
    /// Make one, owned by the Cluster.
    Create,
    /// Work on it, and see that the Cluster owns it.
    Tend,
    /// Leave it until the pause is over.
    Paused(Pausing),
    /// Leave it to `clusterctl`.
    Moving,
    /// Leave it to whoever made it: the Go operator makes one for every Cluster, also for those whose class is not ours, or that have none.
    NotOurs,
    /// Leave it, and say that there is no Cluster that it is for: somebody made it by hand.
    Stray,
    /// Delete it: its Cluster is gone, or another one has the name, for which it is made anew.
    Delete,
    /// Take our finalizer away. Nothing in the workload cluster is touched.
    LetGo,
}

/// Who stopped the work on add-ons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pausing {
    /// The pause of the Cluster.
    Cluster(PausedBy),
    /// The annotation on the ClusterAddon.
    Addon,
}

/// Whether we have begun to work on a ClusterAddon: it says which kinds of objects it may have applied, which the Go operator does not write, and has our
/// finalizer, which is written with that.
pub fn is_begun(addon: &ClusterAddon) -> bool {
    let mut finalizers = addon.metadata.finalizers.iter().flatten();
    has_annotation(addon, CONTAINS_GROUP_KINDS) && finalizers.any(|finalizer| finalizer == ADDON_FINALIZER)
}

/// Whether the cluster of a ClusterAddon is reached, for which its kubeconfig is read: while its class is ours, or something is in it that we have applied.
///
/// What is on a ClusterAddon is no proof of that: whoever may make one writes it as he likes, and need not have the right to read Secrets. The status only we write.
pub fn may_be_reached(
    cluster: &ClusterSeen,
    class: ClassOwner,
    addon: &AddonSeen,
    status: Option<&ClusterAddonStatus>,
) -> bool {
    let has_objects = || status.is_some_and(|status| !status.resources.is_empty());
    let is_made_for_it = || addon.owner.as_deref() == Some(cluster.uid.as_str());
    class == ClassOwner::Ours || (addon.begun && is_made_for_it() && has_objects())
}

/// Decides about the presence of the ClusterAddon of one name. `cluster` is what the API server has of that name; `None` only when it said that there is none.
pub fn presence(cluster: Option<&ClusterSeen>, class: ClassOwner, addon: Option<&AddonSeen>) -> Presence {
    match (cluster, addon) {
        (None, None) => Presence::None,
        (None, Some(addon)) => without_cluster(addon),
        (Some(cluster), None) => without_addon(cluster, class),
        (Some(cluster), Some(addon)) => of_both(cluster, class, addon),
    }
}

fn without_cluster(addon: &AddonSeen) -> Presence {
    if addon.moving {
        Presence::Moving
    } else if addon.deleting {
        // There is nothing left that a pause could protect, and its namespace may wait for it.
        Presence::LetGo
    } else if addon.paused && addon.begun {
        Presence::Paused(Pausing::Addon)
    } else if addon.begun {
        Presence::Delete
    } else if addon.owner.is_some() {
        // Whoever made it deletes it, or the garbage collector.
        Presence::NotOurs
    } else {
        Presence::Stray
    }
}

fn without_addon(cluster: &ClusterSeen, class: ClassOwner) -> Presence {
    if cluster.moving {
        return Presence::Moving;
    }
    match class {
        _ if cluster.deleting.is_some() && !may_leave_something(cluster) => Presence::None,
        ClassOwner::Foreign => Presence::None,
        ClassOwner::NotKnownYet => Presence::NotKnownYet,
        ClassOwner::Ours => cluster
            .paused
            .map_or(Presence::Create, |by| Presence::Paused(Pausing::Cluster(by))),
    }
}

/// Whether something may still be done in a cluster that is to go. Its ClusterAddon is let go regularly once Cluster API was told that nothing holds the deletion up,
/// or once the Cluster is gone: where there is none before that, somebody deleted it, and what comes before the deletion is owed by another one.
fn may_leave_something(cluster: &ClusterSeen) -> bool {
    cluster.initialized && !cluster.ok_to_delete
}

fn of_both(cluster: &ClusterSeen, class: ClassOwner, addon: &AddonSeen) -> Presence {
    if cluster.moving || addon.moving {
        return Presence::Moving;
    }
    if !addon.begun {
        match class {
            ClassOwner::Foreign if addon.deleting => return Presence::LetGo,
            ClassOwner::Foreign => return Presence::NotOurs,
            ClassOwner::NotKnownYet => return Presence::NotKnownYet,
            ClassOwner::Ours => {}
        }
    }
    if let Some(by) = cluster.paused {
        return Presence::Paused(Pausing::Cluster(by));
    }
    let is_of_another = !addon.is_of(&cluster.uid);
    // Whoever paused one that is of another Cluster meant that one, which is gone; this one waits for its own.
    if addon.paused && !is_of_another {
        return Presence::Paused(Pausing::Addon);
    }
    if !addon.deleting {
        return if is_of_another {
            Presence::Delete
        } else {
            Presence::Tend
        };
    }
    // Together with its Cluster: what has to be done before that goes is done first. If it was deleted by hand, it is made anew, also where the Cluster goes next.
    if cluster.deleting.is_some() && !cluster.ok_to_delete && !is_of_another {
        Presence::Tend
    } else {
        Presence::LetGo
    }
}

impl AddonSeen {
    /// Whether it was made for the Cluster of this uid. One that says nothing was made by hand, for the Cluster of its name.
    fn is_of(&self, uid: &str) -> bool {
        let owner = self.owner.as_deref().or(self.reference.as_deref());
        owner.is_none_or(|owner| owner.is_empty() || owner == uid)
    }
}
