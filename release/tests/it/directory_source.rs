//! What a directory tree offers, and what it says when it offers nothing.

use std::{
    env, fs,
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use release::{
    AddonConfiguration, ErrorClass,
    source::{DirectorySource, ReleaseSource, SourceError},
};
use tempfile::TempDir;

use crate::fixture::{TAG, admitted, chain, good_release, tag};

/// The real releases, laid out as a source wants them.
pub(crate) fn corpus() -> Option<TempDir> {
    let Some(corpus) = env::var_os("STACKWRIGHT_CORPUS") else {
        // Not by a macro: the harness keeps what those write to itself when a test passes.
        let said = "REDUCED: STACKWRIGHT_CORPUS is unset, so no real release is read\n";
        std::io::stderr().write_all(said.as_bytes()).expect("it can be said");
        return None;
    };
    let root = TempDir::new().unwrap();
    for release in fs::read_dir(PathBuf::from(corpus).join("releases")).unwrap() {
        let release = release.unwrap().path();
        let copy = root.path().join("cluster-stacks").join(release.file_name().unwrap());
        fs::create_dir_all(&copy).unwrap();
        for file in fs::read_dir(&release).unwrap() {
            let file = file.unwrap().path();
            fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
        }
    }
    Some(root)
}

#[tokio::test]
async fn every_real_release_opens_or_says_which_file_is_missing() {
    let Some(root) = corpus() else { return };
    let source = DirectorySource::new(root.path());
    let listing = source.list().await.unwrap();
    assert_eq!(listing.foreign, Vec::<String>::new());
    let mut refused = Vec::new();
    for listed in &listing.releases {
        for file in ["metadata.yaml", "clusteraddon.yaml", "node-images.yaml", "hashes.json"] {
            let path = root.path().join(format!("cluster-stacks/{}/{file}", listed.tag));
            let text = fs::read(path).unwrap_or_default();
            assert!(text.len() < 4096, "{}: {file} comes near its bound", listed.tag);
            let brackets = text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
            assert!(brackets < 64, "{}: {file} comes near its bound", listed.tag);
        }
        match source.open(&listed.tag).await {
            Ok(release) => {
                assert_eq!(&release.metadata.cluster_stack, listed.tag.version());
                assert_eq!(
                    admitted(&release).read_class_chart().unwrap().len() as u64,
                    release.charts.as_ref().unwrap().class_chart.size
                );
                let staged = release.files.iter().any(|file| file.name == "clusteraddon.yaml");
                assert_eq!(
                    matches!(release.charts.as_ref().unwrap().addons, AddonConfiguration::Stages(_)),
                    staged,
                    "{}",
                    listed.tag
                );
            }
            Err(error) => refused.push((listed.tag.to_string(), error.class(), chain(&error))),
        }
    }
    let words = "unable to use the release openstack-ferrol-1-27-v4: openstack-ferrol-1-27-cluster-class-v4.tgz: missing; \
                 the class chart of a release has exactly this name";
    assert_eq!(
        refused,
        [(
            "openstack-ferrol-1-27-v4".to_owned(),
            ErrorClass::Terminal,
            words.to_owned()
        )]
    );
    assert_eq!(listing.releases.len(), 11);
}

#[tokio::test]
async fn listing_sorts_by_version_and_keeps_foreign_names_apart() {
    let root = TempDir::new().unwrap();
    for name in [
        "docker-harbor-1-34-v10",
        "docker-harbor-1-34-v9",
        "docker-harbor-1-34-v0-sha-abc",
        "docker-harbor-1-34-v07",
        "docker-harbor-v1",
        ".docker-harbor-1-34-v11",
    ] {
        fs::create_dir_all(root.path().join("cluster-stacks").join(name)).unwrap();
    }
    let listing = DirectorySource::new(root.path()).list().await.unwrap();
    let tags: Vec<String> = listing.releases.iter().map(|release| release.tag.to_string()).collect();
    assert_eq!(
        tags,
        [
            "docker-harbor-1-34-v0-sha-abc",
            "docker-harbor-1-34-v9",
            "docker-harbor-1-34-v10"
        ]
    );
    assert_eq!(listing.foreign, ["docker-harbor-1-34-v07", "docker-harbor-v1"]);
}

#[tokio::test]
async fn missing_root_missing_release_and_broken_release_are_three_things() {
    let root = TempDir::new().unwrap();
    let source = DirectorySource::new(root.path());
    for error in [
        source.list().await.expect_err("no root"),
        source.open(&tag(TAG)).await.expect_err("no root"),
    ] {
        assert!(matches!(error, SourceError::MissingRoot { .. }), "{error:?}");
        assert_eq!(error.class(), ErrorClass::Waiting);
    }

    fs::create_dir(root.path().join("cluster-stacks")).unwrap();
    assert_eq!(source.list().await.unwrap().releases, []);
    let missing = source.open(&tag(TAG)).await.expect_err("no release");
    assert!(matches!(missing, SourceError::MissingRelease { .. }), "{missing:?}");
    assert_eq!(missing.class(), ErrorClass::Waiting);

    fs::create_dir(root.path().join("cluster-stacks").join(TAG)).unwrap();
    let broken = source.open(&tag(TAG)).await.expect_err("no files");
    assert!(matches!(broken, SourceError::UnusableRelease { .. }), "{broken:?}");
    assert_eq!(
        (broken.class(), broken.reason()),
        (ErrorClass::Terminal, "ReleaseIncomplete")
    );
}

#[tokio::test]
async fn release_directory_that_is_a_link_is_listed_and_refused() {
    let (root, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let target = good_release(elsewhere.path(), TAG);
    fs::create_dir(root.path().join("cluster-stacks")).unwrap();
    symlink(target, root.path().join("cluster-stacks").join(TAG)).unwrap();
    let source = DirectorySource::new(root.path());
    assert_eq!(source.list().await.unwrap().releases.len(), 1);
    let error = source.open(&tag(TAG)).await.expect_err("links are not followed");
    assert!(chain(&error).contains("not a directory"), "{}", chain(&error));
}

#[tokio::test]
async fn repaired_release_opens_and_rewritten_release_has_another_digest() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let source = DirectorySource::new(root.path());
    let values = directory.join("cluster-addon-values.yaml");
    let first = source.open(&tag(TAG)).await.unwrap();

    let content = fs::read(&values).unwrap();
    fs::remove_file(&values).unwrap();
    source.open(&tag(TAG)).await.expect_err("incomplete");
    fs::write(&values, &content).unwrap();
    assert_eq!(source.open(&tag(TAG)).await.unwrap().digest, first.digest);

    fs::write(&values, "values: |#\n").unwrap();
    assert_ne!(source.open(&tag(TAG)).await.unwrap().digest, first.digest);
}

/// Changes a file as a careful liar would: size and modification time stay.
fn same_size_rewrite(path: &Path) {
    let status = fs::metadata(path).unwrap();
    let mut content = fs::read(path).unwrap();
    content[0] ^= 1;
    fs::write(path, content).unwrap();
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(status.modified().unwrap())
        .unwrap();
}

#[tokio::test]
async fn rewriting_with_the_old_size_and_modification_time_is_noticed() {
    let root = TempDir::new().unwrap();
    let directory = good_release(root.path(), TAG);
    let source = DirectorySource::new(root.path());
    let first = source.open(&tag(TAG)).await.unwrap();
    same_size_rewrite(&directory.join("cluster-addon-values.yaml"));
    assert_ne!(source.open(&tag(TAG)).await.unwrap().digest, first.digest);
}
