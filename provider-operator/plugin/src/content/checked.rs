//! The bytes as they lie at the source: digested while they pass, and compared with what was promised before their end is told.

use std::sync::{Arc, OnceLock};

use futures::{StreamExt, stream};

use super::ContentStream;
use crate::{Algorithm, ContentError, ErrorClass, Hasher, Pinned};

/// What the bytes are compared with.
pub(super) struct Checking {
    pub(super) place: String,
    /// Demanded by users, and therefore the one that counts.
    pub(super) pinned: Option<Pinned>,
    /// Found when somebody first looked.
    pub(super) remembered: Option<Pinned>,
    /// Set before the stream ends without an error.
    pub(super) found: Arc<OnceLock<Pinned>>,
}

impl Checking {
    /// The same bytes; at their end an error when they are not the promised ones.
    pub(super) fn stream(self, bytes: ContentStream) -> ContentStream {
        let algorithm = self.demanded().map_or(Algorithm::Sha256, Pinned::algorithm);
        let state = Some((bytes, Hasher::new(algorithm), self));
        stream::unfold(state, |state| async {
            let (mut bytes, mut hasher, checking) = state?;
            match bytes.next().await {
                Some(Ok(piece)) => {
                    hasher.update(&piece);
                    Some((Ok(piece), Some((bytes, hasher, checking))))
                }
                Some(Err(error)) => Some((Err(error), None)),
                None => {
                    let refusal = checking.end(hasher.finish()).err()?;
                    Some((Err(refusal), None))
                }
            }
        })
        .boxed()
    }

    fn demanded(&self) -> Option<&Pinned> {
        self.pinned.as_ref().or(self.remembered.as_ref())
    }

    fn end(&self, found: Pinned) -> Result<(), ContentError> {
        let Self { place, pinned, .. } = self;
        match self.demanded() {
            Some(demanded) if *demanded != found => {
                let words = if pinned.is_some() {
                    format!("{place} has the digest {found}, and {demanded} is demanded")
                } else {
                    format!("{place} has the digest {found}, and had {demanded} before; pin the one that is meant")
                };
                Err(ContentError::new(ErrorClass::SourceMismatch, words))
            }
            _ => {
                // There is one stream, and it ends once.
                let _ = self.found.set(found);
                Ok(())
            }
        }
    }
}
