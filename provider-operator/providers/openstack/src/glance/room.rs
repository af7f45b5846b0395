//! A body of which nobody knows how long it becomes, and the room that the project has for it. A cloud holds only what has a length against its quota; of
//! everything else it takes as much as comes, and afterwards takes nothing of anybody.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::StreamExt;
use provider_plugin::{CloudError, ContentError, ContentStream, ErrorClass, Quota};

use super::Usage;

const MIB: u64 = 1 << 20;

/// The bound of a body, and whether it was passed.
#[derive(Clone, Debug)]
pub(super) struct Room {
    usage: Usage,
    is_passed: Arc<AtomicBool>,
}

impl Room {
    /// What this leaves.
    pub(super) fn of(usage: Usage) -> Self {
        Self {
            usage,
            is_passed: Arc::default(),
        }
    }

    /// The same bytes, as far as there is room; behind that an error, so that no image comes of them.
    pub(super) fn bound(&self, stream: ContentStream) -> ContentStream {
        let Some(free) = self.usage.free() else {
            return stream;
        };
        let (room, mut left) = (self.clone(), free.saturating_mul(MIB));
        let bound = stream.map(move |piece| {
            let piece = piece?;
            let Some(rest) = left.checked_sub(piece.len() as u64) else {
                room.is_passed.store(true, Ordering::Relaxed);
                return Err(ContentError::new(ErrorClass::Quota, room.words()));
            };
            left = rest;
            Ok(piece)
        });
        bound.boxed()
    }

    fn words(&self) -> String {
        let free = self.usage.free().unwrap_or_default();
        format!("unpacked it has more than the {free} MiB of images that the project has room for")
    }

    /// Why the body ended early, if it is for this.
    pub(super) fn passed(&self, operation: &'static str) -> Option<CloudError> {
        self.is_passed.load(Ordering::Relaxed).then(|| CloudError {
            quota: Some(Box::new(Quota {
                resource: "image_size_total".to_owned(),
                limit: self.usage.limit,
                used: Some(self.usage.used),
                requested: None,
            })),
            ..CloudError::new(ErrorClass::Quota, operation, self.words())
        })
    }
}
