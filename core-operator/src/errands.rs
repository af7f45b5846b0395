//! Work that may take long and that nobody waits for: whoever asks for it waits for a moment, goes away, and is woken when it is over. So what is
//! slow, or hangs, keeps no worker of a driver from other objects.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long what came is kept for whoever did not wait for it.
const KEPT: Duration = Duration::from_secs(30);

/// How much of that is kept at most. Whoever comes after that asks anew.
const MOST_KEPT: usize = 8;

/// A panic is a bug; work that did is begun again after this long.
const AFTER_PANIC: Duration = Duration::from_mins(1);

/// Wakes whoever asked.
type Wake<K> = dyn Fn(&K) + Send + Sync;

/// Work of one sort, at most one piece for each who asks.
pub(crate) struct Errands<K, V> {
    wake: Box<Wake<K>>,
    /// Whether something is told as often as it is asked for while it is kept, or once.
    is_told_again: fn(&V) -> bool,
    under_way: Mutex<HashMap<K, Errand<V>>>,
    numbers: AtomicU64,
}

/// One piece of work.
struct Errand<V> {
    wanted: String,
    number: u64,
    /// Whether somebody went away without it.
    is_awaited: bool,
    /// Which place among those that are kept it has, counted from the oldest on.
    kept: Option<u64>,
    stage: watch::Receiver<Stage<V>>,
}

/// How far it is.
enum Stage<V> {
    /// It may be over soon.
    Soon,
    /// It is known to take long.
    Later,
    Over(V),
}

/// Whoever asks. He may go away in the middle.
struct Asking<'a, K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    errands: &'a Errands<K, V>,
    key: &'a K,
    number: u64,
    stage: watch::Receiver<Stage<V>>,
    is_answered: bool,
}

impl<K, V> Drop for Asking<'_, K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn drop(&mut self) {
        if !self.is_answered {
            drop(self.errands.take(self.key, self.number, &self.stage));
        }
    }
}

/// Tells those who wait to go away.
pub(crate) struct Teller<V>(Arc<watch::Sender<Stage<V>>>);

impl<V> Teller<V> {
    /// It takes long.
    pub(crate) fn takes_long(&self) {
        self.0.send_replace(Stage::Later);
    }

    /// What comes of this wait; nothing when what is being done is wanted no more, and then it may end.
    pub(crate) async fn while_wanted<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.0.closed() => None,
            came = wait => Some(came),
        }
    }
}

impl<K, V> Errands<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(is_told_again: fn(&V) -> bool, wake: impl Fn(&K) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            wake: Box::new(wake),
            is_told_again,
            under_way: Mutex::default(),
            numbers: AtomicU64::default(),
        })
    }

    /// What comes of the work, if that is known soon; otherwise whoever asks is woken. What was wanted before is of no use to whoever wants
    /// something else now.
    pub(crate) async fn ask<F>(
        self: &Arc<Self>,
        key: &K,
        wanted: &str,
        patience: Duration,
        work: impl FnOnce(Teller<V>) -> F,
    ) -> Option<V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let (number, stage) = self.begun(key, wanted, work);
        let mut asking = Asking {
            errands: self,
            key,
            number,
            stage,
            is_answered: false,
        };
        let told = asking.stage.wait_for(|stage| !matches!(stage, Stage::Soon));
        // How far it is then is looked at in any case.
        let _ = timeout(patience, told).await;
        asking.is_answered = true;
        self.take(key, number, &asking.stage)
    }

    /// Forgets what was asked for by those who are gone: nobody will come for it.
    pub(crate) fn abandon(&self, is_gone: impl Fn(&K) -> bool) {
        self.under_way().retain(|key, _| !is_gone(key));
    }

    /// Whether somebody went away without what is not over yet.
    pub(crate) fn is_any_late(&self) -> bool {
        let late = |errand: &Errand<V>| errand.is_awaited && !matches!(*errand.stage.borrow(), Stage::Over(_));
        self.under_way().values().any(late)
    }

    /// The work that is under way, or that begins here: its number, and how far it is.
    fn begun<F>(
        self: &Arc<Self>,
        key: &K,
        wanted: &str,
        work: impl FnOnce(Teller<V>) -> F,
    ) -> (u64, watch::Receiver<Stage<V>>)
    where
        F: Future<Output = V> + Send + 'static,
    {
        let mut under_way = self.under_way();
        if let Some(errand) = under_way.get(key).filter(|errand| errand.wanted == wanted) {
            return (errand.number, errand.stage.clone());
        }
        let (tell, stage) = watch::channel(Stage::Soon);
        let number = self.next();
        let errand = Errand {
            wanted: wanted.to_owned(),
            number,
            is_awaited: false,
            kept: None,
            stage: stage.clone(),
        };
        under_way.insert(key.clone(), errand);
        drop(under_way);
        let tell = Arc::new(tell);
        let work = tokio::spawn(work(Teller(Arc::clone(&tell))));
        let (errands, key) = (Arc::clone(self), key.clone());
        tokio::spawn(async move {
            if let Ok(value) = work.await {
                tell.send_replace(Stage::Over(value));
                errands.end(&key, number).await;
            } else {
                tracing::error!("work ended abnormally and is begun again");
                tell.send_replace(Stage::Later);
                sleep(AFTER_PANIC).await;
                errands.forget(&key, number);
                (errands.wake)(&key);
            }
        });
        (number, stage)
    }

    /// Wakes whoever went away, and keeps for him what came.
    async fn end(&self, key: &K, number: u64) {
        if self.keep(key, number) {
            (self.wake)(key);
            sleep(KEPT).await;
            self.forget(key, number);
        }
    }

    /// Keeps what came if somebody went away without it, and says whether that is so.
    fn keep(&self, key: &K, number: u64) -> bool {
        let mut under_way = self.under_way();
        match under_way.get_mut(key) {
            Some(errand) if errand.number == number && errand.is_awaited => errand.kept = Some(self.next()),
            _ => return false,
        }
        let kept = under_way.iter().filter_map(|(key, errand)| Some((errand.kept?, key)));
        let kept: BTreeMap<u64, &K> = kept.collect();
        let first = kept.first_key_value().map(|(_, key)| (*key).clone());
        if let Some(first) = first.filter(|_| kept.len() > MOST_KEPT) {
            under_way.remove(&first);
        }
        true
    }

    /// What came, if it has come. Whoever does not wait for the rest is awaited from now on.
    fn take(&self, key: &K, number: u64, stage: &watch::Receiver<Stage<V>>) -> Option<V> {
        let mut under_way = self.under_way();
        // Looked at with the lock held: whoever ends the work after that sees that it is awaited.
        let value = match &*stage.borrow() {
            Stage::Over(value) => Some(value.clone()),
            Stage::Soon | Stage::Later => None,
        };
        // What somebody else has begun under this key is his.
        if let Some(errand) = under_way.get_mut(key).filter(|errand| errand.number == number) {
            let is_kept = errand.is_awaited && value.as_ref().is_some_and(self.is_told_again);
            match &value {
                None => errand.is_awaited = true,
                Some(_) if is_kept => {}
                Some(_) => drop(under_way.remove(key)),
            }
        }
        value
    }

    fn forget(&self, key: &K, number: u64) {
        let mut under_way = self.under_way();
        if under_way.get(key).is_some_and(|errand| errand.number == number) {
            under_way.remove(key);
        }
    }

    fn next(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<K, Errand<V>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::{Semaphore, mpsc};
    use tokio::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    /// Errands whose results are told again unless they are empty, and who is woken.
    fn errands() -> (
        Arc<Errands<&'static str, &'static str>>,
        mpsc::UnboundedReceiver<&'static str>,
    ) {
        let (wake, woken) = mpsc::unbounded_channel();
        let errands = Errands::new(|value: &&str| !value.is_empty(), move |key| wake.send(*key).unwrap());
        (errands, woken)
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_soon_is_waited_for_and_nobody_is_woken() {
        let (errands, mut woken) = errands();
        assert_eq!(errands.ask(&"a", "it", PATIENCE, async |_| "came").await, Some("came"));
        sleep(KEPT).await;
        assert!(woken.try_recv().is_err());
        assert!(errands.under_way().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_wakes_whoever_went_away_and_is_kept_for_him_for_a_while() {
        let (errands, mut woken) = errands();
        let begun = Instant::now();
        let ask = async || {
            let work = async |_| {
                sleep(PATIENCE * 10).await;
                "came"
            };
            errands.ask(&"a", "it", PATIENCE, work).await
        };
        assert_eq!(ask().await, None);
        assert_eq!(begun.elapsed(), PATIENCE);
        assert!(errands.is_any_late());
        assert_eq!(woken.recv().await, Some("a"));
        assert_eq!(begun.elapsed(), PATIENCE * 10);
        assert!(!errands.is_any_late());
        for _ in 0..3 {
            assert_eq!(ask().await, Some("came"));
        }
        assert_eq!(begun.elapsed(), PATIENCE * 10, "it was done once");
        sleep(KEPT * 2).await;
        assert!(errands.under_way().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_asking_is_woken_too_and_leaves_nothing_behind() {
        let (errands, mut woken) = errands();
        let work = async |_| {
            sleep(PATIENCE / 2).await;
            "came"
        };
        let asking = errands.ask(&"a", "it", PATIENCE, work);
        assert!(timeout(Duration::ZERO, asking).await.is_err());
        assert_eq!(woken.recv().await, Some("a"));
        sleep(KEPT * 2).await;
        assert!(errands.under_way().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_what_is_known_to_take_long() {
        let (errands, _woken) = errands();
        let begun = Instant::now();
        let work = async |teller: Teller<&'static str>| {
            teller.takes_long();
            pending().await
        };
        for _ in 0..2 {
            assert_eq!(errands.ask(&"a", "it", PATIENCE, work).await, None);
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_once_is_asked_for_anew() {
        let (errands, mut woken) = errands();
        let late = async |_| {
            sleep(PATIENCE * 2).await;
            ""
        };
        assert_eq!(errands.ask(&"a", "it", PATIENCE, late).await, None);
        woken.recv().await;
        assert_eq!(errands.ask(&"a", "it", PATIENCE, late).await, Some(""));
        assert_eq!(errands.ask(&"a", "it", PATIENCE, late).await, None, "it is begun again");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_wants_something_else_gets_that() {
        let (errands, mut woken) = errands();
        let may_end = Arc::new(Semaphore::new(0));
        let waiting = Arc::clone(&may_end);
        let work = async move |_| {
            waiting.acquire().await.unwrap().forget();
            "before"
        };
        assert_eq!(errands.ask(&"a", "before", PATIENCE, work).await, None);
        assert_eq!(errands.ask(&"a", "now", PATIENCE, async |_| "now").await, Some("now"));
        may_end.add_permits(1);
        sleep(KEPT).await;
        assert!(woken.try_recv().is_err(), "nobody waits for what was wanted before");
        assert!(errands.under_way().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_comes_for_makes_room_for_what_came_later() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        assert_eq!(names.len(), MOST_KEPT + 1);
        let (errands, mut woken) = errands();
        for name in names {
            let work = async |_| {
                sleep(PATIENCE).await;
                "came"
            };
            assert_eq!(errands.ask(&name, "it", Duration::ZERO, work).await, None);
            assert_eq!(woken.recv().await, Some(name));
        }
        let kept: Vec<bool> = names.map(|name| errands.under_way().contains_key(name)).into();
        assert!(!kept[0] && kept[1..].iter().all(|kept| *kept), "{kept:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_panics_is_begun_again_later() {
        let (errands, mut woken) = errands();
        let begun = Instant::now();
        let work = async |_| panic!("planned for this test");
        assert_eq!(errands.ask(&"a", "it", PATIENCE, work).await, None);
        assert_eq!(woken.recv().await, Some("a"));
        assert_eq!(begun.elapsed(), AFTER_PANIC);
        assert_eq!(errands.ask(&"a", "it", PATIENCE, async |_| "came").await, Some("came"));
    }
}
