//! How releases come into the store: once, whole, as promised, in bounded time, for as long as somebody waits.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use release::{
    Digest, ErrorClass, Purpose,
    source::{DirectorySource, ReleaseSource},
    store::{Origin, Store, StoreError, StoreOptions},
};
use tar::EntryType;
use tempfile::TempDir;
use tokio::{task, time};

use crate::{
    fixture::{Archive, TAG, admitted, chain, good_release, tag},
    scripted_source::{Fault, Promise, ScriptedSource},
    source_contract::files_of,
};

const GIBIBYTE: u64 = 1 << 30;
const ADDON: &str = "docker-harbor-1-34-cluster-addon-v1.tgz";
/// The file that is understood last.
const LAST: &str = "cluster-addon-values.yaml";
const CLASS: &str = "docker-harbor-1-34-cluster-class-v1.tgz";
/// The deadline only ends a test that has failed.
const SOON: Duration = Duration::from_mins(1);

pub(crate) async fn store(directory: &Path) -> Store {
    Store::open(StoreOptions::new(directory.to_owned(), GIBIBYTE))
        .await
        .unwrap()
}

/// The releases that are there, by the names of their directories.
pub(crate) fn there(directory: &Path) -> BTreeMap<String, BTreeMap<String, Vec<u8>>> {
    let entries = fs::read_dir(directory.join("sha256"))
        .unwrap()
        .map(|entry| entry.unwrap());
    let read = entries.map(|entry| {
        (
            entry.file_name().to_string_lossy().into_owned(),
            files_of(&entry.path()),
        )
    });
    read.collect()
}

/// What lies in the workspaces of all processes beside their locks.
pub(crate) fn unfinished(directory: &Path) -> Vec<PathBuf> {
    let list = |path: &Path| {
        fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let is_workspace = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".partial-");
    let workspaces = list(directory).into_iter().filter(is_workspace);
    let inside = workspaces.flat_map(|workspace| list(&workspace));
    inside.filter(|path| !path.ends_with("lock")).collect()
}

/// Waits until it holds, as other tasks and threads make it so.
async fn comes_true(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    time::timeout(SOON, waiting).await.expect("it comes true");
}

/// The same where the clock stands still.
async fn comes_true_in_still_time(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < SOON, "it does not come true");
        task::yield_now().await;
    }
}

#[tokio::test]
async fn release_of_a_directory_is_kept_byte_for_byte_under_its_digest() {
    let root = TempDir::new().unwrap();
    let released = good_release(root.path(), TAG);
    let source = Arc::new(DirectorySource::new(root.path()));
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let origin = Origin {
        id: Digest::of(b"directory"),
        name: "directory".to_owned(),
        source,
    };
    let directory = root.path().join("store");
    let store = store(&directory).await;
    let kept = store.get(&resolved, &origin).await.unwrap();
    assert_eq!(Some(kept.digest), resolved.digest());
    assert_eq!(
        there(&directory),
        BTreeMap::from([(kept.digest.hex(), files_of(&released))])
    );
    assert_eq!(unfinished(&directory), Vec::<PathBuf>::new());

    // From now on nobody needs the source.
    let chart = fs::read(released.join(CLASS)).unwrap();
    fs::remove_dir_all(released).unwrap();
    let again = store.get(&resolved, &origin).await.unwrap();
    assert_eq!(admitted(&again).read_class_chart().unwrap(), chart);
}

#[tokio::test]
async fn store_for_node_images_takes_what_one_for_clusters_refuses() {
    let root = TempDir::new().unwrap();
    let released = good_release(root.path(), TAG);
    fs::write(released.join("node-images.yaml"), "openStackNodeImages: []\n").unwrap();
    for file in [CLASS, ADDON, LAST] {
        fs::remove_file(released.join(file)).unwrap();
    }
    let source = Arc::new(DirectorySource::new_for(Purpose::NodeImages, root.path()));
    let resolved = source.resolve(&tag(TAG)).await.unwrap();
    let origin = Origin {
        id: Digest::of(b"directory"),
        name: "directory".to_owned(),
        source,
    };
    let directory = root.path().join("store");
    let options = StoreOptions {
        purpose: Purpose::NodeImages,
        ..StoreOptions::new(directory.clone(), GIBIBYTE)
    };
    let kept = Store::open(options.clone())
        .await
        .unwrap()
        .get(&resolved, &origin)
        .await
        .unwrap();
    assert_eq!(
        there(&directory),
        BTreeMap::from([(kept.digest.hex(), files_of(&released))])
    );

    // What another process reads again, it reads for the same.
    let found = Store::open(options)
        .await
        .unwrap()
        .find(&tag(TAG), kept.digest)
        .await
        .unwrap();
    assert_eq!(found.map(|found| found.digest), Some(kept.digest));
    let error = store(&directory).await.find(&tag(TAG), kept.digest).await.unwrap_err();
    assert!(chain(&error).contains(CLASS), "{}", chain(&error));
    assert_eq!(there(&directory).len(), 1, "it is good for somebody");
}

#[tokio::test]
async fn everybody_who_needs_a_release_at_the_same_time_gets_one_download() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let mut bytes = 0;
    for promise in [Promise::Everything, Promise::Nothing] {
        let version = if promise == Promise::Everything {
            TAG
        } else {
            "docker-harbor-1-34-v2"
        };
        let source = ScriptedSource::of(version, promise);
        source.fails("metadata.yaml", Fault::Gate);
        let needs: Vec<_> = (0..20)
            .map(|_| {
                let (store, resolved, origin) = (store.clone(), source.resolved(), source.origin());
                task::spawn(async move { store.get(&resolved, &origin).await.unwrap() })
            })
            .collect();
        source.is_waited_for().await;
        source.open_gate();
        for need in needs {
            assert_eq!(need.await.unwrap().digest, source.digest());
        }
        assert_eq!(source.fetches(), source.files().len());
        bytes += source.size();
    }
    assert_eq!(store.usage().downloaded, 2);
    comes_true(|| store.usage().downloaded_bytes == bytes).await;
}

#[tokio::test]
async fn download_goes_on_while_somebody_waits_and_ends_with_the_last() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let source = ScriptedSource::new(Promise::Everything);
    source.fails(CLASS, Fault::StallAfter(10));
    let need = || {
        let (store, resolved, origin) = (store.clone(), source.resolved(), source.origin());
        task::spawn(async move { store.get(&resolved, &origin).await })
    };
    let needs = [need(), need()];
    source.is_waited_for().await;
    needs[0].abort();
    comes_true(|| needs[0].is_finished()).await;
    assert_eq!(store.usage().downloads.len(), 1);
    assert_ne!(unfinished(root.path()), Vec::<PathBuf>::new());

    needs[1].abort();
    comes_true(|| store.usage().downloads.is_empty() && unfinished(root.path()).is_empty()).await;
    source.mend();
    let kept = store.get(&source.resolved(), &source.origin()).await.unwrap();
    assert_eq!(
        there(root.path()),
        BTreeMap::from([(kept.digest.hex(), source.files())])
    );
}

#[tokio::test]
async fn a11_faults_of_a_source_leave_nothing_and_the_next_download_is_whole() {
    for (promise, fault, words) in [
        (
            Promise::Everything,
            Fault::NoAnswer,
            "unable to download the file: the storage did not answer",
        ),
        (
            Promise::Everything,
            Fault::ResetAfter(40),
            "the download broke off; it is tried again: connection reset",
        ),
        (
            Promise::Everything,
            Fault::EndAfter(40),
            "bytes and gives less; it is asked again",
        ),
        (
            Promise::Everything,
            Fault::Endless,
            "bytes and gives more; it is asked again",
        ),
        (Promise::Everything, Fault::OtherBytes, "and gives sha256:"),
        (Promise::Nothing, Fault::NoAnswer, "unable to download the file"),
        (Promise::Nothing, Fault::ResetAfter(0), "the download broke off"),
    ] {
        let root = TempDir::new().unwrap();
        let store = store(root.path()).await;
        let source = ScriptedSource::new(promise);
        source.fails(CLASS, fault);
        let error = store.get(&source.resolved(), &source.origin()).await.expect_err(words);
        assert!(
            chain(&error).starts_with(&format!("{TAG}: {CLASS}: ")),
            "{fault:?}: {}",
            chain(&error)
        );
        assert!(chain(&error).contains(words), "{fault:?}: {}", chain(&error));
        assert_eq!(error.class(), ErrorClass::Transient, "{fault:?}");
        assert!(
            there(root.path()).is_empty() && unfinished(root.path()).is_empty(),
            "{fault:?}"
        );
        assert_eq!(store.usage().bytes, 0);

        source.mend();
        let kept = store.get(&source.resolved(), &source.origin()).await.unwrap();
        assert_eq!(
            there(root.path()),
            BTreeMap::from([(kept.digest.hex(), source.files())]),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn release_that_changes_between_resolving_and_fetching_is_never_mixed() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let source = ScriptedSource::new(Promise::Everything);
    let before = source.resolved();
    source.put("cluster-addon-values.yaml", b"other: |\n");
    let error = store.get(&before, &source.origin()).await.expect_err("other bytes");
    assert!(
        matches!(error, StoreError::OtherContent { .. } | StoreError::OtherSize { .. }),
        "{error:?}"
    );
    let kept = store.get(&source.resolved(), &source.origin()).await.unwrap();
    assert_eq!(
        there(root.path()),
        BTreeMap::from([(kept.digest.hex(), source.files())])
    );
}

#[tokio::test]
async fn file_without_an_end_is_refused_at_its_bound_and_not_asked_for_again() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let source = ScriptedSource::new(Promise::Nothing);
    source.fails("cluster-addon-values.yaml", Fault::Endless);
    let error = store
        .get(&source.resolved(), &source.origin())
        .await
        .expect_err("no end");
    assert!(
        error
            .to_string()
            .contains("more than the 5242880 bytes that this file may have"),
        "{error}"
    );
    assert_eq!(error.class(), ErrorClass::Terminal);
    let fetches = source.fetches();
    store
        .get(&source.resolved(), &source.origin())
        .await
        .expect_err("no end");
    assert_eq!(source.fetches(), fetches);
    assert!(there(root.path()).is_empty() && unfinished(root.path()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn release_that_cannot_be_used_is_downloaded_again_only_when_it_may_be_another() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    for promise in [Promise::Everything, Promise::Nothing] {
        let source = ScriptedSource::new(promise);
        source.put("metadata.yaml", b"versions: {}\n");
        let origin = source.named(&format!("{promise:?}"));
        let refused = store.get(&source.resolved(), &origin).await.expect_err("no versions");
        assert_eq!(refused.class(), ErrorClass::Terminal);
        assert!(chain(&refused).contains("metadata.yaml"), "{}", chain(&refused));
        assert!(there(root.path()).is_empty() && unfinished(root.path()).is_empty());

        // What comes first shows it: no other file is asked for.
        assert_eq!(source.fetches(), 1);
        let again = store.get(&source.resolved(), &origin).await.expect_err("no versions");
        assert_eq!((chain(&again), source.fetches()), (chain(&refused), 1));
        time::advance(Duration::from_hours(2)).await;
        store.get(&source.resolved(), &origin).await.expect_err("no versions");
        // Without digests somebody on the way may have said something else than the source.
        let expected = if promise == Promise::Nothing { 2 } else { 1 };
        assert_eq!(source.fetches(), expected, "{promise:?}");

        let good = ScriptedSource::new(promise);
        source.put("metadata.yaml", &good.files()["metadata.yaml"]);
        store.get(&source.resolved(), &origin).await.unwrap();
        fs::remove_dir_all(root.path().join("sha256").join(good.digest().hex())).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn download_that_stands_still_ends_when_the_time_for_its_bytes_is_over() {
    // A minute, and a second for every 64 KiB that came.
    for (bytes, seconds) in [(10, 60), (4 << 20, 60 + 64)] {
        let root = TempDir::new().unwrap();
        let store = store(root.path()).await;
        let source = ScriptedSource::new(Promise::Everything);
        source.put("images.bin", &vec![0; 5 << 20]);
        source.fails("images.bin", Fault::StallAfter(bytes));
        let (waiting, resolved, origin) = (store.clone(), source.resolved(), source.origin());
        let need = task::spawn(async move { waiting.get(&resolved, &origin).await });
        source.is_waited_for().await;
        time::advance(Duration::from_secs(seconds - 1)).await;
        for _ in 0..9 {
            task::yield_now().await;
        }
        assert_eq!(store.usage().downloads.len(), 1, "{bytes} bytes");
        time::advance(Duration::from_secs(1)).await;
        let error = need.await.unwrap().expect_err("it stands still");
        assert!(matches!(error, StoreError::TooSlow { .. }), "{error:?}");
        assert_eq!(error.class(), ErrorClass::Transient);
        assert!(there(root.path()).is_empty() && unfinished(root.path()).is_empty());
        assert!(store.usage().downloads.is_empty());
    }
}

#[tokio::test]
async fn origin_that_hangs_leaves_places_for_others() {
    let root = TempDir::new().unwrap();
    let options = StoreOptions {
        downloads: 3,
        downloads_per_origin: 2,
        ..StoreOptions::new(root.path().to_owned(), GIBIBYTE)
    };
    let store = Store::open(options).await.unwrap();
    let hung: Vec<_> = (2..8)
        .map(|version| ScriptedSource::of(&format!("docker-harbor-1-34-v{version}"), Promise::Everything))
        .collect();
    let needs: Vec<_> = hung
        .iter()
        .map(|source| {
            source.fails("metadata.yaml", Fault::StallAfter(1));
            let (store, resolved, origin) = (store.clone(), source.resolved(), source.named("hung"));
            task::spawn(async move { store.get(&resolved, &origin).await })
        })
        .collect();
    comes_true(|| {
        store
            .usage()
            .downloads
            .iter()
            .filter(|download| !download.queued)
            .count()
            == 2
    })
    .await;

    // The same release too: whoever trusts another source does not wait for this one.
    for version in [2, 9, 10] {
        let source = ScriptedSource::of(&format!("docker-harbor-1-34-v{version}"), Promise::Everything);
        let got = time::timeout(SOON, store.get(&source.resolved(), &source.named("well"))).await;
        assert_eq!(got.expect("a place is free").unwrap().digest, source.digest());
    }
    let states: Vec<_> = store.usage().downloads.iter().map(|download| download.queued).collect();
    assert_eq!(states.iter().filter(|queued| **queued).count(), 4, "{states:?}");
    needs.iter().for_each(task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn slow_downloads_give_their_places_to_quick_ones() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let running = || {
        let downloads = store.usage().downloads;
        downloads.iter().filter(|download| !download.queued).count()
    };
    let get = |source: &Arc<ScriptedSource>, origin: &str| {
        let (store, resolved, origin) = (store.clone(), source.resolved(), source.named(origin));
        task::spawn(async move { store.get(&resolved, &origin).await })
    };
    // Half a MiB may take 68 seconds.
    let mut slow = Vec::new();
    for version in 2..18 {
        let source = ScriptedSource::of(&format!("docker-harbor-1-34-v{version}"), Promise::Everything);
        source.put("images.bin", &vec![0; 1 << 20]);
        source.fails("images.bin", Fault::StallAfter(1 << 19));
        slow.push(get(&source, &format!("slow {}", version / 2)));
        source.is_waited_for().await;
    }
    assert_eq!(running(), 16);
    let quick = ScriptedSource::new(Promise::Everything);
    let quickly = get(&quick, "quick");
    comes_true_in_still_time(|| store.usage().downloads.len() == 17).await;
    time::advance(Duration::from_secs(61)).await;
    comes_true_in_still_time(|| quickly.is_finished()).await;
    assert_eq!(quickly.await.unwrap().unwrap().digest, quick.digest());
    comes_true_in_still_time(|| running() == 4).await;
    time::advance(Duration::from_secs(8)).await;
    let mut reasons = BTreeMap::new();
    for download in slow {
        let error = download.await.unwrap().expect_err("they stand still");
        assert_eq!(
            (error.class(), error.reason()),
            (ErrorClass::Transient, "DownloadTooSlow")
        );
        *reasons.entry(matches!(error, StoreError::TooSlow { .. })).or_insert(0) += 1;
    }
    assert_eq!(
        reasons,
        BTreeMap::from([(false, 12), (true, 4)]),
        "those of four origins went on"
    );

    // Their places are free again.
    let last = ScriptedSource::of("docker-harbor-1-34-v18", Promise::Everything);
    last.put("images.bin", &vec![0; 1 << 20]);
    last.fails("images.bin", Fault::StallAfter(1 << 19));
    let download = get(&last, "slow 1");
    last.is_waited_for().await;
    time::advance(Duration::from_secs(61)).await;
    task::yield_now().await;
    assert_eq!(running(), 1);
    download.abort();
}

#[tokio::test]
async fn progress_is_seen_while_a_download_runs() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    for promise in [Promise::Everything, Promise::Nothing] {
        let source = ScriptedSource::new(promise);
        source.fails(LAST, Fault::StallAfter(7));
        let expected = source.size() - source.files()[LAST].len() as u64 + 7;
        let (waiting, resolved, origin) = (store.clone(), source.resolved(), source.named(&format!("{promise:?}")));
        let need = task::spawn(async move { waiting.get(&resolved, &origin).await });
        source.is_waited_for().await;
        let downloads = store.usage().downloads;
        let [download] = downloads.as_slice() else {
            panic!("{downloads:?}");
        };
        assert_eq!(
            (&download.tag, download.origin.as_str()),
            (&tag(TAG), format!("{promise:?}").as_str())
        );
        assert_eq!((download.queued, download.done), (false, expected));
        assert_eq!(download.total, (promise == Promise::Everything).then(|| source.size()));
        need.abort();
        comes_true(|| store.usage().downloads.is_empty()).await;
    }
}

/// Does something to a file that is written and synced, while the release waits for its last one.
async fn meanwhile(
    store: &Store,
    root: &Path,
    source: &Arc<ScriptedSource>,
    does: impl FnOnce(&Path),
) -> Result<Digest, StoreError> {
    source.fails(LAST, Fault::Gate);
    let (waiting, resolved, origin) = (store.clone(), source.resolved(), source.origin());
    let need = task::spawn(async move { waiting.get(&resolved, &origin).await });
    source.is_waited_for().await;
    let partial = unfinished(root).pop().unwrap();
    does(&partial.join(CLASS));
    source.open_gate();
    Ok(need.await.unwrap()?.digest)
}

#[tokio::test]
async fn bytes_that_change_on_the_disk_before_the_release_is_whole_are_not_used() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let source = ScriptedSource::new(Promise::Everything);
    let damage = |file: &Path| {
        let mut bytes = fs::read(file).unwrap();
        bytes[20] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    let error = meanwhile(&store, root.path(), &source, damage)
        .await
        .expect_err("somebody else wrote");
    assert!(matches!(error, StoreError::WrittenOtherwise { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Transient);
    assert!(there(root.path()).is_empty() && unfinished(root.path()).is_empty());
}

#[tokio::test]
async fn release_on_a_disk_that_notes_its_times_late_is_used() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let source = ScriptedSource::new(Promise::Everything);
    let note = |file: &Path| {
        let late = SystemTime::now() + Duration::from_secs(1);
        fs::File::options()
            .append(true)
            .open(file)
            .unwrap()
            .set_modified(late)
            .unwrap();
    };
    let digest = meanwhile(&store, root.path(), &source, note).await.unwrap();
    assert_eq!(digest, source.digest());
    assert_eq!(there(root.path()), BTreeMap::from([(digest.hex(), source.files())]));
}

/// An archive that takes many pieces, with one entry that no chart may have before all the others, if so.
fn large_archive(linked: bool) -> Vec<u8> {
    let noise: Vec<u8> = (0..(1_u32 << 20) / 32)
        .flat_map(|number| Digest::of(&number.to_le_bytes()).as_ref().to_vec())
        .collect();
    let archive = Archive::chart("docker-harbor-1-34-cluster-addon");
    let link = |archive: Archive| {
        archive.entry(
            EntryType::Symlink,
            "docker-harbor-1-34-cluster-addon/link",
            Some("/etc"),
            b"",
        )
    };
    let archive = if linked { link(archive) } else { archive };
    archive.file("docker-harbor-1-34-cluster-addon/noise", &noise).bytes()
}

#[tokio::test]
async fn archive_is_held_against_its_digest_before_it_is_believed_to_be_bad() {
    let mut broken = large_archive(false);
    let middle = broken.len() / 2;
    broken[middle] ^= 1;
    for (archive, words) in [
        (large_archive(true), "neither a file nor a directory"),
        (broken, "is not a complete gzip-compressed tar archive"),
    ] {
        for (fault, is_final, words) in [
            (None, true, words),
            (Some(Fault::OtherBytes), false, "and gives sha256:"),
            (Some(Fault::EndAfter(middle + 1)), false, "bytes and gives less"),
            (Some(Fault::Endless), false, "bytes and gives more"),
            (Some(Fault::ResetAfter(middle + 1)), false, "the download broke off"),
        ] {
            let root = TempDir::new().unwrap();
            let store = store(root.path()).await;
            let source = ScriptedSource::new(Promise::Everything);
            source.put(ADDON, &archive);
            if let Some(fault) = fault {
                source.fails(ADDON, fault);
            }
            let error = store.get(&source.resolved(), &source.origin()).await.expect_err(words);
            assert!(chain(&error).contains(words), "{fault:?}: {}", chain(&error));
            assert_eq!(error.class() == ErrorClass::Terminal, is_final, "{fault:?}: {error:?}");
            assert!(there(root.path()).is_empty() && unfinished(root.path()).is_empty());
            assert_eq!(store.usage().bytes, 0);
        }
    }
}

#[tokio::test]
async fn download_that_is_given_up_within_an_archive_leaves_neither_files_nor_a_thread() {
    let root = TempDir::new().unwrap();
    let options = StoreOptions {
        downloads: 1,
        ..StoreOptions::new(root.path().to_owned(), GIBIBYTE)
    };
    let store = Store::open(options).await.unwrap();
    let source = ScriptedSource::new(Promise::Everything);
    let archive = large_archive(false);
    source.put(ADDON, &archive);
    source.fails(ADDON, Fault::StallAfter(archive.len() / 2));
    let (waiting, resolved, origin) = (store.clone(), source.resolved(), source.origin());
    let need = task::spawn(async move { waiting.get(&resolved, &origin).await });
    source.is_waited_for().await;
    need.abort();
    comes_true(|| store.usage().downloads.is_empty() && unfinished(root.path()).is_empty()).await;
    // The thread has the only place for as long as it runs.
    source.mend();
    let kept = time::timeout(SOON, store.get(&source.resolved(), &source.origin())).await;
    let kept = kept.expect("the place is free").unwrap();
    assert_eq!(
        there(root.path()),
        BTreeMap::from([(kept.digest.hex(), source.files())])
    );
}

#[tokio::test]
async fn moved_tag_of_a_source_without_digests_is_another_release() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let source = ScriptedSource::new(Promise::Nothing);
    let first = store.get(&source.resolved(), &source.origin()).await.unwrap();
    source.put("cluster-addon-values.yaml", b"other: |\n");
    let second = store.get(&source.resolved(), &source.origin()).await.unwrap();
    assert_ne!(first.digest, second.digest);
    assert_eq!(second.digest, source.digest());
    assert!(
        store.find(&tag(TAG), first.digest).await.unwrap().is_some(),
        "what was pinned stays in use"
    );
}
