//! What a store finds after a restart, and what it does with what is not any more what it was.

use std::{fs, os::unix::fs::symlink, path::Path};

use release::{
    Digest, ErrorClass,
    store::{Store, StoreError, StoreOptions},
};
use tempfile::TempDir;

use crate::{
    fixture::{TAG, admitted, chain, tag},
    scripted_source::{Promise, ScriptedSource},
    store_downloads::{store, there, unfinished},
};

const CLASS: &str = "docker-harbor-1-34-cluster-class-v1.tgz";

/// A store in which the good release lies, as the next process finds it after `harm`.
async fn after(harm: impl FnOnce(&Path)) -> (TempDir, Store, Digest) {
    let root = TempDir::new().unwrap();
    let source = ScriptedSource::new(Promise::Everything);
    store(root.path())
        .await
        .get(&source.resolved(), &source.origin())
        .await
        .unwrap();
    harm(&root.path().join("sha256").join(source.digest().hex()));
    let next = store(root.path()).await;
    (root, next, source.digest())
}

#[tokio::test]
async fn restart_and_outage_get_by_with_what_is_there() {
    let root = TempDir::new().unwrap();
    for promise in [Promise::Everything, Promise::Nothing] {
        let version = if promise == Promise::Everything {
            TAG
        } else {
            "docker-harbor-1-34-v2"
        };
        let source = ScriptedSource::of(version, promise);
        let kept = store(root.path())
            .await
            .get(&source.resolved(), &source.origin())
            .await
            .unwrap();
        let fetches = source.fetches();

        let next = store(root.path()).await;
        let found = next.find(&tag(version), kept.digest).await.unwrap().unwrap();
        assert_eq!(
            admitted(&found).read_class_chart().unwrap(),
            source.files()[&found.charts.as_ref().unwrap().class_chart.name]
        );
        next.get(&source.resolved(), &source.origin()).await.unwrap();
        assert_eq!(source.fetches(), fetches, "{promise:?}");
        let other = next.get(&source.resolved(), &source.named("other")).await.unwrap();
        assert_eq!(other.digest, kept.digest);
        // What one source calls its files says nothing about those of another.
        let expected = if promise == Promise::Everything {
            fetches
        } else {
            2 * fetches
        };
        assert_eq!(source.fetches(), expected, "{promise:?}");
    }
    assert_eq!(there(root.path()).len(), 2);
}

#[tokio::test]
async fn release_is_held_against_its_digest_once_after_a_restart() {
    let (_root, store, digest) = after(|_| {}).await;
    assert_eq!((store.usage().rehashes, store.usage().releases), (0, 1));
    for _ in 0..3 {
        store.find(&tag(TAG), digest).await.unwrap().unwrap();
    }
    assert_eq!((store.usage().rehashes, store.usage().corrupt), (1, 0));
}

#[tokio::test]
async fn release_that_is_not_what_it_was_is_removed_counted_and_downloaded_again() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 8] = [
        ("flipped bit", |directory| {
            let mut chart = fs::read(directory.join(CLASS)).unwrap();
            let middle = chart.len() / 2;
            chart[middle] ^= 1;
            fs::write(directory.join(CLASS), chart).unwrap();
        }),
        ("truncated", |directory| {
            let file = fs::File::options().write(true).open(directory.join(CLASS)).unwrap();
            file.set_len(10).unwrap();
        }),
        ("emptied", |directory| {
            fs::write(directory.join("metadata.yaml"), "").unwrap();
        }),
        ("additional", |directory| {
            fs::write(directory.join("notes.txt"), "hello").unwrap();
        }),
        ("hidden", |directory| {
            fs::write(directory.join(".nfs0001"), "hello").unwrap();
        }),
        ("missing", |directory| fs::remove_file(directory.join(CLASS)).unwrap()),
        ("a link", |directory| {
            fs::rename(directory.join(CLASS), directory.join("../../moved")).unwrap();
            symlink("../../moved", directory.join(CLASS)).unwrap();
        }),
        ("no directory", |directory| {
            fs::remove_dir_all(directory).unwrap();
            fs::write(directory, "a file").unwrap();
        }),
    ];
    for (what, harm) in harms {
        let (root, store, digest) = after(harm).await;
        assert!(store.find(&tag(TAG), digest).await.unwrap().is_none(), "{what}");
        assert!(
            there(root.path()).is_empty() && unfinished(root.path()).is_empty(),
            "{what}"
        );
        assert_eq!((store.usage().corrupt, store.usage().bytes), (1, 0), "{what}");

        let source = ScriptedSource::new(Promise::Everything);
        store.get(&source.resolved(), &source.origin()).await.unwrap();
        assert_eq!(there(root.path())[&digest.hex()], source.files(), "{what}");
    }
}

#[tokio::test]
async fn a11_release_that_is_gone_is_downloaded_again() {
    let (root, store, digest) = after(|directory| fs::remove_dir_all(directory).unwrap()).await;
    assert!(store.find(&tag(TAG), digest).await.unwrap().is_none());
    let source = ScriptedSource::new(Promise::Everything);
    store.get(&source.resolved(), &source.origin()).await.unwrap();
    fs::remove_dir_all(root.path().join("sha256")).unwrap();
    // Also what this process has put there itself, with everything around it.
    for part in fs::read_dir(root.path()).unwrap() {
        fs::remove_dir_all(part.unwrap().path()).unwrap();
    }
    store.get(&source.resolved(), &source.origin()).await.unwrap();
    assert_eq!(there(root.path())[&digest.hex()], source.files());
    assert_eq!(store.usage().corrupt, 0);
}

#[tokio::test]
async fn release_is_read_again_when_its_files_were_touched_or_are_doubted() {
    let (root, store, digest) = after(|_| {}).await;
    let file = root.path().join("sha256").join(digest.hex()).join("metadata.yaml");
    store.find(&tag(TAG), digest).await.unwrap().unwrap();
    store.doubt(digest);
    store.find(&tag(TAG), digest).await.unwrap().unwrap();
    assert_eq!(store.usage().rehashes, 2);

    let same = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    fs::write(&file, same).unwrap();
    store.find(&tag(TAG), digest).await.unwrap().unwrap();
    assert_eq!(store.usage().rehashes, 3);
    fs::remove_file(&file).unwrap();
    assert!(store.find(&tag(TAG), digest).await.unwrap().is_none());
}

#[tokio::test]
async fn files_that_are_a_release_of_another_tag_are_refused_and_stay() {
    let (root, store, digest) = after(|_| {}).await;
    for _ in 0..2 {
        let refused = store
            .find(&tag("docker-harbor-1-34-v2"), digest)
            .await
            .expect_err("it is v1");
        assert_eq!(refused.class(), ErrorClass::Terminal);
        assert!(
            chain(&refused).starts_with("unable to use the release docker-harbor-1-34-v2: "),
            "{}",
            chain(&refused)
        );
    }
    assert_eq!((store.usage().rehashes, store.usage().corrupt), (1, 0));
    store.find(&tag(TAG), digest).await.unwrap().unwrap();
    assert_eq!(there(root.path()).len(), 1);
}

#[tokio::test]
async fn names_that_are_not_ours_are_left_alone() {
    let root = TempDir::new().unwrap();
    store(root.path()).await;
    for path in ["lost+found/file", "sha256/notes/file", "identities/README"] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "not ours").unwrap();
    }
    let store = store(root.path()).await;
    assert_eq!((store.usage().releases, store.usage().corrupt), (0, 0));
    assert_eq!(fs::read(root.path().join("lost+found/file")).unwrap(), b"not ours");
    assert_eq!(fs::read(root.path().join("sha256/notes/file")).unwrap(), b"not ours");
}

#[tokio::test]
async fn directory_that_cannot_be_made_is_told_with_the_flag() {
    let root = TempDir::new().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    for directory in [file.join("store"), file] {
        let error = Store::open(StoreOptions::new(directory, 1))
            .await
            .expect_err("a file is no directory");
        assert!(matches!(error, StoreError::CreateDirectory { .. }), "{error:?}");
        assert!(error.to_string().contains("--cache-dir"), "{error}");
    }
}
