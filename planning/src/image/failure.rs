//! How a deed can fail, as decisions tell it apart. Says nothing about what follows.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::op::{DeedName, StopReason};

/// A deed that did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// How.
    pub class: FailureClass,
    /// In the words of whoever refused it; never with a secret.
    pub message: String,
    /// What the cloud calls the request.
    pub request_id: Option<String>,
    /// When the cloud says to come again.
    pub retry_after: Option<Duration>,
    /// Which limit was reached.
    pub quota: Option<Box<Quota>>,
}

impl Failure {
    /// A failure with these words, of which nothing else is known.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            request_id: None,
            retry_after: None,
            quota: None,
        }
    }

    /// The words, and behind them which limit was reached.
    pub(super) fn told(&self) -> String {
        match self.quota.as_deref() {
            Some(quota) => format!("{} ({})", self.message, quota.told()),
            None => self.message.clone(),
        }
    }
}

impl Quota {
    /// Such as `image_size_total: limit 10000, used 9000, wanted 4000`.
    fn told(&self) -> String {
        let Self {
            resource,
            limit,
            used,
            requested,
        } = self;
        let amounts = [("limit", limit), ("used", used), ("wanted", requested)];
        let amounts: Vec<String> = amounts
            .iter()
            .filter_map(|(name, amount)| amount.map(|amount| format!("{name} {amount}")))
            .collect();
        if amounts.is_empty() {
            return resource.clone();
        }
        format!("{resource}: {}", amounts.join(", "))
    }
}

/// A limit of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// What is limited.
    pub resource: String,
    /// How much there may be.
    pub limit: Option<u64>,
    /// How much there is.
    pub used: Option<u64>,
    /// How much more was asked for.
    pub requested: Option<u64>,
}

/// Exit codes of a build after which trying again is of no use, in the words of sysexits.h: the data are wrong, there is no input, there is no permission.
pub const FINAL_EXITS: [i32; 3] = [65, 66, 77];

/// How a deed failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureClass {
    /// The cloud does not answer, or not sensibly.
    Unavailable,
    /// The cloud asks for patience.
    Throttled,
    /// A limit of the project is reached.
    Quota,
    /// The cloud does too much of this at once.
    Busy,
    /// The cloud does not know who asks.
    Credentials,
    /// The cloud does not let us.
    Permission,
    /// The cloud will never take this.
    Invalid,
    /// The image was in another state than thought.
    State,
    /// The image was not there.
    Gone,
    /// The connection ended without an answer.
    Unknown,
    /// Machines hold on to the image.
    InUse,
    /// The image does not carry our mark.
    NotOurs,
    /// This cloud cannot do that.
    Unsupported,
    /// Nothing is at the source, or it may not be read.
    SourceGone,
    /// The source breaks off.
    SourceBroken,
    /// The bytes at the source are not the ones that were promised.
    SourceMismatch,
    /// What is at the source is no image.
    SourceNotAnImage,
    /// The source gave other bytes while it was read.
    SourceChanged,
    /// The file of sums does not name the image.
    DigestUnknown,
    /// What was sent could not be noted in status.
    Sealing,
    /// The user's program ended with this exit code: see [`FINAL_EXITS`].
    BuildFailed {
        /// As the program or the kernel gave it.
        exit: i32,
    },
    /// The Job was not there any more, or said nothing that can be read.
    JobVanished,
    /// The program of the Job that sends the image was killed, because it needs more memory than it may have.
    OutOfMemory,
    /// We stopped it.
    Stopped {
        /// What for.
        why: StopReason,
    },
}

impl FailureClass {
    /// Whether it is a race with something of ours, which is over at the next look, unless it comes again and again.
    pub(super) const fn is_race(self) -> bool {
        match self {
            Self::State | Self::Gone | Self::Unknown | Self::NotOurs | Self::JobVanished => true,
            Self::Unavailable
            | Self::Throttled
            | Self::Quota
            | Self::Busy
            | Self::Credentials
            | Self::Permission
            | Self::Invalid
            | Self::InUse
            | Self::Unsupported
            | Self::SourceGone
            | Self::SourceBroken
            | Self::SourceMismatch
            | Self::SourceNotAnImage
            | Self::SourceChanged
            | Self::DigestUnknown
            | Self::Sealing
            | Self::OutOfMemory
            | Self::BuildFailed { .. }
            | Self::Stopped { .. } => false,
        }
    }

    /// Whether it comes when all bytes were moved, or many, or an image was built for nothing, and what follows depends on how often it did, whatever becomes
    /// meanwhile of the record in the cloud.
    pub(super) const fn is_counted_on(self, deed: DeedName) -> bool {
        let is_of_bytes = matches!(
            self,
            Self::Quota | Self::SourceMismatch | Self::Sealing | Self::OutOfMemory
        );
        is_of_bytes && matches!(deed, DeedName::Transfer | DeedName::Build) || self.is_of_build(deed)
    }

    /// Whether it says of bytes only that they did not arrive.
    pub(super) const fn is_on_the_way(self) -> bool {
        matches!(
            self,
            Self::Unavailable | Self::Throttled | Self::Busy | Self::Unknown | Self::JobVanished
        )
    }

    /// Whether what builds is at fault, and not what sends: it failed, with whatever code, or did not end in its time.
    pub(super) const fn is_of_build(self, deed: DeedName) -> bool {
        let may_be = matches!(
            self,
            Self::BuildFailed { .. }
                | Self::Stopped {
                    why: StopReason::Stalled
                }
        );
        may_be && matches!(deed, DeedName::Build)
    }
}
