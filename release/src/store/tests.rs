//! Processes that are killed at each of their effects on the disk, one after the other; and a disk that takes its time.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crds::names::ReleaseTag;
use rustix::process::{Signal, getpid, kill_process};
use tempfile::TempDir;
use tokio::{sync::Semaphore, task, time};

use super::{Needs, Origin, Store, StoreOptions};
use crate::{
    Digest, Evidence, Release,
    pack::{self, Versioning},
    source::{
        Content, DirectorySource, Listing, RELEASES_DIRECTORY, ReleaseSource, RemoteFile, Resolved, SourceFuture,
    },
    trust::{Proof, Statement},
};

const ROOT: &str = "STORE_TEST_ROOT";
const LIFE: &str = "STORE_TEST_LIFE";
const KILLED_AT: &str = "STORE_TEST_KILLED_AT";

static STEPS: AtomicU64 = AtomicU64::new(0);
static LAST_STEP: LazyLock<Option<u64>> = LazyLock::new(|| env::var(KILLED_AT).ok()?.parse().ok());

/// Ends the process as a loss of power would, when its time has come.
pub(super) fn step() {
    let Some(last) = *LAST_STEP else { return };
    if STEPS.fetch_add(1, Ordering::SeqCst) + 1 == last {
        kill_process(getpid(), Signal::KILL).unwrap();
        loop {
            thread::park();
        }
    }
}

fn tag(version: u8) -> ReleaseTag {
    format!("docker-harbor-1-34-v{version}").parse().unwrap()
}

fn releases(root: &Path) -> BTreeMap<u8, Release> {
    let open = |version| {
        Release::open(
            &root.join(RELEASES_DIRECTORY).join(tag(version).to_string()),
            &tag(version),
        )
    };
    (1..=3).map(|version| (version, open(version).unwrap())).collect()
}

/// Two lives of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Releases with and without digests come until one has to go.
    Growth,
    /// A release that was there is not what it was.
    Repair,
}

async fn live(life: Life, root: &Path, directory: &Path) {
    let releases = releases(root);
    let size = |version: u8| releases[&version].files.iter().map(|file| file.size).sum::<u64>();
    let options = StoreOptions::new(directory.to_owned(), size(1) + size(2) + size(3) - 1);
    let store = Store::open(options).await.unwrap();
    let origin = Origin {
        id: Digest::of(b"directory"),
        name: "directory".to_owned(),
        source: Arc::new(DirectorySource::new(root)),
    };
    let pinned = async |version| origin.source.resolve(&tag(version)).await.unwrap();
    let unpinned = async |version| {
        let files = pinned(version).await.files().to_vec();
        let untold = files.into_iter().map(|file| RemoteFile { sha256: None, ..file });
        Resolved::new(tag(version), untold).unwrap()
    };
    store
        .keep(Needs::from([(releases[&2].digest, BTreeSet::from([origin.id]))]))
        .await
        .unwrap();
    let needs = match life {
        Life::Growth => vec![unpinned(1).await, pinned(2).await, unpinned(3).await],
        Life::Repair => vec![pinned(2).await],
    };
    for resolved in needs {
        let kept = store.get(&resolved, &origin).await.unwrap();
        assert!(whole(directory, None).contains(&kept.digest), "{}", kept.tag);
        let vouched = store.vouch(&kept.tag, kept.digest, origin.id, Arc::new(shown())).await;
        vouched.unwrap();
    }
}

/// What the origin has to show for each.
fn shown() -> Evidence {
    let mut evidence = Evidence::default();
    evidence.state(Statement::Sums, b"sums".to_vec());
    evidence.add(Statement::Sums, Proof::Detached("AAAA".to_owned()));
    evidence
}

/// The releases for which there is something to show, all of it.
fn vouched(directory: &Path) -> BTreeSet<Digest> {
    let Ok(entries) = fs::read_dir(directory.join("evidence")) else {
        return BTreeSet::new();
    };
    let read = entries.map(|entry| {
        let path = entry.unwrap().path();
        let evidence: Evidence = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(evidence, shown());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        format!("sha256:{}", name.split('-').next().unwrap()).parse().unwrap()
    });
    read.collect()
}

/// The releases in a store, each read and found to be what its name says. Anything else in their place is a failure, but for one release that
/// was made rotten.
fn whole(directory: &Path, rotten: Option<Digest>) -> BTreeSet<Digest> {
    let Ok(entries) = fs::read_dir(directory.join("sha256")) else {
        return BTreeSet::new();
    };
    let opened = entries.filter_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut digests = (1..=3).filter_map(|version| Some(Release::open(&path, &tag(version)).ok()?.digest));
        let digest = digests.find(|digest| digest.hex() == name);
        let is_rotten = rotten.is_some_and(|rotten| rotten.hex() == name);
        assert!(digest.is_some() || is_rotten, "{path:?} is no release");
        digest
    });
    opened.collect()
}

/// The names in the workspaces below a store, without the locks.
fn unfinished(directory: &Path) -> Vec<PathBuf> {
    let names = |directory: &Path| {
        fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let is_workspace = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".partial-");
    let workspaces = names(directory).into_iter().filter(is_workspace);
    let inside = workspaces.flat_map(|workspace| names(&workspace));
    inside.filter(|path| !path.ends_with("lock")).collect()
}

/// Whether a process that lives this life in this directory comes to its `step`, where it is killed.
fn is_killed(life: Life, root: &Path, step: u64) -> bool {
    let ended = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "store::tests::life_that_may_be_cut_short",
            "--ignored",
            "--quiet",
        ])
        .env(ROOT, root)
        .env(LIFE, format!("{life:?}"))
        .env(KILLED_AT, step.to_string())
        .output()
        .unwrap();
    match (ended.status.signal(), ended.status.success()) {
        (Some(9), _) => true,
        (None, true) => false,
        _ => panic!("step {step}: {ended:?}"),
    }
}

#[tokio::test]
#[ignore = "is started and killed by the tests below"]
async fn life_that_may_be_cut_short() {
    let root = PathBuf::from(env::var_os(ROOT).expect("the test that starts this one gives a directory"));
    let life = [Life::Growth, Life::Repair]
        .into_iter()
        .find(|life| env::var(LIFE) == Ok(format!("{life:?}")));
    live(life.unwrap(), &root, &root.join("store")).await;
}

/// A source with three releases.
fn prepare() -> TempDir {
    let root = TempDir::new().unwrap();
    let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1");
    for version in 1..=3 {
        let versioning = Versioning::Given(tag(version).version().clone());
        pack::create(&stack, &root.path().join(RELEASES_DIRECTORY), &versioning).unwrap();
    }
    root
}

/// Lets the next process live the same life to its end.
async fn recovers(life: Life, root: &Path, there_in_the_end: &BTreeSet<Digest>, step: u64) {
    let directory = root.join("store");
    live(life, root, &directory).await;
    assert_eq!(&whole(&directory, None), there_in_the_end, "killed at step {step}");
    assert_eq!(&vouched(&directory), there_in_the_end, "killed at step {step}");
    assert_eq!(unfinished(&directory), Vec::<PathBuf>::new(), "killed at step {step}");
    for identity in fs::read_dir(directory.join("identities")).unwrap() {
        let text = fs::read_to_string(identity.unwrap().path()).unwrap();
        let digest = text.trim_end().parse().unwrap();
        assert!(there_in_the_end.contains(&digest), "killed at step {step}");
    }
}

#[tokio::test]
async fn a11_process_killed_at_any_write_leaves_whole_releases_and_the_next_one_converges() {
    let root = prepare();
    let directory = root.path().join("store");
    let there_in_the_end = [2, 3].map(|version| releases(root.path())[&version].digest).into();
    let mut step = 1;
    while is_killed(Life::Growth, root.path(), step) {
        whole(&directory, None);
        vouched(&directory);
        recovers(Life::Growth, root.path(), &there_in_the_end, step).await;
        fs::remove_dir_all(&directory).unwrap();
        step += 1;
    }
    assert!(step > 60, "{step} are not all effects of this life on the disk");
}

#[tokio::test]
async fn process_killed_at_any_write_of_a_repair_leaves_the_rest_to_the_next_one() {
    let root = prepare();
    let directory = root.path().join("store");
    let release = &releases(root.path())[&2];
    let make_rotten = || {
        let rotten = directory.join("sha256").join(release.digest.hex());
        fs::create_dir_all(&rotten).unwrap();
        fs::write(rotten.join("metadata.yaml"), "rotten").unwrap();
    };
    make_rotten();
    let mut step = 1;
    while is_killed(Life::Repair, root.path(), step) {
        whole(&directory, Some(release.digest));
        recovers(Life::Repair, root.path(), &BTreeSet::from([release.digest]), step).await;
        fs::remove_dir_all(&directory).unwrap();
        make_rotten();
        step += 1;
    }
    assert!(step > 20, "{step} are not all effects of this life on the disk");
}

/// A directory that keeps one file back until somebody has it go on.
struct Gated {
    directory: DirectorySource,
    file: &'static str,
    asked: Semaphore,
    gate: Semaphore,
}

impl ReleaseSource for Gated {
    fn list(&self) -> SourceFuture<'_, Listing> {
        self.directory.list()
    }

    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved> {
        self.directory.resolve(tag)
    }

    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content> {
        Box::pin(async move {
            if file.name == self.file {
                self.asked.add_permits(1);
                // Never closed.
                let _ = self.gate.acquire().await;
            }
            self.directory.fetch(file).await
        })
    }
}

#[tokio::test]
#[expect(clippy::await_holding_lock, reason = "it is the disk's side that is to wait for it")]
async fn release_that_came_whole_is_not_too_slow_because_the_disk_is() {
    let root = prepare();
    let store = Store::open(StoreOptions::new(root.path().join("store"), 1 << 30))
        .await
        .unwrap();
    let expected = &releases(root.path())[&1];
    let source = Arc::new(Gated {
        directory: DirectorySource::new(root.path()),
        file: "clusteraddon.yaml",
        asked: Semaphore::new(0),
        gate: Semaphore::new(0),
    });
    let origin = Origin {
        id: Digest::of(b"gated"),
        name: "gated".to_owned(),
        source: Arc::clone(&source) as Arc<dyn ReleaseSource>,
    };
    let resolved = source.resolve(&tag(1)).await.unwrap();
    time::pause();
    let waiting = store.clone();
    let need = task::spawn(async move { waiting.get(&resolved, &origin).await });
    // From its first byte on there is room for all of it, so that nobody needs this lock before the release lands.
    source.asked.acquire().await.unwrap().forget();
    let disk = store.contents.state();
    source.gate.add_permits(1);
    let landed = root.path().join("store/sha256").join(expected.digest.hex());
    let start = Instant::now();
    while !landed.is_dir() {
        assert!(start.elapsed() < Duration::from_mins(1), "it does not land");
        task::yield_now().await;
    }
    // What sent it has to hear that it is done.
    for _ in 0..9 {
        task::yield_now().await;
    }
    time::advance(Duration::from_mins(1) + Duration::from_secs(10)).await;
    for _ in 0..9 {
        task::yield_now().await;
    }
    drop(disk);
    assert_eq!(need.await.unwrap().unwrap().digest, expected.digest);
}
