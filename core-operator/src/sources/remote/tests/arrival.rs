//! Releases come, stay, and are told from what lies under their tag later.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use release::source::{ListedRelease, RELEASES_DIRECTORY};
use release::{Digest, Release};
use tempfile::TempDir;

use super::super::UNWISHED;
use super::super::memory::Questions;
use super::faraway::{Faraway, ground, replace};
use super::process::{Process, digest, moved_to, wish};
use crate::sources::lock;
use crate::sources::opened::{Found, Opened};
use crate::sources::tests::{root, tag};

const ONE_OF_EACH: Questions = Questions {
    differing: 1,
    untold: 1,
    refused: 1,
};

#[tokio::test]
async fn release_is_on_its_way_until_it_is_here_with_its_own_digest() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let mut process = Process::start(&Faraway::new(root.path()), cache.path());
    let opened = process.follower.open(&tag(), None, false).await;
    assert!(matches!(opened, Opened::Missing { .. }), "nobody waits for a download");
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    let expected = Release::open(&directory, &tag()).unwrap().digest;
    assert_eq!(process.until_here(None).await, expected);
}

#[tokio::test]
async fn what_the_source_does_not_show_is_not_said_to_come_from_it() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let mut process = Process::start(&Faraway::new(root.path()), cache.path());
    let pinned = process.until_here(None).await;
    let came_from = |opened: Opened<Found>| match opened {
        Opened::Ready { source, .. } => source.is_some(),
        Opened::Missing { .. } | Opened::Broken { .. } | Opened::Refused { .. } => panic!("it is here"),
    };
    assert!(came_from(process.follower.open(&tag(), Some(pinned), false).await));
    // A mirror that ends earlier, over the same store.
    let mirror = TempDir::new().unwrap();
    let process = Process::start(&Faraway::new(mirror.path()), cache.path());
    assert!(!came_from(process.follower.open(&tag(), Some(pinned), false).await));
}

#[tokio::test]
async fn what_was_pinned_is_there_after_a_restart_while_the_source_is_down() {
    let (_root, cache, faraway) = ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.is_down.store(true, Ordering::Relaxed);
    faraway.resolves.store(0, Ordering::Relaxed);
    let process = Process::start(&faraway, cache.path());
    assert_eq!(
        digest(&process.follower.open(&tag(), Some(pinned), false).await),
        Some(pinned)
    );
    assert_eq!(faraway.resolves.load(Ordering::Relaxed), 0, "nobody was asked");
}

#[tokio::test(start_paused = true)]
async fn moved_tag_is_told_and_what_was_pinned_stays() {
    let (root, cache, faraway) = ground();
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    replace(&root);
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    let opened = process.until(Some(pinned), |opened| moved_to(opened).is_some()).await;
    assert_eq!(digest(&opened), Some(pinned));
    assert_ne!(moved_to(&opened), Some(pinned.to_string().as_str()));
    // Also of a process that has not seen the pinned bytes come.
    drop(process);
    let mut process = Process::start(&faraway, cache.path());
    let again = process.until(Some(pinned), |opened| moved_to(opened).is_some()).await;
    assert_eq!((digest(&again), moved_to(&again)), (Some(pinned), moved_to(&opened)));
    // Whoever has pinned nothing gets the new ones, and the other keeps what it has.
    let accepted = process.until_here(None).await;
    assert_eq!(Some(accepted.to_string().as_str()), moved_to(&opened));
    assert_eq!(
        digest(&process.follower.open(&tag(), Some(pinned), false).await),
        Some(pinned)
    );
}

#[tokio::test]
async fn release_that_could_not_be_read_is_brought_again() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let mut process = Process::start(&Faraway::new(root.path()), cache.path());
    let pinned = process.until_here(None).await;
    let kept = cache.path().join("sha256").join(pinned.hex());
    fs::write(kept.join("metadata.yaml"), "rotten").unwrap();
    process.follower.doubt(&tag(), pinned);
    assert_eq!(process.until_here(Some(pinned)).await, pinned);
    assert_ne!(fs::read(kept.join("metadata.yaml")).unwrap(), b"rotten");
}

#[tokio::test]
async fn source_whose_list_tells_of_files_is_asked_for_a_release_only_when_the_list_says_that_it_is_another() {
    let (root, cache, faraway) = ground();
    faraway.tells.store(true, Ordering::Relaxed);
    let often = wish(Duration::from_millis(10), None);
    let mut process = Process::start(&faraway, cache.path());
    process.follower.wish("fleet/harbor", often.clone());
    let pinned = process.until_here(None).await;
    let asked = || faraway.resolves.swap(0, Ordering::Relaxed);
    asked();
    process.polls(&faraway, 10).await;
    assert_eq!(asked(), 0);
    replace(&root);
    let opened = process.until(Some(pinned), |opened| moved_to(opened).is_some()).await;
    assert_eq!(digest(&opened), Some(pinned));
    process.polls(&faraway, 10).await;
    assert_eq!(asked(), 1);
    // A process that has seen nothing come asks once for what it has opened.
    drop(process);
    let mut process = Process::start(&faraway, cache.path());
    process.follower.wish("fleet/harbor", often);
    process.until(Some(pinned), |opened| moved_to(opened).is_some()).await;
    process.polls(&faraway, 10).await;
    assert_eq!(asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn list_that_is_older_than_what_was_downloaded_does_not_make_that_a_moved_tag() {
    let (_root, cache, faraway) = ground();
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    let resolved = faraway.resolved(&tag()).await.unwrap().identity();
    let old = ListedRelease {
        tag: tag(),
        published_at: None,
        identity: Some(Digest::of(b"what was there before")),
        digest: Some(Digest::of(b"its digest")),
    };
    let asked = lock(&process.follower.memory).questions(&[old], ONE_OF_EACH);
    assert_eq!(asked, [tag()], "the source knows better than its list");
    let opened = process.follower.open(&tag(), Some(pinned), false).await;
    assert_eq!((digest(&opened), moved_to(&opened)), (Some(pinned), None));
    let current = ListedRelease {
        tag: tag(),
        published_at: None,
        identity: Some(resolved),
        digest: None,
    };
    assert_eq!(lock(&process.follower.memory).questions(&[current], ONE_OF_EACH), []);
}
