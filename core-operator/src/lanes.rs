//! Where class charts are rendered: most at once and one after the other, those with slow Tera templates beside them, a few at a time.

use std::future::Future;

use rendering::{Lane, RenderError};
use tokio::sync::Semaphore;

/// How many slow charts are rendered at once: each has a process and a thread.
const AT_WORK: usize = 2;

/// How many of them wait for that at most. Whoever waits keeps a worker of the driver from other releases.
const WAITING: usize = 4;

/// What it is to wait for a place where there is none.
const FULL: &str =
    "its Tera templates take long, and so do those of other releases: it is tried again when these have had their time";

/// The places of the slow lane.
pub(crate) struct Lanes {
    places: Semaphore,
    work: Semaphore,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            places: Semaphore::new(AT_WORK + WAITING),
            work: Semaphore::new(AT_WORK),
        }
    }
}

/// Why there is no rendering.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unrendered {
    /// For people.
    pub(crate) message: String,
    /// Whether trying again may help; otherwise the chart has to be mended.
    pub(crate) transient: bool,
}

impl Lanes {
    /// Renders in the quick lane, and what is too slow for it in the other one. `render` does so in a thread of its own.
    pub(crate) async fn render<T, F>(&self, render: impl Fn(Lane) -> F) -> Result<T, Unrendered>
    where
        F: Future<Output = Result<T, RenderError>>,
    {
        let rendered = match render(Lane::Quick).await {
            Err(RenderError::TooSlow { .. }) => {
                let Ok(_place) = self.places.try_acquire() else {
                    return Err(Unrendered {
                        message: FULL.to_owned(),
                        transient: true,
                    });
                };
                // Never closed.
                let _work = self.work.acquire().await;
                render(Lane::Slow).await
            }
            rendered => rendered,
        };
        rendered.map_err(|error| Unrendered {
            message: operator_kit::failure::chain(&error),
            transient: error.class() == rendering::ErrorClass::Transient,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::{Notify, Semaphore};

    use super::*;

    /// A chart that is too slow for the quick lane; it tells when the slow lane has begun with it, and ends when it may.
    async fn slow(lane: Lane, begun: Arc<Semaphore>, may_end: Arc<Notify>) -> Result<(), RenderError> {
        if lane == Lane::Quick {
            return Err(RenderError::TooSlow {
                release: "r".to_owned(),
                limit: Duration::ZERO,
            });
        }
        begun.add_permits(1);
        may_end.notified().await;
        Ok(())
    }

    #[tokio::test]
    async fn slow_charts_wait_for_each_other_and_nobody_else_does() {
        let lanes = Arc::new(Lanes::default());
        let (begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
        let start = || {
            let (lanes, begun, may_end) = (Arc::clone(&lanes), Arc::clone(&begun), Arc::clone(&may_end));
            tokio::spawn(async move {
                let render = |lane| slow(lane, Arc::clone(&begun), Arc::clone(&may_end));
                lanes.render(render).await
            })
        };
        let tasks: Vec<_> = (0..AT_WORK + WAITING).map(|_| start()).collect();
        begun.acquire_many(2).await.unwrap().forget();
        // The others have taken their places before they wait.
        while lanes.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(begun.available_permits(), 0);

        let refused = start().await.unwrap().unwrap_err();
        assert_eq!((refused.message.as_str(), refused.transient), (FULL, true));
        let quick = lanes.render(async |lane| Ok::<_, RenderError>(lane)).await;
        assert_eq!(quick, Ok(Lane::Quick));

        for task in tasks {
            while !task.is_finished() {
                may_end.notify_one();
                tokio::task::yield_now().await;
            }
            assert_eq!(task.await.unwrap(), Ok(()));
        }
        assert_eq!(lanes.places.available_permits(), AT_WORK + WAITING);
    }
}
