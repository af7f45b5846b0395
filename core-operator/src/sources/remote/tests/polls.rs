//! When a source is asked what it has, and whose questions that answers.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use planning::polling::next_poll;
use release::source::RELEASES_DIRECTORY;
use tempfile::TempDir;
use tokio::time::{self, Instant};

use super::super::{UNWISHED, Wanted, spread};
use super::faraway::{Faraway, ground, neighbour, next_resolve, replace_as};
use super::process::{DOWNLOADED, Process, digest, moved_to, wish};
use crate::sources::lock;
use crate::sources::tests::{pack_as, root, tag};

#[tokio::test(start_paused = true)]
async fn source_is_asked_as_often_as_the_most_impatient_stack_wants() {
    let (_root, cache, faraway) = ground();
    let process = Process::start(&faraway, cache.path());
    let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
    let wishes = HashMap::from([
        ("fleet/slow".to_owned(), wish(hour, None)),
        ("fleet/quick".to_owned(), wish(minute, None)),
    ]);
    for (stack, wish) in wishes.clone() {
        process.follower.wish(&stack, wish);
    }
    let asked_in = async |time: Duration| {
        let before = faraway.lists.load(Ordering::Relaxed);
        time::sleep(time).await;
        faraway.lists.load(Ordering::Relaxed) - before
    };
    asked_in(10 * minute).await;
    let often = asked_in(hour).await;
    assert!((54..=60).contains(&often), "{often}");
    let slow = HashMap::from([("fleet/slow".to_owned(), wish(hour, None))]);
    process.follower.retain(&Wanted::new(), &slow);
    asked_in(2 * minute).await;
    let rarely = asked_in(10 * hour).await;
    assert!((9..=10).contains(&rarely), "{rarely}");
}

#[tokio::test(start_paused = true)]
async fn tag_that_its_source_refuses_hides_none_of_its_neighbours() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    pack_as(&root.path().join(RELEASES_DIRECTORY), &neighbour());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    process.until_here(None).await;
    let pinned = loop {
        if let Some(digest) = digest(&process.follower.open(&neighbour(), None, false).await) {
            break digest;
        }
        process.changes.recv().await.unwrap();
    };
    *lock(&faraway.denied) = Some(tag());
    replace_as(&root, &neighbour());
    let is_told = async {
        while moved_to(&process.follower.open(&neighbour(), Some(pinned), false).await).is_none() {
            process.changes.recv().await.unwrap();
        }
    };
    time::timeout(DOWNLOADED, is_told).await.expect("it is compared");
}

#[tokio::test(start_paused = true)]
async fn request_that_a_silent_source_did_not_answer_is_asked_by_the_next_poll_and_then_answered() {
    let (_root, cache, faraway) = ground();
    // So that no poll has a reason of its own.
    faraway.tells.store(true, Ordering::Relaxed);
    let mut process = Process::start(&faraway, cache.path());
    process.until_here(None).await;
    process.polls(&faraway, 2).await;
    faraway.silence.store(1, Ordering::Relaxed);
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    next_resolve(&faraway).await;
    next_resolve(&faraway).await;
    assert_eq!(faraway.silence.load(Ordering::Relaxed), 0);
    faraway.resolves.store(0, Ordering::Relaxed);
    process.polls(&faraway, 5).await;
    assert_eq!(faraway.resolves.load(Ordering::Relaxed), 0, "it was answered");
}

#[tokio::test(start_paused = true)]
async fn request_that_comes_while_tags_are_compared_is_answered_when_that_ends() {
    let (_root, cache, faraway) = ground();
    let mut process = Process::verifying(&faraway, cache.path());
    let pinned = process.until_signatures(None, false).await;
    process.follower.refused(&tag(), pinned, "fleet");
    let closed = faraway.gate.write().await;
    while faraway.begun.try_acquire().is_ok_and(|begun| {
        begun.forget();
        true
    }) {}
    faraway.begun.acquire().await.unwrap().forget();
    // The comparison waits for signatures.
    let polls = faraway.lists.load(Ordering::Relaxed);
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    process.polls(&faraway, 1).await;
    assert!(faraway.lists.load(Ordering::Relaxed) > polls, "no list waits for it");
    let resolves = faraway.resolves.load(Ordering::Relaxed);
    drop(closed);
    let opened = Instant::now();
    while faraway.resolves.load(Ordering::Relaxed) == resolves {
        time::sleep(Duration::from_millis(1)).await;
    }
    assert!(opened.elapsed() < UNWISHED / 2, "{:?}", opened.elapsed());
}

#[test]
fn sources_of_one_interval_are_asked_at_different_instants_and_each_at_changing_distances() {
    const INTERVAL: Duration = Duration::from_mins(5);
    let wait = |name: &str, turn| next_poll(INTERVAL, 0, None, spread(name, turn));
    let names: Vec<String> = (0..1000)
        .map(|number| format!("repository team-{number}/stacks"))
        .collect();
    for name in &names[..10] {
        let waits: HashSet<Duration> = (0..100).map(|turn| wait(name, turn)).collect();
        assert!(waits.len() > 80, "{name} is asked at {} distances", waits.len());
        assert!(waits.iter().all(|wait| (INTERVAL..INTERVAL * 11 / 10).contains(wait)));
    }
    // All begin together. From the first turn on they are spread over a tenth of the interval, whatever the turn.
    let mut instants = vec![Duration::ZERO; names.len()];
    for turn in 0..20 {
        for (instant, name) in instants.iter_mut().zip(&names) {
            *instant += wait(name, turn);
        }
        let first = instants.iter().min().copied().unwrap();
        let mut each_second = HashMap::<u64, usize>::new();
        for instant in &instants {
            *each_second.entry(instant.saturating_sub(first).as_secs()).or_default() += 1;
        }
        let most = each_second.values().max().copied().unwrap();
        assert!(most < 80, "{most} of a thousand in one second of turn {turn}");
    }
}
