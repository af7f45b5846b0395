//! What is done next. Decides nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::kept::{CloudImage, Halted, Retry};
use super::op::{Deed, Form, StopReason};
use super::wait::Wait;

/// One step. Whoever performs it looks again afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Write what [`after`](super::after()) says to status, with the resourceVersion that was read, before the effect that follows from it.
    Record(Intent),
    /// Begin a deed.
    Do {
        /// Which.
        deed: Deed,
        /// Where.
        form: Form,
    },
    /// Tell what is under way to end.
    Stop(StopReason),
    /// Write what [`after`](super::after()) says of what has ended to status, then forget that it was under way.
    Settle(Settlement),
    /// Put finalizer and owner annotation on the object, before anything else.
    Claim,
    /// Nothing is owed to the cloud any more: take the finalizer away.
    Finish {
        /// Images that may be left in the cloud.
        left_behind: Vec<String>,
    },
    /// Nothing, for now.
    Await(Wait),
    /// It is as wanted.
    Rest {
        /// The steady time of the next look.
        look: Duration,
    },
    /// Nothing, until somebody changes something.
    Hold(Halt),
}

/// What is written before it is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// From now on this attempt may have a record, and those before it are discarded.
    Attempt {
        /// Its number.
        number: u32,
        /// Of which content.
        key: String,
        /// What for.
        why: AttemptReason,
    },
    /// This image is about to be shown.
    Publishing {
        /// Its id.
        id: String,
        /// Of which attempt.
        attempt: u32,
    },
    /// This is the image that is had.
    Image {
        /// Ours, which is verified, or somebody else's.
        image: CloudImage,
    },
    /// Another content is wanted: everything but the attempt's number goes.
    Forget,
    /// Somebody changed what stood in the way: what failed does not count any more.
    Anew,
}

/// Why there is another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptReason {
    /// There was none.
    First,
    /// There were some of another content.
    OtherContent,
    /// The cloud has a record that status does not know of.
    EarlierLife,
    /// Its record takes no bytes any more.
    Spoilt,
    /// The cloud could not fetch its bytes.
    ImportFailed,
    /// The cloud fetches its bytes for too long.
    ImportStalled,
    /// Nobody who sends bytes to its record is heard of.
    Stalled,
    /// Its record is being deleted and does not go.
    Lingers,
    /// Its image is not what was sent, or not what was promised.
    Mismatch,
    /// Nobody can tell what its image is.
    Unverifiable,
    /// A better image is there, or somebody else's is asked for.
    Supersede,
}

/// What follows from a deed that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Settlement {
    /// It went well.
    Progressed,
    /// It is tried again.
    Retry(Retry),
    /// It is not tried again by itself.
    Halt(Halted),
    /// The attempt's id, or the name of its Job, cannot be had.
    Burned {
        /// The next attempt.
        attempt: u32,
    },
    /// The cloud does not fetch these bytes, or does not take them by a stage, however often it is asked.
    ImportRefused,
    /// Nothing; another look says more.
    Nothing,
}

/// Why nothing is done, and whether looking could change that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// Why.
    pub reason: HaltReason,
    /// In words, with what to do.
    pub message: String,
    /// The steady time of the next look, when it is the cloud that stands in the way, or something there is still to be cleared away; `None` when only
    /// somebody's change helps.
    pub look: Option<Duration>,
}

/// Why nothing is done until somebody changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HaltReason {
    /// The spec makes no sense.
    InvalidSpec,
    /// The project has a stranger's image of this name.
    NameTaken,
    /// Several images could be meant.
    Ambiguous,
    /// The cloud takes no such image.
    Refused,
    /// Nothing is at the source.
    SourceNotFound,
    /// The bytes at the source are not the ones that were promised.
    SourceMismatch,
    /// What is at the source is no image.
    SourceNotAnImage,
    /// The file of sums does not name the image.
    DigestUnknown,
    /// Nobody can tell what the image in the cloud is.
    Unverifiable,
    /// Jobs are asked for and cannot be had.
    JobsUnavailable,
    /// The user's program fails.
    BuildFailed,
    /// The program of the Job that sends needs more memory than it may have.
    OutOfMemory,
    /// What is sent cannot be noted in status.
    SealNotKept,
    /// The cloud cannot do what is asked for.
    Unsupported,
}
