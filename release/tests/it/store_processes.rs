//! Several processes on one folder: real ones, that share, clean up after each other, and take things away from each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};

use release::store::{Needs, Store, StoreOptions};
use tempfile::TempDir;

use crate::{
    fixture::{admitted, tag},
    scripted_source::{Fault, Promise, ScriptedSource},
    store_downloads::{store, there, unfinished},
};

const DIRECTORY: &str = "STORE_TEST_DIRECTORY";
const GIBIBYTE: u64 = 1 << 30;

fn release(version: u8) -> Arc<ScriptedSource> {
    ScriptedSource::of(&format!("docker-harbor-1-34-v{version}"), Promise::Everything)
}

/// Another process with a store in the same folder, which does what it is told.
struct Other {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Other {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "store_processes::other_process",
                "--ignored",
                "--nocapture",
                "--quiet",
            ])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let answers = BufReader::new(answers);
        let mut other = Self { child, orders, answers };
        other.answer("open");
        other
    }

    /// Gives an order without waiting for its end.
    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// Waits for this answer.
    fn answer(&mut self, expected: &str) {
        let mut line = String::new();
        while !line.trim_end().ends_with(&format!("answer: {expected}")) {
            line.clear();
            let count = self.answers.read_line(&mut line).unwrap();
            assert!(count > 0, "the other process ended without {expected:?}");
            assert!(
                !line.contains("answer: ") || line.contains(expected),
                "{line} instead of {expected:?}"
            );
        }
    }

    fn does(&mut self, order: &str) {
        self.order(order);
        self.answer(order);
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "is the other process of the tests below"]
async fn other_process() {
    let directory = PathBuf::from(env::var_os(DIRECTORY).expect("the process that starts this one gives a folder"));
    let store = Store::open(StoreOptions::new(directory, GIBIBYTE)).await.unwrap();
    println!("answer: open");
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        let (word, version) = order.split_once(' ').unwrap();
        let source = release(version.parse().unwrap());
        match word {
            "get" => drop(store.get(&source.resolved(), &source.origin()).await.unwrap()),
            "begin" => {
                source.fails("metadata.yaml", Fault::StallAfter(5));
                let (store, source) = (store.clone(), Arc::clone(&source));
                tokio::spawn({
                    let source = Arc::clone(&source);
                    async move { store.get(&source.resolved(), &source.origin()).await.map(drop) }
                });
                source.is_waited_for().await;
            }
            "evict" => {
                let small = StoreOptions::new(PathBuf::from(env::var_os(DIRECTORY).unwrap()), 1);
                Store::open(small).await.unwrap().keep(Needs::new()).await.unwrap();
            }
            _ => panic!("{order}"),
        }
        println!("answer: {order}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_download_the_same_share_one_copy() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let mut other = Other::start(root.path());
    for version in 1..=9 {
        let source = release(version);
        other.order(&format!("get {version}"));
        let kept = store.get(&source.resolved(), &source.origin()).await.unwrap();
        other.answer(&format!("get {version}"));
        assert_eq!(there(root.path())[&kept.digest.hex()], source.files());
        assert_eq!(
            admitted(&kept).read_class_chart().unwrap(),
            source.files()[&kept.charts.as_ref().unwrap().class_chart.name]
        );
    }
    assert_eq!(there(root.path()).len(), 9);
    assert_eq!(unfinished(root.path()), Vec::<PathBuf>::new());
    // What one brought, the other has.
    other.does("get 10");
    assert!(
        store
            .find(&tag("docker-harbor-1-34-v10"), release(10).digest())
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_of_the_dead_are_removed_and_those_of_the_living_are_not() {
    let root = TempDir::new().unwrap();
    let (mut living, mut dying) = (Other::start(root.path()), Other::start(root.path()));
    living.does("begin 1");
    dying.does("begin 2");
    let both = unfinished(root.path());
    assert_eq!(both.len(), 2);
    dying.kill();

    let store = store(root.path()).await;
    let left = unfinished(root.path());
    assert!(left.len() == 1 && both.contains(&left[0]), "{left:?} of {both:?}");
    living.does("get 3");
    assert!(left[0].join("metadata.yaml").exists(), "the living one goes on");
    living.kill();
    drop(store);
    self::store(root.path()).await;
    assert_eq!(unfinished(root.path()), Vec::<PathBuf>::new());
    let workspaces = fs::read_dir(root.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let workspaces: Vec<_> = workspaces
        .filter(|name| name.to_string_lossy().starts_with(".partial-"))
        .collect();
    assert_eq!(
        workspaces.len(),
        1,
        "{workspaces:?}: only that of the store which is open"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn release_that_another_process_evicts_is_missed_and_downloaded_again() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let source = release(1);
    let kept = store.get(&source.resolved(), &source.origin()).await.unwrap();
    store.keep(Needs::from([(kept.digest, BTreeSet::new())])).await.unwrap();
    let mut other = Other::start(root.path());
    other.does("evict 1");
    assert!(there(root.path()).is_empty());
    // Nobody reads other bytes than it was given.
    admitted(&kept).read_class_chart().expect_err("its files are gone");
    assert!(store.find(&kept.tag, kept.digest).await.unwrap().is_none());
    store.get(&source.resolved(), &source.origin()).await.unwrap();
    assert_eq!(
        there(root.path()),
        BTreeMap::from([(kept.digest.hex(), source.files())])
    );
    assert_eq!(store.usage().corrupt, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn stores_that_open_and_end_all_the_time_never_take_a_workspace_from_each_other() {
    let root = TempDir::new().unwrap();
    let lives: Vec<_> = (1..=8)
        .map(|version| {
            let directory = root.path().to_owned();
            tokio::spawn(async move {
                let source = release(version);
                for _ in 0..20 {
                    // Each has its own lock, as processes have.
                    let store = store(&directory).await;
                    assert!(store.usage().unwritable.is_none(), "{:?}", store.usage());
                    store.get(&source.resolved(), &source.origin()).await.unwrap();
                    fs::remove_dir_all(directory.join("sha256").join(source.digest().hex())).unwrap();
                }
            })
        })
        .collect();
    for life in lives {
        life.await.unwrap();
    }
    store(root.path()).await;
    assert_eq!(unfinished(root.path()), Vec::<PathBuf>::new());
}
