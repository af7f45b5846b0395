//! A store that is full: who goes, who stays, and what is said when nothing can go. With real disks that are full or cannot be written to.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, SystemTime},
};

use release::{
    Digest, ErrorClass,
    store::{Needs, Store, StoreError, StoreOptions},
};
use tempfile::TempDir;
use tokio::task;

use crate::{
    fixture::tag,
    scripted_source::{Fault, Promise, ScriptedSource},
    store_downloads::{there, unfinished},
    store_evidence::evidence_of,
};

const MEBIBYTE: usize = 1 << 20;
const DIRECTORY: &str = "STORE_TEST_DIRECTORY";

/// A release with one MiB that cannot be compressed, and its few small files.
fn release(version: u8) -> Arc<ScriptedSource> {
    large(version, MEBIBYTE, Promise::Everything)
}

fn large(version: u8, bytes: usize, promise: Promise) -> Arc<ScriptedSource> {
    let source = ScriptedSource::of(&format!("docker-harbor-1-34-v{version}"), promise);
    source.put("images.bin", &vec![version; bytes]);
    source
}

async fn store(directory: &Path, mebibytes: u64) -> Store {
    let options = StoreOptions::new(directory.to_owned(), mebibytes * MEBIBYTE as u64 + 512 * 1024);
    Store::open(options).await.unwrap()
}

async fn get(store: &Store, source: &Arc<ScriptedSource>) -> Result<Digest, StoreError> {
    Ok(store.get(&source.resolved(), &source.origin()).await?.digest)
}

/// As what is needed.
fn needs<'a>(sources: impl IntoIterator<Item = &'a Arc<ScriptedSource>>) -> Needs {
    let digests = sources.into_iter().map(|source| source.digest());
    digests.map(|digest| (digest, BTreeSet::new())).collect()
}

fn names<'a>(sources: impl IntoIterator<Item = &'a Arc<ScriptedSource>>) -> BTreeSet<String> {
    sources.into_iter().map(|source| source.digest().hex()).collect()
}

fn names_there(directory: &Path) -> BTreeSet<String> {
    there(directory).into_keys().collect()
}

/// Makes it look as if a release was used this long ago.
fn used(directory: &Path, source: &ScriptedSource, ago: Duration) {
    let release = fs::File::open(directory.join("sha256").join(source.digest().hex())).unwrap();
    release.set_modified(SystemTime::now() - ago).unwrap();
}

#[tokio::test]
async fn least_recently_used_goes_also_after_a_restart_and_needed_ones_never() {
    let root = TempDir::new().unwrap();
    let all: Vec<_> = (1..=4).map(release).collect();
    let [first, second, third, fourth] = all.as_slice() else {
        unreachable!()
    };
    let before = store(root.path(), 3).await;
    for (source, hours) in [(first, 5), (second, 4), (third, 3)] {
        get(&before, source).await.unwrap();
        used(root.path(), source, Duration::from_hours(hours));
    }
    drop(before);
    // Found, and so used: this is what the next process has to know.
    let between = store(root.path(), 3).await;
    between.find(&second.tag, second.digest()).await.unwrap().unwrap();
    drop(between);

    let after = store(root.path(), 3).await;
    after.keep(needs([first])).await.unwrap();
    get(&after, fourth).await.unwrap();
    assert_eq!(names_there(root.path()), names([first, second, fourth]));
    assert_eq!(after.usage().evictions, 1);
    assert!(after.usage().bytes <= after.usage().limit);
    assert_eq!(
        after.usage().bytes,
        [first, second, fourth].iter().map(|source| source.size()).sum::<u64>()
    );
}

#[tokio::test]
async fn release_that_cannot_fit_is_refused_before_a_byte_is_asked_for() {
    let root = TempDir::new().unwrap();
    let store = store(root.path(), 2).await;
    let kept = [release(1), release(2)];
    store.keep(needs(&kept)).await.unwrap();
    for source in &kept {
        get(&store, source).await.unwrap();
    }
    let third = release(3);
    let error = get(&store, &third).await.expect_err("two are needed");
    assert_eq!(error.class(), ErrorClass::Transient);
    assert!(error.to_string().starts_with("docker-harbor-1-34-v3: "), "{error}");
    assert!(error.to_string().ends_with("raise --cache-max-bytes"), "{error}");
    assert_eq!(third.fetches(), 0);
    assert_eq!(names_there(root.path()), names(&kept));

    // A need that ended makes room.
    store.keep(needs([&kept[1]])).await.unwrap();
    get(&store, &third).await.unwrap();
    assert_eq!(names_there(root.path()), names([&kept[1], &third]));
}

#[tokio::test]
async fn what_a_source_promises_takes_no_room_from_others() {
    let root = TempDir::new().unwrap();
    let store = store(root.path(), 8).await;
    let (early, late) = (10, 3 * MEBIBYTE + 10);
    for (stalls_after, is_crowded) in [(early, false), (late, true)] {
        let slow = [1, 2].map(|version| large(version, 4 * MEBIBYTE, Promise::Everything));
        let needs = slow.each_ref().map(|source| {
            source.fails("images.bin", Fault::StallAfter(stalls_after));
            let (store, resolved, origin) = (store.clone(), source.resolved(), source.named("slow"));
            task::spawn(async move { store.get(&resolved, &origin).await })
        });
        for source in &slow {
            source.is_waited_for().await;
        }
        let other = large(3, 4 * MEBIBYTE, Promise::Everything);
        let got = get(&store, &other).await;
        if is_crowded {
            let error = got.expect_err("the bytes of the others are here");
            assert!(
                error.to_string().contains("no room for now: other downloads have"),
                "{error}"
            );
            assert_eq!((error.class(), error.reason()), (ErrorClass::Transient, "StoreFull"));
        } else {
            assert_eq!(got.unwrap(), other.digest());
            fs::remove_dir_all(root.path().join("sha256").join(other.digest().hex())).unwrap();
        }
        for need in needs {
            need.abort();
            assert!(need.await.unwrap_err().is_cancelled());
        }
    }
}

#[tokio::test]
async fn nothing_is_evicted_before_it_is_known_what_is_needed() {
    let root = TempDir::new().unwrap();
    let store = store(root.path(), 1).await;
    get(&store, &release(1)).await.unwrap();
    let error = get(&store, &release(2)).await.expect_err("nobody said what is needed");
    assert!(matches!(error, StoreError::NeedsUnknown { .. }), "{error:?}");
    assert_eq!(names_there(root.path()), names([&release(1)]));
    store.keep(Needs::new()).await.unwrap();
    get(&store, &release(2)).await.unwrap();
    assert_eq!(names_there(root.path()), names([&release(2)]));
}

#[tokio::test]
async fn release_of_unknown_size_is_bounded_while_it_comes() {
    let root = TempDir::new().unwrap();
    let store = store(root.path(), 4).await;
    let (small, needed) = (
        large(1, MEBIBYTE, Promise::Nothing),
        large(2, 2 * MEBIBYTE, Promise::Nothing),
    );
    get(&store, &small).await.unwrap();
    get(&store, &needed).await.unwrap();
    store.keep(needs([&needed])).await.unwrap();
    let error = get(&store, &large(3, 3 * MEBIBYTE, Promise::Nothing))
        .await
        .expect_err("it does not fit");
    assert!(matches!(error, StoreError::NoRoom { .. }), "{error:?}");
    assert_eq!(unfinished(root.path()), Vec::<PathBuf>::new());
    assert!(names_there(root.path()).is_superset(&names([&needed])));

    let fits = large(4, 2 * MEBIBYTE, Promise::Nothing);
    get(&store, &fits).await.unwrap();
    assert_eq!(names_there(root.path()), names([&needed, &fits]));
}

#[tokio::test]
async fn bound_that_was_lowered_is_kept_as_soon_as_needs_are_known() {
    let root = TempDir::new().unwrap();
    let all: Vec<_> = (1..=3).map(release).collect();
    let before = store(root.path(), 3).await;
    for (source, hours) in all.iter().zip([1, 2, 3]) {
        get(&before, source).await.unwrap();
        used(root.path(), source, Duration::from_hours(hours));
    }
    drop(before);
    let store = store(root.path(), 1).await;
    assert_eq!(names_there(root.path()), names(&all));
    store.keep(needs([&all[2]])).await.unwrap();
    assert_eq!(names_there(root.path()), names([&all[2]]));
    // What is needed stays, also above the bound.
    drop(store);
    let store = Store::open(StoreOptions::new(root.path().to_owned(), 1)).await.unwrap();
    store.keep(needs([&all[2]])).await.unwrap();
    assert_eq!(names_there(root.path()), names([&all[2]]));
}

/// Runs a test of this program on a disk of its own with so many MiB. Says loudly where that is not possible.
fn on_own_disk(test: &str, mebibytes: usize) {
    let directory = TempDir::new().unwrap();
    let script = format!("mount -t tmpfs -o size={mebibytes}m none \"${DIRECTORY}\" || exit 99; exec \"$0\" \"$@\"");
    let ended = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(env::current_exe().unwrap())
        .args(["--exact", &format!("store_room::{test}"), "--ignored", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .output();
    match ended {
        Ok(ended) if ended.status.success() => {
            let said = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert!(said.contains("1 passed"), "{said}");
        }
        Ok(ended) if ended.status.code() == Some(101) => panic!("{test}: {}", String::from_utf8_lossy(&ended.stderr)),
        // As a user who may not mount.
        other => {
            // Not by a macro: the harness keeps what those write to itself when a test passes.
            let said = format!("REDUCED: no disk can be mounted here, so {test} does not run: {other:?}\n");
            std::io::stderr().write_all(said.as_bytes()).unwrap();
        }
    }
}

fn own_disk() -> PathBuf {
    PathBuf::from(env::var_os(DIRECTORY).expect("the test that starts this one mounts a disk"))
}

#[test]
fn full_disk_is_told_leaves_nothing_half_and_is_relieved() {
    on_own_disk("on_a_disk_of_four_mebibytes", 4);
}

#[tokio::test]
#[ignore = "is started on a disk of its own"]
async fn on_a_disk_of_four_mebibytes() {
    let directory = own_disk();
    // A bound above the size of the disk: the mistake that the error speaks of.
    let store = store(&directory, 100).await;
    let (first, second, third) = (release(1), release(2), large(3, 3 * MEBIBYTE, Promise::Everything));
    store.keep(needs([&first])).await.unwrap();
    get(&store, &first).await.unwrap();
    get(&store, &second).await.unwrap();
    for source in [
        large(4, 3 * MEBIBYTE + MEBIBYTE / 2, Promise::Nothing),
        large(5, 4 * MEBIBYTE, Promise::Everything),
    ] {
        let error = get(&store, &source).await.expect_err("it does not fit");
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
        assert!(
            error.to_string().starts_with("disk full: ") && error.to_string().contains("--cache-dir"),
            "{error}"
        );
        assert_eq!(error.class(), ErrorClass::Transient);
        let unwritable = store.usage().unwritable.map(|error| error.reason());
        assert_eq!(unwritable, Some("StoreDiskFull"));
        assert_eq!(unfinished(&directory), Vec::<PathBuf>::new());
        assert!(
            names_there(&directory).contains(&first.digest().hex()),
            "what is needed stays"
        );
    }
    // Nobody needed the second one: it went, and with the room that it left others fit.
    assert_eq!(names_there(&directory), names([&first]));
    let fits = large(6, 2 * MEBIBYTE, Promise::Everything);
    get(&store, &fits).await.unwrap();
    assert!(store.usage().unwritable.is_none());
    assert_eq!(names_there(&directory), names([&first, &fits]));
    let error = get(&store, &third).await.expect_err("the disk is full again");
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    get(&store, &third)
        .await
        .expect_err("one MiB is needed, and three are not there");
    assert_eq!(names_there(&directory), names([&first]));
    store.keep(Needs::new()).await.unwrap();
    get(&store, &third)
        .await
        .expect_err("room is made by whoever does not find it");
    get(&store, &third).await.unwrap();
    assert_eq!(
        there(&directory),
        BTreeMap::from([(third.digest().hex(), third.files())])
    );
}

#[test]
fn full_disk_is_told_of_signatures_too_and_relieved_but_not_of_their_release() {
    on_own_disk("on_a_disk_that_signatures_fill", 4);
}

#[tokio::test]
#[ignore = "is started on a disk of its own"]
async fn on_a_disk_that_signatures_fill() {
    let directory = own_disk();
    let store = store(&directory, 100).await;
    store.keep(Needs::new()).await.unwrap();
    let (theirs, other) = (release(1), release(2));
    // Used longest ago, and needed by nobody either.
    get(&store, &theirs).await.unwrap();
    get(&store, &other).await.unwrap();
    let vouch = async |number: u8| {
        let (origin, shown) = (Digest::of(&[number]), evidence_of(MEBIBYTE));
        store.vouch(&theirs.tag, theirs.digest(), origin, shown).await
    };
    vouch(1).await.unwrap();
    let error = vouch(2).await.expect_err("the disk is full");
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    assert_eq!(unfinished(&directory), Vec::<PathBuf>::new());
    assert_eq!(names_there(&directory), names([&theirs]));
    vouch(2).await.unwrap();
}

#[test]
fn disk_that_can_only_be_read_serves_what_is_there_and_says_so() {
    on_own_disk("on_a_disk_that_becomes_read_only", 8);
}

#[tokio::test]
#[ignore = "is started on a disk of its own"]
async fn on_a_disk_that_becomes_read_only() {
    let directory = own_disk();
    let remount = |how: &str| {
        let status = Command::new("mount")
            .args(["-o", how])
            .arg(&directory)
            .status()
            .unwrap();
        assert!(status.success(), "{how}: {status}");
    };
    let (good, rotten, absent) = (release(1), release(2), release(3));
    let before = store(&directory, 8).await;
    get(&before, &good).await.unwrap();
    get(&before, &rotten).await.unwrap();
    assert!(before.usage().unwritable.is_none());
    fs::write(
        directory.join("sha256").join(rotten.digest().hex()).join("images.bin"),
        "rotten",
    )
    .unwrap();
    // A workspace holds its lock open for writing until its process is gone.
    drop(before);
    remount("remount,ro");

    let store = store(&directory, 8).await;
    let unwritable = store
        .usage()
        .unwritable
        .expect("it says so before anything is asked of it");
    assert!(unwritable.to_string().starts_with("read-only: "), "{unwritable}");
    get(&store, &good).await.unwrap();
    for _ in 0..2 {
        assert!(
            store
                .find(&tag("docker-harbor-1-34-v2"), rotten.digest())
                .await
                .unwrap()
                .is_none()
        );
    }
    assert_eq!(
        (store.usage().corrupt, store.usage().rehashes),
        (1, 2),
        "what is rotten is read once"
    );
    for source in [&rotten, &absent] {
        let fetches = source.fetches();
        let error = get(&store, source).await.expect_err("nothing can be written");
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
        assert!(error.to_string().contains("--cache-dir"), "{error}");
        assert_eq!((error.class(), source.fetches()), (ErrorClass::Transient, fetches));
    }

    remount("remount,rw");
    get(&store, &absent).await.unwrap();
    get(&store, &rotten).await.unwrap();
    assert!(store.usage().unwritable.is_none());
    assert_eq!(names_there(&directory), names([&good, &rotten, &absent]));
}
