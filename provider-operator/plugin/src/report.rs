//! What a transfer tells while it runs, and the one thing it waits for: that the seal is stored. Measures, and decides nothing about it.

mod meter;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::meter::Meter;
use crate::Attempt;

/// Who is told.
#[async_trait]
pub trait Report: Send + Sync {
    /// How far it is. Never blocks, and may drop all but the last.
    fn progress(&self, progress: Progress);

    /// Whether somebody waits for what this transfer holds, so that it has to be as fast as [`crate::Speed`] says. Never blocks; asked of what is slow alone.
    fn others_wait(&self) -> bool {
        true
    }

    /// Returns when the seal is stored where a later life finds it. An error ends the transfer before its last byte.
    async fn seal(&self, seal: &Seal) -> Result<(), SealError>;
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the image that the cloud has taken, also those of an earlier life.
    pub sent: u64,
    /// Bytes that there will be, where that is known.
    pub total: Option<u64>,
    /// How often the source broke and was opened anew.
    pub resumes: u32,
    /// What is being done.
    pub stage: Stage,
}

/// What a transfer does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Reads again what an earlier life has sent.
    Reading,
    /// Sends.
    Sending,
    /// Reads what the cloud has stored.
    ReadingBack,
}

/// What is about to become the whole image, written down before its last byte leaves: whoever finds the image later compares with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seal {
    /// The record that it is for.
    pub attempt: Attempt,
    /// Digest of the bytes at the source: `sha256:…` or `sha512:…`.
    pub source_digest: String,
    /// SHA-512 of what is sent: 128 lower-case hex digits.
    pub sha512: String,
    /// Bytes of what is sent.
    pub bytes: u64,
}

/// The seal could not be stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SealError {
    /// Why, as a sentence for people.
    pub message: String,
}
