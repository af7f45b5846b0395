//! The follower of a directory against a real one.

use std::collections::BTreeSet;
use std::fs;
use std::future::pending;

use release::source::RELEASES_DIRECTORY;
use tempfile::TempDir;

use super::*;
use crate::sources::tests::{root, tag};

fn follower(root: &TempDir) -> DirectoryFollower {
    let (changes, _) = mpsc::unbounded_channel();
    DirectoryFollower::new(root.path(), changes)
}

#[tokio::test]
async fn what_was_opened_before_a_change_is_not_remembered_after_it() {
    let root = root();
    let follower = follower(&root);
    let Known::Forgotten { generation } = follower.known(&tag()) else {
        unreachable!("nothing was opened");
    };
    let (opened, _) = follower.read(&tag()).await;
    follower.forget(Change::Tags(BTreeSet::from([tag()]))).await;
    assert!(!follower.keep(generation, &tag(), &opened));
    assert!(matches!(follower.known(&tag()), Known::Forgotten { generation: now } if now > generation));
}

#[tokio::test]
async fn refusal_of_a_hostile_document_is_short_and_says_what_is_wrong_and_where() {
    let root = root();
    let metadata = root
        .path()
        .join(RELEASES_DIRECTORY)
        .join(tag().to_string())
        .join("metadata.yaml");
    fs::write(&metadata, format!("versions: {}\n", "ü".repeat(1 << 14))).unwrap();
    let (opened, _) = follower(&root).read(&tag()).await;
    let Opened::Broken { message } = opened else {
        panic!("it was read");
    };
    assert!(
        message.contains("metadata.yaml") && message.contains("at line"),
        "{message}"
    );
    assert!(
        message.len() <= crds::conditions::MESSAGE_BYTES,
        "{} bytes: {message}",
        message.len()
    );
}

#[tokio::test]
async fn storage_that_is_away_changes_nothing_that_was_read_from_it() {
    let root = root();
    let follower = follower(&root);
    let (opened, _) = follower.read(&tag()).await;
    assert!(follower.keep(0, &tag(), &opened));
    fs::rename(root.path().join(RELEASES_DIRECTORY), root.path().join("away")).unwrap();
    assert_eq!(follower.forget(Change::Everything).await, BTreeSet::new());
    assert!(matches!(follower.known(&tag()), Known::Opened(Opened::Ready { .. })));
}

#[tokio::test]
async fn storage_that_hangs_keeps_nobody_and_its_releases_are_told_of_when_it_answers() {
    let root = root();
    let (changes, mut told) = mpsc::unbounded_channel();
    let follower = Arc::new(DirectoryFollower::new(root.path(), changes));
    let other = "docker-other-1-34-v1".parse().unwrap();
    let hanging = follower.readings.ask(&other, "", Duration::ZERO, |_| pending());
    assert!(hanging.await.is_none());

    let opened = follower.open(&tag()).await;
    assert!(matches!(opened, Opened::Missing { message, .. } if message.contains("is slow to answer")));
    let change = told.recv().await.unwrap();
    assert_eq!(change.tags, BTreeSet::from([tag()]));
    assert!(matches!(follower.open(&tag()).await, Opened::Ready { .. }));
}
