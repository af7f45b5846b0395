//! A file whose bytes are counted as they are read. Changes nothing of it.

use async_trait::async_trait;
use futures::StreamExt;
use provider_plugin::{ByteStream, ImageSource, Opened, Probe, SourceError};
use std::sync::Arc;

use super::Files;
use crate::metrics::{CloudCounts, Direction};

impl Files {
    /// The same, whose image counts as what it is read for.
    pub(crate) fn counted(&self, counts: &CloudCounts) -> Self {
        Self {
            image: Arc::new(Counted {
                source: Arc::clone(&self.image),
                counts: counts.clone(),
            }),
            sums: self.sums.clone(),
            tag_is_digest: self.tag_is_digest,
        }
    }
}

#[derive(Debug)]
struct Counted {
    source: Arc<dyn ImageSource>,
    counts: CloudCounts,
}

impl Counted {
    fn counting(&self, bytes: ByteStream) -> ByteStream {
        let counts = self.counts.clone();
        let counting = bytes.inspect(move |read| {
            if let Ok(piece) = read {
                counts.moved(Direction::FromSource, piece.len() as u64);
            }
        });
        counting.boxed()
    }
}

#[async_trait]
impl ImageSource for Counted {
    fn place(&self) -> &str {
        self.source.place()
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        self.source.probe().await
    }

    async fn open(&self, at: u64, probe: &Probe) -> Result<Opened, SourceError> {
        Ok(match self.source.open(at, probe).await? {
            Opened::At(bytes) => Opened::At(self.counting(bytes)),
            Opened::FromStart(bytes) => Opened::FromStart(self.counting(bytes)),
            Opened::Changed => Opened::Changed,
        })
    }
}
