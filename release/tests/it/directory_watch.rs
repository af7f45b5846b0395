//! Every way in which a release can appear or change is told; reading is not.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use release::{
    Release,
    source::{Change, DirectoryWatch, Notifications},
};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::fixture::{TAG, good_release, tag, write_release};

const HOUR: Duration = Duration::from_hours(1);

async fn watch(root: &Path) -> DirectoryWatch {
    DirectoryWatch::new(root, HOUR, &Notifications::default())
        .await
        .expect("an absolute path")
}

/// The next change; the deadline only ends a test that has failed.
async fn next(watch: &mut DirectoryWatch) -> Change {
    timeout(Duration::from_secs(30), watch.changed())
        .await
        .expect("the change is told")
}

fn only(text: &str) -> Change {
    Change::Tags(BTreeSet::from([tag(text)]))
}

/// Waits until this is told. A slow machine may tell one change in two answers.
async fn until(watch: &mut DirectoryWatch, change: &Change) {
    while next(watch).await != *change {}
}

/// An empty releases directory and its watch.
async fn watched() -> (TempDir, DirectoryWatch) {
    let root = TempDir::new().unwrap();
    fs::create_dir(root.path().join("cluster-stacks")).unwrap();
    let watch = watch(root.path()).await;
    (root, watch)
}

#[tokio::test]
async fn release_that_is_renamed_into_place_is_told() {
    let (root, mut watch) = watched().await;
    let releases = root.path().join("cluster-stacks");
    write_release(&releases.join(".copying"), &tag(TAG));
    fs::rename(releases.join(".copying"), releases.join(TAG)).unwrap();
    assert_eq!(next(&mut watch).await, only(TAG));
}

#[tokio::test]
async fn release_that_is_copied_file_by_file_is_told_until_it_is_complete() {
    let (root, mut watch) = watched().await;
    let elsewhere = TempDir::new().unwrap();
    let prepared = good_release(elsewhere.path(), TAG);
    let directory = root.path().join("cluster-stacks").join(TAG);
    fs::create_dir(&directory).unwrap();
    for file in fs::read_dir(prepared).unwrap() {
        Release::open(&directory, &tag(TAG)).expect_err("files are missing");
        assert_eq!(next(&mut watch).await, only(TAG));
        let file = file.unwrap().path();
        fs::copy(&file, directory.join(file.file_name().unwrap())).unwrap();
    }
    assert_eq!(next(&mut watch).await, only(TAG));
    Release::open(&directory, &tag(TAG)).expect("all files are there");
}

#[tokio::test]
async fn change_and_removal_of_a_release_are_told() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let mut watch = watch(root.path()).await;
    fs::write(directory.join("metadata.yaml"), "").unwrap();
    assert_eq!(next(&mut watch).await, only(TAG));
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(next(&mut watch).await, only(TAG));
}

#[tokio::test]
async fn burst_of_changes_is_few_answers() {
    let (root, mut watch) = watched().await;
    let tags: BTreeSet<_> = (1..=50)
        .map(|major| tag(&format!("docker-harbor-1-34-v{major}")))
        .collect();
    for tag in &tags {
        write_release(&root.path().join("cluster-stacks").join(tag.to_string()), tag);
    }
    let (mut told, mut answers) = (BTreeSet::new(), 0);
    while told != tags {
        let Change::Tags(more) = next(&mut watch).await else {
            panic!("nothing but releases changed")
        };
        told.extend(more);
        answers += 1;
    }
    assert!(answers < 5, "{answers} answers to {} changes", tags.len());
}

#[tokio::test]
async fn root_that_appears_is_told_and_watched() {
    let parent = TempDir::new().unwrap();
    let root = parent.path().join("deep").join("root");
    let mut watch = watch(&root).await;
    good_release(&root, TAG);
    until(&mut watch, &Change::Everything).await;
    good_release(&root, "docker-harbor-1-34-v2");
    until(&mut watch, &only("docker-harbor-1-34-v2")).await;
}

#[tokio::test]
async fn root_that_is_replaced_is_told_and_watched() {
    let parent = TempDir::new().unwrap();
    let (root, other) = (parent.path().join("root"), parent.path().join("other"));
    good_release(&root, TAG);
    good_release(&other, "docker-harbor-1-34-v2");
    let mut watch = watch(&root).await;
    fs::rename(&root, parent.path().join("old")).unwrap();
    fs::rename(&other, &root).unwrap();
    until(&mut watch, &Change::Everything).await;
    fs::write(root.join("cluster-stacks/docker-harbor-1-34-v2/metadata.yaml"), "").unwrap();
    until(&mut watch, &only("docker-harbor-1-34-v2")).await;

    fs::remove_dir_all(&root).unwrap();
    until(&mut watch, &Change::Everything).await;
    good_release(&root, TAG);
    until(&mut watch, &Change::Everything).await;
}

#[tokio::test]
async fn reading_and_names_that_are_no_tags_are_not_told() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let mut watch = watch(root.path()).await;
    Release::open(&directory, &tag(TAG)).unwrap();
    fs::write(root.path().join("cluster-stacks/README"), "").unwrap();
    // Notifications keep their order: what comes first after these is this.
    good_release(root.path(), "docker-harbor-1-34-v2");
    assert_eq!(next(&mut watch).await, only("docker-harbor-1-34-v2"));
}

#[tokio::test]
async fn change_that_was_not_waited_for_is_told_later() {
    let (root, mut watch) = watched().await;
    good_release(root.path(), TAG);
    // The caller gives up as soon as the watch begins to wait for quiet.
    let _ = timeout(Duration::from_millis(20), watch.changed()).await;
    assert_eq!(next(&mut watch).await, only(TAG));
}

#[tokio::test(start_paused = true)]
async fn everything_is_told_in_the_interval() {
    let (_root, mut watch) = watched().await;
    assert_eq!(timeout(HOUR * 2, watch.changed()).await, Ok(Change::Everything));
}
