//! What is shown of a directory to those who fetch from it.

use std::{fs, os::unix::fs::symlink, sync::Arc};

use futures::TryStreamExt;
use provider_plugin::{ContentKey, ContentPlan, Created, ImageId, ImageStore};

use super::lab::{Lab, operate, send, sha256};
use crate::FileStore;

const NAME: &str = "node image-v2";

async fn names(store: &FileStore) -> Vec<String> {
    let published = store.published().await.unwrap().into_iter();
    published.map(|image| image.name).collect()
}

#[tokio::test]
async fn an_image_is_shown_from_when_it_is_published_until_it_is_deleted() {
    let lab = Lab::new();
    let (store, image, source) = (lab.open(), lab.spec(NAME), Arc::new(lab.source()));
    store.create(&image, 1).await.unwrap();
    send(&store, &image, 1, &source, ContentPlan::default()).await.unwrap();
    assert!(names(&store).await.is_empty() && store.open(NAME).await.unwrap().is_none());
    operate(&store, &image, &source).await.unwrap();
    assert_eq!(names(&store).await, [NAME]);
    let opened = store.open(NAME).await.unwrap().unwrap();
    assert_eq!(opened.image.bytes, lab.bytes.len() as u64);
    assert_eq!(opened.image.sha256, sha256(&lab.bytes));
    let (from, until) = (7, opened.image.bytes - 3);
    let part: Vec<_> = opened.read(from, until).try_collect().await.unwrap();
    assert_eq!(part.concat(), lab.bytes[7..lab.bytes.len() - 3]);
    let owned = &store.owned(&image.subject.owner).await.unwrap()[0];
    store.discard(&owned.id, &owned.marked()).await.unwrap();
    assert!(store.open(NAME).await.unwrap().is_none() && names(&store).await.is_empty());
    let whole: Vec<_> = opened.read(0, opened.image.bytes).try_collect().await.unwrap();
    assert!(whole.concat() == lab.bytes, "who reads it already has it to its end");
}

#[tokio::test]
async fn an_image_that_was_given_away_is_still_shown() {
    let lab = Lab::new();
    let (store, image) = (lab.open(), lab.spec(NAME));
    operate(&store, &image, &Arc::new(lab.source())).await.unwrap();
    let id = &store.owned(&image.subject.owner).await.unwrap()[0].id;
    store.relinquish(id, &image.subject.owner, None).await.unwrap();
    assert_eq!(
        store.open(NAME).await.unwrap().unwrap().image.sha256,
        sha256(&lab.bytes)
    );
}

#[tokio::test]
async fn the_digest_is_that_of_the_bytes_also_while_another_image_takes_the_name() {
    let lab = Lab::new();
    let (store, old, source) = (lab.open(), lab.spec(NAME), Arc::new(lab.source()));
    operate(&store, &old, &source).await.unwrap();
    let mut new = old.clone();
    new.subject.key = ContentKey::parse(&"f".repeat(64)).unwrap();
    assert!(matches!(store.create(&new, 2).await.unwrap(), Created::New(_)));
    send(&store, &new, 2, &source, ContentPlan::default()).await.unwrap();
    // As a publication that was cut off leaves it: the digest of the new image beside the old one.
    fs::write(
        lab.path().join(format!("{NAME}.sha256")),
        format!("{}  {NAME}\n", "0".repeat(64)),
    )
    .unwrap();
    assert_eq!(
        store.open(NAME).await.unwrap().unwrap().image.sha256,
        sha256(&lab.bytes)
    );
    store
        .publish(&ImageId("ffffffffffffffff.2".to_owned()), &new, "sha512:11")
        .await
        .unwrap();
    assert_eq!(names(&store).await, [NAME]);
}

#[tokio::test]
async fn nothing_else_that_lies_in_the_directory_is_shown() {
    let lab = Lab::new();
    let (store, image) = (lab.open(), lab.spec(NAME));
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    operate(&store, &image, &Arc::new(lab.source())).await.unwrap();
    let beside = |name: &str| {
        let sums = format!("{}  {name}\n", "0".repeat(64));
        fs::write(lab.path().join(format!("{name}.sha256")), sums).unwrap();
    };
    fs::write(lab.path().join("notes.txt"), "somebody's").unwrap();
    fs::create_dir(lab.path().join("folder")).unwrap();
    symlink(outside.path().join("secret"), lab.path().join("link")).unwrap();
    for name in ["folder", "link"] {
        beside(name);
    }
    fs::write(lab.path().join("odd"), "somebody's").unwrap();
    fs::write(lab.path().join("odd.sha256"), "no digest").unwrap();
    assert_eq!(names(&store).await, [NAME]);
    let stem = fs::read_dir(lab.path().join(".parts"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let stem = stem.file_name().into_string().unwrap();
    let sums = format!("{NAME}.sha256");
    for name in [
        "",
        ".",
        "..",
        ".parts",
        "notes.txt",
        "folder",
        "link",
        "odd",
        &sums,
        &format!(".parts/{stem}"),
        "../secret",
        &outside.path().join("secret").display().to_string(),
        "node\0image",
    ] {
        assert!(store.open(name).await.unwrap().is_none(), "{name}");
    }
}
