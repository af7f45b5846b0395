//! What every source of releases keeps to, whatever it speaks.

use std::{collections::BTreeMap, fs, path::Path};

use release::{
    Digest, ErrorClass, Release,
    source::{DirectorySource, ReleaseSource, SourceError},
};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::fixture::{TAG, good_release, tag};

/// The files of a release directory by name.
pub(crate) fn files_of(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = entries.map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap())
    });
    read.collect()
}

/// A source that offers the release of [`TAG`] in `directory`, and no other of its stack, does what the trait says.
pub(crate) async fn assert_keeps_the_contract(source: &dyn ReleaseSource, directory: &Path) {
    let (tag, files) = (tag(TAG), files_of(directory));
    let listing = source.list().await.unwrap();
    let listed: Vec<_> = listing.releases.iter().map(|listed| &listed.tag).collect();
    assert!(listed.is_sorted() && listed.contains(&&tag), "{listing:?}");
    assert!(listing.foreign.is_sorted(), "{listing:?}");

    let resolved = source.resolve(&tag).await.unwrap();
    assert_eq!(resolved.tag(), &tag);
    let names: Vec<_> = resolved.files().iter().map(|file| &file.name).collect();
    assert_eq!(names, files.keys().collect::<Vec<_>>());
    assert_eq!(source.resolve(&tag).await.unwrap().identity(), resolved.identity());
    // What a list says of a release is what the tag stands for, or nothing.
    let listed = listing.releases.iter().find(|listed| listed.tag == tag).unwrap();
    assert!(
        listed.identity.is_none_or(|identity| identity == resolved.identity()),
        "{listed:?}"
    );
    assert!(
        listed.digest.is_none() || listed.identity.is_some() && listed.digest == resolved.digest(),
        "{listed:?}"
    );
    let whole = Release::open(directory, &tag).unwrap();
    assert!(resolved.digest().is_none_or(|digest| digest == whole.digest));
    for file in resolved.files() {
        let mut content = Vec::new();
        source
            .fetch(file)
            .await
            .unwrap()
            .read_to_end(&mut content)
            .await
            .unwrap();
        assert!(content == files[&file.name], "{}", file.name);
        assert!(file.size.is_none_or(|size| size == content.len() as u64), "{file:?}");
        assert!(
            file.sha256.is_none_or(|digest| digest == Digest::of(&content)),
            "{file:?}"
        );
    }

    let absent = "docker-harbor-1-34-v999".parse().unwrap();
    let missing = source.resolve(&absent).await.expect_err("there is no such release");
    assert!(matches!(missing, SourceError::MissingRelease { .. }), "{missing:?}");
    assert_eq!(missing.class(), ErrorClass::Waiting);
}

#[tokio::test]
async fn directory_keeps_the_contract_of_sources() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    assert_keeps_the_contract(&DirectorySource::new(root.path()), &directory).await;
}
