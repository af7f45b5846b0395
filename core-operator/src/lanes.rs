//! Where charts are rendered: most one after the other, those that take long beside them, a few at a time. Nobody waits in a lane: a rendering
//! is an errand of whoever wants it, who is woken when it is over.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crds::{ClusterAddon, ClusterStackRelease};
use kube::runtime::reflector::ObjectRef;
use operator_kit::turns::Turns;
use rendering::Lane;

use crate::errands::{Errands, Teller};

/// How many slow charts are rendered at once: each has a thread, and may have a process.
const AT_WORK: usize = 2;

/// How long a look waits for a rendering in the quick lane. All but a few are there within milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who wants a chart to be rendered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    /// A release: its class chart.
    Release(ObjectRef<ClusterStackRelease>),
    /// The add-ons of a cluster: one of their charts.
    Addon {
        /// Whose.
        addon: ObjectRef<ClusterAddon>,
        /// The folder of the chart.
        chart: String,
    },
}

impl Whose {
    fn namespace(&self) -> &str {
        let namespace = match self {
            Self::Release(release) => &release.namespace,
            Self::Addon { addon, .. } => &addon.namespace,
        };
        namespace.as_deref().unwrap_or_default()
    }
}

/// What came of a rendering.
type Outcome<T> = Result<Arc<T>, Failed>;

/// The lanes, and what is on its way in them. In both there are lines by namespace and storage, which take turns: whoever has many charts keeps others
/// waiting for one of them, and a storage that hangs keeps those alone who read from it.
pub(crate) struct Lanes<T> {
    quick: Turns,
    slow: Turns,
    errands: Arc<Errands<Whose, Outcome<T>>>,
}

/// A chart that somebody wants to have rendered.
pub(crate) trait Chart: Send + Sync + 'static {
    /// What comes of it.
    type Rendered: Send + Sync + 'static;

    /// The same of all whose renderings are the same.
    fn identity(&self) -> &str;

    /// What it is read from, as others may be too.
    fn storage(&self) -> &Path;

    /// The lane that it is known to belong into.
    fn lane(&self) -> Lane;

    /// What was rendered before, if it is kept. Takes no turn.
    fn kept(self: Arc<Self>) -> impl Future<Output = Option<Self::Rendered>> + Send;

    /// Waits until the storage gives it out.
    fn reach(&self) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Renders it in a turn of this lane. What is too slow for the quick one is rendered anew in the other.
    fn render(self: Arc<Self>, lane: Lane) -> impl Future<Output = Result<Self::Rendered, Ended>> + Send;
}

/// Why there is no rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unrendered {
    /// It takes long, or has many before it. Whoever wants it is woken when it is over.
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

impl Failed {
    /// It may succeed when it is tried again.
    pub(crate) fn for_now(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            transient: true,
            unreadable: false,
        }
    }

    /// Only another chart can be right.
    pub(crate) fn for_good(message: String) -> Self {
        Self {
            message,
            transient: false,
            unreadable: false,
        }
    }
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
    /// Lanes that wake so whoever went away without what he wanted.
    pub(crate) fn new(wake: impl Fn(&Whose) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            quick: Turns::new(1),
            slow: Turns::new(AT_WORK),
            // What was rendered is looked at first, and then it is written. What failed is tried again.
            errands: Errands::new(Result::is_ok, wake),
        })
    }

    /// Renders what somebody wants, and tells what came of it if that is known soon.
    pub(crate) async fn render<C>(self: &Arc<Self>, whose: &Whose, chart: C) -> Result<Arc<T>, Unrendered>
    where
        C: Chart<Rendered = T>,
    {
        let (lanes, chart) = (Arc::clone(self), Arc::new(chart));
        let line = format!("{} {}", whose.namespace(), chart.storage().display());
        let ordered = Arc::clone(&chart);
        let work = |teller| async move { lanes.run(&line, ordered, teller).await.map(Arc::new) };
        let outcome = self.errands.ask(whose, chart.identity(), PATIENCE, work).await;
        outcome.ok_or(Unrendered::Awaited)?.map_err(Unrendered::Failed)
    }

    /// Those who are gone by this: what they wanted leaves its line, and what is rendered for them is told to nobody.
    pub(crate) fn forget(&self, is_gone: impl Fn(&Whose) -> bool) {
        self.errands.abandon(is_gone);
    }

    async fn run<C>(&self, line: &str, chart: Arc<C>, teller: Teller<Outcome<T>>) -> Result<T, Failed>
    where
        C: Chart<Rendered = T>,
    {
        // Told to nobody.
        let unwanted = || Failed::for_now("nobody wants the rendering any more");
        if let Some(kept) = Arc::clone(&chart).kept().await {
            return Ok(kept);
        }
        if chart.lane() == Lane::Quick {
            let turn = teller.while_wanted(self.quick.take(line)).await;
            let _turn = turn.ok_or_else(unwanted)?;
            match Arc::clone(&chart).render(Lane::Quick).await {
                Ok(rendered) => return Ok(rendered),
                Err(Ended::Failed(failed)) => return Err(failed),
                Err(Ended::TooSlow) => {}
            }
        }
        teller.takes_long();
        let first = teller.while_wanted(self.slow.first(line)).await;
        let first = first.ok_or_else(unwanted)?;
        // A turn is not for waiting.
        chart.reach().await?;
        let turn = teller.while_wanted(first.take()).await;
        let _turn = turn.ok_or_else(unwanted)?;
        match chart.render(Lane::Slow).await {
            Ok(rendered) => Ok(rendered),
            Err(Ended::Failed(failed)) => Err(failed),
            Err(Ended::TooSlow) => Err(Failed::for_now("the chart takes too long to render")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;

    use futures::StreamExt;
    use futures::channel::mpsc::{UnboundedReceiver, unbounded};
    use tokio::sync::Semaphore;
    use tokio::task::yield_now;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// How long a slow chart takes.
    const LONG: Duration = Duration::from_secs(20);

    fn release(namespace: &str, name: impl Display) -> Whose {
        Whose::Release(ObjectRef::new(&name.to_string()).within(namespace))
    }

    fn lanes() -> (Arc<Lanes<Lane>>, UnboundedReceiver<Whose>) {
        let (queue, woken) = unbounded();
        let wake = move |whose: &Whose| drop(queue.unbounded_send(whose.clone()));
        (Lanes::new(wake), woken)
    }

    /// A chart, and how often it and its like were rendered in the slow lane. Whoever renders it tells the lane.
    #[derive(Clone)]
    struct Sample {
        identity: String,
        lane: Lane,
        is_slow: bool,
        is_kept: bool,
        hangs: bool,
        fails: Option<&'static str>,
        rendered: Arc<Semaphore>,
    }

    impl Sample {
        fn quick() -> Self {
            Self {
                identity: "it".to_owned(),
                lane: Lane::Quick,
                is_slow: false,
                is_kept: false,
                hangs: false,
                fails: None,
                rendered: Arc::new(Semaphore::new(0)),
            }
        }

        /// Nobody knows it yet.
        fn slow() -> Self {
            Self {
                is_slow: true,
                ..Self::quick()
            }
        }

        fn known_as_slow() -> Self {
            Self {
                lane: Lane::Slow,
                ..Self::slow()
            }
        }

        /// What another of its kind would be.
        fn with_identity(&self, identity: impl Display) -> Self {
            Self {
                identity: identity.to_string(),
                ..self.clone()
            }
        }

        async fn wanted_by(&self, lanes: &Arc<Lanes<Lane>>, release: &Whose) -> Result<Arc<Lane>, Unrendered> {
            lanes.render(release, self.clone()).await
        }

        fn times(&self) -> usize {
            self.rendered.available_permits()
        }
    }

    impl Chart for Sample {
        type Rendered = Lane;

        fn identity(&self) -> &str {
            &self.identity
        }

        fn storage(&self) -> &Path {
            Path::new(if self.hangs { "hanging" } else { "healthy" })
        }

        fn lane(&self) -> Lane {
            self.lane
        }

        async fn kept(self: Arc<Self>) -> Option<Lane> {
            self.is_kept.then_some(self.lane)
        }

        async fn reach(&self) -> Result<(), Failed> {
            if self.hangs {
                sleep(LONG).await;
                return Err(Failed::for_now("it hangs"));
            }
            Ok(())
        }

        async fn render(self: Arc<Self>, lane: Lane) -> Result<Lane, Ended> {
            match (lane, self.is_slow) {
                (Lane::Quick, true) => return Err(Ended::TooSlow),
                (Lane::Quick, false) => {}
                (Lane::Slow, _) => {
                    self.rendered.add_permits(1);
                    sleep(LONG).await;
                }
            }
            match self.fails {
                Some(words) => Err(Ended::Failed(Failed::for_now(words))),
                None => Ok(lane),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_charts_are_slow_nobody_waits_for_them() {
        const MANY: usize = 100;
        let ((lanes, mut woken), slow, quick) = (lanes(), Sample::slow(), Sample::quick());
        let begun = Instant::now();
        for number in 0..MANY {
            let told = slow.wanted_by(&lanes, &release("fleet", number)).await;
            assert_eq!(told, Err(Unrendered::Awaited));
            let told = quick.wanted_by(&lanes, &release("fleet", "quick")).await;
            assert_eq!(told, Ok(Arc::new(Lane::Quick)));
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        sleep(LONG / 2).await;
        assert_eq!(slow.times(), AT_WORK, "the others wait for these");

        for _ in 0..MANY {
            let one = woken.next().await.unwrap();
            let told = slow.wanted_by(&lanes, &one).await;
            assert_eq!(told, Ok(Arc::new(Lane::Slow)));
        }
        assert_eq!(slow.times(), MANY, "each was rendered once");
        let turns = u32::try_from(MANY / AT_WORK).unwrap();
        assert_eq!(begun.elapsed(), LONG * turns);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_charts_of_one_namespace_hold_up_those_of_another_for_two_turns_at_most() {
        let ((lanes, mut woken), begun) = (lanes(), Instant::now());
        for number in 0..100 {
            let told = Sample::slow().wanted_by(&lanes, &release("crowd", number)).await;
            assert_eq!(told, Err(Unrendered::Awaited));
        }
        let alone = release("alone", "one");
        let told = Sample::slow().wanted_by(&lanes, &alone).await;
        assert_eq!(told, Err(Unrendered::Awaited));
        while woken.next().await.unwrap() != alone {}
        assert!(begun.elapsed() <= LONG * 2, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn charts_of_one_namespace_that_nobody_knows_yet_hold_up_those_of_another_for_two_turns_at_most() {
        let (lanes, mut woken) = lanes();
        let turn = lanes.quick.take("others").await;
        let alone = release("alone", "one");
        for whose in (0..100).map(|number| release("crowd", number)).chain([alone.clone()]) {
            let told = Sample::quick().wanted_by(&lanes, &whose).await;
            assert_eq!(told, Err(Unrendered::Awaited));
        }
        drop(turn);
        let mut before = 0;
        while woken.next().await.unwrap() != alone {
            before += 1;
        }
        assert!(before <= 2, "{before}");
    }

    #[tokio::test(start_paused = true)]
    async fn of_what_a_release_wanted_one_after_the_other_the_last_is_rendered() {
        let ((lanes, mut woken), others, changing) = (lanes(), Sample::slow(), Sample::slow());
        for number in 0..AT_WORK {
            let told = others.wanted_by(&lanes, &release("others", number)).await;
            assert_eq!(told, Err(Unrendered::Awaited));
        }
        let changed = release("fleet", "changed");
        for number in 0..100 {
            let wanted = changing.with_identity(number);
            assert_eq!(wanted.wanted_by(&lanes, &changed).await, Err(Unrendered::Awaited));
        }
        while woken.next().await.unwrap() != changed {}
        let last = changing.with_identity(99);
        assert_eq!(last.wanted_by(&lanes, &changed).await, Ok(Arc::new(Lane::Slow)));
        sleep(LONG * 100).await;
        assert_eq!(changing.times(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_release_wanted_that_is_gone_is_not_rendered_and_wakes_nobody() {
        let ((lanes, mut woken), others, gone) = (lanes(), Sample::slow(), Sample::slow());
        for number in 0..AT_WORK {
            let told = others.wanted_by(&lanes, &release("others", number)).await;
            assert_eq!(told, Err(Unrendered::Awaited));
        }
        let begun = Instant::now();
        for number in 0..100 {
            let whose = release("fleet", number);
            assert_eq!(gone.wanted_by(&lanes, &whose).await, Err(Unrendered::Awaited));
            lanes.forget(|one| *one == whose);
        }
        let stays = release("fleet", "stays");
        assert_eq!(gone.wanted_by(&lanes, &stays).await, Err(Unrendered::Awaited));
        while woken.next().await.unwrap() != stays {}
        assert_eq!(begun.elapsed(), LONG * 2);
        assert_eq!(gone.times(), 1);
        sleep(LONG * 100).await;
        assert!(woken.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_storage_that_hangs_takes_no_turn() {
        let ((lanes, mut woken), begun) = (lanes(), Instant::now());
        let hanging = Sample {
            hangs: true,
            ..Sample::known_as_slow()
        };
        for number in 0..100 {
            let told = hanging.wanted_by(&lanes, &release("fleet", number)).await;
            assert_eq!(told, Err(Unrendered::Awaited));
        }
        sleep(LONG / 2).await;
        assert_eq!(lanes.slow.free(), AT_WORK);
        let healthy = release("fleet", "healthy");
        let told = Sample::known_as_slow().wanted_by(&lanes, &healthy).await;
        assert_eq!(told, Err(Unrendered::Awaited));
        while woken.next().await.unwrap() != healthy {}
        assert_eq!(begun.elapsed(), LONG / 2 + LONG);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_to_be_slow_and_what_is_kept_take_no_turn_from_others() {
        let ((lanes, _woken), slow) = (lanes(), Sample::known_as_slow());
        let _turn = lanes.quick.take("others").await;
        let begun = Instant::now();
        let told = slow.wanted_by(&lanes, &release("fleet", "slow")).await;
        assert_eq!(told, Err(Unrendered::Awaited));
        while slow.times() == 0 {
            yield_now().await;
        }
        let kept = Sample {
            is_kept: true,
            ..Sample::quick()
        };
        let told = kept.wanted_by(&lanes, &release("fleet", "kept")).await;
        assert_eq!(told, Ok(Arc::new(Lane::Quick)));
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_many_before_him_goes_away_and_is_woken_when_he_had_his_turn() {
        let (lanes, mut woken) = lanes();
        let turn = lanes.quick.take("others").await;
        let one = release("fleet", "one");
        assert_eq!(Sample::quick().wanted_by(&lanes, &one).await, Err(Unrendered::Awaited));
        drop(turn);
        assert_eq!(woken.next().await, Some(one.clone()));
        assert_eq!(Sample::quick().wanted_by(&lanes, &one).await, Ok(Arc::new(Lane::Quick)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_is_told_once_and_then_tried_again() {
        let ((lanes, mut woken), one) = (lanes(), release("fleet", "one"));
        for expected in ["first", "second"] {
            let failing = Sample {
                fails: Some(expected),
                ..Sample::known_as_slow()
            };
            assert_eq!(failing.wanted_by(&lanes, &one).await, Err(Unrendered::Awaited));
            woken.next().await.unwrap();
            let told = failing.wanted_by(&lanes, &one).await;
            assert_eq!(told, Err(Unrendered::Failed(Failed::for_now(expected))));
        }
    }
}
