//! What panics is told, and begun again.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use planning::stack::Listing;
use release::source::RELEASES_DIRECTORY;
use tokio::time;

use super::super::UNWISHED;
use super::faraway::{ground, signed_ground};
use super::process::{DOWNLOADED, Process, wish};
use crate::sources::tests::tag;
use crate::tasks::Task;

#[tokio::test(start_paused = true)]
async fn follower_that_panics_is_told_and_goes_on() {
    let (root, cache, faraway) = ground();
    let mut process = Process::start(&faraway, cache.path());
    process.until_here(None).await;
    let polls = faraway.lists.load(Ordering::Relaxed);
    faraway.panics.store(1, Ordering::Relaxed);
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    time::sleep(Duration::from_mins(1)).await;
    assert_eq!(process.tasks.panics(Task::Source), 1);
    assert_eq!(
        faraway.lists.load(Ordering::Relaxed),
        polls + 2,
        "the one that panicked, and another"
    );
    fs::remove_dir_all(root.path().join(RELEASES_DIRECTORY)).unwrap();
    process
        .until_listing(|listing| !matches!(listing, Listing::Known { releases, .. } if !releases.is_empty()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn download_that_panics_is_told_and_begun_again() {
    let (_root, cache, faraway) = ground();
    let mut process = Process::start(&faraway, cache.path());
    process
        .until_listing(|listing| matches!(listing, Listing::Known { .. }))
        .await;
    faraway.panics.store(1, Ordering::Relaxed);
    process.until_here(None).await;
    assert_eq!(
        (process.tasks.panics(Task::Download), process.tasks.panics(Task::Source)),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn search_for_signatures_that_panics_is_begun_again() {
    let (_root, cache, faraway) = signed_ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.tells.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    process
        .until_listing(|listing| matches!(listing, Listing::Known { .. }))
        .await;
    time::sleep(Duration::from_secs(1)).await;
    faraway.panics.store(1, Ordering::Relaxed);
    process.follower.open(&tag(), Some(pinned), true).await;
    while faraway.panics.load(Ordering::Relaxed) > 0 {
        time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(process.tasks.panics(Task::Source), 0, "it is the search that panicked");
    let found = time::timeout(DOWNLOADED, process.until_signatures(Some(pinned), true)).await;
    assert_eq!(found.expect("it is looked for again"), pinned);
}
