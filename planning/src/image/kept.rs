//! What status holds of an image; nothing else survives a restart. Decides only whether an entry still holds.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::failure::FailureClass;
use super::op::DeedName;
use super::step::HaltReason;
use super::wanted::{Now, Wanted};

/// Longer than anything waits: a time further in the future was written before the clock was set back, and holds nothing up.
const LONGEST: SignedDuration = SignedDuration::from_mins(62);

/// What status holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kept {
    /// The attempt that may have a record in the cloud; 0 before the first. Never falls.
    pub attempt: u32,
    /// The content that the attempt is of.
    pub key: Option<String>,
    /// The image that is had, or was.
    pub image: Option<CloudImage>,
    /// The id of the image that is about to be shown.
    pub publishing: Option<String>,
    /// What was sent last, written before its last byte left.
    pub sealed: Option<Sealed>,
    /// What is tried again, and when.
    pub retry: Option<Retry>,
    /// The last of the transfers or builds in a row that were for nothing, where it matters how many there were. What else fails in between does not end the
    /// row, however their records in the cloud end.
    pub in_vain: Option<Retry>,
    /// Why nothing is done until somebody changes something.
    pub halted: Option<Halted>,
    /// Imports by the cloud that failed in a row.
    pub imports_failed: u32,
    /// Images in a row that were whole and were not what they should be.
    pub mismatches: u32,
    /// Images in a row that were whole and could not be compared with anything.
    pub unverifiable: u32,
}

impl Kept {
    /// What was sealed of this attempt.
    pub(super) fn sealed_of(&self, attempt: u32) -> Option<&Sealed> {
        self.sealed.as_ref().filter(|sealed| sealed.attempt == attempt)
    }
}

/// An image in the cloud that is had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudImage {
    /// The cloud's id.
    pub id: String,
    /// Its name there.
    pub name: String,
    /// Its size.
    pub size_bytes: Option<u64>,
    /// The digest of its bytes, hexadecimal.
    pub sha512: Option<String>,
    /// The digest of the file at the source, as `sha256:<hex>`: what is trusted from the first use on.
    pub source_digest: Option<String>,
    /// Whether somebody else made it. Such an image is never changed and never deleted.
    pub adopted: bool,
}

/// What the image of one attempt must be if it is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sealed {
    /// Of which attempt.
    pub attempt: u32,
    /// The digest of the file at the source, as `sha256:<hex>`.
    pub source_digest: String,
    /// The digest of what was sent, hexadecimal.
    pub sha512: String,
    /// How many bytes were sent.
    pub bytes: u64,
}

/// Something that is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// What failed.
    pub deed: DeedName,
    /// How.
    pub class: FailureClass,
    /// In the words of whoever refused it.
    pub message: String,
    /// How often in a row it failed so.
    pub count: u32,
    /// When it did for the first time.
    pub first_time: Timestamp,
    /// When it is tried again.
    pub until: Timestamp,
    /// With which version of the Secret it failed.
    pub identity: Option<String>,
    /// Which request was known when it failed.
    pub request: Option<String>,
    /// With which edit of the spec it failed.
    pub generation: i64,
}

impl Retry {
    /// Whether it is of what is wanted now: neither the spec nor the Secret is another one, and nobody has asked since.
    pub(super) fn concerns(&self, wanted: &Wanted) -> bool {
        self.generation == wanted.generation && self.identity == wanted.identity && self.request == wanted.request
    }

    /// Whether it is still to be waited for. An edit of the spec, another Secret or a new request ends the wait.
    pub(super) fn holds(&self, wanted: &Wanted, now: Now) -> bool {
        let too_far = now.wall.checked_add(LONGEST).is_ok_and(|latest| self.until > latest);
        now.wall < self.until && !too_far && self.concerns(wanted)
    }

    /// Whether bytes were moved or an image was built for nothing, and how often counts.
    pub(super) const fn is_in_vain(&self) -> bool {
        self.class.is_counted_on(self.deed)
    }

    /// Whether clearing away failed, which holds up nothing but more of it.
    pub(super) fn is_of_tidying(&self) -> bool {
        matches!(self.deed, DeedName::Discard | DeedName::Relinquish)
    }
}

/// Why nothing is done, and what would change that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Halted {
    /// Why.
    pub reason: HaltReason,
    /// In words.
    pub message: String,
    /// Which content it is about.
    pub key: String,
    /// Which edit of the spec.
    pub generation: i64,
    /// Which version of the Secret.
    pub identity: Option<String>,
    /// Which request was known.
    pub request: Option<String>,
}

impl Halted {
    /// Halted now, until what is wanted changes.
    pub(super) fn now(reason: HaltReason, message: &str, wanted: &Wanted) -> Self {
        Self {
            reason,
            message: message.to_owned(),
            key: wanted.key.clone(),
            generation: wanted.generation,
            identity: wanted.identity.clone(),
            request: wanted.request.clone(),
        }
    }

    /// Whether nothing changed since: neither the content nor the options, neither the Secret nor what is asked for.
    pub(super) fn holds(&self, wanted: &Wanted) -> bool {
        let Self {
            reason: _,
            message: _,
            key,
            generation,
            identity,
            request,
        } = self;
        *key == wanted.key
            && *generation == wanted.generation
            && *identity == wanted.identity
            && *request == wanted.request
    }
}
