//! What is lost while somebody waits for a signature, and what is kept for him: files, and what their source has to show for them.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::ClusterStackRelease;
use crds::names::ReleaseTag;
use release::source::RELEASES_DIRECTORY;
use release::store::Needs;
use release::{Digest, Evidence, Release};
use serde_json::json;
use sourcing::Place;
use tempfile::TempDir;
use tokio::{task, time};
use tokio_util::sync::CancellationToken;

use super::super::UNWISHED;
use super::faraway::{Faraway, ground, neighbour, sign};
use super::process::{DOWNLOADED, Process, digest, evidence_folder};
use crate::sources::opened::{Found, Opened, Signatures};
use crate::sources::tests::{pack_as, root, sources, tag};
use crate::sources::{Follower, Following, Sources, lock};

/// A root with two releases, and the bytes of both but for one: as much as has room.
fn tight() -> (TempDir, u64) {
    let root = root();
    pack_as(&root.path().join(RELEASES_DIRECTORY), &neighbour());
    let size = |tag: &ReleaseTag| {
        let directory = root.path().join(RELEASES_DIRECTORY).join(tag.to_string());
        let files = Release::open(&directory, tag).unwrap().files;
        files.iter().map(|file| file.size).sum::<u64>()
    };
    let max_bytes = size(&tag()) + size(&neighbour()) - 1;
    (root, max_bytes)
}

/// Where the store keeps a release.
fn files(cache: &TempDir, digest: Digest) -> PathBuf {
    cache.path().join("sha256").join(digest.hex())
}

/// Opens the other release at every change until it is as it should be.
async fn other_until(process: &mut Process, is_right: impl Fn(&Opened<Found>) -> bool) -> Opened<Found> {
    loop {
        let opened = process.follower.open(&neighbour(), None, false).await;
        if is_right(&opened) {
            return opened;
        }
        process.changes.recv().await.unwrap();
    }
}

async fn until_other_is_here(process: &mut Process) {
    other_until(process, |opened| digest(opened).is_some()).await;
}

/// What is in the way of its signatures.
fn trouble(opened: &Opened<Found>) -> Option<&str> {
    match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => Some(message),
            Signatures::Unwanted | Signatures::Shown(_) => None,
        },
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn release_whose_files_are_taken_away_is_brought_again_when_its_signatures_are_looked_for() {
    for parts in [["sha256", "evidence"].as_slice(), &[""]] {
        let ((root, _), cache) = (tight(), TempDir::new().unwrap());
        sign(&root);
        let faraway = Faraway::new(root.path());
        let mut process = Process::verifying(&faraway, cache.path());
        let pinned = process.until_signatures(None, true).await;
        for part in parts {
            fs::remove_dir_all(cache.path().join(part)).unwrap();
        }
        // When another one comes, the store looks at what there is.
        until_other_is_here(&mut process).await;
        let found = time::timeout(DOWNLOADED, process.until_signatures(Some(pinned), true)).await;
        assert_eq!(found.expect("they are found"), pinned);
        assert!(files(&cache, pinned).is_dir(), "{parts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn signature_of_a_release_that_made_room_for_another_while_it_waited_is_found() {
    let ((root, max_bytes), cache) = (tight(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::bounded(&faraway, cache.path(), max_bytes);
    process.is_to_be_verified = true;
    let waits = process.until_signatures(None, false).await;
    process.follower.refused(&tag(), waits, "fleet");
    process.follower.cache.keep(Needs::new());
    until_other_is_here(&mut process).await;
    assert!(!files(&cache, waits).exists(), "there is room for one");
    sign(&root);
    let found = time::timeout(DOWNLOADED, process.until_signatures(None, true)).await;
    assert_eq!(found.expect("it is found by a poll"), waits);
    assert!(files(&cache, waits).is_dir());
}

/// As a release is that comes from a registry and waits for its signature.
fn waiting(tag: &ReleaseTag) -> Arc<ClusterStackRelease> {
    let verification = json!({ "mode": "Require", "cosign": { "publicKeySecretRef": { "name": "cosign" } } });
    let spec = json!({
        "source": { "oci": { "repository": "registry.example.com/stacks" } },
        "policy": { "verification": verification },
    });
    let metadata = json!({ "name": tag.to_string(), "namespace": "fleet" });
    serde_json::from_value(json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "metadata": metadata, "spec": spec,
    }))
    .unwrap()
}

/// The operator of this process, with the id of the registry; what the process follows plays that.
fn operator(root: &TempDir, process: &Process) -> (Sources, Digest) {
    let (mut sources, _) = sources(root.path());
    sources.options.cache = Arc::clone(&process.follower.cache);
    let release = waiting(&tag());
    let place = sources.place(release.spec.source.as_ref(), "fleet").unwrap();
    let origin = sources.options.connector.connection(&place).id();
    let following = Following {
        follower: Follower::Remote(Arc::clone(&process.follower)),
        used: time::Instant::now(),
        _end: CancellationToken::new().drop_guard(),
    };
    let named: HashMap<Place, Following> = HashMap::from([(place, following)]);
    lock(&sources.followers).extend(named);
    (sources, origin)
}

#[tokio::test(start_paused = true)]
async fn releases_that_wait_for_their_signatures_do_not_take_the_room_of_each_other() {
    let ((root, max_bytes), cache) = (tight(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::bounded(&faraway, cache.path(), max_bytes);
    let first = process.until_here(None).await;
    let (sources, _) = operator(&root, &process);
    sources.keep_for(&[waiting(&tag()), waiting(&neighbour())]);
    let is_decided = |opened: &Opened<Found>| match opened {
        Opened::Missing { message, .. } => message.contains("do not fit"),
        _ => true,
    };
    let second = other_until(&mut process, is_decided).await;
    assert!(matches!(second, Opened::Missing { .. }), "it has the room of the first");
    assert!(files(&cache, first).is_dir());
    // Nobody wants the first one any more.
    sources.keep_for(&[waiting(&neighbour())]);
    let here = time::timeout(DOWNLOADED, until_other_is_here(&mut process)).await;
    here.expect("there is room");
}

#[tokio::test]
async fn what_the_source_of_a_release_has_shown_stays_however_many_sources_others_name_for_the_same_files() {
    let (root, cache, faraway) = ground();
    let mut process = Process::start(&faraway, cache.path());
    let first = process.until_here(None).await;
    let (sources, origin) = operator(&root, &process);
    let store = process.follower.cache.store().await.unwrap();
    let others = (0..20_u8).map(|number| Digest::of(&[number]));
    for origin in [origin].into_iter().chain(others) {
        let evidence = Arc::new(Evidence::default());
        store.vouch(&tag(), first, origin, evidence).await.unwrap();
    }
    sources.keep_for(&[waiting(&tag())]);
    let kept = || fs::read_dir(evidence_folder(&cache)).unwrap().count();
    let is_tidied = async {
        while kept() > 5 {
            task::yield_now().await;
        }
    };
    time::timeout(UNWISHED, is_tidied).await.expect("a few are enough");
    assert!(store.evidence(first, origin).await.unwrap().is_some());
}

/// More bytes than are read: such as cannot come from a source, but from a fault of ours.
fn too_much() -> Evidence {
    let signature =
        |number: u8| json!({ "of": "Sums", "proof": { "Bundle": STANDARD.encode(vec![number; 256 << 10]) } });
    let signatures: Vec<_> = (0..4).map(signature).collect();
    let written = json!({ "manifest": null, "sums": "c3Vtcw==", "signatures": signatures, "is_cut": false });
    serde_json::from_value(written).unwrap()
}

#[tokio::test(start_paused = true)]
async fn signatures_that_could_not_be_read_again_are_looked_for_ever_more_seldom_and_that_is_told() {
    let (_root, cache, faraway) = ground();
    *lock(&faraway.shown) = Some(too_much());
    let mut process = Process::verifying(&faraway, cache.path());
    let looks = || faraway.looks.load(Ordering::Relaxed);
    let is_told = |opened: &Opened<Found>| {
        assert!(looks() < 100, "it is looked for without a pause");
        trouble(opened).is_some_and(|message| message.contains("could not be read again"))
    };
    process.until(None, is_told).await;
    let before = looks();
    for _ in 0..100 {
        time::sleep(UNWISHED).await;
        process.follower.open(&tag(), None, true).await;
    }
    let looks = looks() - before;
    assert!((10..=100).contains(&looks), "{looks} times in 500 minutes");
    *lock(&faraway.shown) = None;
    process.until_signatures(None, false).await;
}

#[tokio::test(start_paused = true)]
async fn signature_that_comes_and_cannot_be_kept_is_told_and_found_when_it_can() {
    let (root, cache, faraway) = ground();
    let mut process = Process::verifying(&faraway, cache.path());
    let pinned = process.until_signatures(None, false).await;
    process.follower.refused(&tag(), pinned, "fleet");
    fs::remove_dir_all(evidence_folder(&cache)).unwrap();
    fs::write(evidence_folder(&cache), "").unwrap();
    sign(&root);
    let is_told =
        |opened: &Opened<Found>| trouble(opened).is_some_and(|message| message.contains("unable to write below"));
    let told = time::timeout(DOWNLOADED, process.until(Some(pinned), is_told)).await;
    told.expect("nobody says that it is not signed");
    fs::remove_file(evidence_folder(&cache)).unwrap();
    let found = time::timeout(DOWNLOADED, process.until_signatures(Some(pinned), true)).await;
    assert_eq!(found.expect("it is found"), pinned);
}
