//! Looks that take long: they go on by themselves, so that what hangs keeps no worker from other objects.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc::UnboundedSender;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a look may keep a worker. All but a few are over by then also where the API server has much to do.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two questions whether a look waits for somebody who keeps silent, which needs no patience: clusters that hang together hang by the dozen.
const GLANCE: Duration = Duration::from_secs(1);

/// How many go on by themselves at most: each holds what it has looked at. Then workers wait.
const MOST: usize = 128;

/// A look at an object; gives when to look again without a change, if that is known.
pub(crate) type Look = BoxFuture<'static, Option<Duration>>;

/// The looks of one driver that have outlived their worker's patience. Clones share them.
pub(crate) struct Latecomers<K> {
    late: Arc<Mutex<HashMap<K, Late>>>,
    tasks: TaskTracker,
    queue: UnboundedSender<K>,
    stop: CancellationToken,
}

/// What is known of an object whose last look was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// The look is under way.
    UnderWay {
        /// Whether somebody has asked for another one meanwhile.
        is_asked_for: bool,
    },
    /// It is over, and wants another one then, unless there is one before.
    Due(Instant),
}

impl<K> Clone for Latecomers<K> {
    fn clone(&self) -> Self {
        Self {
            late: Arc::clone(&self.late),
            tasks: self.tasks.clone(),
            queue: self.queue.clone(),
            stop: self.stop.clone(),
        }
    }
}

/// How long a worker stays with a look.
async fn patience(keeps_silent: impl Fn() -> bool) {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        sleep(GLANCE).await;
        if keeps_silent() {
            return;
        }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> Latecomers<K> {
    /// Whoever is to be looked at again is put into the queue.
    pub(crate) fn new(queue: UnboundedSender<K>, stop: CancellationToken) -> Self {
        Self {
            late: Arc::default(),
            tasks: TaskTracker::new(),
            queue,
            stop,
        }
    }

    /// Looks at an object, of which no worker looks at the same time, for as long as a worker has patience; `keeps_silent` says that it waits for somebody who
    /// says nothing. The queue tells of what takes longer: then, and while it does, there is nothing to be done.
    pub(crate) async fn look(
        &self,
        object: K,
        mut look: Look,
        keeps_silent: impl Fn() -> bool + Send + Sync,
    ) -> Option<Duration> {
        if self.is_under_way(&object) {
            return None;
        }
        tokio::select! {
            biased;
            again = look.as_mut() => return again,
            () = patience(keeps_silent) => {}
        }
        let goes_on = {
            let mut late = self.late();
            let under_way = late.values().filter(|late| matches!(late, Late::UnderWay { .. }));
            let has_room = under_way.count() < MOST;
            if has_room {
                late.insert(object.clone(), Late::UnderWay { is_asked_for: false });
            }
            has_room
        };
        if !goes_on {
            return look.await;
        }
        let latecomers = self.clone();
        let task = self.tasks.track_future(async move {
            let again = look.await;
            let due = latecomers.over(&object, again);
            (latecomers, object, due)
        });
        tokio::spawn(async move {
            if let (latecomers, object, Some(due)) = task.await
                && latecomers.stop.run_until_cancelled(sleep_until(due)).await.is_some()
                && latecomers.is_still_due(&object, due)
            {
                // A closed queue means that the process is about to end.
                let _ = latecomers.queue.unbounded_send(object);
            }
        });
        None
    }

    /// Whether a look is under way, which is then asked for another one. One that begins now makes up for what was due later.
    fn is_under_way(&self, object: &K) -> bool {
        let mut late = self.late();
        if let Some(Late::UnderWay { is_asked_for }) = late.get_mut(object) {
            *is_asked_for = true;
            return true;
        }
        late.remove(object);
        false
    }

    /// Ends a late look; gives when the next one is due.
    fn over(&self, object: &K, again: Option<Duration>) -> Option<Instant> {
        let mut late = self.late();
        let was_asked_for = late.remove(object) == Some(Late::UnderWay { is_asked_for: true });
        let again = if was_asked_for { Some(Duration::ZERO) } else { again };
        let due = Instant::now().checked_add(again?)?;
        late.insert(object.clone(), Late::Due(due));
        Some(due)
    }

    /// Whether there was no look since.
    fn is_still_due(&self, object: &K, due: Instant) -> bool {
        let mut late = self.late();
        let is_still_due = late.get(object) == Some(&Late::Due(due));
        if is_still_due {
            late.remove(object);
        }
        is_still_due
    }

    /// Waits for those that are under way.
    pub(crate) async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn late(&self) -> MutexGuard<'_, HashMap<K, Late>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::StreamExt;
    use futures::channel::mpsc::{UnboundedReceiver, unbounded};

    use super::*;

    fn latecomers() -> (Latecomers<usize>, UnboundedReceiver<usize>, CancellationToken) {
        let (queue, woken) = unbounded();
        let stop = CancellationToken::new();
        (Latecomers::new(queue, stop.clone()), woken, stop)
    }

    fn taking(time: Duration, again: Option<Duration>) -> Look {
        Box::pin(async move {
            sleep(time).await;
            again
        })
    }

    /// Nobody keeps silent for whom a look waits.
    fn speaks() -> bool {
        false
    }

    #[tokio::test(start_paused = true)]
    async fn look_that_ends_in_time_is_the_workers() {
        let (latecomers, mut woken, _) = latecomers();
        let again = latecomers.look(1, taking(PATIENCE / 2, Some(PATIENCE)), speaks).await;
        assert_eq!(again, Some(PATIENCE));
        sleep(PATIENCE * 10).await;
        assert!(woken.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn look_that_hangs_keeps_a_worker_for_a_moment_and_is_not_begun_twice() {
        let (latecomers, _woken, _) = latecomers();
        let begun = Instant::now();
        assert_eq!(latecomers.look(1, Box::pin(pending()), speaks).await, None);
        assert_eq!(begun.elapsed(), PATIENCE);
        assert_eq!(latecomers.look(1, Box::pin(ready(Some(PATIENCE))), speaks).await, None);
        assert_eq!(latecomers.look(2, Box::pin(ready(None)), speaks).await, None);
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn look_that_waits_for_somebody_silent_keeps_no_worker_for_long_and_goes_on() {
        let (latecomers, mut woken, _) = latecomers();
        let begun = Instant::now();
        let look = taking(PATIENCE, Some(PATIENCE));
        assert_eq!(latecomers.look(1, look, || true).await, None);
        assert_eq!(begun.elapsed(), GLANCE);
        assert_eq!(woken.next().await, Some(1));
        assert_eq!(begun.elapsed(), PATIENCE * 2);
        // Nobody asks about a look that is over by then.
        let look = taking(GLANCE / 2, Some(PATIENCE));
        assert_eq!(latecomers.look(1, look, || true).await, Some(PATIENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_late_look_wants_next_is_heard_when_it_is_due() {
        let (latecomers, mut woken, _) = latecomers();
        let begun = Instant::now();
        latecomers
            .look(1, taking(PATIENCE * 2, Some(PATIENCE * 3)), speaks)
            .await;
        assert_eq!(woken.next().await, Some(1));
        assert_eq!(begun.elapsed(), PATIENCE * 5);
    }

    #[tokio::test(start_paused = true)]
    async fn of_late_looks_one_after_the_other_the_last_says_when_the_next_is_due() {
        let (latecomers, mut woken, _) = latecomers();
        let begun = Instant::now();
        for _ in 0..3 {
            latecomers
                .look(1, taking(PATIENCE * 2, Some(PATIENCE * 10)), speaks)
                .await;
            sleep(PATIENCE * 2).await;
        }
        assert_eq!(woken.next().await, Some(1));
        assert_eq!(begun.elapsed(), PATIENCE * (3 + 3 + 2 + 10));
        sleep(PATIENCE * 100).await;
        assert!(woken.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_during_a_late_look_is_looked_at_when_it_is_over() {
        let (latecomers, mut woken, _) = latecomers();
        let begun = Instant::now();
        latecomers.look(1, taking(PATIENCE * 2, None), speaks).await;
        latecomers.look(1, Box::pin(ready(None)), speaks).await;
        assert_eq!(woken.next().await, Some(1));
        assert_eq!(begun.elapsed(), PATIENCE * 2);
        assert_eq!(
            latecomers.look(1, Box::pin(ready(Some(PATIENCE))), speaks).await,
            Some(PATIENCE)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_waits_for_late_looks_and_not_for_what_they_want_next() {
        let (latecomers, _woken, stop) = latecomers();
        let begun = Instant::now();
        latecomers
            .look(1, taking(PATIENCE * 2, Some(Duration::from_hours(1))), speaks)
            .await;
        stop.cancel();
        latecomers.finish().await;
        assert_eq!(begun.elapsed(), PATIENCE * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_go_on_by_themselves() {
        let (latecomers, _woken, _) = latecomers();
        for object in 0..MOST {
            tokio::spawn({
                let latecomers = latecomers.clone();
                async move { latecomers.look(object, Box::pin(pending()), speaks).await }
            });
        }
        sleep(PATIENCE * 2).await;
        let begun = Instant::now();
        latecomers.look(MOST, taking(PATIENCE * 3, None), speaks).await;
        assert_eq!(begun.elapsed(), PATIENCE * 3);
    }
}
