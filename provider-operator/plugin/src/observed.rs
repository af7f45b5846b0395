//! What a cloud shows of one object's images. Says what is there, and nothing of what to do about it.

use crate::{Attempt, ContentKey, ImageId, OwnerId, Pinned};

/// What is there for a [`Subject`](crate::Subject), at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Ours, of any key, sorted by (key, attempt).
    pub records: Vec<Record>,
    /// Not ours: of the wanted name when that was asked for, and the one to adopt, sorted by id.
    pub others: Vec<Foreign>,
}

/// An image that carries our owner and this object, of any key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its id in the cloud.
    pub id: ImageId,
    /// The key it was made for.
    pub key: ContentKey,
    /// The number it was made with.
    pub attempt: Attempt,
    /// Which installation works on it: the one that [`hold`](crate::ImageStore::hold) was called for last, else its owner.
    pub holder: OwnerId,
    /// What has become of it.
    pub state: RecordState,
    /// Bytes that are stored, once the cloud says so. A provider that resumes says how many it has so far.
    pub size: Option<u64>,
    /// SHA-512 of what is stored, as the cloud (and never we) computed it: 128 lower-case hex digits.
    pub sha512: Option<String>,
    /// The format in the cloud's word.
    pub format: Option<String>,
    /// What [`publish`](crate::ImageStore::publish) marked it with, if it has.
    pub verified: Option<String>,
    /// Whether it can be found and used by those who look for it by name. False until published.
    pub shown: bool,
    /// What differs from the options and could be amended, sorted by field.
    pub drift: Vec<Drift>,
    /// Changes whenever the cloud shows movement, and means nothing else: its time of change, its size, the words of its task.
    pub marker: String,
}

/// What has become of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// Without bytes, or with a part that a transfer goes on with. Takes a transfer.
    Empty,
    /// What failed in it stays in it: it takes no transfer any more, and never becomes [`RecordState::Whole`].
    Spoilt {
        /// What failed, as a sentence for people.
        why: String,
    },
    /// Somebody is sending bytes: we, or somebody who died and whose connection is not closed yet. Ends by itself.
    Receiving,
    /// The cloud fetches the bytes itself.
    Importing {
        /// What its task says, if anything.
        message: String,
    },
    /// Has all its bytes.
    Whole,
    /// Has its bytes, and somebody forbade their use.
    Withdrawn,
    /// The cloud gave it up.
    Dead,
    /// Is being deleted.
    Going,
}

/// One field of an image that is not as the options say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift {
    /// The field in the provider's own words.
    pub field: String,
    /// What it is.
    pub found: String,
    /// What it should be.
    pub wanted: String,
}

/// An image of the wanted name, or the one asked to adopt, that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its id in the cloud.
    pub id: ImageId,
    /// Whether it lies where ours would: two of one name there are ambiguous for who looks by name.
    pub is_of_our_project: bool,
    /// Whether it has its bytes and may be used now.
    pub is_usable: bool,
    /// Whether it can be used only because its owner, who may be anybody, gave it to everybody in the cloud: then its name says nothing of what it is.
    pub is_of_community: bool,
    /// Bytes that are stored.
    pub size: Option<u64>,
    /// SHA-512 of what is stored, if the cloud says so: 128 lower-case hex digits.
    pub sha512: Option<String>,
    /// The digest by which the image itself is named where it lies, as that of a manifest in a registry; `None` where images have no such.
    pub digest: Option<Pinned>,
    /// Name, state and owner, as words for people.
    pub description: String,
}

impl Foreign {
    /// One that lies where ours would, with these words about it, and of which nothing else is known.
    pub fn beside_ours(id: ImageId, description: impl Into<String>) -> Self {
        Self {
            id,
            is_of_our_project: true,
            is_usable: false,
            is_of_community: false,
            size: None,
            sha512: None,
            digest: None,
            description: description.into(),
        }
    }
}
