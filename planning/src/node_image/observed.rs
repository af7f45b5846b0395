//! What one look at a provider's release object and its surroundings has found. Facts only: nothing here is judged.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack_release::ReleaseAssets;
use crds::conditions::{ConditionType, Severity, find, is_true};
use crds::names::{ReleaseTag, StackVersion};
use crds::providers::Provider;
use crds::providers::image_status::{ImagePhase, NodeImageStatus, Progress, ProviderReleaseStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::entries::ImageEntry;
use crate::outage::Outage;
use crate::stack::ActionFailure;

/// Everything that a decision about one release object needs, besides the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ReleaseObserved {
    /// Whose kinds.
    pub provider: Provider,
    /// Name of the object: the tag of the release.
    pub name: String,
    /// Its identity, as owner references have it.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether a deletion timestamp is set.
    pub deleting: bool,
    /// Whether our finalizer is there.
    pub finalizer: bool,
    /// Whether the object is paused by annotation.
    pub paused: bool,
    /// Whether `clusterctl` has made it in another management cluster and deletes this one.
    #[serde(default)]
    pub moved: bool,
    /// Value of the annotation that asks for a reconcile now.
    pub requested_at: Option<String>,
    /// The files of the release.
    pub files: Files,
    /// Whether the watch of image objects has listed them; before that nothing is known of them.
    pub listed: bool,
    /// Image objects of the provider in the namespace that the release owns, or that have a name that it wants.
    pub objects: BTreeMap<String, ImageView>,
    /// Image objects that `clusterctl` took to another management cluster a while ago, by name, and when nobody need think of them any more: the
    /// object of the release follows them in a moment, and whatever is made anew until then would go with it, and take the image along.
    #[serde(default)]
    pub moved_images: BTreeMap<String, Timestamp>,
    /// Actions of this process that failed last, by their subject ([`ReleaseAction::subject`](super::ReleaseAction::subject)).
    pub failures: BTreeMap<String, ActionFailure>,
    /// The status as read.
    pub status: ProviderReleaseStatus,
    /// When this process last wrote the status.
    pub status_written_at: Option<Timestamp>,
}

/// What is known of the files of the release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Files {
    /// They are being fetched, or have not been asked for yet.
    NotRead,
    /// The source cannot be used as it is configured.
    Unusable {
        /// What to change.
        message: String,
    },
    /// The source does not answer.
    Unavailable {
        /// What it said.
        message: String,
        /// How long this has been so.
        outage: Option<Outage>,
    },
    /// The source does not have the release.
    Missing {
        /// What it said.
        message: String,
    },
    /// They cannot be used; only another release helps.
    Broken {
        /// What is wrong.
        message: String,
    },
    /// They are not those that the release is pinned to.
    DigestDiffers {
        /// The digest that they must have.
        pinned: String,
        /// The one that they have.
        found: String,
    },
    /// They are there and sound.
    Ready {
        /// The images that they ask for; none where the release has none for this provider.
        images: Vec<ImageEntry>,
        /// What they are.
        assets: ReleaseAssets,
    },
}

/// One owner of an image object: a release object of the same provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OwnerView {
    /// Its identity.
    pub uid: String,
    /// Its name: the tag of the release.
    pub name: String,
}

impl OwnerView {
    /// The version of the stack in its name.
    pub(super) fn version(&self) -> Option<StackVersion> {
        version_of(&self.name)
    }
}

/// The version of the stack that a release object is of.
pub(super) fn version_of(name: &str) -> Option<StackVersion> {
    let tag: ReleaseTag = name.parse().ok()?;
    Some(tag.version().clone())
}

/// One image object as the release sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ImageView {
    /// Its identity.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The release objects that own it, whether they exist or not.
    pub owners: BTreeSet<OwnerView>,
    /// Whether something else than release objects of the provider owns it too.
    pub foreign: bool,
    /// Its spec, as [`normal_spec`](super::normal_spec) writes it; null when it cannot be read.
    pub spec: Value,
    /// What must not differ between releases that share it, by the same.
    pub content: String,
    /// Whether the image can be used.
    pub ready: bool,
    /// What is being done.
    pub phase: Option<ImagePhase>,
    /// The same in words, with what moves all the time.
    pub message: Option<String>,
    /// How far it is.
    pub progress: Option<Progress>,
    /// How many bytes the image has, once it is there.
    pub size: Option<i64>,
    /// Why it is not ready, as a word.
    pub reason: Option<String>,
    /// How bad that is.
    pub severity: Option<Severity>,
    /// Why, in words without what moves all the time.
    pub explanation: Option<String>,
    /// Whether nothing will change until somebody acts on it.
    pub stalled: bool,
}

impl ImageView {
    /// The same with what the status of the object says, which has this `metadata.generation`.
    #[must_use]
    pub fn with_status(self, status: &NodeImageStatus, generation: i64) -> Self {
        // What is said of another spec is not said of this one.
        let is_current = status.observed_generation == Some(generation);
        let ready = find(&status.conditions, ConditionType::Ready);
        Self {
            ready: status.ready && is_current,
            phase: status.phase,
            message: status.message.clone(),
            progress: status.progress.clone(),
            size: status.image.as_ref().and_then(|image| image.size_bytes),
            reason: ready.and_then(|ready| ready.reason.clone()),
            severity: ready.and_then(|ready| ready.severity),
            explanation: ready.and_then(|ready| ready.message.clone()),
            stalled: is_current && is_true(&status.conditions, ConditionType::Stalled),
            ..self
        }
    }
}
