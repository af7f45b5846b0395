//! What a source that fails costs, and how soon it is asked again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crds::names::ReleaseTag;
use jiff::SignedDuration;
use planning::outage::Outage;
use planning::stack::Listing;
use tokio::time::{self, Instant};

use super::super::UNWISHED;
use super::faraway::{ground, next_resolve, signed_ground};
use super::process::{Process, digest, waiting, wish};
use crate::sources::lock;
use crate::sources::opened::{Found, Opened};
use crate::sources::tests::tag;

#[tokio::test(start_paused = true)]
async fn outage_is_told_with_its_beginning_and_ends_by_itself() {
    let (_root, cache, faraway) = ground();
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    faraway.is_down.store(true, Ordering::Relaxed);
    let outage = |listing: &Listing| match listing {
        Listing::Unavailable { outage, .. } => outage.clone(),
        _ => None,
    };
    let first = process.until_listing(|listing| outage(listing).is_some()).await;
    let later = process
        .until_listing(|listing| outage(listing).is_some_and(|outage| outage.attempts > 8))
        .await;
    let (first, later) = (outage(&first).unwrap(), outage(&later).unwrap());
    assert_eq!((first.attempts, first.since), (1, later.since));
    assert_eq!(
        digest(&process.follower.open(&tag(), Some(pinned), false).await),
        Some(pinned)
    );
    faraway.is_down.store(false, Ordering::Relaxed);
    process
        .until_listing(|listing| matches!(listing, Listing::Known { .. }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn download_that_does_not_come_is_told_with_its_beginning_and_ends_by_itself() {
    let (_root, cache, faraway) = ground();
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::start(&faraway, cache.path());
    let outage = |opened: &Opened<Found>| match opened {
        Opened::Missing { outage, .. } => outage.clone(),
        _ => None,
    };
    let first = process.until(None, |opened| outage(opened).is_some()).await;
    let is_late = |opened: &Opened<Found>| outage(opened).is_some_and(|outage| outage.attempts > 8);
    let later = process.until(None, is_late).await;
    let (first, later) = (outage(&first).unwrap(), outage(&later).unwrap());
    assert_eq!((first.attempts, first.since), (1, later.since));
    let wait = |outage: &Outage| outage.next.unwrap().duration_since(outage.since);
    assert!(wait(&first) >= SignedDuration::from_secs(10), "{first:?}");
    assert!(wait(&later) >= SignedDuration::from_mins(15), "{later:?}");
    faraway.is_down.store(false, Ordering::Relaxed);
    process.until_here(None).await;
}

#[tokio::test(start_paused = true)]
async fn download_that_failed_is_tried_again_at_once_by_request_of_its_release_or_of_a_stack() {
    let (_root, cache, faraway) = ground();
    let mut process = waiting(&faraway, &cache).await;
    let other = "docker-harbor-1-34-v2".parse().unwrap();
    let ask_for = |tag: &ReleaseTag| process.follower.request(tag);
    let ask_as = |stack| process.follower.wish(stack, wish(UNWISHED, Some("now")));
    let asks: [(&dyn Fn(), bool); 6] = [
        (&|| ask_for(&tag()), true),
        (&|| ask_for(&other), false),
        (&|| ask_as("fleet/harbor"), true),
        // It was answered.
        (&|| ask_as("fleet/harbor"), false),
        (&|| ask_as("fleet/ferry"), true),
        (&|| ask_for(&tag()), true),
    ];
    for (number, (ask, is_heard)) in asks.into_iter().enumerate() {
        let asked = Instant::now();
        ask();
        let waited = next_resolve(&faraway).await - asked;
        assert_eq!(waited < Duration::from_secs(1), is_heard, "ask {number}: {waited:?}");
    }
    faraway.is_down.store(false, Ordering::Relaxed);
    process.follower.request(&tag());
    let asked = Instant::now();
    process.until_here(None).await;
    let waited = lock(&faraway.resolved_at).unwrap() - asked;
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn time_that_the_source_named_is_waited_for_whoever_asks() {
    const NAMED: Duration = Duration::from_mins(40);
    let (_root, cache, faraway) = ground();
    let process = waiting(&faraway, &cache).await;
    *lock(&faraway.limit) = Some(NAMED);
    faraway.is_down.store(false, Ordering::Relaxed);
    process.follower.request(&tag());
    let told = next_resolve(&faraway).await;
    for minute in 0..30 {
        process.follower.request(&tag());
        process
            .follower
            .wish(&format!("fleet/{minute}"), wish(UNWISHED, Some("now")));
        time::sleep(Duration::from_mins(1)).await;
    }
    let waited = next_resolve(&faraway).await - told;
    // Without a request it is a little more, so that not all come together.
    assert!((NAMED..NAMED + Duration::from_secs(1)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn search_for_signatures_that_failed_is_tried_again_at_once_by_request() {
    let (_root, cache, faraway) = signed_ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.is_down.store(true, Ordering::Relaxed);
    let process = Process::verifying(&faraway, cache.path());
    process.follower.open(&tag(), Some(pinned), true).await;
    // By now it is tried every quarter of an hour.
    time::sleep(12 * UNWISHED).await;
    next_resolve(&faraway).await;
    let asked = Instant::now();
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    let waited = next_resolve(&faraway).await - asked;
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}
