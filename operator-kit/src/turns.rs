//! Turns at work that only a few may do at once. Whoever wants much of it stands in a line of his own, and only the first of each line waits among
//! others: so the lines take turns, however long one of them is. What the work is, and who stands in which line, is decided by whoever asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// The turns at one sort of work.
pub struct Turns {
    work: Semaphore,
    lines: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The first of a line. The next one is it when this one has its turn, or has gone.
#[must_use]
pub struct First<'a> {
    work: &'a Semaphore,
    _place: Option<OwnedSemaphorePermit>,
}

/// A turn, for as long as it is kept.
#[must_use]
pub struct Turn<'a> {
    _permit: Option<SemaphorePermit<'a>>,
}

impl Turns {
    /// So many at once.
    pub fn new(at_once: usize) -> Self {
        Self {
            work: Semaphore::new(at_once),
            lines: Mutex::default(),
        }
    }

    /// Waits for a turn: in this line (such as a namespace) behind those who stand in it, and then among the first of all lines. Whoever drops the
    /// future has left the line.
    pub async fn take(&self, line: &str) -> Turn<'_> {
        self.first(line).await.take().await
    }

    /// Waits to be the first of a line.
    pub async fn first(&self, line: &str) -> First<'_> {
        let line = self.line(line);
        First {
            work: &self.work,
            // Never closed.
            _place: line.acquire_owned().await.ok(),
        }
    }

    /// How many could be taken at once now.
    pub fn free(&self) -> usize {
        self.work.available_permits()
    }

    /// A line; those in which nobody stands are forgotten.
    fn line(&self, name: &str) -> Arc<Semaphore> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, line| Arc::strong_count(line) > 1);
        let line = lines.entry(name.to_owned());
        Arc::clone(line.or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

impl<'a> First<'a> {
    /// Waits for a turn among the first of other lines, behind those who wait already.
    pub async fn take(self) -> Turn<'a> {
        Turn {
            _permit: self.work.acquire().await.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::{Duration, Instant, sleep};

    use super::*;

    const WORK: Duration = Duration::from_secs(1);
    const CROWD: usize = 100;

    #[tokio::test(start_paused = true)]
    async fn however_long_a_line_is_others_have_every_second_turn() {
        let turns = Turns::new(2);
        let begun = Instant::now();
        let work = async |line: &'static str| {
            let _turn = turns.take(line).await;
            assert!(turns.free() < 2);
            sleep(WORK).await;
            begun.elapsed()
        };
        let crowd = join_all((0..CROWD).map(|_| work("crowd")));
        let others = async {
            // The crowd is at work, and in line.
            sleep(WORK / 2).await;
            tokio::join!(work("one"), work("other"))
        };
        let (crowd, (one, other)) = tokio::join!(crowd, others);
        assert_eq!((one, other), (WORK * 2, WORK * 3), "behind one of the crowd each");
        let last = crowd.into_iter().max().unwrap();
        assert_eq!(last, WORK * 51, "two are at work at any time");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_goes_away_keeps_nobody_and_a_line_in_which_nobody_stands_is_forgotten() {
        let turns = Turns::new(1);
        let turn = turns.take("one").await;
        let first = turns.first("one").await;
        let begun = Instant::now();
        let given_up = tokio::time::timeout(WORK, turns.take("one"));
        assert!(given_up.await.is_err());
        assert!(tokio::time::timeout(WORK, first.take()).await.is_err());
        drop(turn);
        let _turn = turns.take("one").await;
        assert_eq!(begun.elapsed(), WORK * 2);
        drop(turns.line("other"));
        assert_eq!(turns.lines.lock().unwrap().len(), 1);
    }
}
