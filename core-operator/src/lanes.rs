//! Where class charts are rendered: most one after the other, those that take long beside them, a few at a time. Nobody waits in a lane:
//! a rendering is an errand of its release, which is woken when it is over.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crds::ClusterStackRelease;
use futures::channel::mpsc::UnboundedSender;
use kube::runtime::reflector::ObjectRef;
use rendering::Lane;
use tokio::sync::Semaphore;

use crate::errands::{Errands, Teller};

/// How many slow charts are rendered at once: each has a thread, and may have a process.
const AT_WORK: usize = 2;

/// How long a look waits for a rendering in the quick lane. All but a few are there within milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// A release that wants to be rendered.
type Whose = ObjectRef<ClusterStackRelease>;

/// What came of a rendering.
type Outcome<T> = Result<Arc<T>, Failed>;

/// The lanes, and what is on its way in them.
pub(crate) struct Lanes<T> {
    quick: Semaphore,
    slow: Semaphore,
    errands: Arc<Errands<Whose, Outcome<T>>>,
}

/// Why there is no rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unrendered {
    /// It takes long, or has many before it. The release is woken when it is over.
    Awaited,
    /// It failed.
    Failed(Failed),
}

/// What came instead of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// For people.
    pub(crate) message: String,
    /// Whether trying again may help; otherwise the chart has to be mended.
    pub(crate) transient: bool,
    /// Whether the archive is not what it was when it was verified.
    pub(crate) unreadable: bool,
}

/// How an attempt in the quick lane ended without a rendering.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It belongs into the slow lane.
    TooSlow,
    /// It failed.
    Failed(Failed),
}

impl<T: Send + Sync + 'static> Lanes<T> {
    /// Lanes that wake releases through this queue.
    pub(crate) fn new(queue: UnboundedSender<Whose>) -> Arc<Self> {
        // A closed queue means that the process is about to end.
        let wake = move |release: &Whose| drop(queue.unbounded_send(release.clone()));
        Arc::new(Self {
            quick: Semaphore::new(1),
            slow: Semaphore::new(AT_WORK),
            // What was rendered is looked at first, and then it is written. What failed is tried again.
            errands: Errands::new(Result::is_ok, wake),
        })
    }

    /// Renders what a release wants, and tells what came of it if that is known soon. `needs` is the lane that it is known to belong into, or none
    /// where it takes no turn. `render` makes the same of all that is equally `wanted`; what is too slow for the quick lane it makes anew.
    pub(crate) async fn render<F>(
        self: &Arc<Self>,
        release: &Whose,
        wanted: &str,
        needs: Option<Lane>,
        render: impl Fn(Lane) -> F + Send + Sync + 'static,
    ) -> Result<Arc<T>, Unrendered>
    where
        F: Future<Output = Result<T, Ended>> + Send,
    {
        let lanes = Arc::clone(self);
        let work = |teller| async move { lanes.run(needs, render, teller).await };
        let outcome = self.errands.ask(release, wanted, PATIENCE, work).await;
        outcome.ok_or(Unrendered::Awaited)?.map_err(Unrendered::Failed)
    }

    async fn run<F>(&self, needs: Option<Lane>, render: impl Fn(Lane) -> F, teller: Teller<Outcome<T>>) -> Outcome<T>
    where
        F: Future<Output = Result<T, Ended>>,
    {
        if needs != Some(Lane::Slow) {
            // Never closed.
            let _turn = match needs {
                Some(_) => self.quick.acquire().await.ok(),
                None => None,
            };
            match render(Lane::Quick).await {
                Ok(rendered) => return Ok(Arc::new(rendered)),
                Err(Ended::Failed(failed)) => return Err(failed),
                Err(Ended::TooSlow) => {}
            }
        }
        teller.takes_long();
        let _work = self.slow.acquire().await;
        match render(Lane::Slow).await {
            Ok(rendered) => Ok(Arc::new(rendered)),
            Err(Ended::Failed(failed)) => Err(failed),
            Err(Ended::TooSlow) => Err(Failed {
                message: "the chart takes too long to render".to_owned(),
                transient: true,
                unreadable: false,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use futures::channel::mpsc::{UnboundedReceiver, unbounded};
    use tokio::time::{Instant, sleep};

    use super::*;

    fn release(name: &str) -> Whose {
        ObjectRef::new(name).within("fleet")
    }

    fn lanes() -> (Arc<Lanes<Lane>>, UnboundedReceiver<Whose>) {
        let (queue, woken) = unbounded();
        (Lanes::new(queue), woken)
    }

    /// Charts that take long, and how far they are.
    #[derive(Clone)]
    struct Slow {
        begun: Arc<Semaphore>,
        may_end: Arc<Semaphore>,
    }

    impl Slow {
        fn charts() -> Self {
            let none = || Arc::new(Semaphore::new(0));
            Self {
                begun: none(),
                may_end: none(),
            }
        }

        /// Too slow for the quick lane; it tells when the slow lane has begun with it, and ends when it may.
        async fn render(self, lane: Lane) -> Result<Lane, Ended> {
            if lane == Lane::Quick {
                return Err(Ended::TooSlow);
            }
            self.begun.add_permits(1);
            self.may_end.acquire().await.unwrap().forget();
            Ok(lane)
        }

        async fn wanted_by(&self, lanes: &Arc<Lanes<Lane>>, name: &str, needs: Lane) -> Result<Arc<Lane>, Unrendered> {
            let charts = self.clone();
            let render = move |lane| charts.clone().render(lane);
            lanes.render(&release(name), "slow", Some(needs), render).await
        }
    }

    async fn quick(lanes: &Arc<Lanes<Lane>>, name: &str) -> Result<Arc<Lane>, Unrendered> {
        let render = async |lane| Ok(lane);
        lanes.render(&release(name), "quick", Some(Lane::Quick), render).await
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_charts_are_slow_nobody_waits_for_them() {
        let ((lanes, mut woken), slow) = (lanes(), Slow::charts());
        let begun = Instant::now();
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        for name in &names {
            let told = slow.wanted_by(&lanes, name, Lane::Quick).await;
            assert_eq!(told, Err(Unrendered::Awaited));
            assert_eq!(quick(&lanes, "quick").await, Ok(Arc::new(Lane::Quick)));
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(slow.begun.available_permits(), AT_WORK, "the others wait for these");

        for _ in &names {
            slow.may_end.add_permits(1);
            let one = woken.next().await.unwrap();
            let told = slow.wanted_by(&lanes, &one.name, Lane::Quick).await;
            assert_eq!(told, Ok(Arc::new(Lane::Slow)));
        }
        assert_eq!(slow.begun.available_permits(), names.len(), "each was rendered once");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_to_be_slow_and_what_is_kept_take_no_turn_from_others() {
        let ((lanes, _woken), slow) = (lanes(), Slow::charts());
        let _turn = lanes.quick.acquire().await.unwrap();
        let begun = Instant::now();
        let told = slow.wanted_by(&lanes, "slow", Lane::Slow).await;
        assert_eq!(told, Err(Unrendered::Awaited));
        slow.begun.acquire().await.unwrap().forget();
        let kept = lanes
            .render(&release("kept"), "kept", None, async |lane| Ok(lane))
            .await;
        assert_eq!(kept, Ok(Arc::new(Lane::Quick)));
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_many_before_him_goes_away_and_is_woken_when_he_had_his_turn() {
        let (lanes, mut woken) = lanes();
        let turn = lanes.quick.acquire().await.unwrap();
        assert_eq!(quick(&lanes, "one").await, Err(Unrendered::Awaited));
        drop(turn);
        assert_eq!(woken.next().await, Some(release("one")));
        assert_eq!(quick(&lanes, "one").await, Ok(Arc::new(Lane::Quick)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_is_told_once_and_then_tried_again() {
        let (lanes, mut woken) = lanes();
        for expected in ["first", "second"] {
            let attempt = async || {
                let render = move |_| async move {
                    sleep(PATIENCE * 2).await;
                    Err(Ended::Failed(Failed {
                        message: expected.to_owned(),
                        transient: true,
                        unreadable: false,
                    }))
                };
                lanes.render(&release("one"), "it", Some(Lane::Slow), render).await
            };
            assert_eq!(attempt().await, Err(Unrendered::Awaited));
            woken.next().await.unwrap();
            let told = attempt().await;
            assert!(
                matches!(&told, Err(Unrendered::Failed(failed)) if failed.message == expected),
                "{told:?}"
            );
        }
    }
}
