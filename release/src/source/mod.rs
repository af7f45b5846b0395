//! Where releases come from: one trait, so that callers do not know and need not care.
//!
//! A source says which releases there are, which files a tag stands for at the moment, and gives the bytes of each. It does not choose,
//! it does not trust, and it keeps nothing that it could not ask for again: what is fetched is held against the digest that the tag was
//! resolved to, by whoever keeps it.

mod beside;
mod bounded;
mod directory;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod github;
mod http_index;
mod notifications;
pub mod oci;
mod resolved;
pub(crate) mod room;
mod watch;

use std::{future::Future, pin::Pin};

use crds::names::ReleaseTag;
use jiff::Timestamp;
use tokio::io::AsyncRead;

use crate::Digest;

pub use self::{
    directory::{DirectorySource, RELEASES_DIRECTORY},
    error::SourceError,
    github::{GITHUB_API, GithubOptions, GithubSource},
    http_index::{HttpOptions, HttpSource, INDEX},
    notifications::Notifications,
    resolved::{RemoteFile, Resolved},
    watch::{Change, DirectoryWatch, WatchError},
};
use crate::Evidence;

/// A future that owns nothing but what it borrows: what an object-safe async trait returns.
pub type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SourceError>> + Send + 'a>>;

/// The bytes of a file as they come. Nobody has looked at them: they may be others than promised, more, or never end.
///
/// Whoever reads them sets the limit of size and the time for the whole; a source ends them with an error when nothing comes for too long.
pub type Content = Pin<Box<dyn AsyncRead + Send>>;

/// A place with releases.
///
/// Every call ends in bounded time. An error of [`ReleaseSource::list`] says nothing about which releases exist: nobody may conclude from
/// it that one is gone.
pub trait ReleaseSource: Send + Sync {
    /// Everything that is offered now.
    fn list(&self) -> SourceFuture<'_, Listing>;

    /// What a tag stands for now. A tag that is resolved twice can be two releases; comparing them is the caller's part.
    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved>;

    /// Begins to give one file of what a tag was resolved to, by digest where the source knows one: never by the tag, which can have moved.
    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content>;

    /// Words of the source, or about it, without what it was told in confidence: servers repeat credentials in what they say.
    fn without_secrets(&self, words: &str) -> String {
        words.to_owned()
    }

    /// What the source has to show for what a tag was resolved to: signatures, as they are now. None is no error. Nothing of it is believed
    /// here.
    fn evidence<'a>(&'a self, resolved: &'a Resolved) -> SourceFuture<'a, Evidence> {
        Box::pin(beside::evidence(self, resolved))
    }
}

/// What a source offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The releases, sorted by tag, each once. Listed does not mean usable.
    pub releases: Vec<ListedRelease>,
    /// Names that are no release tags, sorted. Normal in a source that others use too.
    pub foreign: Vec<String>,
}

/// One release of a [`Listing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRelease {
    /// Its tag.
    pub tag: ReleaseTag,
    /// When it was published, if the source knows. Releases named by a hash have no other order.
    pub published_at: Option<Timestamp>,
    /// [`Resolved::identity`] of the tag, if the list tells enough of it: as old as the list, which may be a little older than what
    /// [`ReleaseSource::resolve`] says.
    pub identity: Option<Digest>,
    /// [`Resolved::digest`] of the same, if the list tells that too.
    pub digest: Option<Digest>,
}

impl ListedRelease {
    /// A release of whose files the list says nothing.
    pub(crate) fn of(tag: ReleaseTag, published_at: Option<Timestamp>) -> Self {
        Self {
            tag,
            published_at,
            identity: None,
            digest: None,
        }
    }

    /// With what the list says of its files, where that can be a release.
    pub(crate) fn with_files(self, resolved: Option<&Resolved>) -> Self {
        Self {
            identity: resolved.map(Resolved::identity),
            digest: resolved.and_then(Resolved::digest),
            ..self
        }
    }
}
