//! Where class charts are rendered: most at once and one after the other, those with slow Tera templates beside them, a few at a time. Who wants
//! what is being rendered there waits for that, and takes no place.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rendering::{Lane, RenderError};
use tokio::sync::{OnceCell, Semaphore};

/// How many slow charts are rendered at once: each has a process and a thread.
const AT_WORK: usize = 2;

/// How many of them wait for that at most. Whoever waits keeps a worker of the driver from other releases.
const WAITING: usize = 4;

/// What it is to wait for a place where there is none.
const FULL: &str =
    "its Tera templates take long, and so do those of other releases: it is tried again when these have had their time";

/// The places of the slow lane, and what is rendered there.
pub(crate) struct Lanes<T> {
    places: Semaphore,
    work: Semaphore,
    /// By what tells renderings apart. Nothing stays when nobody waits for it any more.
    under_way: Mutex<HashMap<String, Weak<Flight<T>>>>,
}

/// One rendering in the slow lane, for all who want it.
type Flight<T> = OnceCell<Result<T, Unrendered>>;

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self {
            places: Semaphore::new(AT_WORK + WAITING),
            work: Semaphore::new(AT_WORK),
            under_way: Mutex::default(),
        }
    }
}

/// Why there is no rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unrendered {
    /// For people.
    pub(crate) message: String,
    /// Whether trying again may help; otherwise the chart has to be mended.
    pub(crate) transient: bool,
}

impl<T: Clone> Lanes<T> {
    /// Renders in the quick lane, and what is too slow for it in the other one. `render` does so in a thread of its own; it makes the same of all
    /// that is equally `wanted`.
    pub(crate) async fn render<F>(&self, wanted: &str, render: impl Fn(Lane) -> F) -> Result<T, Unrendered>
    where
        F: Future<Output = Result<T, RenderError>>,
    {
        match render(Lane::Quick).await {
            Err(RenderError::TooSlow { .. }) => {
                let flight = self.flight(wanted);
                // Where the one who renders is stopped, the next of those who wait begins anew.
                flight.get_or_init(|| self.render_slowly(render)).await.clone()
            }
            rendered => rendered.map_err(|error| unrendered(&error)),
        }
    }

    async fn render_slowly<F>(&self, render: impl Fn(Lane) -> F) -> Result<T, Unrendered>
    where
        F: Future<Output = Result<T, RenderError>>,
    {
        let Ok(_place) = self.places.try_acquire() else {
            return Err(Unrendered {
                message: FULL.to_owned(),
                transient: true,
            });
        };
        // Never closed.
        let _work = self.work.acquire().await;
        render(Lane::Slow).await.map_err(|error| unrendered(&error))
    }

    /// The rendering that is under way, or the one that begins here.
    fn flight(&self, wanted: &str) -> Arc<Flight<T>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|_, flight| flight.strong_count() > 0);
        if let Some(flight) = under_way.get(wanted).and_then(Weak::upgrade) {
            return flight;
        }
        let flight = Arc::new(Flight::new());
        under_way.insert(wanted.to_owned(), Arc::downgrade(&flight));
        flight
    }
}

fn unrendered(error: &RenderError) -> Unrendered {
    Unrendered {
        message: operator_kit::failure::chain(error),
        transient: error.class() == rendering::ErrorClass::Transient,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::{Notify, Semaphore};

    use super::*;

    /// A chart that is too slow for the quick lane; it tells when the slow lane has begun with it, and ends when it may.
    async fn slow(lane: Lane, begun: Arc<Semaphore>, may_end: Arc<Notify>) -> Result<Lane, RenderError> {
        if lane == Lane::Quick {
            return Err(RenderError::TooSlow {
                release: "r".to_owned(),
                limit: Duration::ZERO,
            });
        }
        begun.add_permits(1);
        may_end.notified().await;
        Ok(lane)
    }

    #[tokio::test]
    async fn slow_charts_wait_for_each_other_and_nobody_else_does() {
        let lanes = Arc::new(Lanes::default());
        let (begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
        let start = |wanted: usize| {
            let (lanes, begun, may_end) = (Arc::clone(&lanes), Arc::clone(&begun), Arc::clone(&may_end));
            tokio::spawn(async move {
                let render = |lane| slow(lane, Arc::clone(&begun), Arc::clone(&may_end));
                lanes.render(&wanted.to_string(), render).await
            })
        };
        let tasks: Vec<_> = (0..AT_WORK + WAITING).map(start).collect();
        begun.acquire_many(2).await.unwrap().forget();
        // The others have taken their places before they wait.
        while lanes.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(begun.available_permits(), 0);

        let refused = start(AT_WORK + WAITING).await.unwrap().unwrap_err();
        assert_eq!((refused.message.as_str(), refused.transient), (FULL, true));
        let quick = lanes.render("quick", async |lane| Ok(lane)).await;
        assert_eq!(quick, Ok(Lane::Quick));

        for task in tasks {
            while !task.is_finished() {
                may_end.notify_one();
                tokio::task::yield_now().await;
            }
            assert_eq!(task.await.unwrap(), Ok(Lane::Slow));
        }
        assert_eq!(lanes.places.available_permits(), AT_WORK + WAITING);
    }

    #[tokio::test]
    async fn who_wants_what_is_being_rendered_slowly_waits_for_that_and_takes_no_place() {
        let lanes = Arc::new(Lanes::default());
        let (begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
        let start = || {
            let (lanes, begun, may_end) = (Arc::clone(&lanes), Arc::clone(&begun), Arc::clone(&may_end));
            tokio::spawn(async move {
                let render = |lane| slow(lane, Arc::clone(&begun), Arc::clone(&may_end));
                lanes.render("the same", render).await
            })
        };
        let stopped = start();
        begun.acquire().await.unwrap().forget();
        let many = 10 * (AT_WORK + WAITING);
        let tasks: Vec<_> = (0..many).map(|_| start()).collect();
        let waiting = || {
            let under_way = lanes.under_way.lock().unwrap();
            under_way.values().map(Weak::strong_count).sum::<usize>()
        };
        while waiting() < many + 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(lanes.places.available_permits(), AT_WORK + WAITING - 1);

        // Another one goes on for all of them.
        stopped.abort();
        begun.acquire().await.unwrap().forget();
        may_end.notify_one();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(Lane::Slow));
        }
        assert_eq!(begun.available_permits(), 0, "it was rendered once more, by one");
        assert_eq!(waiting(), 0);
    }
}
