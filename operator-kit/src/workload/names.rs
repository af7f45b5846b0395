//! Names of API servers as the system resolves them (`/etc/hosts`, then DNS). That blocks a thread for as long as a name server is silent, and nobody can
//! end it: a cluster that has gone with its name servers must cost others none.
//!
//! So the threads are not those of the process for work that blocks, on which charts are rendered and files are read; a name has one, whoever asks for it
//! meanwhile; and those that were silent the last time wait for each other alone.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use tokio::sync::{Semaphore, oneshot, watch};

/// Names at once of which nobody knows anything. After a start that is the whole fleet: all that are silent hold a thread, until they are known to be.
const NEW_AT_ONCE: usize = 64;

/// Names at once that were answered soon the last time.
const QUICK_AT_ONCE: usize = 16;

/// Names at once that were not.
const SILENT_AT_ONCE: usize = 16;

/// An answer that comes later is no quick one.
const QUICK: Duration = Duration::from_secs(1);

/// So many names are remembered. With more nobody is known any more, and each is as good as new.
const REMEMBERED: usize = 4096;

type Question = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

type Answer = Result<Vec<SocketAddr>, Arc<io::Error>>;

/// Looks names up. Clones share their threads.
#[derive(Clone)]
pub(super) struct Names {
    shared: Arc<Shared>,
}

struct Shared {
    ask: Box<Question>,
    /// An answer that comes within it is quick.
    quick: Duration,
    of_new: Arc<Semaphore>,
    of_quick: Arc<Semaphore>,
    of_silent: Arc<Semaphore>,
    /// Whether the last answer was quick.
    were_quick: Mutex<HashMap<Arc<str>, bool>>,
    asked: Mutex<HashMap<Arc<str>, watch::Receiver<Option<Answer>>>>,
}

impl fmt::Debug for Names {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Names")
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::asking(|name| Ok((name, 0).to_socket_addrs()?.collect()), QUICK)
    }
}

impl Names {
    pub(super) fn asking(
        ask: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
        quick: Duration,
    ) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            shared: Arc::new(Shared {
                ask: Box::new(ask),
                quick,
                of_new: places(NEW_AT_ONCE),
                of_quick: places(QUICK_AT_ONCE),
                of_silent: places(SILENT_AT_ONCE),
                were_quick: Mutex::default(),
                asked: Mutex::default(),
            }),
        }
    }

    /// The addresses of a name, without a port. Everybody who asks for one at the same time gets one answer, and whoever does not wait for it finds it under
    /// way when he asks again.
    pub(super) async fn look_up(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        let mut answer = self.ask(name);
        let answer = answer.wait_for(Option::is_some).await.map_err(io::Error::other)?;
        match answer.as_ref() {
            Some(Ok(addresses)) => Ok(addresses.clone()),
            Some(Err(error)) => Err(io::Error::new(error.kind(), Arc::clone(error))),
            None => Ok(Vec::new()),
        }
    }

    /// Where the answer will be.
    fn ask(&self, name: &str) -> watch::Receiver<Option<Answer>> {
        let mut asked = lock(&self.shared.asked);
        if let Some(answer) = asked.get(name) {
            return answer.clone();
        }
        let (name, (tell, answer)) = (Arc::<str>::from(name), watch::channel(None));
        asked.insert(Arc::clone(&name), answer.clone());
        tokio::spawn(Arc::clone(&self.shared).answer(name, tell));
        answer
    }
}

impl Shared {
    async fn answer(self: Arc<Self>, name: Arc<str>, tell: watch::Sender<Option<Answer>>) {
        // Never closed, so that it does not fail.
        let place = self.places_of(&name).acquire_owned().await.ok();
        let (done, answered) = oneshot::channel();
        let (shared, asked) = (Arc::clone(&self), Arc::clone(&name));
        let asking = move || {
            let _place = place;
            let begun = Instant::now();
            let answer = (shared.ask)(&asked);
            shared.remember(asked, begun.elapsed() <= shared.quick);
            // Whoever asked may have gone with the process.
            let _ = done.send(answer);
        };
        let answer = match thread::Builder::new()
            .name("name of a cluster".to_owned())
            .spawn(asking)
        {
            Ok(_) => answered.await.unwrap_or_else(|gone| Err(io::Error::other(gone))),
            Err(error) => Err(error),
        };
        lock(&self.asked).remove(&name);
        tell.send_replace(Some(answer.map_err(Arc::new)));
    }

    fn places_of(&self, name: &str) -> Arc<Semaphore> {
        let places = match lock(&self.were_quick).get(name) {
            None => &self.of_new,
            Some(true) => &self.of_quick,
            Some(false) => &self.of_silent,
        };
        Arc::clone(places)
    }

    fn remember(&self, name: Arc<str>, was_quick: bool) {
        let mut were_quick = lock(&self.were_quick);
        if were_quick.len() >= REMEMBERED && !were_quick.contains_key(&name) {
            were_quick.clear();
        }
        were_quick.insert(name, was_quick);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Condvar;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::runtime;
    use tokio::task::{JoinHandle, spawn_blocking, yield_now};
    use tokio::time::timeout;

    use super::*;

    /// The deadline only ends a test that has failed.
    const SOON: Duration = Duration::from_secs(30);

    /// Name servers that say nothing of names with `silent` until they are opened.
    #[derive(Default)]
    struct Servers {
        asked: AtomicUsize,
        is_open: Mutex<bool>,
        opened: Condvar,
    }

    impl Servers {
        fn names(self: &Arc<Self>, quick: Duration) -> Names {
            let servers = Arc::clone(self);
            let ask = move |name: &str| {
                servers.asked.fetch_add(1, Ordering::SeqCst);
                let is_open = lock(&servers.is_open);
                let waits = |is_open: &mut bool| name.contains("silent") && !*is_open;
                drop(servers.opened.wait_timeout_while(is_open, SOON, waits));
                match name {
                    "absent" => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
                    _ => Ok(vec![(Ipv4Addr::LOCALHOST, 0).into()]),
                }
            };
            Names::asking(ask, quick)
        }

        fn set_open(&self, is_open: bool) {
            *lock(&self.is_open) = is_open;
            self.opened.notify_all();
        }

        /// So many lookups have begun since the start.
        async fn until_asked(&self, count: usize) {
            while self.asked.load(Ordering::SeqCst) < count {
                yield_now().await;
            }
        }
    }

    type Looking = JoinHandle<io::Result<Vec<SocketAddr>>>;

    fn look(names: &Names, name: &str) -> Looking {
        let (names, name) = (names.clone(), name.to_owned());
        tokio::spawn(async move { names.look_up(&name).await })
    }

    fn look_at_silent(names: &Names, count: usize) -> Vec<Looking> {
        let silent = (0..count).map(|number| look(names, &format!("c{number}.silent.test")));
        silent.collect()
    }

    async fn are_answered(looking: Vec<Looking>) {
        for answer in join_all(looking).await {
            assert_eq!(answer.unwrap().unwrap(), [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]);
        }
    }

    /// Runs where there is one thread for work that blocks.
    fn with_one_thread(test: impl Future<Output = ()>) {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let ended = runtime.block_on(async { timeout(SOON, test).await });
        runtime.shutdown_background();
        ended.expect("nobody waits for silent name servers");
    }

    #[test]
    fn clusters_whose_name_servers_are_silent_take_no_thread_from_work_that_blocks_and_keep_no_name_waiting() {
        const SILENT: usize = 20;
        let servers = Arc::new(Servers::default());
        let names = servers.names(QUICK);
        with_one_thread(async {
            // As whoever connects does: each question has a connection of its own.
            let mut silent = look_at_silent(&names, SILENT);
            silent.extend(look_at_silent(&names, SILENT));
            servers.until_asked(SILENT).await;
            assert_eq!(spawn_blocking(|| 7).await.unwrap(), 7);
            are_answered(vec![look(&names, "honest.test")]).await;
            let error = look(&names, "absent").await.unwrap().unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (io::ErrorKind::NotFound, "no such name")
            );
            assert_eq!(
                servers.asked.load(Ordering::SeqCst),
                SILENT + 2,
                "a name has one thread"
            );
            servers.set_open(true);
            are_answered(silent).await;
        });
    }

    #[test]
    fn names_that_were_silent_wait_for_each_other_and_no_other_name_for_them() {
        const MANY: usize = NEW_AT_ONCE;
        let servers = Arc::new(Servers::default());
        // Whatever was waited for is no quick answer.
        let names = servers.names(Duration::ZERO);
        with_one_thread(async {
            let silent = look_at_silent(&names, MANY);
            servers.until_asked(MANY).await;
            servers.set_open(true);
            are_answered(silent).await;
            servers.set_open(false);

            let silent = look_at_silent(&names, MANY);
            servers.until_asked(MANY + SILENT_AT_ONCE).await;
            names.shared.remember("quick.test".into(), true);
            are_answered(vec![look(&names, "new.test"), look(&names, "quick.test")]).await;
            assert_eq!(servers.asked.load(Ordering::SeqCst), MANY + SILENT_AT_ONCE + 2);
            servers.set_open(true);
            are_answered(silent).await;
        });
    }

    #[test]
    fn whoever_has_gone_leaves_his_question_to_the_next_one_who_asks() {
        let servers = Arc::new(Servers::default());
        let names = servers.names(QUICK);
        with_one_thread(async {
            let first = look_at_silent(&names, 1);
            servers.until_asked(1).await;
            first.iter().for_each(JoinHandle::abort);
            // Polled once, so that it has asked before anything is answered.
            let mut next = Box::pin(names.look_up("c0.silent.test"));
            assert!(futures::poll!(next.as_mut()).is_pending());
            servers.set_open(true);
            next.await.unwrap();
            assert_eq!(servers.asked.load(Ordering::SeqCst), 1);
            assert!(lock(&names.shared.asked).is_empty());
            are_answered(look_at_silent(&names, 1)).await;
            assert_eq!(servers.asked.load(Ordering::SeqCst), 2, "an answer is not kept");
        });
    }

    #[test]
    fn names_that_are_remembered_are_bounded() {
        let names = Arc::new(Servers::default()).names(QUICK);
        for number in 0..REMEMBERED + 10 {
            names.shared.remember(number.to_string().into(), true);
        }
        let known = lock(&names.shared.were_quick).len();
        assert!((1..=REMEMBERED).contains(&known), "{known}");
    }
}
