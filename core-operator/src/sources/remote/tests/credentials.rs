//! What a source is told in confidence: it is repeated nowhere, and counts as soon as it is corrected.

use std::sync::atomic::Ordering;

use planning::stack::Listing;
use tempfile::TempDir;
use tokio::time;

use super::super::UNWISHED;
use super::faraway::{ground, next_resolve, replace, signed_ground};
use super::process::{DOWNLOADED, Process, SOON, moved_to};
use crate::sources::opened::{Found, Opened, Signatures};
use crate::sources::tests::tag;

#[tokio::test(start_paused = true)]
async fn what_a_source_repeats_of_its_credentials_is_nowhere_told() {
    let (_root, cache, faraway) = ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.repeats.store(true, Ordering::Relaxed);
    let assert_hidden = |told: &str| {
        assert!(told.contains("no access for the (not shown)"), "{told}");
        assert!(!told.contains("canary"), "{told}");
    };
    let mut process = Process::start(&faraway, cache.path());
    let listing = process
        .until_listing(|listing| matches!(listing, Listing::Unavailable { .. }))
        .await;
    assert_hidden(&format!("{listing:?}"));
    // Its signatures are not there either.
    process.is_to_be_verified = true;
    let awaited = |opened: &Opened<Found>| match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => message.clone(),
            Signatures::Unwanted | Signatures::Shown(_) => String::new(),
        },
        _ => String::new(),
    };
    let opened = process
        .until(Some(pinned), |opened| awaited(opened).contains("could not"))
        .await;
    assert_hidden(&awaited(&opened));
    let nowhere = TempDir::new().unwrap();
    let mut process = Process::start(&faraway, nowhere.path());
    let hindered = |opened: &Opened<Found>| match opened {
        Opened::Missing {
            message,
            outage: Some(_),
        } => message.clone(),
        _ => String::new(),
    };
    let opened = process.until(None, |opened| !hindered(opened).is_empty()).await;
    assert_hidden(&hindered(&opened));
}

#[tokio::test(start_paused = true)]
async fn corrected_secret_is_used_by_the_next_poll_for_a_download_that_was_denied_although_the_list_is_open() {
    let (_root, cache, faraway) = ground();
    faraway.password.store(1, Ordering::Relaxed);
    let mut process = Process::start(&faraway, cache.path());
    let has_long_wait =
        |opened: &Opened<Found>| matches!(opened, Opened::Missing { outage: Some(outage), .. } if outage.attempts > 8);
    process.until(None, has_long_wait).await;
    assert!(matches!(process.follower.listing(), Listing::Known { .. }));
    faraway.secret.store(1, Ordering::Relaxed);
    let asked = time::timeout(SOON, next_resolve(&faraway)).await;
    asked.expect("it is asked again by the next poll");
    process.until_here(None).await;
}

#[tokio::test(start_paused = true)]
async fn corrected_secret_is_used_where_only_the_comparison_was_denied() {
    let (root, cache, faraway) = ground();
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    faraway.password.store(1, Ordering::Relaxed);
    replace(&root);
    process.polls(&faraway, 3).await;
    let opened = process.follower.open(&tag(), Some(pinned), false).await;
    assert_eq!(moved_to(&opened), None, "nobody may know");
    faraway.secret.store(1, Ordering::Relaxed);
    let is_moved = |opened: &Opened<Found>| moved_to(opened).is_some();
    let moved = time::timeout(DOWNLOADED, process.until(Some(pinned), is_moved)).await;
    moved.expect("the new Secret is used");
}

#[tokio::test(start_paused = true)]
async fn corrected_secret_is_used_by_the_next_poll_for_signatures_that_were_denied() {
    let (_root, cache, faraway) = signed_ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.password.store(1, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    process.follower.open(&tag(), Some(pinned), true).await;
    // By now it is tried every quarter of an hour.
    time::sleep(12 * UNWISHED).await;
    next_resolve(&faraway).await;
    faraway.secret.store(1, Ordering::Relaxed);
    let asked = time::timeout(SOON, next_resolve(&faraway)).await;
    asked.expect("it is asked again by the next poll");
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test(start_paused = true)]
async fn secret_that_is_as_it_was_has_nothing_asked_for_again() {
    let (_root, cache, faraway) = ground();
    faraway.tells.store(true, Ordering::Relaxed);
    let mut process = Process::start(&faraway, cache.path());
    process.until_here(None).await;
    process.polls(&faraway, 2).await;
    faraway.resolves.store(0, Ordering::Relaxed);
    process.follower.doubt_secrets();
    process.polls(&faraway, 5).await;
    assert_eq!(faraway.resolves.load(Ordering::Relaxed), 0);
}
