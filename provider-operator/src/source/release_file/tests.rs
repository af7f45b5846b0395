//! Files of a release that was packed here.

use std::fs;
use std::path::{Path, PathBuf};

use provider_plugin::Hasher;
use release::pack::{self, Versioning};
use release::{Release, Verification, admit};
use tempfile::TempDir;

use super::*;

const TAG: &str = "docker-harbor-1-34-v1";

/// A release in a storage of its own, and its directory.
fn admitted(storage: &Path) -> (Arc<Admitted>, PathBuf) {
    let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1");
    let versioning = Versioning::Given("v1".parse().unwrap());
    pack::create(&stack, storage, &versioning).unwrap();
    let directory = storage.join(TAG);
    let release = Release::open(&directory, &TAG.parse().unwrap()).unwrap();
    (
        Arc::new(admit(Arc::new(release), Verification::Off).unwrap()),
        directory,
    )
}

async fn read(source: &dyn ImageSource, at: u64) -> Result<Vec<u8>, SourceError> {
    let probe = source.probe().await?;
    let Opened::At(mut bytes) = source.open(at, &probe).await? else {
        panic!("a file of a release can be read from anywhere");
    };
    let mut all = Vec::new();
    while let Some(piece) = bytes.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

#[tokio::test]
async fn a_file_of_a_release_is_read_from_any_byte_and_pinned_by_what_it_was_verified_with() {
    let storage = TempDir::new().unwrap();
    let (release, directory) = admitted(storage.path());
    let name = release.release().files[0].name.clone();
    let file = fs::read(directory.join(&name)).unwrap();
    let (source, pinned) = ReleaseFiles::new().file(&release, &name).unwrap();
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(&file);
    assert_eq!(pinned, hasher.finish());
    let probe = source.probe().await.unwrap();
    assert_eq!((probe.size, probe.ranges), (Some(file.len() as u64), true));
    assert!(read(source.as_ref(), 0).await.unwrap() == file);
    assert!(read(source.as_ref(), 100).await.unwrap() == file[100..]);
    let end = file.len() as u64;
    assert!(read(source.as_ref(), end).await.unwrap().is_empty());
    assert!(
        source.place().contains(&name) && source.place().contains(TAG),
        "{}",
        source.place()
    );
}

#[tokio::test]
async fn a_file_that_is_not_what_was_verified_is_not_given() {
    let storage = TempDir::new().unwrap();
    let (release, directory) = admitted(storage.path());
    let name = release.release().files[0].name.clone();
    let (source, _) = ReleaseFiles::new().file(&release, &name).unwrap();
    fs::write(directory.join(&name), "something else").unwrap();
    let error = read(source.as_ref(), 0).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::SourceBroken);
    assert!(error.message.contains(&name), "{error}");
    assert!(ReleaseFiles::new().file(&release, "no-such-file").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_file_of_a_release_has_its_memory_until_it_is_sent_and_others_wait_for_it() {
    let storage = TempDir::new().unwrap();
    let (release, _) = admitted(storage.path());
    let name = release.release().files[0].name.clone();
    let files = ReleaseFiles {
        memory: Arc::new(Semaphore::new(1)),
        ..ReleaseFiles::new()
    };
    let (source, _) = files.file(&release, &name).unwrap();
    let probe = source.probe().await.unwrap();
    let Ok(Opened::At(mut sent)) = source.open(0, &probe).await else {
        panic!("there is memory");
    };
    sent.next().await.unwrap().unwrap();
    let error = read(source.as_ref(), 0).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Unavailable);
    assert!(error.message.contains("waits for others"), "{error}");
    drop(sent);
    assert!(!read(source.as_ref(), 0).await.unwrap().is_empty());
}
