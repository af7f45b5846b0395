//! How often each host is asked, by all sources of the process together, and since when not at all.
//!
//! The rate is one per host, whoever asks. Each asker may fill half of what is left of the line, so that there is room for others; with which credentials
//! he asks makes no difference, because anybody can make some up. The time that a server named is kept for those who ask in the same name: a token whose hour is
//! used up must not stop the sources that have another.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{self, Instant};

use super::credentials::Identity;

/// Hosts remembered; redirects can name any number of them.
const MAX_HOSTS: usize = 1024;

/// Longest wait for a turn. Whoever would wait longer is told so, and does something else meanwhile.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// How often one host may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests at once after a time of silence.
    pub burst: u32,
    /// Between two requests in the long run.
    pub interval: Duration,
}

impl Default for Rate {
    /// Enough for a release of many files at once, and for nobody to notice us: 5 in a second in the long run.
    fn default() -> Self {
        Self {
            burst: 100,
            interval: Duration::from_millis(200),
        }
    }
}

/// Not now, but after this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Later {
    /// The server named the time.
    Told(Duration),
    /// Too many wait already.
    Crowded(Duration),
}

/// On whose behalf a host is asked, as the process tells its users apart; none of them can be another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Asker(Arc<str>);

impl From<&str> for Asker {
    fn from(name: &str) -> Self {
        Self(Arc::from(name))
    }
}

/// All hosts of a process.
#[derive(Debug)]
pub(super) struct Hosts {
    rate: Rate,
    entries: Mutex<HashMap<String, Host>>,
}

/// One host.
#[derive(Debug)]
struct Host {
    /// When the bucket is full again; as far ahead of now as requests were taken from it.
    full_at: Instant,
    /// Until when whoever asks in this name was told to wait.
    told: HashMap<Identity, Instant>,
    /// When those who wait have their turns.
    waiting: HashMap<Asker, VecDeque<Instant>>,
}

impl Host {
    fn new(now: Instant) -> Self {
        Self {
            full_at: now,
            told: HashMap::new(),
            waiting: HashMap::new(),
        }
    }

    /// Until when there is something to remember of it.
    fn busy_until(&self) -> Instant {
        self.told.values().copied().fold(self.full_at, Instant::max)
    }
}

impl Hosts {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            entries: Mutex::default(),
        }
    }

    /// Waits for a turn to ask this host once.
    pub(super) async fn turn(&self, host: &str, identity: Identity, asker: &Asker) -> Result<(), Later> {
        let wait = self.take(host, identity, asker, Instant::now())?;
        if !wait.is_zero() {
            time::sleep(wait).await;
            // It may have been told while this request was waiting.
            return self
                .told(host, identity, Instant::now())
                .map_or(Ok(()), |wait| Err(Later::Told(wait)));
        }
        Ok(())
    }

    /// Nobody asks this host in this name for so long; a shorter wait does not shorten a longer one.
    pub(super) fn back_off(&self, host: &str, identity: Identity, wait: Duration) {
        let now = Instant::now();
        self.with(host, now, |entry| {
            entry.told.retain(|_, until| *until > now);
            let until = entry.told.entry(identity).or_insert(now);
            *until = (*until).max(now + wait);
        });
    }

    fn told(&self, host: &str, identity: Identity, now: Instant) -> Option<Duration> {
        self.with(host, now, |entry| entry.wait(identity, now))
    }

    /// Takes one from the bucket and says how long until it is there.
    fn take(&self, host: &str, identity: Identity, asker: &Asker, now: Instant) -> Result<Duration, Later> {
        let Rate { burst, interval } = self.rate;
        self.with(host, now, |entry| {
            if let Some(wait) = entry.wait(identity, now) {
                return Err(Later::Told(wait));
            }
            let full_at = entry.full_at.max(now) + interval;
            let wait = (full_at - now).saturating_sub(interval * burst.max(1));
            let room = LONGEST_TURN.checked_sub(wait);
            if room.is_none_or(|room| interval * entry.waiting(asker, now) > room) {
                return Err(Later::Crowded(wait));
            }
            entry.full_at = full_at;
            if !wait.is_zero() {
                entry.waiting.entry(asker.clone()).or_default().push_back(now + wait);
            }
            Ok(wait)
        })
    }

    fn with<T>(&self, host: &str, now: Instant, work: impl FnOnce(&mut Host) -> T) -> T {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if !entries.contains_key(host) && entries.len() >= MAX_HOSTS {
            entries.retain(|_, entry| entry.busy_until() > now);
            if entries.len() >= MAX_HOSTS {
                // All are busy or silenced: the one that will be so for the shortest time loses least.
                let soonest = entries.iter().min_by_key(|(_, entry)| entry.busy_until());
                if let Some(name) = soonest.map(|(name, _)| name.clone()) {
                    entries.remove(&name);
                }
            }
        }
        work(entries.entry(host.to_owned()).or_insert_with(|| Host::new(now)))
    }
}

impl Host {
    fn wait(&self, identity: Identity, now: Instant) -> Option<Duration> {
        let until = self.told.get(&identity)?;
        until.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// How many requests of this asker wait.
    fn waiting(&mut self, asker: &Asker, now: Instant) -> u32 {
        self.waiting.retain(|_, turns| {
            while turns.pop_front_if(|turn| *turn <= now).is_some() {}
            !turns.is_empty()
        });
        let waiting = self.waiting.get(asker).map_or(0, VecDeque::len);
        u32::try_from(waiting).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn hosts() -> Hosts {
        Hosts::new(Rate {
            burst: 3,
            interval: SECOND,
        })
    }

    fn nobody() -> Asker {
        Asker::default()
    }

    fn somebody() -> Identity {
        Identity::of(Some(&HeaderValue::from_static("Bearer one")))
    }

    #[tokio::test(start_paused = true)]
    async fn host_is_asked_at_its_rate_by_everybody_together() {
        let hosts = hosts();
        let begin = Instant::now();
        for (request, identity) in [Identity::default(), somebody()]
            .into_iter()
            .cycle()
            .take(6)
            .enumerate()
        {
            hosts.turn("a", identity, &nobody()).await.unwrap();
            let expected = SECOND * u32::try_from(request).unwrap().saturating_sub(2);
            assert_eq!(begin.elapsed(), expected, "request {request}");
        }
        hosts.turn("b", Identity::default(), &nobody()).await.unwrap();
        assert_eq!(begin.elapsed(), SECOND * 3, "another host is not delayed");
        time::sleep(SECOND * 100).await;
        let again = Instant::now();
        for _ in 0..3 {
            hosts.turn("a", Identity::default(), &nobody()).await.unwrap();
        }
        assert_eq!(
            again.elapsed(),
            Duration::ZERO,
            "silence fills the bucket, and no further than its brim"
        );
        hosts.turn("a", Identity::default(), &nobody()).await.unwrap();
        assert_eq!(again.elapsed(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn who_would_wait_too_long_is_told_so_and_delays_nobody() {
        let hosts = hosts();
        let now = Instant::now();
        for _ in 0..8 {
            hosts.take("a", Identity::default(), &nobody(), now).unwrap();
        }
        let crowded = hosts.turn("a", Identity::default(), &nobody()).await;
        assert_eq!(crowded, Err(Later::Crowded(SECOND * 6)));
        assert_eq!(
            hosts.take("a", Identity::default(), &nobody(), now + SECOND),
            Ok(SECOND * 5)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_as_often_as_he_can_leaves_room_for_others() {
        let hosts = hosts();
        let now = Instant::now();
        let [greedy, second, third] = ["greedy", "second", "third"].map(Asker::from);
        // With one token after the other, none of which need be good for anything.
        let fill = |asker: &Asker| {
            for number in 0..100 {
                let token = HeaderValue::from_str(&format!("Bearer {number}")).unwrap();
                while hosts.take("a", Identity::of(Some(&token)), asker, now).is_ok() {}
            }
        };
        fill(&greedy);
        assert_eq!(hosts.take("a", somebody(), &second, now), Ok(SECOND * 6));
        fill(&second);
        assert!(hosts.take("a", somebody(), &third, now).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn host_that_named_a_long_time_is_remembered_when_there_are_too_many() {
        let hosts = hosts();
        hosts.back_off("silent", somebody(), SECOND * 60);
        for number in 0..2 * MAX_HOSTS {
            hosts
                .turn(&number.to_string(), Identity::default(), &nobody())
                .await
                .unwrap();
        }
        assert_eq!(
            hosts.turn("silent", somebody(), &nobody()).await,
            Err(Later::Told(SECOND * 60))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn told_time_holds_for_those_who_ask_in_the_same_name_and_ends() {
        let hosts = hosts();
        hosts.back_off("a", somebody(), SECOND * 60);
        hosts.back_off("a", somebody(), SECOND * 30);
        assert_eq!(
            hosts.turn("a", somebody(), &nobody()).await,
            Err(Later::Told(SECOND * 60))
        );
        assert_eq!(hosts.turn("a", Identity::default(), &nobody()).await, Ok(()));
        let other = Identity::of(Some(&HeaderValue::from_static("Bearer two")));
        assert_eq!(hosts.turn("a", other, &nobody()).await, Ok(()));
        assert_eq!(hosts.turn("b", somebody(), &nobody()).await, Ok(()));
        time::sleep(SECOND * 59).await;
        assert_eq!(hosts.turn("a", somebody(), &nobody()).await, Err(Later::Told(SECOND)));
        time::sleep(SECOND).await;
        assert_eq!(hosts.turn("a", somebody(), &nobody()).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn any_number_of_hosts_takes_bounded_memory() {
        let hosts = hosts();
        for number in 0..3 * MAX_HOSTS {
            hosts.back_off(&number.to_string(), Identity::default(), SECOND * 60);
        }
        assert_eq!(hosts.entries.lock().unwrap().len(), MAX_HOSTS);
        time::sleep(SECOND * 61).await;
        hosts.turn("a", Identity::default(), &nobody()).await.unwrap();
        assert_eq!(hosts.entries.lock().unwrap().len(), 1);
    }
}
