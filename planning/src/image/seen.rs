//! What one process has seen of an image, its source and the cluster. Only memory: after a restart nothing was seen. Decides nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::unshown::Unshown;
use super::wanted::Pinned;

/// What this process has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The images that concern the object.
    pub cloud: Sight<Cloud>,
    /// What the bytes come from.
    pub source: Sight<Source>,
    /// Whether Jobs can be had.
    pub jobs: JobsSight,
    /// What the cloud can do; `None` before the first connection.
    pub abilities: Option<Abilities>,
    /// The last time that options were brought in line.
    pub amended: Option<Amended>,
    /// What was done last and no look has shown yet.
    #[serde(default)]
    pub unshown: Option<Unshown>,
    /// How long a deletion waits for a cloud that does not answer.
    pub force_after: Duration,
    /// How long nothing may move before a transfer is given up.
    pub stall: Duration,
    /// How long a cloud may take to fetch an image, where somebody has said it; else that follows from its size.
    #[serde(default)]
    pub import_patience: Option<Duration>,
}

/// The last look at something. All times are steady ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sight<T> {
    /// This process has not looked yet.
    Unseen,
    /// The last look failed.
    Failed {
        /// How.
        failure: Failure,
        /// When the first look in a row failed.
        since: Duration,
        /// How many did.
        count: u32,
        /// When it is looked again: see [`look_again`](super::look_again).
        next: Duration,
    },
    /// The last look succeeded.
    Seen {
        /// What was seen.
        value: T,
        /// When.
        at: Duration,
        /// Whether nothing happened since that could have changed it: no deed of ours, no edit of the spec or the annotations, no other Secret, no
        /// request.
        fresh: bool,
    },
}

/// The images that concern one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cloud {
    /// Those with our owner's mark and the object's, of every content.
    pub records: Vec<RecordSeen>,
    /// Those of the wanted name, or the one to be taken over, that are not ours.
    pub others: Vec<ForeignSeen>,
}

/// An image of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordSeen {
    /// The cloud's id.
    pub id: String,
    /// Of which content.
    pub key: String,
    /// Of which attempt.
    pub attempt: u32,
    /// How far it is.
    pub state: RecordState,
    /// What the cloud says of that: why it takes no bytes, how far it is with them.
    #[serde(default)]
    pub words: Option<String>,
    /// The format that the cloud says it has.
    #[serde(default)]
    pub format: Option<String>,
    /// Bytes, as far as the cloud says.
    pub size: Option<u64>,
    /// The cloud's digest of the bytes, hexadecimal; `None` when it makes another kind of digest.
    pub sha512: Option<String>,
    /// The digest that we marked it as verified with.
    pub verified: Option<String>,
    /// Whether users find it by its name.
    pub shown: bool,
    /// Options that are not as wanted and may be changed.
    pub drift: Vec<Drift>,
    /// When this process first saw it in this state.
    pub first_seen: Duration,
    /// When this process last saw it move.
    pub moved: Duration,
    /// What reading it from the cloud gave; `None` when that was not tried.
    pub read_back: Option<ReadBack>,
    /// Whether another installation works on it, after the look: an object that is being deleted takes nothing over.
    #[serde(default)]
    pub held_elsewhere: bool,
}

/// How far an image of ours is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordState {
    /// It takes bytes.
    Empty,
    /// It took bytes that it does not want, and takes no others.
    Spoilt,
    /// Somebody is sending bytes.
    Receiving,
    /// The cloud is fetching bytes.
    Importing,
    /// All bytes are there.
    Whole,
    /// All bytes are there, and an admin lets nobody use them.
    Withdrawn,
    /// The cloud gave it up.
    Dead,
    /// It is being deleted.
    Going,
}

/// What reading an image from the cloud gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadBack {
    /// The digests of what was read, hexadecimal.
    Found {
        /// One.
        sha256: String,
        /// And the other.
        sha512: String,
        /// How much was read.
        bytes: u64,
    },
    /// The cloud does not give it: reading it was Unsupported, Invalid or without Permission.
    Refused,
}

/// An option that is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// Its name.
    pub field: String,
    /// What the cloud says.
    pub found: String,
    /// What it should say.
    pub wanted: String,
}

/// When which options were brought in line, or were to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amended {
    /// Those that differed.
    pub drift: Vec<Drift>,
    /// When.
    pub at: Duration,
    /// Why the cloud did not take them, if it did not.
    pub refused: Option<Failure>,
}

impl Amended {
    /// Whether it was about these differences, in whatever order.
    pub(super) fn is_of(&self, drift: &[Drift]) -> bool {
        self.drift.len() == drift.len() && self.drift.iter().all(|one| drift.contains(one))
    }
}

/// An image that is not ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignSeen {
    /// The cloud's id.
    pub id: String,
    /// Whether it is in our project.
    pub of_our_project: bool,
    /// Whether machines can start from it.
    pub usable: bool,
    /// Whether it can be used only because its owner, who may be anybody, gave it to everybody in the cloud.
    #[serde(default)]
    pub of_community: bool,
    /// Bytes.
    pub size: Option<u64>,
    /// The cloud's digest of the bytes, hexadecimal.
    pub sha512: Option<String>,
    /// The digest by which the image itself is named where it lies, as that of a manifest in a registry.
    #[serde(default)]
    pub digest: Option<Pinned>,
    /// What people know it by.
    pub description: String,
}

/// Where the bytes come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// How many there are.
    pub size: Option<u64>,
    /// Whether it gives a part of them.
    pub ranges: bool,
    /// The digest of the file, when a file of sums says so.
    pub digest: Option<Pinned>,
    /// Whether its beginning says that it is packed, where that was looked at.
    #[serde(default)]
    pub packed: bool,
    /// What may go wrong, in words.
    pub warnings: Vec<String>,
}

/// Whether Jobs can be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobsSight {
    /// They can.
    Usable,
    /// They can, and that of this object does not begin.
    Held {
        /// In words of the cluster: no node takes it, its image cannot be had.
        why: String,
    },
    /// They cannot.
    Off {
        /// In words, with what to do.
        why: String,
    },
}

impl JobsSight {
    /// What holds the Job of the object up, in words for people.
    pub(super) fn held(&self) -> Option<String> {
        match self {
            Self::Held { why } => Some(format!("its Job does not go on: {why}")),
            Self::Usable | Self::Off { .. } => None,
        }
    }
}

/// What a cloud can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// It fetches bytes itself.
    pub server_side: bool,
    /// It imports what was sent to a stage.
    pub staged: bool,
}
