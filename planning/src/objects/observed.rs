//! What is known of one object: what is wanted of it, what a watch shows, what was read and tried.
//!
//! Facts only: nothing here is judged. Whoever fills these types reads watches and the process's memory; whoever decides reads nothing else.

use crds::resource::Health;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::object_key::ObjectRef;
use crate::waves::Wave;

/// One object that is wanted; its body stays with the renderer, under the digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Version and key.
    pub object: ObjectRef,
    /// Digest of the body that will be applied, without the mark of the owner: two owners that want the same have the same digest.
    pub digest: String,
    /// Its place in the order of application.
    pub wave: Wave,
}

/// What is known of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub struct ObjectObserved {
    /// API version to address it with.
    pub version: String,
    /// Whether the API server serves the kind (in the version that the intent names).
    pub served: bool,
    /// Whether objects of the kind have namespaces.
    #[serde(default)]
    pub scope: KindScope,
    /// Whether the watch of the kind has delivered its first list.
    pub watched: bool,
    /// Whether the kind has no watch now and is listed now and then, so that nothing tells what becomes of the object in between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_listed: bool,
    /// What the watch of marked objects shows; `None` when it shows nothing under this key.
    pub seen: Option<Seen>,
    /// The other release that has the object, if one does: see [`holder`](crate::release::holder). Looked up only where it matters; of an owner that
    /// shares nothing never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Whether the inventory of another owner that stays names the object. Looked up only for objects that might have to go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// What this process did to the object and learned from it.
    pub memory: ObjectMemory,
}

impl ObjectObserved {
    /// Whether a watch shows it with the owner's mark.
    pub fn is_ours(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| seen.ours)
    }

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

/// How another release stands to this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It is of the same stack, and newer.
    Newer,
    /// It is of the same stack, and older.
    Older,
    /// It is of another stack, or nothing says which of the two is newer.
    #[default]
    Unrelated,
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

impl Holder {
    /// Whether this release leaves the object to the holder, which has applied another form of it than `wanted`.
    pub(super) fn outranks(&self, wanted: Option<&str>) -> bool {
        self.standing == Standing::Newer && self.digest.is_some() && self.digest.as_deref() != wanted
    }

    /// Its name for people: with its namespace where that is not their own, because releases of one tag in several namespaces are usual.
    pub(crate) fn place(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.release),
            None => self.release.clone(),
        }
    }
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
    /// Whether the mark is this owner's.
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
    /// Another owner's mark is on it.
    OtherOwner,
    /// A mark is on it that no owner makes, because somebody gave it away, or that of an owner which is there and which this operator does not see.
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
    /// How often it was read since it was last known from an answer to a write.
    #[serde(default)]
    pub reads: u32,
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
