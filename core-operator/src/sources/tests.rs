//! The follower against a real directory.

use std::fs;

use release::pack::{self, Versioning};
use tempfile::TempDir;

use super::*;

fn tag() -> ReleaseTag {
    "docker-harbor-1-34-v1".parse().unwrap()
}

/// A root with one release.
fn root() -> TempDir {
    let root = TempDir::new().unwrap();
    let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1");
    let versioning = Versioning::Given(tag().version().clone());
    pack::create(&stack, &root.path().join(RELEASES_DIRECTORY), &versioning).unwrap();
    root
}

fn digest(opened: &Opened<Arc<Release>>) -> Option<Digest> {
    match opened {
        Opened::Ready { files, .. } => Some(files.digest),
        Opened::Missing { .. } | Opened::Broken { .. } => None,
    }
}

#[tokio::test]
async fn other_bytes_under_the_same_tag_are_noticed_when_the_whole_directory_is_replaced() {
    let (root, other) = (root(), root());
    let prepared = other.path().join(RELEASES_DIRECTORY);
    fs::write(prepared.join(tag().to_string()).join("notes.md"), "Other bytes").unwrap();
    let (sources, mut changes) = Sources::new(
        root.path().to_owned(),
        Duration::from_hours(1),
        CancellationToken::new(),
    );
    // After the first look there is no reason to forget but the one of this test.
    sources.listing(None);
    changes.recv().await.unwrap();
    let before = digest(&sources.open(None, &tag()).await);
    assert!(before.is_some());

    let releases = root.path().join(RELEASES_DIRECTORY);
    fs::rename(&releases, root.path().join("old")).unwrap();
    fs::rename(&prepared, &releases).unwrap();
    while !changes.recv().await.unwrap().tags.contains(&tag()) {}
    let after = digest(&sources.open(None, &tag()).await);
    assert!(after.is_some());
    assert_ne!(after, before);
}

#[tokio::test]
async fn what_was_opened_before_a_change_is_not_remembered_after_it() {
    let root = root();
    let follower = Follower::new(root.path());
    let Known::Forgotten { generation } = follower.known(&tag()) else {
        unreachable!("nothing was opened");
    };
    let (opened, _) = follower.open(&tag()).await;
    follower.forget(Change::Tags(BTreeSet::from([tag()]))).await;
    assert!(!follower.keep(generation, &tag(), &opened));
    assert!(matches!(follower.known(&tag()), Known::Forgotten { generation: now } if now > generation));
}

#[tokio::test]
async fn storage_that_is_away_changes_nothing_that_was_read_from_it() {
    let root = root();
    let follower = Follower::new(root.path());
    let (opened, _) = follower.open(&tag()).await;
    assert!(follower.keep(0, &tag(), &opened));
    fs::rename(root.path().join(RELEASES_DIRECTORY), root.path().join("away")).unwrap();
    assert_eq!(follower.forget(Change::Everything).await, BTreeSet::new());
    assert!(matches!(follower.known(&tag()), Known::Opened(Opened::Ready { .. })));
}

#[tokio::test]
async fn source_that_nobody_names_any_more_is_not_followed() {
    let root = TempDir::new().unwrap();
    let (sources, _changes) = Sources::new(
        root.path().to_owned(),
        Duration::from_hours(1),
        CancellationToken::new(),
    );
    let [dropped, kept] = ["blue", "green"].map(|path| {
        Some(Source::Directory(crds::source::DirectorySource {
            path: path.to_owned(),
        }))
    });
    for source in [None, dropped.as_ref(), kept.as_ref()] {
        sources.listing(source);
    }
    let follower = Arc::downgrade(&sources.follower(dropped.as_ref()).unwrap());
    sources.follow_only([kept.as_ref()].into_iter());
    let left: BTreeSet<PathBuf> = lock(&sources.followers).keys().cloned().collect();
    assert_eq!(
        left,
        BTreeSet::from([root.path().to_owned(), root.path().join("green")])
    );
    // Its task held it too.
    while follower.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_source_is_named_by_what_it_is() {
    let (sources, _changes) = Sources::new(
        PathBuf::from("/releases"),
        Duration::from_hours(1),
        CancellationToken::new(),
    );
    let described = |json| {
        let source: Source = serde_json::from_value(json).unwrap();
        sources.described(Some(&source))
    };
    assert_eq!(sources.described(None), "directory /releases/cluster-stacks");
    let below = serde_json::json!({"directory": {"path": "teams/harbor"}});
    assert_eq!(described(below), "directory /releases/teams/harbor/cluster-stacks");
    let elsewhere = serde_json::json!({"github": {"owner": "them", "repository": "stacks"}});
    assert_eq!(described(elsewhere), "repository them/stacks");
}
