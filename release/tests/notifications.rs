//! Many sources and a system that has few notifications to give. A program of its own: its limits are those of the whole process.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use release::source::{Change, DirectoryWatch, Notifications};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::{sync::Mutex as Turn, time::timeout};

const HOUR: Duration = Duration::from_hours(1);
/// The deadline only ends a test that has failed.
const SOON: Duration = Duration::from_secs(30);
const TAG: &str = "docker-harbor-1-34-v1";

/// One test at a time: both look at what the process has open.
static TURN: Turn<()> = Turn::const_new(());

async fn watch(root: &Path, rescan: Duration, notifications: &Notifications) -> DirectoryWatch {
    let watch = DirectoryWatch::new(root, rescan, notifications).await;
    watch.expect("an absolute path")
}

/// Waits until the tag is told by name, which only a notification can do.
async fn notified(watch: &mut DirectoryWatch) {
    let told = Change::Tags(BTreeSet::from([TAG.parse().expect("a tag")]));
    timeout(SOON, async { while watch.changed().await != told {} })
        .await
        .expect("the change is told");
}

fn publish(root: &Path) {
    fs::create_dir_all(root.join("cluster-stacks").join(TAG)).expect("the root can be written to");
}

fn unpublish(root: &Path) {
    fs::remove_dir(root.join("cluster-stacks").join(TAG)).expect("the release is there");
}

/// How many sources of notifications this process has.
fn instances() -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("a process on Linux");
    let targets = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.ends_with("anon_inode:inotify")).count()
}

#[tokio::test]
async fn any_number_of_directories_share_one_source_of_notifications() {
    let _turn = TURN.lock().await;
    let root = TempDir::new().unwrap();
    let notifications = Notifications::default();
    let sources: Vec<PathBuf> = (0..140).map(|number| root.path().join(number.to_string())).collect();
    for source in &sources {
        fs::create_dir_all(source.join("cluster-stacks")).unwrap();
    }
    let mut watches = Vec::new();
    for source in sources {
        watches.push((watch(&source, HOUR, &notifications).await, source));
    }
    assert_eq!(instances(), 1);
    for (watch, source) in watches.iter_mut().step_by(20) {
        publish(source);
        notified(watch).await;
    }
    // Who stays is told as before.
    let (mut last, source) = watches.pop().unwrap();
    watches.clear();
    publish(&source);
    notified(&mut last).await;
}

#[tokio::test]
async fn directories_within_and_under_two_names_do_not_hide_each_other() {
    let _turn = TURN.lock().await;
    let root = TempDir::new().unwrap();
    let notifications = Notifications::default();
    let outer = root.path().join("outer");
    let inner = outer.join("cluster-stacks");
    let link = root.path().join("link");
    fs::create_dir_all(inner.join("cluster-stacks")).unwrap();
    symlink(&outer, &link).unwrap();
    let mut outer_watch = watch(&outer, HOUR, &notifications).await;
    let mut link_watch = watch(&link, HOUR, &notifications).await;
    let mut inner_watch = watch(&inner, HOUR, &notifications).await;
    publish(&outer);
    notified(&mut outer_watch).await;
    notified(&mut link_watch).await;
    publish(&inner);
    notified(&mut inner_watch).await;
    // Who goes takes nothing along.
    drop((link_watch, outer_watch));
    unpublish(&inner);
    notified(&mut inner_watch).await;
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn count(&self, words: &str) -> usize {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&log).matches(words).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn without_notifications_everything_is_looked_at_in_intervals_and_that_is_said_once() {
    let _turn = TURN.lock().await;
    let log = Log::default();
    let lines = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || lines.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let (root, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for root in [root.path(), other.path()] {
        fs::create_dir(root.join("cluster-stacks")).unwrap();
    }
    let notifications = Notifications::default();

    // The system refuses an instance with the same error whether the process or its user has too many.
    let before = getrlimit(Resource::Nofile);
    let current = Some(0);
    setrlimit(Resource::Nofile, Rlimit { current, ..before }).unwrap();
    let second = Duration::from_secs(1);
    let mut watches = [
        watch(root.path(), second, &notifications).await,
        watch(other.path(), second, &notifications).await,
    ];
    for _ in 0..2 {
        for watch in &mut watches {
            let change = timeout(SOON, watch.changed()).await.expect("the interval goes on");
            assert_eq!(change, Change::Everything);
        }
    }
    assert_eq!(log.count("releases are only looked at in intervals"), 1);
    assert_eq!(log.count("fs.inotify.max_user_instances"), 1);

    setrlimit(Resource::Nofile, before).unwrap();
    for watch in &mut watches {
        let _ = timeout(SOON, watch.changed()).await.expect("the interval goes on");
    }
    assert_eq!(log.count("the system notifies of changes of releases again"), 1);
    publish(root.path());
    notified(&mut watches[0]).await;
}
