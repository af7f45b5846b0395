//! Where the bytes of an image come from: a file at some place, which is asked about and opened. What breaks in between is mended in
//! [`crate::Content`], not in a source.

use std::{fmt::Debug, pin::Pin};

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;

use crate::SourceError;

/// Bytes as they come. After an error nothing more comes.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, SourceError>> + Send>>;

/// A file at some place. Each call is one try: a source does not try again, and does not wait for longer than an answer may take.
#[async_trait]
pub trait ImageSource: Send + Sync + Debug {
    /// The place as people know it, without a query and without credentials.
    fn place(&self) -> &str;

    /// What the file is like now; reads no more than its first byte.
    async fn probe(&self) -> Result<Probe, SourceError>;

    /// The bytes of the file that `probe` is about, from the byte `at` (from 0) on.
    async fn open(&self, at: u64, probe: &Probe) -> Result<Opened, SourceError>;
}

/// What a source says of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Its length in bytes.
    pub size: Option<u64>,
    /// Other for other bytes: a strong entity tag, or the time of the last change.
    pub tag: Option<String>,
    /// Whether it can be read from any byte on.
    pub ranges: bool,
    /// The media type, if one is said.
    pub content_type: Option<String>,
}

/// What became of opening a file.
pub enum Opened {
    /// The bytes from the one that was asked for.
    At(ByteStream),
    /// All bytes from the start, because the source cannot do otherwise: the reader skips.
    FromStart(ByteStream),
    /// It is another file than the one that was probed.
    Changed,
}
