//! Turns at work that only a few may do at once. Whoever wants much of it stands in a line of his own, and only the first of each line waits among
//! others: so the lines take turns, however long one of them is. What the work is, and who stands in which line, is decided by whoever asks. Those who
//! wait as tasks take a turn of [`Turns`]; whoever dispatches others himself keeps them in a [`Line`].

mod line;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

pub use self::line::Line;

/// The turns at one sort of work.
pub struct Turns {
    desk: Mutex<Desk>,
}

struct Desk {
    line: Line<Arc<Seat>>,
    free: usize,
}

/// Somebody who waits. Both are changed at the desk alone.
#[derive(Default)]
struct Seat {
    /// Whether it would use a turn at once.
    is_ready: AtomicBool,
    has_turn: AtomicBool,
    news: Notify,
}

/// A place in a line, and then a turn: whoever drops it leaves the line, or gives the turn back.
struct Place<'a> {
    turns: &'a Turns,
    line: String,
    seat: Arc<Seat>,
}

/// The first of a line. The next one is it when this one has its turn, or has gone.
#[must_use]
pub struct First<'a> {
    place: Place<'a>,
}

/// A turn, for as long as it is kept.
#[must_use]
pub struct Turn<'a> {
    _place: Place<'a>,
}

impl Turns {
    /// So many at once.
    pub fn new(at_once: usize) -> Self {
        let desk = Desk {
            line: Line::default(),
            free: at_once,
        };
        Self { desk: Mutex::new(desk) }
    }

    /// Waits for a turn: in this line (such as a namespace) behind those who stand in it, and then among the first of all lines. Whoever drops the
    /// future has left the line.
    pub async fn take(&self, line: &str) -> Turn<'_> {
        self.first(line).await.take().await
    }

    /// Waits to be the first of a line.
    pub async fn first(&self, line: &str) -> First<'_> {
        let place = Place {
            turns: self,
            line: line.to_owned(),
            seat: Arc::default(),
        };
        self.desk().line.join(line, Arc::clone(&place.seat));
        while !place.is_first() {
            place.seat.news.notified().await;
        }
        First { place }
    }

    /// How many could be taken at once now.
    pub fn free(&self) -> usize {
        self.desk().free
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    /// Gives the turns that are free, and tells who is first now.
    fn serve(&mut self) {
        let is_ready = |seat: &Arc<Seat>| seat.is_ready.load(Ordering::Relaxed);
        while self.free > 0
            && let Some(seat) = self.line.take(is_ready)
        {
            self.free -= 1;
            seat.has_turn.store(true, Ordering::Relaxed);
            seat.news.notify_one();
        }
        for first in self.line.firsts().filter(|first| !is_ready(first)) {
            first.news.notify_one();
        }
    }
}

impl Place<'_> {
    fn is_first(&self) -> bool {
        let desk = self.turns.desk();
        desk.line
            .first(&self.line)
            .is_some_and(|first| Arc::ptr_eq(first, &self.seat))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut desk = self.turns.desk();
        if self.seat.has_turn.load(Ordering::Relaxed) {
            desk.free += 1;
        } else {
            desk.line.leave(&self.line, |seat| Arc::ptr_eq(seat, &self.seat));
        }
        desk.serve();
    }
}

impl<'a> First<'a> {
    /// Waits for a turn among the first of other lines, which take turns.
    pub async fn take(self) -> Turn<'a> {
        let seat = &self.place.seat;
        {
            let mut desk = self.place.turns.desk();
            seat.is_ready.store(true, Ordering::Relaxed);
            desk.serve();
        }
        while !seat.has_turn.load(Ordering::Relaxed) {
            seat.news.notified().await;
        }
        Turn { _place: self.place }
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
        drop(turns.first("other").await);
        assert_eq!(turns.desk().line.firsts().count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_first_and_does_not_use_a_turn_yet_keeps_only_its_own_line() {
        let turns = Turns::new(1);
        let first = turns.first("one").await;
        assert!(tokio::time::timeout(WORK, turns.take("one")).await.is_err());
        drop(turns.take("other").await);
        let turn = first.take().await;
        assert_eq!(turns.free(), 0);
        drop(turn);
        assert_eq!(turns.free(), 1);
    }
}
