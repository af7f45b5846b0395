//! What is waited for, since when, and until when or for whom. Decides nothing.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Something that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// For what.
    pub reason: WaitReason,
    /// Since when.
    pub since: Since,
    /// How it ends if that does not come.
    pub until: Until,
    /// The steady time of the next look, unless something wakes the driver before.
    pub look: Option<Duration>,
    /// What is waited for, in words, without a time that moves.
    pub message: String,
}

/// How a wait ends of which nothing comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// It is given up at this moment, and something else is decided.
    At(Since),
    /// The same is tried again at this moment.
    Again(Since),
    /// Not by itself: nobody can say how long this may take.
    Told(Awaited),
}

/// What alone ends a wait that has no deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Awaited {
    /// An edit of the object.
    Edit,
    /// The deletion of the object.
    Deletion,
    /// A Secret of the name.
    Secret,
    /// That another deed ends.
    Turn,
    /// That the processes of a Job are gone, which its node says.
    Job,
    /// An image that somebody else makes.
    Image,
    /// What only an admin of the cloud may do.
    Admin,
}

impl Awaited {
    /// Whether somebody says so when it comes: a watch, or whoever runs deeds. The others are looked for.
    pub const fn is_told(self) -> bool {
        match self {
            Self::Edit | Self::Deletion | Self::Secret | Self::Turn => true,
            Self::Job | Self::Image | Self::Admin => false,
        }
    }
}

/// A moment on one of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Since {
    /// Of this process.
    Steady(Duration),
    /// Of the world.
    Wall(Timestamp),
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitReason {
    /// That somebody lets the work go on.
    Paused,
    /// That `clusterctl` deletes the object, which is in another management cluster by now.
    Moved,
    /// The Secret.
    Secret,
    /// The cloud's answer.
    CloudUnavailable,
    /// Other credentials, or that the cloud takes these.
    Credentials,
    /// The time that the cloud asked for.
    Throttled,
    /// Room in the project.
    Quota,
    /// That the cloud does less at once.
    Busy,
    /// The source.
    Source,
    /// That others are done.
    Queued,
    /// Our bytes.
    Transferring,
    /// Bytes that somebody else sends, an earlier life of ours perhaps.
    ForeignTransfer,
    /// That the cloud has fetched the bytes.
    Importing,
    /// The user's program.
    Building,
    /// The answer to something short.
    Working,
    /// The end of what was told to end.
    Stopping,
    /// The next try.
    Retry,
    /// An image that somebody else makes.
    ImageNotFound,
    /// That an admin lets the image be used again.
    Deactivated,
    /// That a record is gone.
    Going,
    /// That no machine holds on to the image.
    InUse,
}
