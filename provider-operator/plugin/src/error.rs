//! What went wrong in a cloud, at a source, or with the bytes in between: a class that decisions are made by, and a sentence for people.

use std::{error::Error, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};
use thiserror::Error;

/// The longest message, in characters.
const LONGEST: usize = 300;

/// What kind of failure it is. Decisions know nothing else of it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, IntoStaticStr, Serialize, Deserialize,
)]
pub enum ErrorClass {
    /// No answer, or one that says that there is none now. Later it may be there.
    Unavailable,
    /// Asked too often; wait as told.
    Throttled,
    /// A bound of the cloud would be passed.
    Quota,
    /// Others are being served; soon it is free.
    Busy,
    /// It is not known who we are: a wrong, expired or revoked secret.
    Credentials,
    /// It is known who we are, and we may not.
    Permission,
    /// What is asked for is wrong, and stays wrong until somebody changes it.
    Invalid,
    /// It is not in the state for this: somebody else was there before.
    State,
    /// It is not there.
    Gone,
    /// What became of it is not known: look.
    Unknown,
    /// Something uses it, and it cannot be deleted.
    InUse,
    /// It does not carry our owner. It was not touched.
    NotOurs,
    /// This cloud cannot do this.
    Unsupported,
    /// The source does not have the file, or does not give it.
    SourceGone,
    /// The source breaks again and again.
    SourceBroken,
    /// The source has other bytes than were promised.
    SourceMismatch,
    /// The source has something that is no such image.
    SourceNotAnImage,
    /// The source has another file than when the transfer began.
    SourceChanged,
    /// The seal could not be stored.
    Sealing,
}

/// A bound of a cloud that would be passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// What is bounded, in the cloud's word.
    pub resource: String,
    /// The bound, in the cloud's unit.
    pub limit: Option<u64>,
    /// How much of it is used.
    pub used: Option<u64>,
    /// How much was asked for.
    pub requested: Option<u64>,
}

/// A call to a cloud that failed.
#[derive(Debug, Error)]
#[error("unable to {operation}: {message}")]
pub struct CloudError {
    /// What kind of failure.
    pub class: ErrorClass,
    /// What was being done, to read after "unable to": `create the image`.
    pub operation: &'static str,
    /// Why, for people: at most 300 characters, without secrets and without the cause's own words.
    pub message: String,
    /// By which the cloud's operators find the call.
    pub request_id: Option<String>,
    /// How long the cloud asks to be left alone.
    pub retry_after: Option<Duration>,
    /// The bound that would be passed, for [`ErrorClass::Quota`].
    pub quota: Option<Box<Quota>>,
    /// What lies below.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl CloudError {
    /// A failure with these words, which are cut to what a message may have.
    pub fn new(class: ErrorClass, operation: &'static str, message: impl AsRef<str>) -> Self {
        Self {
            class,
            operation,
            message: cut_words(message.as_ref()),
            request_id: None,
            retry_after: None,
            quota: None,
            source: None,
        }
    }

    /// The same with its cause.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(cause.into());
        self
    }

    /// What was sent could not be had: the failure of the content is that of the call.
    pub fn of_content(operation: &'static str, error: ContentError) -> Self {
        Self {
            retry_after: error.retry_after,
            ..Self::new(error.class, operation, &error.message)
        }
        .because(error)
    }
}

/// A source that did not give its file.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct SourceError {
    /// What kind of failure: one of the source's, [`ErrorClass::Unavailable`] or [`ErrorClass::Throttled`].
    pub class: ErrorClass,
    /// Why, for people: at most 300 characters; names the place, and neither its query nor credentials.
    pub message: String,
    /// The status of HTTP, if that was the answer.
    pub status: Option<u16>,
    /// How long the source asks to be left alone.
    pub retry_after: Option<Duration>,
    /// What lies below.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl SourceError {
    /// A failure with these words, which are cut to what a message may have.
    pub fn new(class: ErrorClass, message: impl AsRef<str>) -> Self {
        Self {
            class,
            message: cut_words(message.as_ref()),
            status: None,
            retry_after: None,
            source: None,
        }
    }

    /// The same with its cause.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(cause.into());
        self
    }
}

/// Why a content ends before its last byte. Can be had twice: once by whoever reads the stream, and once from
/// [`SumsHandle::failure`](crate::SumsHandle::failure), where a library for HTTP keeps the first for itself.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct ContentError {
    /// What kind of failure.
    pub class: ErrorClass,
    /// Why, for people: at most 300 characters; names both digests where it is about them.
    pub message: String,
    /// How long the source asks to be left alone.
    pub retry_after: Option<Duration>,
    /// What lies below.
    #[source]
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ContentError {
    /// A failure with these words, which are cut to what a message may have.
    pub fn new(class: ErrorClass, message: impl AsRef<str>) -> Self {
        Self {
            class,
            message: cut_words(message.as_ref()),
            retry_after: None,
            source: None,
        }
    }
}

impl From<SourceError> for ContentError {
    fn from(error: SourceError) -> Self {
        Self {
            class: error.class,
            message: error.message,
            retry_after: error.retry_after,
            source: error.source.map(Arc::from),
        }
    }
}

/// Words of strangers as part of a message: on one line, without control characters, and cut between words to 300 characters.
pub fn cut_words(text: &str) -> String {
    let is_between = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(is_between).filter(|word| !word.is_empty()).collect();
    let whole = words.join(" ");
    let Some((end, _)) = whole.char_indices().nth(LONGEST) else {
        return whole;
    };
    // One place is for the sign that something is missing.
    let kept = whole[..end]
        .char_indices()
        .next_back()
        .map_or("", |(last, _)| &whole[..last]);
    let cut = kept.rsplit_once(' ').map_or(kept, |(before, _)| before);
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strangers_take_one_line_and_a_bounded_one() {
        assert_eq!(cut_words(" no\tsuch \r\n\u{7} image\n"), "no such image");
        let exact = "ä".repeat(LONGEST);
        assert_eq!(cut_words(&exact), exact);
        for long in [
            "word ".repeat(100),
            "ä".repeat(LONGEST + 1),
            format!("a {}", "b".repeat(400)),
        ] {
            let cut = cut_words(&long);
            assert!(cut.chars().count() <= LONGEST, "{cut}");
            assert!(cut.ends_with('…'), "{cut}");
        }
        assert!(cut_words(&"word ".repeat(100)).ends_with("word…"));
    }

    #[test]
    fn a_failure_of_the_content_is_that_of_the_call() {
        let mut content = ContentError::new(ErrorClass::Throttled, "https://images.example/a.img asks to wait");
        content.retry_after = Some(Duration::from_secs(7));
        let error = CloudError::of_content("send the image", content);
        assert_eq!(
            error.to_string(),
            "unable to send the image: https://images.example/a.img asks to wait"
        );
        assert_eq!(
            (error.class, error.retry_after),
            (ErrorClass::Throttled, Some(Duration::from_secs(7)))
        );
    }
}
