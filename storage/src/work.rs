//! Work that blocks, in bounded time and number.

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task, time,
};

/// So much blocking work at once, each for so long. Work that outlives its deadline keeps its place, so that a storage that hangs holds
/// at most so many threads.
#[derive(Debug)]
pub struct BlockingWork {
    places: Arc<Semaphore>,
    /// Changes whenever work ends.
    ended: watch::Sender<()>,
    deadline: Duration,
}

/// Why work gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unanswered {
    /// It took too long, or everything before it did.
    #[error("no answer within {} seconds", .after.as_secs())]
    TimedOut {
        /// The time allowed.
        after: Duration,
    },
    /// It ended without an answer.
    #[error("the work was stopped")]
    Stopped,
}

impl BlockingWork {
    /// Places for so much work at once; each piece of it may take this long.
    pub fn new(at_once: usize, deadline: Duration) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(at_once)),
            ended: watch::Sender::default(),
            deadline,
        })
    }

    /// Does this work. Waiting for a place takes no time from it.
    pub async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let place = self.place().await?;
        let working = task::spawn_blocking(move || {
            let answer = work();
            drop(place);
            answer
        });
        time::timeout(self.deadline, working)
            .await
            .map_err(|_| self.timed_out())?
            .map_err(|_| Unanswered::Stopped)
    }

    /// Waits its turn for as long as others get theirs.
    pub async fn place(self: &Arc<Self>) -> Result<Place, Unanswered> {
        let mut ended = self.ended.subscribe();
        let turn = Arc::clone(&self.places).acquire_owned();
        tokio::pin!(turn);
        loop {
            tokio::select! {
                biased;
                permit = &mut turn => {
                    return Ok(Place {
                        _permit: permit.map_err(|_| Unanswered::Stopped)?,
                        work: Arc::clone(self),
                    });
                }
                progress = time::timeout(self.deadline, ended.changed()) => {
                    progress.map_err(|_| self.timed_out())?.map_err(|_| Unanswered::Stopped)?;
                }
            }
        }
    }

    fn timed_out(&self) -> Unanswered {
        Unanswered::TimedOut { after: self.deadline }
    }
}

/// One of the places, until it is dropped.
pub struct Place {
    _permit: OwnedSemaphorePermit,
    work: Arc<BlockingWork>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.work.ended.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn turn_is_waited_for_until_the_storage_stands_still() {
        let work = BlockingWork::new(2, DEADLINE);
        // Two at a time, so that whoever comes after them waits longer than one work may take.
        for _ in 0..4 {
            let work = Arc::clone(&work);
            task::spawn(async move {
                let _place = work.place().await;
                time::sleep(DEADLINE * 2 / 3).await;
            });
        }
        task::yield_now().await;
        assert_eq!(work.run(|| 1).await, Ok(1));

        let places = [work.place().await.unwrap(), work.place().await.unwrap()];
        let stuck = work.run(|| 2).await;
        assert_eq!(stuck, Err(Unanswered::TimedOut { after: DEADLINE }));
        drop(places);
        assert_eq!(work.run(|| 3).await, Ok(3));
    }
}
