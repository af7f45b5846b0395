//! What one look at a ClusterStackRelease and its surroundings has found.
//!
//! Facts only: nothing here is judged. Whoever fills these types reads caches, watches and the process's memory; whoever decides
//! (the rest of this module) reads nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack_release::{ClusterStackReleaseSpec, ClusterStackReleaseStatus};
use crds::resource::Health;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::claim::Standing;
use crate::next::{rests_until, retry_delay_seconds};
use crate::object_key::{GroupKind, ObjectKey, ObjectRef};
use crate::outage::Outage;
use crate::unlisted::Unlisted;
use crate::waves::Wave;

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
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
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

/// State of the rendering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Rendering {
    /// Nothing to render: no assets, or the object is being deleted.
    NotRendered,
    /// The chart does not render.
    Failed {
        /// The chart engine's words.
        message: String,
        /// What was tried, when time alone may mend it; otherwise the chart has to be mended.
        #[serde(default)]
        transient: Option<RenderAttempts>,
    },
    /// It takes long, or has many before it. Whoever looked is told when it is over.
    Awaited {
        /// What came of it last time, when it failed then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// The objects that the chart asks for.
    Rendered {
        /// What to apply, by key.
        intents: BTreeMap<ObjectKey, Intent>,
    },
}

/// Renderings that failed one after the other, for reasons that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderAttempts {
    /// How many times in a row.
    pub attempts: u32,
    /// When it failed last.
    pub at: Timestamp,
}

impl RenderAttempts {
    /// When it may be tried again: each time later, up to five minutes. `None` when it may be by now.
    pub fn retry_at(self, now: Timestamp) -> Option<Timestamp> {
        let delay = SignedDuration::from_secs(retry_delay_seconds(self.attempts));
        rests_until(self.at, delay, now)
    }
}

/// One object that the rendering wants; its body stays with the renderer, under the digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Version and key.
    pub object: ObjectRef,
    /// Digest of the body that will be applied, without the mark of the release: two releases that want the same have the same digest.
    pub digest: String,
    /// Its place in the order of application.
    pub wave: Wave,
}

/// What is known of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectObserved {
    /// API version to address it with.
    pub version: String,
    /// Whether the API server serves the kind (in the version that the rendering names).
    pub served: bool,
    /// Whether objects of the kind have namespaces.
    #[serde(default)]
    pub scope: KindScope,
    /// Whether the watch of the kind has delivered its first list.
    pub watched: bool,
    /// What the watch of marked objects shows; `None` when it shows nothing under this key.
    pub seen: Option<Seen>,
    /// The other release that has the object, if one does: see [`holder`](super::holder). Looked up only where it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Whether the inventory of another release that stays names the object. Looked up only for objects that might have to go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// What this process did to the object and learned from it.
    pub memory: ObjectMemory,
}

impl ObjectObserved {
    /// Whether it is there and being deleted.
    pub(super) fn is_going(&self) -> bool {
        let seen = self.seen.as_ref().is_some_and(|seen| seen.deleting);
        seen || matches!(self.memory.read, Some(Read::Found { deleting: true, .. }))
    }
}

/// Whether the objects of a kind have namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KindScope {
    /// Nobody can tell: the API server does not serve the kind, or does not say whether it does.
    #[default]
    Unknown,
    /// They have.
    Namespaced,
    /// They have none.
    ClusterWide,
}

impl KindScope {
    /// This, or what somebody else says where it is not known.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Unknown => other(),
            known => known,
        }
    }
}

/// Another release that holds an object which this one wants too: two versions of a stack may render the same node image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its namespace, where that is not the one of this release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub release: String,
    /// How it stands to this one.
    #[serde(default)]
    pub standing: Standing,
    /// Digest of the intent that it says it applied; `None` while it has not said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// One marked object as the metadata watch (or our own last write) shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Identity.
    pub uid: String,
    /// Digest of what a drift would change: generation (or resource version), labels, annotations, identity.
    pub trigger: String,
    /// Resource version, to tell a status write from silence.
    pub resource_version: String,
    /// Whether the mark is this release's.
    pub ours: bool,
    /// Whether the object is being deleted.
    pub deleting: bool,
}

/// What this process remembers of an object. Losing it costs a read or a dry run, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectMemory {
    /// The live object is known to hold this intent, or held it when it was last there.
    pub verified: Option<Verified>,
    /// A dry run showed that the live object differs from the intent.
    pub drifted: Option<Drifted>,
    /// The object was read by name, and nothing has happened to it since.
    pub read: Option<Read>,
    /// How often something was told to have happened to it, by which an answer that is older is known. No decision rests on it.
    #[serde(skip)]
    pub changes: u64,
    /// Health as last computed from a full object.
    pub health: Option<HealthSeen>,
    /// The last operation on it failed.
    pub failure: Option<Failure>,
    /// When we put somebody's change back, the newest last.
    pub reversals: Vec<Timestamp>,
    /// Another manager that owns fields we wanted.
    pub foreign_manager: Option<String>,
}

/// An intent that the live object was seen to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Digest of the intent.
    pub intent: String,
    /// Trigger of the live object at that moment.
    pub trigger: String,
    /// Whether what it holds is ours. An object that was moved here or restored holds the intent, and its fields are those of whoever did that.
    pub owned: bool,
}

/// A difference that a dry run showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drifted {
    /// Digest of the intent.
    pub intent: String,
    /// Trigger of the live object at that moment.
    pub trigger: String,
    /// The fields that differ, as JSON pointers, sorted.
    pub fields: Vec<String>,
    /// The managers that own them, sorted.
    pub managers: Vec<String>,
}

/// An object as read by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Read {
    /// The API server answered 404.
    Absent,
    /// It is there.
    Found {
        /// Identity.
        uid: String,
        /// Its version at that moment.
        resource_version: String,
        /// Whose it is.
        belongs: Belongs,
        /// Whether `helm.sh/resource-policy: keep` is on it.
        keep: bool,
        /// Whether it is being deleted.
        deleting: bool,
        /// When it was read: nothing tells of an object that no watch shows.
        at: Timestamp,
    },
}

/// Whose an existing object is, told by its marks and by who manages its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Belongs {
    /// Our mark, or our field manager, is on it.
    Us,
    /// The Go operator applied it.
    Predecessor,
    /// Another release's mark is on it.
    OtherOwner,
    /// A mark is on it that no release makes, because somebody gave it away, or that of a release which is there and which this operator does not see.
    Stranger,
    /// No mark at all.
    Nobody,
}

/// Health of an object at one resource version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthSeen {
    /// The state.
    pub state: Health,
    /// What is wrong or awaited; empty when nothing is.
    pub message: String,
    /// Resource version of the object that was judged.
    pub resource_version: String,
    /// When it was read, so that reads can be spaced.
    pub at: Timestamp,
}

/// What can fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attempt {
    /// To make the object hold an intent.
    Intent {
        /// Digest of the intent.
        digest: String,
    },
    /// To look at the object.
    Look,
    /// To delete it.
    Deletion,
}

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was tried.
    pub tried: Attempt,
    /// The API server's words.
    pub message: String,
    /// Whether nothing was wrong but that stored data would have been lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loses_data: bool,
    /// How many times in a row.
    pub attempts: u32,
    /// When it failed last.
    pub at: Timestamp,
}
