//! What one look at a ClusterStackRelease and its surroundings has found.
//!
//! Facts only: nothing here is judged. Whoever fills these types reads caches, watches and the process's memory; whoever decides
//! (the rest of this module) reads nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack_release::{ClusterStackReleaseSpec, ClusterStackReleaseStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::object_key::{GroupKind, ObjectKey};
use crate::objects::{ObjectObserved, ObjectSet, OwnerKind, Prune, Rendering};
use crate::outage::Outage;
use crate::unlisted::Unlisted;

/// Everything that a decision about one release needs, besides the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleaseObserved {
    /// Name of the object, which is the release tag.
    pub tag: String,
    /// Namespace of the object; rendered namespaced objects live here too.
    pub namespace: String,
    /// Identity of the object, so that an owner reference can name it.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether a deletion timestamp is set.
    pub deleting: bool,
    /// Whether our finalizer is on the object.
    pub finalizer: bool,
    /// The kinds named by the annotation that lets a lost status be rebuilt by looking.
    pub group_kinds: BTreeSet<GroupKind>,
    /// Those of them that are served and whose watch has not listed yet: it may show objects that nothing else tells of.
    #[serde(default)]
    pub unlisted: BTreeSet<GroupKind>,
    /// Whether the object is paused by annotation.
    pub paused: bool,
    /// Value of the annotation that asks for a reconcile now.
    pub requested_at: Option<String>,
    /// Value of the annotation that approves one prune by its digest.
    pub approved_prune: Option<String>,
    /// The spec as read.
    pub spec: ClusterStackReleaseSpec,
    /// The status as read: the inventory lives in it.
    pub status: ClusterStackReleaseStatus,
    /// When this process last wrote the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_written_at: Option<Timestamp>,
    /// The Clusters (`namespace/name`) that use the class of this release; `None` while the watch has not listed them yet.
    pub used_by: Option<BTreeSet<String>>,
    /// The files of the release.
    pub assets: Assets,
    /// The provider's release object.
    pub provider: Provider,
    /// Why watches of kinds of the objects, or of those of the annotation, have not listed yet, where the API server has said why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "crate::pairs")]
    pub unwatched: BTreeMap<GroupKind, String>,
    /// Those of them that the operator has not the right to list.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub forbidden: BTreeSet<GroupKind>,
    /// The provider's object that this process made the release the controlling owner of last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controlled: Option<Controlled>,
    /// The class chart turned into objects.
    pub rendering: Rendering,
    /// Every object that the inventory names, the rendering wants or a watch shows with our mark.
    pub objects: BTreeMap<ObjectKey, ObjectObserved>,
}

impl ReleaseObserved {
    /// Its objects, and how the spec wants them to be treated.
    pub fn set(&self) -> ObjectSet<'_> {
        static NONE: BTreeSet<ObjectKey> = BTreeSet::new();
        let policy = self.spec.policy.as_ref();
        ObjectSet {
            owner: OwnerKind::Release,
            intents: self.rendering.intents(),
            rows: &self.status.resources,
            objects: &self.objects,
            shows_others: true,
            unlisted: &self.unlisted,
            unwatched: &self.unwatched,
            forbidden: &self.forbidden,
            held: &NONE,
            drift: policy.map(|policy| policy.drift).unwrap_or_default(),
            prune: Prune {
                limit: policy.map(|policy| policy.prune_limit).unwrap_or_default(),
                annotation: self.approved_prune.as_deref(),
                approved: self.status.approved_prune.as_deref(),
            },
            deleting: self.deleting,
        }
    }
}

/// State of the release's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Assets {
    /// Not looked at, because the object is paused, or is being deleted and not known to be in use.
    NotRead,
    /// The source does not have the release (yet), or cannot be asked.
    Missing {
        /// The source's words.
        message: String,
        /// Whether the source answers and has no such release.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        withdrawn: bool,
        /// How long it was tried to get it, of what is tried again and again and did not come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outage: Option<Outage>,
    },
    /// The release is there and cannot be used until somebody mends it.
    Broken {
        /// The file and the reason.
        message: String,
    },
    /// The release is there and complete, and its policy does not admit it.
    Refused {
        /// What is wrong with its signature.
        message: String,
        /// Whether a signature or a key that may come would be enough.
        awaited: bool,
    },
    /// The release is there and complete.
    Ready {
        /// Digest over all files, `sha256:<hex>`.
        digest: String,
        /// What else the source now has under the tag, as a digest, when these files are the older ones, kept since they were pinned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moved_to: Option<String>,
        /// Bytes of all files; 0 where nobody counted them.
        #[serde(default)]
        size: u64,
        /// Where it came from, for people.
        source: String,
        /// `versions.kubernetes` of the metadata, verbatim.
        kubernetes_version: String,
        /// Who signed it, if somebody looked and it was somebody who is trusted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verified_by: Option<String>,
        /// What is wrong with its signature, though its policy lets it be used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
}

impl Assets {
    /// The digest that the status pins, when the source now holds another one.
    pub fn moved_from<'status>(&self, status: &'status ClusterStackReleaseStatus) -> Option<&'status str> {
        let pinned = status.assets.as_ref()?.digest.as_str();
        match self {
            Self::Ready { digest, .. } if digest != pinned => Some(pinned),
            _ => None,
        }
    }
}

/// State of the provider's release object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Provider {
    /// The release names no provider.
    NotWanted,
    /// What the release names is of no kind that a provider brings, and was not looked at.
    Foreign,
    /// The API server does not serve the kind that the release names.
    KindMissing {
        /// The kind, as `Kind.group`.
        kind: String,
    },
    /// The watch of the kind has not listed its objects yet.
    NotListed(Unlisted),
    /// The object does not exist (yet).
    Missing,
    /// The object is there.
    Found {
        /// Its identity.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        uid: String,
        /// `status.ready`.
        ready: bool,
        /// Whether this release is its controlling owner.
        controlled: bool,
        /// Who else is its controlling owner.
        foreign_controller: Option<String>,
        /// `status.phase`, when the provider tells.
        phase: Option<String>,
        /// `status.message`, or the message of its Ready condition.
        message: Option<String>,
        /// `status.progress`, when the provider tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<ProviderProgress>,
    },
}

/// A provider's object that was taken under control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controlled {
    /// Its identity.
    pub uid: String,
    /// When.
    pub at: Timestamp,
}

/// How far a provider is with what it does for a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderProgress {
    /// What is done.
    pub done: u64,
    /// What there is to do, as far as the provider knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Of what, such as `bytes` or `images`; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
}
