//! Names as the system resolves them. It blocks a thread for each, as long as a name server is silent, and nobody can end that: so only a few
//! threads do it, and what others need the threads for goes on.
//!
//! Names whose name servers were quick the last time have threads of their own: beside those that are silent, or were never asked, also where both are of
//! one zone, as all names of a company are.

use std::{
    collections::HashMap,
    fmt, io,
    net::{IpAddr, ToSocketAddrs},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{sync::watch, task};

use super::network::{Lookup, LookupFuture};
use crate::{Digest, places::Places};

/// Names that are looked up at once, of those that were quick and of the others each.
const AT_ONCE: usize = 8;
/// Of those, names of one zone: whose zone answers slowly leaves threads for others.
const OF_ONE_ZONE: usize = 2;
/// An answer that comes later is no quick one.
const QUICK: Duration = Duration::from_secs(1);
/// Names that were quick the last time, as far as they are remembered.
const REMEMBERED: usize = 1024;
/// Names that keep their places in line when whoever asked has gone; redirects can name any number of them.
const IN_LINE: usize = 1024;

type Answer = Result<Vec<IpAddr>, Arc<io::Error>>;
type Question = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Names as the system resolves them: `/etc/hosts`, then DNS. Everybody who asks for one at the same time gets one answer.
#[derive(Clone)]
pub struct SystemLookup {
    shared: Arc<Shared>,
}

struct Shared {
    ask: Box<Question>,
    quick: Places,
    others: Places,
    /// When they were.
    were_quick: Mutex<HashMap<String, Instant>>,
    asked: Mutex<HashMap<String, watch::Sender<Option<Answer>>>>,
}

impl Default for SystemLookup {
    fn default() -> Self {
        Self::new(|name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
    }
}

impl fmt::Debug for SystemLookup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SystemLookup")
    }
}

impl Lookup for SystemLookup {
    fn lookup<'a>(&'a self, name: &'a str) -> LookupFuture<'a> {
        Box::pin(async move {
            let mut answer = self.ask(name);
            let answer = answer
                .wait_for(Option::is_some)
                .await
                .map_err(io::Error::other)?
                .clone();
            answer
                .unwrap_or_else(|| Ok(Vec::new()))
                .map_err(|error| io::Error::new(error.kind(), error))
        })
    }
}

impl SystemLookup {
    fn new(ask: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                ask: Box::new(ask),
                quick: Places::new(AT_ONCE, OF_ONE_ZONE, 0),
                others: Places::new(AT_ONCE, OF_ONE_ZONE, 0),
                were_quick: Mutex::default(),
                asked: Mutex::default(),
            }),
        }
    }

    /// Where the answer will be.
    fn ask(&self, name: &str) -> watch::Receiver<Option<Answer>> {
        let mut asked = lock(&self.shared.asked);
        if let Some(answer) = asked.get(name) {
            return answer.subscribe();
        }
        let (answer, receiver) = watch::channel(None);
        asked.insert(name.to_owned(), answer.clone());
        task::spawn(Arc::clone(&self.shared).answer(name.to_owned(), answer));
        receiver
    }
}

impl Shared {
    async fn answer(self: Arc<Self>, name: String, answer: watch::Sender<Option<Answer>>) {
        let places = if lock(&self.were_quick).contains_key(&name) {
            &self.quick
        } else {
            &self.others
        };
        let mut place = pin!(places.take(Digest::of(zone(&name).as_bytes())));
        let place = tokio::select! {
            place = &mut place => place,
            () = answer.closed() => {
                // Who asks again finds his place, which comes though it takes longer than anybody waits.
                let is_gone = {
                    let mut asked = lock(&self.asked);
                    let is_gone = asked.len() > IN_LINE && answer.receiver_count() == 0;
                    if is_gone {
                        asked.remove(&name);
                    }
                    is_gone
                };
                if is_gone {
                    return;
                }
                place.await
            }
        };
        let (shared, asked) = (Arc::clone(&self), name.clone());
        let answered = task::spawn_blocking(move || {
            // Whoever asked may be gone long before this ends.
            let _place = place;
            let begun = Instant::now();
            let answered = (shared.ask)(&asked);
            shared.remember(&asked, answered.is_ok() && begun.elapsed() <= QUICK);
            answered
        });
        let answered = answered.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        lock(&self.asked).remove(&name);
        answer.send_replace(Some(answered.map_err(Arc::new)));
    }

    fn remember(&self, name: &str, was_quick: bool) {
        let mut were_quick = lock(&self.were_quick);
        were_quick.remove(name);
        if !was_quick {
            return;
        }
        if were_quick.len() >= REMEMBERED {
            let oldest = were_quick.iter().min_by_key(|(_, when)| **when);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                were_quick.remove(&oldest);
            }
        }
        were_quick.insert(name.to_owned(), Instant::now());
    }
}

/// The last two labels: whoever has more names than one has them there.
fn zone(name: &str) -> &str {
    let name = name.trim_end_matches('.');
    let mut dots = name.rmatch_indices('.');
    dots.nth(1).map_or(name, |(dot, _)| &name[dot + 1..])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::{
            Condvar,
            atomic::{AtomicBool, AtomicUsize, Ordering},
        },
    };

    use tokio::{runtime, task::JoinHandle, time};

    use super::*;

    /// The deadline only ends a test that has failed.
    const SOON: Duration = Duration::from_secs(30);

    /// Name servers that are silent about all names with `slow` until they are opened, or fail in the end.
    #[derive(Default)]
    struct Servers {
        asked: AtomicUsize,
        is_failing: AtomicBool,
        is_open: Mutex<bool>,
        opened: Condvar,
    }

    impl Servers {
        fn lookup(self: &Arc<Self>) -> SystemLookup {
            let servers = Arc::clone(self);
            SystemLookup::new(move |name| {
                servers.asked.fetch_add(1, Ordering::SeqCst);
                let waiting = servers
                    .opened
                    .wait_timeout_while(lock(&servers.is_open), SOON, |is_open| {
                        name.contains("slow") && !*is_open
                    });
                drop(waiting);
                match name {
                    name if name.contains("slow") && servers.is_failing.load(Ordering::SeqCst) => {
                        Err(io::ErrorKind::TimedOut.into())
                    }
                    "absent" => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
                    _ => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
                }
            })
        }

        fn open(&self) {
            *lock(&self.is_open) = true;
            self.opened.notify_all();
        }

        fn shut(&self) {
            *lock(&self.is_open) = false;
        }

        /// So many names were asked for since the start.
        async fn until_asked(&self, count: usize) {
            while self.asked.load(Ordering::SeqCst) < count {
                task::yield_now().await;
            }
        }
    }

    fn look(lookup: &SystemLookup, name: &str) -> JoinHandle<io::Result<Vec<IpAddr>>> {
        let (lookup, name) = (lookup.clone(), name.to_owned());
        task::spawn(async move { lookup.lookup(&name).await })
    }

    /// Runs where there are twenty threads for what blocks.
    fn with_few_threads(test: impl Future<Output = ()>) {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(20)
            .build()
            .unwrap();
        let ended = runtime.block_on(async { time::timeout(SOON, test).await });
        runtime.shutdown_background();
        ended.expect("nobody waits for silent name servers");
    }

    #[test]
    fn name_servers_that_are_silent_leave_threads_for_others() {
        let servers = Arc::new(Servers::default());
        let lookup = servers.lookup();
        with_few_threads(async {
            let many: Vec<_> = (0..64)
                .map(|number| look(&lookup, &format!("a.slow{number}.test")))
                .collect();
            servers.until_asked(AT_ONCE).await;
            assert_eq!(task::spawn_blocking(|| 7).await.unwrap(), 7);
            assert_eq!(servers.asked.load(Ordering::SeqCst), AT_ONCE);
            servers.open();
            for one in many {
                assert_eq!(one.await.unwrap().unwrap(), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
            }
        });
    }

    #[test]
    fn zone_whose_name_servers_are_silent_keeps_nobody_else_waiting() {
        let servers = Arc::new(Servers::default());
        let lookup = servers.lookup();
        with_few_threads(async {
            let many: Vec<_> = (0..64)
                .map(|number| look(&lookup, &format!("a{number}.slow.test")))
                .collect();
            servers.until_asked(OF_ONE_ZONE).await;
            look(&lookup, "example.org").await.unwrap().unwrap();
            let error = look(&lookup, "absent").await.unwrap().unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (io::ErrorKind::NotFound, "no such name")
            );
            assert_eq!(servers.asked.load(Ordering::SeqCst), OF_ONE_ZONE + 2);
            many.iter().for_each(JoinHandle::abort);
            servers.open();
        });
    }

    #[test]
    fn name_that_was_quick_does_not_wait_for_silent_ones_of_its_zone() {
        let servers = Arc::new(Servers::default());
        let lookup = servers.lookup();
        with_few_threads(async {
            let all_slow = || -> Vec<_> {
                (0..OF_ONE_ZONE)
                    .map(|number| look(&lookup, &format!("slow{number}.example.org")))
                    .collect()
            };
            servers.open();
            look(&lookup, "example.org").await.unwrap().unwrap();
            for slow in all_slow() {
                slow.await.unwrap().unwrap();
            }
            // Those that were as quick until now are so no more when this has ended.
            servers.shut();
            servers.is_failing.store(true, Ordering::SeqCst);
            let slow = all_slow();
            servers.until_asked(1 + 2 * OF_ONE_ZONE).await;
            servers.open();
            for slow in slow {
                slow.await.unwrap().unwrap_err();
            }
            servers.shut();
            let slow = all_slow();
            servers.until_asked(1 + 3 * OF_ONE_ZONE).await;
            look(&lookup, "example.org").await.unwrap().unwrap();
            assert!(slow.iter().all(|slow| !slow.is_finished()));
            servers.open();
        });
    }

    #[test]
    fn who_waits_longer_than_anybody_asks_keeps_his_place_in_line() {
        let servers = Arc::new(Servers::default());
        let lookup = servers.lookup();
        with_few_threads(async {
            let slow: Vec<_> = (0..OF_ONE_ZONE)
                .map(|number| look(&lookup, &format!("slow{number}.example.org")))
                .collect();
            servers.until_asked(OF_ONE_ZONE).await;
            let waiting = look(&lookup, "example.org");
            while !lock(&lookup.shared.asked).contains_key("example.org") {
                task::yield_now().await;
            }
            waiting.abort();
            waiting.await.unwrap_err();
            while lock(&lookup.shared.asked)
                .get("example.org")
                .is_some_and(|answer| answer.receiver_count() > 0)
            {
                task::yield_now().await;
            }
            servers.open();
            for slow in slow {
                slow.await.unwrap().unwrap();
            }
            // Nobody asks for it any more.
            servers.until_asked(OF_ONE_ZONE + 1).await;
        });
    }

    #[test]
    fn no_more_names_wait_for_nobody_than_may() {
        let servers = Arc::new(Servers::default());
        let lookup = servers.lookup();
        with_few_threads(async {
            let many: Vec<_> = (0..IN_LINE + 100)
                .map(|number| look(&lookup, &format!("slow{number}.example.org")))
                .collect();
            while lock(&lookup.shared.asked).len() < many.len() {
                task::yield_now().await;
            }
            many.iter().for_each(JoinHandle::abort);
            while lock(&lookup.shared.asked).len() > IN_LINE {
                task::yield_now().await;
            }
            servers.open();
            while !lock(&lookup.shared.asked).is_empty() {
                task::yield_now().await;
            }
            assert_eq!(servers.asked.load(Ordering::SeqCst), IN_LINE);
        });
    }

    #[test]
    fn names_that_are_remembered_are_bounded() {
        let lookup = Arc::new(Servers::default()).lookup();
        for number in 0..REMEMBERED + 10 {
            lookup.shared.remember(&number.to_string(), true);
        }
        let remembered = lock(&lookup.shared.were_quick);
        assert_eq!(remembered.len(), REMEMBERED);
        assert!(!remembered.contains_key("0"), "the oldest goes first");
    }

    #[test]
    fn everybody_who_asks_for_a_name_gets_one_answer() {
        let servers = Arc::new(Servers::default());
        let lookup = servers.lookup();
        with_few_threads(async {
            let first = look(&lookup, "slow.test");
            while servers.asked.load(Ordering::SeqCst) == 0 {
                task::yield_now().await;
            }
            // Who asks again after he gave up waits for the same thread.
            first.abort();
            let others: Vec<_> = (0..20).map(|_| look(&lookup, "slow.test")).collect();
            while lock(&lookup.shared.asked)["slow.test"].receiver_count() < others.len() {
                task::yield_now().await;
            }
            servers.open();
            for other in others {
                other.await.unwrap().unwrap();
            }
            assert_eq!(servers.asked.load(Ordering::SeqCst), 1);
            look(&lookup, "slow.test").await.unwrap().unwrap();
            assert_eq!(servers.asked.load(Ordering::SeqCst), 2, "an answer is not kept");
        });
    }

    #[test]
    fn names_of_one_owner_are_of_one_zone() {
        for (name, expected) in [
            ("localhost", "localhost"),
            ("example.org", "example.org"),
            ("a.b.example.org.", "example.org"),
            ("", ""),
        ] {
            assert_eq!(zone(name), expected);
        }
    }
}
