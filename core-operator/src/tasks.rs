//! Work that goes on as long as the process: a task that panics is told, counted, and begun again. Without this it would be gone in silence,
//! and what it follows would never be heard of again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The first pause before a task is begun again; each one after it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// What tasks are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// Following a source.
    Source,
    /// Bringing one release.
    Download,
    /// Looking for the signatures of one release.
    Search,
    /// Reading public keys or a trust root again.
    Keys,
    /// Turning news into looks.
    Triggers,
    /// Looking after Clusters that have no ClusterAddon.
    Making,
}

impl Task {
    const ALL: [Self; 6] = [
        Self::Source,
        Self::Download,
        Self::Search,
        Self::Keys,
        Self::Triggers,
        Self::Making,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Download => "download",
            Self::Search => "search",
            Self::Keys => "keys",
            Self::Triggers => "triggers",
            Self::Making => "making",
        }
    }
}

/// One series of the counter of panics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    task: &'static str,
}

/// Starts tasks. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    panics: Family<TaskLabels, Counter>,
}

impl Default for Tasks {
    fn default() -> Self {
        let tasks = Self {
            panics: Family::default(),
        };
        for task in Task::ALL {
            // From the start, so that the first one is an increase.
            drop(tasks.counter(task));
        }
        tasks
    }
}

impl Tasks {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let tasks = Self::default();
        registry.register(
            "stackwright_task_panics",
            "Tasks that ended abnormally and were begun again",
            tasks.panics.clone(),
        );
        tasks
    }

    /// Runs what `begin` makes until it ends or `stop` comes, and makes it anew whenever it panics.
    pub(crate) fn start<F>(&self, task: Task, stop: CancellationToken, mut begin: impl FnMut() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let panics = self.counter(task);
        let work = async move {
            let mut pause = FIRST_PAUSE;
            // What a task left half done lies behind locks that ignore poison, and is looked at anew.
            while AssertUnwindSafe(begin()).catch_unwind().await.is_err() {
                panics.inc();
                tracing::error!(task = task.name(), ?pause, "a task ended abnormally and is begun again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        };
        tokio::spawn(stop.run_until_cancelled_owned(work));
    }

    /// The same for a task that takes in what others send. What it was at when it panicked is lost; what was sent after that waits for it.
    pub(crate) fn start_with<R, F>(
        &self,
        task: Task,
        stop: CancellationToken,
        receiver: R,
        begin: impl Fn(OwnedMutexGuard<R>) -> F + Clone + Send + Sync + 'static,
    ) where
        R: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let receiver = Arc::new(Mutex::new(receiver));
        self.start(task, stop, move || {
            let (receiver, begin) = (Arc::clone(&receiver), begin.clone());
            async move { begin(receiver.lock_owned().await).await }
        });
    }

    fn counter(&self, task: Task) -> Counter {
        self.panics.get_or_create(&TaskLabels { task: task.name() }).clone()
    }

    /// How often tasks of this sort have panicked.
    #[cfg(test)]
    pub(crate) fn panics(&self, task: Task) -> u64 {
        self.counter(task).get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::{Notify, mpsc};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn task_that_panics_is_begun_again_ever_more_slowly_until_it_ends() {
        let (tasks, stop) = (Tasks::default(), CancellationToken::new());
        let (begun, ended) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let start = Instant::now();
        let (counter, signal) = (Arc::clone(&begun), Arc::clone(&ended));
        tasks.start(Task::Source, stop, move || {
            let (count, ended) = (counter.fetch_add(1, Ordering::Relaxed), Arc::clone(&signal));
            async move {
                assert_eq!(count, 10, "planned for this test");
                ended.notify_one();
            }
        });
        ended.notified().await;
        assert_eq!((begun.load(Ordering::Relaxed), tasks.panics(Task::Source)), (11, 10));
        assert_eq!(start.elapsed(), Duration::from_secs(1 + 2 + 4 + 8 + 16 + 32 + 4 * 60));
    }

    #[tokio::test(start_paused = true)]
    async fn task_that_is_stopped_is_not_begun_again() {
        let (tasks, stop) = (Tasks::default(), CancellationToken::new());
        let begun = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&begun);
        tasks.start(Task::Download, stop.clone(), move || {
            counter.fetch_add(1, Ordering::Relaxed);
            async { panic!("planned for this test") }
        });
        sleep(Duration::from_millis(1)).await;
        stop.cancel();
        sleep(Duration::from_hours(1)).await;
        assert_eq!(begun.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_to_a_task_after_its_panic_waits_until_it_goes_on() {
        let (tasks, stop) = (Tasks::default(), CancellationToken::new());
        let (sender, receiver) = mpsc::unbounded_channel();
        let (done, mut heard) = mpsc::unbounded_channel();
        tasks.start_with(
            Task::Triggers,
            stop,
            receiver,
            move |mut receiver: OwnedMutexGuard<mpsc::UnboundedReceiver<u32>>| {
                let done = done.clone();
                async move {
                    while let Some(number) = receiver.recv().await {
                        assert_ne!(number, 2, "planned for this test");
                        done.send(number).unwrap();
                    }
                }
            },
        );
        for number in 1..=4 {
            sender.send(number).unwrap();
        }
        drop(sender);
        let mut all = Vec::new();
        while let Some(number) = heard.recv().await {
            all.push(number);
        }
        assert_eq!((all, tasks.panics(Task::Triggers)), (vec![1, 3, 4], 1));
    }
}
