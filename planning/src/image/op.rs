//! What is done to clouds and sources, and how far it is. Decides nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::failure::Failure;

/// What is under way for one object: at most one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// What.
    pub deed: Deed,
    /// For which content.
    pub key: String,
    /// Where it runs.
    pub form: Form,
    /// How far it is.
    pub state: OpState,
}

/// How far something is. All times are steady ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpState {
    /// Others are before it.
    Queued {
        /// Since when.
        since: Duration,
        /// How many are before it.
        ahead: u32,
    },
    /// It is being done.
    Running {
        /// Since when.
        since: Duration,
        /// When it moved last.
        moved: Duration,
        /// Bytes that are done, and of how many.
        bytes: Option<(u64, Option<u64>)>,
    },
    /// It was told to end.
    Stopping {
        /// Since when.
        since: Duration,
        /// What for.
        why: StopReason,
    },
    /// It is over and not noted yet.
    Ended {
        /// How it went.
        outcome: Result<Done, Failure>,
        /// When it ended.
        at: Duration,
    },
}

/// Something that is done to a cloud or a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// Sees what is in the cloud.
    Look,
    /// Asks the source for size and digest, and the cloud for room; takes and creates nothing.
    Probe,
    /// Makes a record that is not shown yet.
    Create {
        /// Of which attempt.
        attempt: u32,
        /// The id, when it does not follow from the attempt.
        id: Option<String>,
    },
    /// Sends all bytes.
    Transfer {
        /// To which record.
        id: String,
        /// Of which attempt.
        attempt: u32,
        /// Whether they go to a stage, from which the cloud imports them.
        staged: bool,
    },
    /// Lets the cloud fetch the bytes; ends when it has begun to.
    Import {
        /// To which record.
        id: String,
        /// Of which attempt.
        attempt: u32,
    },
    /// Builds the image and sends it.
    Build {
        /// To which record.
        id: String,
        /// Of which attempt.
        attempt: u32,
    },
    /// Reads the image from the cloud and makes its digests.
    ReadBack {
        /// Which record.
        id: String,
        /// Of which attempt.
        attempt: u32,
    },
    /// Marks the image as verified and shows it, in one write.
    Publish {
        /// Which record.
        id: String,
        /// Of which attempt.
        attempt: u32,
        /// The digest of the file at the source that it was verified against.
        verified: String,
    },
    /// Brings options of the image in line that may be changed.
    Amend {
        /// Which record.
        id: String,
    },
    /// Deletes a record of ours.
    Discard {
        /// Which record.
        id: String,
        /// Of which attempt.
        attempt: u32,
        /// What for.
        why: DiscardReason,
    },
    /// Takes our marks off a record.
    Relinquish {
        /// Which record.
        id: String,
    },
}

/// A deed without its operands, in the order in which an image comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as the deeds of the same names")]
pub enum DeedName {
    Look,
    Probe,
    Create,
    Import,
    Transfer,
    Build,
    ReadBack,
    Publish,
    Amend,
    Discard,
    Relinquish,
}

impl Deed {
    /// Its name.
    pub const fn name(&self) -> DeedName {
        match self {
            Self::Look => DeedName::Look,
            Self::Probe => DeedName::Probe,
            Self::Create { .. } => DeedName::Create,
            Self::Transfer { .. } => DeedName::Transfer,
            Self::Import { .. } => DeedName::Import,
            Self::Build { .. } => DeedName::Build,
            Self::ReadBack { .. } => DeedName::ReadBack,
            Self::Publish { .. } => DeedName::Publish,
            Self::Amend { .. } => DeedName::Amend,
            Self::Discard { .. } => DeedName::Discard,
            Self::Relinquish { .. } => DeedName::Relinquish,
        }
    }
}

impl DeedName {
    /// Whether it takes as long as the bytes take, rather than one answer.
    pub const fn is_long(self) -> bool {
        matches!(self, Self::Transfer | Self::Build | Self::ReadBack)
    }
}

/// Why a record is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiscardReason {
    /// A later attempt takes its place.
    LowerAttempt,
    /// The image of another content, or a better one of the same, is verified.
    Superseded,
    /// The object is being deleted.
    Deleted,
}

/// How a deed went well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// What was seen is in memory.
    Looked,
    /// What was found is in memory.
    Probed,
    /// The record is there.
    Created {
        /// Its id.
        id: String,
    },
    /// The record was there, and an earlier life of ours made it.
    Ours {
        /// Its id.
        id: String,
    },
    /// The id is a stranger's, or was used before: this attempt can have no record. Or it can have no Job, because an earlier one does not go.
    Taken,
    /// All bytes were sent, and the cloud has them.
    Sent,
    /// The cloud has begun to fetch.
    ImportBegun,
    /// The digests are in memory.
    ReadBack,
    /// The image is shown.
    Published,
    /// The options are as wanted.
    Amended,
    /// The record is gone or going.
    Discarded,
    /// The record does not carry our mark any more.
    Relinquished,
}

/// Why something is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// The object is being deleted.
    Deleted,
    /// Something else is wanted.
    Changed,
    /// Somebody stopped the work.
    Paused,
    /// It does not move.
    Stalled,
    /// Another process leads.
    Fenced,
    /// This process ends.
    Draining,
}

/// Where a deed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// In the operator.
    InProcess,
    /// In a Job.
    Job,
}
