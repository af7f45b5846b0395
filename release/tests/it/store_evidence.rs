//! What the store keeps of signatures: for what is here only, only what can be read again, and no more than there may be.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use release::{
    Digest, ErrorClass, Evidence, Release,
    store::{Needs, Store, StoreError, StoreOptions},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::{
    fixture::TAG,
    scripted_source::{Promise, ScriptedSource},
    store_downloads::{store, there, unfinished},
};

const OTHER: &str = "docker-harbor-1-34-v2";

fn id(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn numbered(number: usize) -> Digest {
    id(&number.to_string())
}

/// A list of sums and its signature, which need not be good here.
fn evidence(signature: &str) -> Arc<Evidence> {
    let signature = json!({ "of": "Sums", "proof": { "Detached": signature } });
    of(&json!({ "manifest": null, "sums": "c3Vtcw==", "signatures": [signature], "is_cut": false }))
}

fn of(written: &Value) -> Arc<Evidence> {
    Arc::new(serde_json::from_value(written.clone()).unwrap())
}

/// As it is written down of so many bytes in all.
pub(crate) fn evidence_of(bytes: usize) -> Arc<Evidence> {
    let written = |filling: usize| serde_json::to_vec(&evidence(&"A".repeat(filling))).unwrap().len();
    evidence(&"A".repeat(bytes - written(0)))
}

/// A bundle as large as one may be, and more of them than have room beside what they are of.
fn too_much() -> Arc<Evidence> {
    let signature =
        |number: u8| json!({ "of": "Manifest", "proof": { "Bundle": STANDARD.encode(vec![number; 256 << 10]) } });
    let signatures: Vec<_> = (0..4).map(signature).collect();
    of(&json!({ "manifest": "e30=", "sums": null, "signatures": signatures, "is_cut": false }))
}

async fn vouch(store: &Store, release: &Release, origin: Digest, shown: Arc<Evidence>) -> Result<(), StoreError> {
    store.vouch(&release.tag, release.digest, origin, shown).await
}

async fn get(store: &Store, source: &Arc<ScriptedSource>) -> Arc<Release> {
    store.get(&source.resolved(), &source.origin()).await.unwrap()
}

/// Bytes of what there is to show, by the names of the files.
fn kept(directory: &Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(directory.join("evidence")).unwrap();
    let sizes = entries.map(|entry| {
        let entry = entry.unwrap();
        (
            entry.file_name().to_string_lossy().into_owned(),
            entry.metadata().unwrap().len(),
        )
    });
    sizes.collect()
}

/// Bytes of everything that counts.
fn bytes(directory: &Path) -> u64 {
    let releases = there(directory).into_values().flat_map(BTreeMap::into_values);
    let files: u64 = releases.map(|content| content.len() as u64).sum();
    files + kept(directory).into_values().sum::<u64>()
}

#[tokio::test]
async fn signatures_of_a_release_that_is_gone_are_not_kept_and_that_is_told() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let release = get(&store, &ScriptedSource::new(Promise::Everything)).await;
    fs::remove_dir_all(root.path().join("sha256").join(release.digest.hex())).unwrap();
    let error = vouch(&store, &release, id("origin"), evidence("AAAA"))
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Waiting);
    assert!(error.to_string().starts_with(&format!("{TAG}: ")), "{error}");
    assert_eq!(kept(root.path()), BTreeMap::new());
    assert_eq!((store.usage().releases, store.usage().bytes), (0, 0));
}

#[tokio::test]
async fn signatures_of_what_another_process_brought_are_kept_and_counted() {
    let root = TempDir::new().unwrap();
    let (ours, theirs) = (store(root.path()).await, store(root.path()).await);
    let release = get(&theirs, &ScriptedSource::new(Promise::Everything)).await;
    vouch(&ours, &release, id("origin"), evidence("AAAA")).await.unwrap();
    let kept = ours.evidence(release.digest, id("origin")).await.unwrap();
    assert_eq!(kept, Some(evidence("AAAA").as_ref().clone()));
    assert_eq!((ours.usage().releases, ours.usage().bytes), (1, bytes(root.path())));
}

#[tokio::test]
async fn what_could_not_be_read_again_takes_not_the_place_of_what_can() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let release = get(&store, &ScriptedSource::new(Promise::Everything)).await;
    vouch(&store, &release, id("origin"), evidence("AAAA")).await.unwrap();
    let error = vouch(&store, &release, id("origin"), too_much()).await.unwrap_err();
    assert!(matches!(error, StoreError::NotKept { .. }), "{error:?}");
    let kept = store.evidence(release.digest, id("origin")).await.unwrap();
    assert_eq!(kept, Some(evidence("AAAA").as_ref().clone()));
}

#[tokio::test]
async fn who_names_one_source_after_the_other_fills_no_disk_and_takes_no_signature_from_others() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let release = get(&store, &ScriptedSource::new(Promise::Everything)).await;
    let others = [id("theirs"), id("also theirs")];
    store
        .keep(Needs::from([(release.digest, BTreeSet::from(others))]))
        .await
        .unwrap();
    for other in others {
        vouch(&store, &release, other, evidence("AAAA")).await.unwrap();
    }
    for number in 0..50 {
        vouch(&store, &release, numbered(number), evidence("BBBB"))
            .await
            .unwrap();
        let is_kept = store
            .evidence(release.digest, numbered(number))
            .await
            .unwrap()
            .is_some();
        assert!(is_kept, "the last one is always there: {number}");
        assert!(kept(root.path()).len() <= others.len() + 4, "{:?}", kept(root.path()));
    }
    for other in others {
        let kept = store.evidence(release.digest, other).await.unwrap();
        assert_eq!(kept, Some(evidence("AAAA").as_ref().clone()));
    }
    assert_eq!(store.usage().bytes, bytes(root.path()));
}

#[tokio::test]
async fn what_came_before_needs_were_known_is_bounded_when_they_are() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let release = get(&store, &ScriptedSource::new(Promise::Everything)).await;
    for number in 0..20 {
        vouch(&store, &release, numbered(number), evidence("AAAA"))
            .await
            .unwrap();
    }
    assert_eq!(kept(root.path()).len(), 20, "each of them may be needed");
    let first = BTreeSet::from([numbered(0)]);
    store.keep(Needs::from([(release.digest, first)])).await.unwrap();
    assert_eq!(kept(root.path()).len(), 5);
    assert!(store.evidence(release.digest, numbered(0)).await.unwrap().is_some());
    assert_eq!(store.usage().bytes, bytes(root.path()));
}

#[tokio::test]
async fn signatures_that_come_at_once_are_counted_once() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let release = get(&store, &ScriptedSource::new(Promise::Everything)).await;
    for round in 0..20_usize {
        let mut all = JoinSet::new();
        for origin in 0..4 {
            let (store, release) = (store.clone(), Arc::clone(&release));
            let shown = evidence(&"A".repeat(100 * (1 + (round + origin) % 4)));
            all.spawn(async move { vouch(&store, &release, numbered(origin), shown).await });
        }
        while let Some(vouched) = all.join_next().await {
            vouched.unwrap().unwrap();
        }
        assert_eq!(store.usage().bytes, bytes(root.path()), "round {round}");
    }
}

#[tokio::test]
async fn signatures_take_room_as_releases_do_and_evict_what_nobody_needs_but_not_their_own_release() {
    let root = TempDir::new().unwrap();
    let [source, unneeded] = [TAG, OTHER].map(|text| ScriptedSource::of(text, Promise::Everything));
    unneeded.put("images.bin", &[1; 4096]);
    let limit = source.size() + unneeded.size();
    let store = Store::open(StoreOptions::new(root.path().to_owned(), limit))
        .await
        .unwrap();
    store.keep(Needs::new()).await.unwrap();
    // The one that is used longest ago goes first, if it may.
    let release = get(&store, &source).await;
    get(&store, &unneeded).await;
    let fits = usize::try_from(unneeded.size()).unwrap();
    vouch(&store, &release, id("origin"), evidence_of(fits)).await.unwrap();
    assert_eq!(
        there(root.path()).into_keys().collect::<Vec<_>>(),
        [release.digest.hex()]
    );
    assert_eq!((store.usage().bytes, store.usage().evictions), (limit, 1));
    // In the place of what is there as much has room as before, and no more.
    vouch(&store, &release, id("origin"), evidence_of(fits)).await.unwrap();
    for (origin, size) in [(id("origin"), fits + 1), (id("other"), 200)] {
        let error = vouch(&store, &release, origin, evidence_of(size)).await.unwrap_err();
        assert!(matches!(error, StoreError::NoRoom { .. }), "{error:?}");
        assert!(error.to_string().ends_with("raise --cache-max-bytes"), "{error}");
    }
    let kept = store.evidence(release.digest, id("origin")).await.unwrap();
    assert_eq!(kept, Some(evidence_of(fits).as_ref().clone()));
    assert_eq!(store.usage().bytes, limit);
    assert!(unfinished(root.path()).is_empty());
}

#[tokio::test]
async fn any_part_of_the_folder_may_be_removed_while_it_is_used() {
    for part in ["sha256", "identities", "evidence", ""] {
        let root = TempDir::new().unwrap();
        let directory = root.path().join("store");
        let store = store(&directory).await;
        let source = ScriptedSource::new(Promise::Nothing);
        let release = get(&store, &source).await;
        vouch(&store, &release, id("origin"), evidence("AAAA")).await.unwrap();
        fs::remove_dir_all(directory.join(part)).unwrap();
        let again = get(&store, &source).await;
        vouch(&store, &again, id("origin"), evidence("BBBB")).await.unwrap();
        assert_eq!(
            there(&directory).into_keys().collect::<Vec<_>>(),
            [release.digest.hex()]
        );
        let kept = store.evidence(release.digest, id("origin")).await.unwrap();
        assert_eq!(kept, Some(evidence("BBBB").as_ref().clone()), "{part}");
        assert_eq!(store.usage().bytes, bytes(&directory), "{part}");
    }
}

#[tokio::test]
async fn signatures_that_come_after_the_clock_was_put_back_are_kept() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let release = get(&store, &ScriptedSource::new(Promise::Everything)).await;
    store.keep(Needs::new()).await.unwrap();
    for number in 0..4 {
        vouch(&store, &release, numbered(number), evidence("AAAA"))
            .await
            .unwrap();
    }
    let later = SystemTime::now() + Duration::from_hours(1);
    for entry in fs::read_dir(root.path().join("evidence")).unwrap() {
        let file = fs::File::options().append(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(later).unwrap();
    }
    vouch(&store, &release, id("now"), evidence("BBBB")).await.unwrap();
    let kept = store.evidence(release.digest, id("now")).await.unwrap();
    assert_eq!(kept, Some(evidence("BBBB").as_ref().clone()));
}

#[tokio::test]
async fn signatures_that_come_in_one_tick_of_the_clock_of_the_disk_are_kept() {
    let memory = Path::new("/dev/shm");
    let root = TempDir::new_in(memory).unwrap();
    let store = store(root.path()).await;
    let release = get(&store, &ScriptedSource::new(Promise::Everything)).await;
    store.keep(Needs::new()).await.unwrap();
    for number in 0..500 {
        let vouched = vouch(&store, &release, numbered(number), evidence("AAAA")).await;
        vouched.unwrap_or_else(|error| panic!("the {number}. is gone at once: {error}"));
    }
}

#[tokio::test]
async fn signatures_that_somebody_needs_outlive_files_that_rotted() {
    let root = TempDir::new().unwrap();
    let store = store(root.path()).await;
    let source = ScriptedSource::new(Promise::Everything);
    let release = get(&store, &source).await;
    let origins = BTreeSet::from([id("origin")]);
    store.keep(Needs::from([(release.digest, origins)])).await.unwrap();
    vouch(&store, &release, id("origin"), evidence("AAAA")).await.unwrap();
    let chart = root
        .path()
        .join("sha256")
        .join(release.digest.hex())
        .join("metadata.yaml");
    fs::write(chart, "rotten").unwrap();
    let again = get(&store, &source).await;
    assert_eq!(again.digest, release.digest);
    // The source may have lost them, or be away, by now.
    let kept = store.evidence(release.digest, id("origin")).await.unwrap();
    assert_eq!(kept, Some(evidence("AAAA").as_ref().clone()));
}

#[tokio::test]
async fn signatures_outlive_files_that_rotted_until_it_is_known_that_nobody_needs_them() {
    let root = TempDir::new().unwrap();
    let source = ScriptedSource::new(Promise::Everything);
    let release = get(&store(root.path()).await, &source).await;
    let ours = store(root.path()).await;
    vouch(&ours, &release, id("origin"), evidence("AAAA")).await.unwrap();
    let files = root.path().join("sha256").join(release.digest.hex());
    fs::write(files.join("metadata.yaml"), "rotten").unwrap();
    assert!(ours.find(&release.tag, release.digest).await.unwrap().is_none());
    drop(ours);
    // Whoever comes next does not know either, and the files are not there.
    let next = store(root.path()).await;
    assert_eq!((kept(root.path()).len(), next.usage().releases), (1, 0));
    let origins = BTreeSet::from([id("origin")]);
    next.keep(Needs::from([(release.digest, origins)])).await.unwrap();
    get(&next, &source).await;
    next.keep(Needs::new()).await.unwrap();
    let kept_with_it = next.evidence(release.digest, id("origin")).await.unwrap();
    assert_eq!(kept_with_it, Some(evidence("AAAA").as_ref().clone()));
    assert_eq!(next.usage().bytes, bytes(root.path()));
    // Without its files it is of use only to somebody who needs it.
    fs::remove_dir_all(files).unwrap();
    next.keep(Needs::from([(release.digest, BTreeSet::new())]))
        .await
        .unwrap();
    assert_eq!(kept(root.path()), BTreeMap::new());
    assert_eq!(next.usage().bytes, 0);
}

#[tokio::test]
async fn signatures_that_nobody_needs_make_room_for_a_release_that_somebody_does() {
    let root = TempDir::new().unwrap();
    let [source, other] = [TAG, OTHER].map(|text| ScriptedSource::of(text, Promise::Everything));
    let limit = source.size() + other.size() + 1000;
    let store = Store::open(StoreOptions::new(root.path().to_owned(), limit))
        .await
        .unwrap();
    let release = get(&store, &source).await;
    // Somebody has it from a source whose signatures nobody wants.
    store
        .keep(Needs::from([(release.digest, BTreeSet::new())]))
        .await
        .unwrap();
    for number in 0..4 {
        vouch(&store, &release, numbered(number), evidence_of(300))
            .await
            .unwrap();
    }
    get(&store, &other).await;
}
