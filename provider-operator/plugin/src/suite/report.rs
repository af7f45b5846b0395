//! Who is told of a transfer in a test: keeps what it was told, and refuses to seal when it shall.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;

use crate::{Progress, Report, Seal, SealError};

/// What is done when a seal comes.
type AtSeal = Box<dyn Fn(&Seal) -> BoxFuture<'static, Result<(), SealError>> + Send + Sync>;

/// Keeps everything.
#[derive(Default)]
pub struct Notes {
    progress: Mutex<Vec<Progress>>,
    seals: Mutex<Vec<Seal>>,
    at_seal: Option<AtSeal>,
}

impl Notes {
    /// Does this when a seal comes, and answers so.
    pub fn sealing(
        at_seal: impl Fn(&Seal) -> BoxFuture<'static, Result<(), SealError>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            at_seal: Some(Box::new(at_seal)),
            ..Self::default()
        }
    }

    /// Stores no seal.
    pub fn refusing() -> Self {
        Self::sealing(|_| {
            let message = "the API server is away".to_owned();
            Box::pin(async { Err(SealError { message }) })
        })
    }

    /// What was told of progress, in order.
    pub fn progress(&self) -> Vec<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The seals that came.
    pub fn seals(&self) -> Vec<Seal> {
        self.seals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Report for Notes {
    fn progress(&self, progress: Progress) {
        self.progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(progress);
    }

    async fn seal(&self, seal: &Seal) -> Result<(), SealError> {
        self.seals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(seal.clone());
        match &self.at_seal {
            Some(at_seal) => at_seal(seal).await,
            None => Ok(()),
        }
    }
}
