//! Signatures are looked for while somebody waits for them, and kept.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use release::source::RELEASES_DIRECTORY;
use release::{SUMS, SUMS_SIGNATURE};
use tokio::time;

use super::super::memory::Wants;
use super::super::{SEARCHES, UNWISHED, Wanted};
use super::faraway::{ground, replace, sign, signed_ground};
use super::process::{Process, digest, evidence, evidence_folder};
use crate::sources::lock;
use crate::sources::opened::{Found, Opened, Signatures};
use crate::sources::tests::tag;

#[tokio::test]
async fn signatures_are_there_after_a_restart_while_the_source_is_down() {
    let (_root, cache, faraway) = signed_ground();
    let pinned = Process::verifying(&faraway, cache.path())
        .until_signatures(None, true)
        .await;
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    assert_eq!(process.until_signatures(Some(pinned), true).await, pinned);
    // Not good enough for whom it is now: what is in the way is told, and nothing is taken away.
    process.follower.refused(&tag(), pinned, "fleet");
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test]
async fn signatures_are_held_by_nobody_who_does_not_look_at_them() {
    let (_root, cache, faraway) = signed_ground();
    let mut process = Process::verifying(&faraway, cache.path());
    let opened = process.until(None, |opened| evidence(opened).is_some()).await;
    let shown = Arc::downgrade(&evidence(&opened).unwrap());
    assert!(shown.upgrade().is_some_and(|shown| !shown.is_empty()));
    drop(opened);
    assert!(shown.upgrade().is_none(), "it is held besides in the store");
}

#[tokio::test]
async fn evidence_that_could_not_be_read_is_asked_for_again() {
    let (_root, cache, faraway) = signed_ground();
    let mut process = Process::verifying(&faraway, cache.path());
    let pinned = process.until_signatures(None, true).await;
    for kept in fs::read_dir(evidence_folder(&cache)).unwrap() {
        fs::write(kept.unwrap().path(), "rot").unwrap();
    }
    let looks = faraway.looks.load(Ordering::Relaxed);
    process.until_signatures(Some(pinned), true).await;
    assert_eq!(faraway.looks.load(Ordering::Relaxed), looks + 1);
}

#[tokio::test(start_paused = true)]
async fn signatures_that_cannot_be_kept_are_looked_for_ever_more_seldom_and_that_is_told() {
    let (_root, cache, faraway) = signed_ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    fs::remove_dir_all(evidence_folder(&cache)).unwrap();
    fs::write(evidence_folder(&cache), "").unwrap();
    let mut process = Process::verifying(&faraway, cache.path());
    let told = |opened: &Opened<Found>| match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => message.contains("unable to write below"),
            _ => false,
        },
        _ => false,
    };
    process.until(Some(pinned), told).await;
    let looks = faraway.looks.load(Ordering::Relaxed);
    for _ in 0..100 {
        time::sleep(UNWISHED).await;
        process.follower.open(&tag(), Some(pinned), true).await;
    }
    let looks = faraway.looks.load(Ordering::Relaxed) - looks;
    assert!((10..=100).contains(&looks), "{looks} times in 500 minutes");
    fs::remove_file(evidence_folder(&cache)).unwrap();
    fs::create_dir(evidence_folder(&cache)).unwrap();
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test(start_paused = true)]
async fn signature_that_comes_later_is_found_by_the_polls_if_the_release_was_refused() {
    let (root, cache, faraway) = ground();
    let mut process = Process::verifying(&faraway, cache.path());
    let pinned = process.until_signatures(None, false).await;
    process.follower.refused(&tag(), pinned, "fleet");
    // However often there was nothing new.
    time::sleep(5 * UNWISHED).await;
    sign(&root);
    assert_eq!(process.until_signatures(Some(pinned), true).await, pinned);
}

#[tokio::test(start_paused = true)]
async fn signatures_that_cannot_be_looked_for_are_told_and_found_when_the_source_is_back() {
    let (_root, cache, faraway) = signed_ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    let told = |opened: &Opened<Found>| match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => message.contains("could not be looked for: "),
            _ => false,
        },
        _ => false,
    };
    process.until(Some(pinned), told).await;
    faraway.is_down.store(false, Ordering::Relaxed);
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test]
async fn signatures_of_few_releases_are_looked_for_at_once_however_many_are_wanted() {
    let (_root, cache, faraway) = ground();
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    let before = faraway.resolves.load(Ordering::Relaxed);
    let asked = || faraway.resolves.load(Ordering::Relaxed) - before;
    let few = u32::try_from(SEARCHES).unwrap();
    let closed = faraway.gate.write().await;
    let searches: Vec<_> = (0..3 * few)
        .map(|_| {
            let follower = Arc::clone(&process.follower);
            tokio::spawn(async move { follower.search_once(&tag(), pinned).await.is_ok() })
        })
        .collect();
    faraway.begun.acquire_many(few).await.unwrap().forget();
    // The others have not even begun.
    assert_eq!(asked(), u64::from(few));
    assert_eq!(faraway.begun.available_permits(), 0);
    drop(closed);
    for search in searches {
        assert!(search.await.unwrap());
    }
    assert_eq!(asked(), 3 * u64::from(few));
}

#[tokio::test(start_paused = true)]
async fn tag_that_moved_has_nothing_to_show_for_what_was_pinned() {
    let (root, cache, faraway) = ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    replace(&root);
    sign(&root);
    let mut process = Process::verifying(&faraway, cache.path());
    assert_eq!(process.until_signatures(Some(pinned), false).await, pinned);
}

#[tokio::test(start_paused = true)]
async fn signatures_that_the_source_no_longer_shows_still_count() {
    let (root, cache, faraway) = signed_ground();
    let pinned = Process::verifying(&faraway, cache.path())
        .until_signatures(None, true)
        .await;
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    fs::remove_file(directory.join(SUMS)).unwrap();
    fs::remove_file(directory.join(SUMS_SIGNATURE)).unwrap();
    // For somebody else they are not good enough, so that others are looked for.
    let mut process = Process::verifying(&faraway, cache.path());
    process.until_signatures(Some(pinned), true).await;
    process.follower.refused(&tag(), pinned, "fleet");
    let looks = faraway.looks.load(Ordering::Relaxed);
    for _ in 0..100 {
        time::sleep(UNWISHED).await;
    }
    assert!(
        faraway.looks.load(Ordering::Relaxed) >= looks + 2,
        "it was looked for others"
    );
    process.until_signatures(Some(pinned), true).await;
    // And whoever trusts them again has nothing looked for.
    process.follower.accepted(&tag(), pinned, "fleet");
    assert!(!lock(&process.follower.memory).is_refused(&tag(), pinned));
}

#[tokio::test(start_paused = true)]
async fn signature_that_one_namespace_waits_for_is_found_although_another_is_content_and_takes_nothing_from_that() {
    let (root, cache, faraway) = signed_ground();
    let mut process = Process::verifying(&faraway, cache.path());
    let opened = process.until(None, |opened| evidence(opened).is_some()).await;
    let (pinned, first) = (digest(&opened).unwrap(), evidence(&opened).unwrap());
    process.follower.refused(&tag(), pinned, "waits");
    process.follower.accepted(&tag(), pinned, "content");
    // It takes the place of the other one.
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    fs::write(directory.join(SUMS_SIGNATURE), "BBBB").unwrap();
    let is_other = |opened: &Opened<Found>| evidence(opened).is_some_and(|evidence| evidence != first);
    // The clock runs ahead of the disk.
    let found = time::timeout(10_000 * UNWISHED, process.until(Some(pinned), is_other));
    let both = evidence(&found.await.expect("it is found by a poll")).unwrap();
    assert!(both.has_all_of(&first), "{both:?}");
    // Also on the disk.
    drop(process);
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    let kept = process.until(Some(pinned), |opened| evidence(opened).is_some()).await;
    assert_eq!(evidence(&kept), Some(both));
}

#[tokio::test(start_paused = true)]
async fn signed_release_is_not_called_unsigned_because_what_is_under_its_tag_could_not_be_downloaded() {
    let (_root, cache, faraway) = signed_ground();
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    // Nobody knows any more what the source, which tells no digests, has under the tag.
    for identity in fs::read_dir(cache.path().join("identities")).unwrap() {
        fs::remove_file(identity.unwrap().path()).unwrap();
    }
    faraway.gives_nothing.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    let is_decided = |opened: &Opened<Found>| match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => message.contains("could not be looked for"),
            Signatures::Shown(_) => true,
            Signatures::Unwanted => false,
        },
        _ => false,
    };
    let opened = process.until(Some(pinned), is_decided).await;
    assert_eq!(
        evidence(&opened),
        None,
        "nobody has looked: it is said to have no signature"
    );
    faraway.gives_nothing.store(false, Ordering::Relaxed);
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test(start_paused = true)]
async fn source_that_moves_a_tag_again_and_again_while_its_signature_is_awaited_fills_no_memory() {
    const MOVES: usize = 12;
    let (root, cache, faraway) = ground();
    let mut process = Process::verifying(&faraway, cache.path());
    let mut last = process.until_signatures(None, false).await;
    process.follower.refused(&tag(), last, "fleet");
    let mut all = vec![last];
    let notes = root
        .path()
        .join(RELEASES_DIRECTORY)
        .join(tag().to_string())
        .join("notes.md");
    for number in 0..MOVES {
        fs::write(&notes, format!("Other bytes {number}")).unwrap();
        let is_other = |opened: &Opened<Found>| digest(opened).is_some_and(|digest| digest != last);
        process.until(None, is_other).await;
        last = process.until_signatures(None, false).await;
        process.follower.refused(&tag(), last, "fleet");
        all.push(last);
        let wants = Wants {
            pinned: HashSet::new(),
            verifying: HashSet::from(["fleet".to_owned()]),
        };
        let wanted = Wanted::from([(tag(), wants)]);
        process.follower.retain(&wanted, &HashMap::new());
    }
    let memory = lock(&process.follower.memory);
    let kept = all
        .iter()
        .filter(|digest| memory.here(&tag(), **digest).is_some())
        .count();
    assert!(
        kept <= 4,
        "{kept} of {} releases under one tag are remembered",
        all.len()
    );
}

#[tokio::test(start_paused = true)]
async fn signature_by_a_new_key_is_looked_for_at_once_when_the_old_key_does_not_count_any_more() {
    let (root, cache, faraway) = signed_ground();
    let mut process = Process::verifying(&faraway, cache.path());
    let opened = process.until(None, |opened| evidence(opened).is_some()).await;
    let (pinned, first) = (digest(&opened).unwrap(), evidence(&opened).unwrap());
    process.follower.accepted(&tag(), pinned, "fleet");
    // As the documentation says: sign what is in use with the new key, wait, and take the old one out.
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    fs::write(directory.join(SUMS_SIGNATURE), "BBBB").unwrap();
    process.polls(&faraway, 3).await;
    let is_searching = || lock(&process.follower.memory).is_searching(&tag());
    assert!(!is_searching(), "what is good is not looked for");
    process.follower.refused(&tag(), pinned, "fleet");
    assert!(is_searching(), "it waits for a poll, and each looks at two releases");
    loop {
        let opened = process.follower.open(&tag(), Some(pinned), true).await;
        if evidence(&opened).is_some_and(|evidence| evidence != first) {
            break;
        }
        process.changes.recv().await.unwrap();
    }
}
