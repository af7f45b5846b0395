//! What is wanted of an image, as decisions see it: the spec, what annotations ask for, and the clock. Reads nothing.

use std::fmt;
use std::time::Duration;

pub use crds::providers::image_options::{DeletionPolicy, Execution, ImagePolicy, Via};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The time of one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// What is stored is measured with this; it may be set back.
    pub wall: Timestamp,
    /// Since the process began. Never goes back, and means nothing to another process.
    pub steady: Duration,
}

/// One image as it is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something of its own, as users wrote it"
)]
pub struct Wanted {
    /// What the bytes are, whose they are, and what cannot be changed later: see [`content_key`](super::content_key).
    pub key: String,
    /// The image's name in the cloud.
    pub name: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Uid and resourceVersion of the Secret; `None` when it is not there.
    pub identity: Option<String>,
    /// The value of the annotation that asks for another look.
    pub request: Option<String>,
    /// Whose image it may be.
    pub policy: ImagePolicy,
    /// Whether the provider has no images of its own: nothing was ever made, so nothing has to be deleted.
    #[serde(default)]
    pub made_by_others: bool,
    /// The id of the image that the user says to take over.
    pub adopt: Option<String>,
    /// The id that the user chose; for the first attempt alone, because an id is never free again.
    pub chosen_id: Option<String>,
    /// What becomes of the image when the object is deleted.
    pub deletion: DeletionPolicy,
    /// How the bytes get into the cloud.
    pub via: Via,
    /// Whether the cloud could fetch the bytes itself: http or https, and without a Secret.
    pub fetchable: bool,
    /// How long the build may take; `None` when nothing is built.
    pub build: Option<Duration>,
    /// The digest of the file at the source.
    pub digest: Option<Pinned>,
    /// Whether the bytes at the source are not those that are sent.
    pub compressed: bool,
    /// The format that the bytes are said to have, in the cloud's word; `None` where nobody says it.
    #[serde(default)]
    pub format: Option<String>,
    /// Where transfers run.
    pub execution: Execution,
    /// What is wrong with the spec, in words.
    pub invalid: Option<String>,
    /// Whether somebody stopped the work on it.
    pub paused: bool,
    /// Whether `clusterctl` has made it in another management cluster and deletes this one: what is in the cloud is that one's.
    #[serde(default)]
    pub moved: bool,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// Whether our finalizer is there.
    pub finalizer: bool,
    /// Whether the object says under which owner its images are marked in the cloud.
    pub owner_noted: bool,
    /// Whether the user says that the object may go though its image is in use.
    pub force_finalize: bool,
}

impl Wanted {
    /// Whether an image that is there already is asked for, and none may be made.
    pub(super) fn adopts(&self) -> bool {
        self.policy == ImagePolicy::Adopt || self.adopt.is_some()
    }

    /// Whether an image that anybody may have put there could be used by its name. Its bytes must be the promised ones, and clouds tell the sha512 of them.
    pub fn may_use_given(&self) -> bool {
        let is_by_name = self.policy != ImagePolicy::Create && self.adopt.is_none();
        let promised = self.digest.as_ref().filter(|_| !self.compressed);
        is_by_name && promised.is_some_and(|promised| promised.algorithm == Algorithm::Sha512)
    }
}

/// A digest that is known before the bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    /// How it is made.
    pub algorithm: Algorithm,
    /// The digest in lower-case hexadecimal digits.
    pub hex: String,
}

/// How a digest is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// 64 digits.
    Sha256,
    /// 128 digits.
    Sha512,
}

impl Algorithm {
    const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }
}

impl Pinned {
    /// Reads `sha256:<64 digits>` or `sha512:<128 digits>`, hexadecimal and in lower case; `None` for anything else.
    pub fn parse(digest: &str) -> Option<Self> {
        let (name, hex) = digest.split_once(':')?;
        let algorithms = [(Algorithm::Sha256, 64), (Algorithm::Sha512, 128)];
        let (algorithm, digits) = algorithms.into_iter().find(|(algorithm, _)| algorithm.name() == name)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (hex.len() == digits && hex.bytes().all(is_digit)).then(|| Self {
            algorithm,
            hex: hex.to_owned(),
        })
    }

    /// Whether a digest in the form `sha256:<hex>` is another one of the same kind. Digests of two kinds say nothing about each other.
    pub fn contradicts(&self, digest: &str) -> bool {
        digest
            .split_once(':')
            .is_some_and(|(algorithm, hex)| algorithm == self.algorithm.name() && hex != self.hex)
    }
}

impl fmt::Display for Pinned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.algorithm.name(), self.hex)
    }
}
