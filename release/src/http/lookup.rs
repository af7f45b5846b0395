//! Names as the system resolves them. It blocks a thread for each, as long as a name server is silent, and nobody can end that: so only a few
//! threads do it, and what others need the threads for goes on.

use std::{
    collections::HashMap,
    fmt, io,
    net::{IpAddr, ToSocketAddrs},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task,
};

use super::network::{Lookup, LookupFuture};

/// Names that are looked up at once.
const AT_ONCE: usize = 8;
/// Of those, names of one zone: whose zone answers slowly leaves threads for others.
const OF_ONE_ZONE: usize = 2;

type Answer = Result<Vec<IpAddr>, Arc<io::Error>>;
type Question = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Names as the system resolves them: `/etc/hosts`, then DNS. Everybody who asks for one at the same time gets one answer.
#[derive(Clone)]
pub struct SystemLookup {
    shared: Arc<Shared>,
}

struct Shared {
    ask: Box<Question>,
    places: Arc<Semaphore>,
    places_of_zones: Mutex<HashMap<String, Weak<Semaphore>>>,
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
                places: Arc::new(Semaphore::new(AT_ONCE)),
                places_of_zones: Mutex::default(),
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
        let mut place = pin!(self.place(&name));
        let place = loop {
            tokio::select! {
                place = &mut place => break place,
                () = answer.closed() => {}
            }
            let mut asked = lock(&self.asked);
            if answer.receiver_count() == 0 {
                asked.remove(&name);
                return;
            }
        };
        let (shared, asked) = (Arc::clone(&self), name.clone());
        let answered = task::spawn_blocking(move || {
            // Whoever asked may be gone long before this ends.
            let _place = place;
            (shared.ask)(&asked)
        });
        let answered = answered.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        lock(&self.asked).remove(&name);
        answer.send_replace(Some(answered.map_err(Arc::new)));
    }

    async fn place(&self, name: &str) -> Option<[OwnedSemaphorePermit; 2]> {
        let of_zone = self.places_of(zone(name)).acquire_owned().await.ok()?;
        let of_all = Arc::clone(&self.places).acquire_owned().await.ok()?;
        Some([of_zone, of_all])
    }

    fn places_of(&self, zone: &str) -> Arc<Semaphore> {
        let mut places = lock(&self.places_of_zones);
        if let Some(places) = places.get(zone).and_then(Weak::upgrade) {
            return places;
        }
        places.retain(|_, places| places.strong_count() > 0);
        let created = Arc::new(Semaphore::new(OF_ONE_ZONE));
        places.insert(zone.to_owned(), Arc::downgrade(&created));
        created
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
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use tokio::{runtime, task::JoinHandle, time};

    use super::*;

    /// The deadline only ends a test that has failed.
    const SOON: Duration = Duration::from_secs(30);

    /// Name servers that are silent about all names below `slow` until they are opened.
    #[derive(Default)]
    struct Servers {
        asked: AtomicUsize,
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
                    "absent" => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
                    _ => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
                }
            })
        }

        fn open(&self) {
            *lock(&self.is_open) = true;
            self.opened.notify_all();
        }
    }

    fn look(lookup: &SystemLookup, name: &str) -> JoinHandle<io::Result<Vec<IpAddr>>> {
        let (lookup, name) = (lookup.clone(), name.to_owned());
        task::spawn(async move { lookup.lookup(&name).await })
    }

    /// Runs where there are twelve threads for what blocks.
    fn with_few_threads(test: impl Future<Output = ()>) {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(12)
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
            while servers.asked.load(Ordering::SeqCst) < AT_ONCE {
                task::yield_now().await;
            }
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
            while servers.asked.load(Ordering::SeqCst) < OF_ONE_ZONE {
                task::yield_now().await;
            }
            look(&lookup, "example.org").await.unwrap().unwrap();
            let error = look(&lookup, "absent").await.unwrap().unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (io::ErrorKind::NotFound, "no such name")
            );
            assert_eq!(servers.asked.load(Ordering::SeqCst), OF_ONE_ZONE + 2);

            // Whoever gives up before his turn leaves nothing behind; what has begun ends by itself.
            many.iter().for_each(JoinHandle::abort);
            while lock(&lookup.shared.asked).len() > OF_ONE_ZONE {
                task::yield_now().await;
            }
            servers.open();
            while !lock(&lookup.shared.asked).is_empty() {
                task::yield_now().await;
            }
            assert_eq!(servers.asked.load(Ordering::SeqCst), OF_ONE_ZONE + 2);
        });
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
