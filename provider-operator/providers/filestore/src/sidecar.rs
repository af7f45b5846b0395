//! What is written beside the bytes of a record: its marks, and what is known of its bytes. Text in, values out.

use jiff::Timestamp;
use provider_plugin::{Attempt, ContentKey, ImageSpec, OwnerId};
use serde::{Deserialize, Serialize};

/// Whose a record is. Never changed: what it says holds as long as the record is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Marks {
    pub(crate) owner: OwnerId,
    pub(crate) object: String,
    pub(crate) key: ContentKey,
    pub(crate) attempt: Attempt,
    pub(crate) name: String,
    pub(crate) created: Timestamp,
    /// Another one for every record that was ever made, so that what was written for one of them is never taken for another's.
    pub(crate) token: String,
}

impl Marks {
    pub(crate) fn new(image: &ImageSpec, attempt: Attempt, created: Timestamp, token: String) -> Self {
        let subject = &image.subject;
        Self {
            owner: subject.owner.clone(),
            object: subject.object.clone(),
            key: subject.key.clone(),
            attempt,
            name: subject.name.clone(),
            created,
            token,
        }
    }

    /// Whether both are of the same record of the same object.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let of = |marks: &Self| {
            (
                marks.owner.clone(),
                marks.object.clone(),
                marks.key.clone(),
                marks.attempt,
            )
        };
        of(self) == of(other)
    }
}

/// Which installation works on a record, where one said so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Holder {
    /// Of the record that it is for.
    pub(crate) token: String,
    pub(crate) holder: OwnerId,
}

/// What is known of the bytes of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct State {
    /// Of the record that it is for.
    pub(crate) token: String,
    /// What the bytes are the beginning of, when they are of use for going on.
    pub(crate) origin: Option<String>,
    /// So many of them are certainly on the disk.
    pub(crate) synced: u64,
    /// Digests of all of them, once they are all there.
    pub(crate) whole: Option<Whole>,
    /// With what it was published.
    pub(crate) verified: Option<String>,
}

/// All bytes of an image, as they were read back from the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Whole {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
    pub(crate) sha512: String,
}
