//! What a cluster shall have, and whether that is new.

use crds::cluster_addon::{AddonVersion, ClusterAddonStatus};
use serde::{Deserialize, Serialize};

use super::cluster::ClusterSeen;
use crate::digest::digest_of_everything;
use crate::topology::Topology;

/// The release of the class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseSeen {
    /// Nobody knows yet whether there is one: not all releases have been listed.
    NotKnownYet,
    /// There is none of this name.
    Absent,
    /// It cannot be used yet, or not any more.
    NotReady {
        /// Why.
        message: String,
    },
    /// It can be used.
    Ready {
        /// Version of the add-ons, as metadata.yaml has it.
        addon_version: String,
        /// Kubernetes version that its clusters must have, with `v`.
        kubernetes_version: String,
    },
}

/// The values of the charts, made of the Cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Values {
    /// Nobody has made them yet.
    Awaited,
    /// They cannot be made.
    Failed {
        /// Why, with file and line.
        message: String,
    },
    /// They change all the time without anybody having changed the Cluster.
    Unstable {
        /// Which, and how often.
        message: String,
    },
    /// They are there.
    Known {
        /// Digest of the values of all charts.
        digest: String,
    },
}

/// What a cluster shall have, or why that is not known. Without a target nothing is applied, and nothing that is there goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// The Cluster has no class.
    NoClass,
    /// Not all releases are known, so that nobody can tell whether there is one for the class.
    ReleaseAwaited,
    /// The release of the class cannot be used.
    ReleaseNotReady {
        /// Why.
        message: String,
    },
    /// The Cluster has another Kubernetes version than its class is for. Class and version may be written one after the other, so this passes.
    VersionMismatch {
        /// What is to be changed.
        message: String,
    },
    /// The values are not there yet.
    ValuesAwaited,
    /// The values cannot be made.
    ValuesFailed {
        /// Why.
        message: String,
    },
    /// The values do not stay the same. Whoever followed them would never come to an end.
    ValuesUnstable {
        /// Which.
        message: String,
    },
    /// This.
    Target(Target),
}

/// The add-ons that a cluster shall have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Class of the cluster.
    pub class: String,
    /// Version of the add-ons.
    pub version: String,
    /// Kubernetes version of the cluster.
    pub kubernetes_version: String,
    /// Digest of what decides the objects: version of the add-ons, Kubernetes version, values. Not the class: the same add-ons in the release of
    /// another class are the same.
    pub digest: String,
}

/// What a target is to what the status says of the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Nothing was recorded.
    First,
    /// It is that one.
    None,
    /// Only the class has another name. What was done counts, and where all was done there is nothing to do.
    SameAddons,
    /// It takes the place of one that was complete.
    Next {
        /// Kubernetes stays the same, so that Cluster API calls no hook.
        same_kubernetes: bool,
    },
    /// It takes the place of one that was not: what that had begun is not gone on with.
    Preempts {
        /// Kubernetes stays the same as that one wanted.
        same_kubernetes: bool,
    },
}

/// Whether the release of the class has to be ready before it is used.
///
/// It has to be for what is new to the cluster. What the cluster has, or is on the way to, is kept right and taken away in good order from the files alone,
/// which are pinned: a class or a node image that is in disorder is no reason to leave a network broken or a volume behind.
pub fn needs_ready_release(cluster: &ClusterSeen, status: Option<&ClusterAddonStatus>) -> bool {
    let target = status.and_then(|status| status.target.as_ref());
    cluster.deleting.is_none() && target.is_none_or(|target| target.cluster_stack != cluster.class())
}

/// What a Cluster shall have; `last` is what the status says of the last target.
///
/// One that is to go is led to its end also where its values cannot be made: what its stages delete is told by the inventory.
pub fn wanted(cluster: &ClusterSeen, release: &ReleaseSeen, values: &Values, last: Option<&AddonVersion>) -> Wanted {
    let Some(topology) = &cluster.topology else {
        return Wanted::NoClass;
    };
    let class = topology.class.clone();
    let (version, kubernetes_version) = match release {
        ReleaseSeen::NotKnownYet => return Wanted::ReleaseAwaited,
        ReleaseSeen::Absent => return without_release(topology),
        ReleaseSeen::NotReady { message } => {
            let message = message.clone();
            return Wanted::ReleaseNotReady { message };
        }
        ReleaseSeen::Ready {
            addon_version,
            kubernetes_version,
        } => (addon_version.clone(), kubernetes_version.clone()),
    };
    // What has to be done before a cluster goes is not put off for a version that it will never have.
    if topology.version != kubernetes_version && cluster.deleting.is_none() {
        let found = if topology.version.is_empty() {
            "none"
        } else {
            &topology.version
        };
        let message = format!(
            "the class {class} is for Kubernetes {kubernetes_version}, and the Cluster has {found}: set spec.topology.version to \
             {kubernetes_version}, or take a class for {found}"
        );
        return Wanted::VersionMismatch { message };
    }
    let digest = match values {
        Values::Known { digest } => digest_of_everything(&(&version, &kubernetes_version, digest)),
        Values::Failed { .. } | Values::Unstable { .. } if cluster.deleting.is_some() => {
            digest_without_values(&version, &kubernetes_version, last)
        }
        Values::Awaited => return Wanted::ValuesAwaited,
        Values::Failed { message } => {
            let message = message.clone();
            return Wanted::ValuesFailed { message };
        }
        Values::Unstable { message } => {
            let message = message.clone();
            return Wanted::ValuesUnstable { message };
        }
    };
    Wanted::Target(Target {
        class,
        version,
        kubernetes_version,
        digest,
    })
}

fn without_release(topology: &Topology) -> Wanted {
    let Topology {
        class, class_namespace, ..
    } = topology;
    let message = format!(
        "the namespace {class_namespace} has no ClusterStackRelease for the class {class}: name its version in spec.versions of the ClusterStack there, or \
         give the Cluster another class"
    );
    Wanted::ReleaseNotReady { message }
}

/// That of before where versions are the same, so that what was done before nobody knew the values any more counts.
fn digest_without_values(version: &str, kubernetes_version: &str, last: Option<&AddonVersion>) -> String {
    let same =
        last.filter(|last| last.version == version && last.kubernetes_version.as_deref() == Some(kubernetes_version));
    same.and_then(|last| last.digest.clone())
        .unwrap_or_else(|| digest_of_everything(&(version, kubernetes_version)))
}

/// What the target is to what the status says.
pub fn change(target: &Target, status: &ClusterAddonStatus) -> Change {
    let Some(last) = &status.target else {
        return Change::First;
    };
    if target.is_digest_of(last) {
        return if last.cluster_stack == target.class {
            Change::None
        } else {
            Change::SameAddons
        };
    }
    let same_kubernetes = last.kubernetes_version.as_deref() == Some(target.kubernetes_version.as_str());
    if status.applied.as_ref().is_some_and(|applied| applied == last) {
        Change::Next { same_kubernetes }
    } else {
        Change::Preempts { same_kubernetes }
    }
}

impl Target {
    /// How the status says it.
    pub fn recorded(&self) -> AddonVersion {
        AddonVersion {
            cluster_stack: self.class.clone(),
            version: self.version.clone(),
            kubernetes_version: Some(self.kubernetes_version.clone()),
            digest: Some(self.digest.clone()),
        }
    }

    /// Whether what was recorded of the stages of that version is about this one.
    pub(super) fn is_digest_of(&self, recorded: &AddonVersion) -> bool {
        recorded.digest.as_deref() == Some(self.digest.as_str())
    }

    /// The value of the annotation that says what creation made.
    pub fn created_with(&self) -> String {
        format!("{}@{}", self.version, self.kubernetes_version)
    }
}
