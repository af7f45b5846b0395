//! A directory of its own for each test, and an operator that wants one image in it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use provider_plugin::{
    Algorithm, CloudError, Content, ContentPlan, Created, ErrorClass, Hasher, ImageSpec, ImageStore, OwnerId,
    RecordState, Sent,
    suite::{Harness, Notes, ScriptedSource, SharedSource, subject},
};
use tempfile::TempDir;

use crate::{FileStore, disk::Disk, faults::Faults};

pub(super) const MIB: usize = 1024 * 1024;

/// Some bytes that are no text, and not the same anywhere near.
pub(super) fn disk_image(count: usize) -> Bytes {
    (0..count).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect()
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(bytes);
    hasher.finish().hex().to_owned()
}

pub(super) struct Lab {
    folder: TempDir,
    pub(super) bytes: Bytes,
    sync_every: u64,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self::with(disk_image(3 * MIB + 3), 16 * MIB as u64)
    }

    /// With this image, and a disk that confirms after so many bytes.
    pub(super) fn with(bytes: Bytes, sync_every: u64) -> Self {
        Self {
            // In memory where there is such a place: thousands of times it is waited until the disk confirms.
            folder: tempfile::tempdir_in("/dev/shm")
                .or_else(|_| tempfile::tempdir())
                .unwrap(),
            bytes,
            sync_every,
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn open(&self) -> FileStore {
        self.breaking(&Arc::default())
    }

    /// The store on a disk that breaks as it is told.
    pub(super) fn breaking(&self, faults: &Arc<Faults>) -> FileStore {
        let disk = Disk {
            faults: Arc::clone(faults),
        };
        FileStore::on(self.path().to_owned(), disk, self.sync_every)
    }

    pub(super) fn spec(&self, name: &str) -> ImageSpec {
        self.image(name).0
    }

    /// The files below the directory, without those that are only on their way to a name.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for folder in [self.path().to_owned(), self.path().join(".parts")] {
            let entries = fs::read_dir(folder).into_iter().flatten();
            files.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
        }
        files.sort();
        files
    }

    pub(super) fn published(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path().join(name)).ok()
    }

    /// What is published is whole, and has its digest beside it.
    pub(super) fn has_published(&self, name: &str) {
        let published = self.published(name).expect("the image is published");
        assert!(published == self.bytes, "other bytes are published");
        let sums = fs::read_to_string(self.path().join(format!("{name}.sha256"))).unwrap();
        assert_eq!(sums, format!("{}  {name}\n", sha256(&self.bytes)));
    }

    pub(super) fn source(&self) -> ScriptedSource {
        ScriptedSource::of(self.bytes.clone())
    }
}

#[async_trait]
impl Harness for Lab {
    type Store = FileStore;

    async fn store(&self) -> FileStore {
        self.open()
    }

    fn image(&self, name: &str) -> (ImageSpec, Vec<u8>) {
        let owner = OwnerId::parse("suite").unwrap();
        let image = ImageSpec {
            subject: subject(&owner, name),
            options: serde_json::Map::new(),
            format: None,
            source_digest: None,
            chosen_id: None,
            stores: Vec::new(),
        };
        (image, self.bytes.to_vec())
    }
}

/// Sends what this source has.
pub(super) async fn send(
    store: &FileStore,
    image: &ImageSpec,
    attempt: u32,
    source: &Arc<ScriptedSource>,
    plan: ContentPlan,
) -> Result<Sent, CloudError> {
    let notes = Arc::<Notes>::default();
    let shared = Arc::new(SharedSource(Arc::clone(source)));
    let content = Content::new(shared, source.said(), plan, Arc::<Notes>::clone(&notes));
    let id = crate::layout::Stem::new(&image.subject.key, attempt).id();
    store.transfer(&id, image, content, &*notes).await
}

/// What an operator does until the image is published, or a call fails.
pub(super) async fn operate(
    store: &FileStore,
    image: &ImageSpec,
    source: &Arc<ScriptedSource>,
) -> Result<(), CloudError> {
    for _ in 0..20 {
        let observed = store.observe(&image.subject, image).await?;
        let Some(record) = observed.records.last() else {
            store.create(image, 1).await?;
            continue;
        };
        match record.state {
            RecordState::Whole if record.verified.is_some() => return Ok(()),
            RecordState::Whole => store.publish(&record.id, image, "sha512:00").await?,
            RecordState::Empty => {
                send(store, image, record.attempt, source, ContentPlan::default()).await?;
            }
            RecordState::Dead => {
                let next = store.create(image, record.attempt + 1).await?;
                assert!(matches!(next, Created::New(_)), "{next:?}");
                store.discard(&record.id, &image.subject.marked(record.attempt)).await?;
            }
            _ => return Err(CloudError::new(ErrorClass::State, "operate", format!("{record:?}"))),
        }
    }
    panic!("after twenty steps nothing is published")
}

/// Takes everything away, as often as it takes.
pub(super) async fn tidy(store: &FileStore, owner: &OwnerId) -> Result<(), CloudError> {
    loop {
        let left = store.owned(owner).await?;
        let Some(first) = left.first() else { return Ok(()) };
        store.discard(&first.id, &first.marked()).await?;
    }
}
