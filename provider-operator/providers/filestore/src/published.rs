//! What is published in a directory, for those who serve it: images that are whole and have their digest, by their names, and nothing else that lies there.

use std::{fs::File, io, sync::Arc};

use jiff::Timestamp;
use provider_plugin::{ByteStream, CloudError};

use crate::{
    FileStore,
    disk::{self, Inode},
    error::RecordError,
    layout,
    records::Records,
};

/// A published image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name, which is also that of its file.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their digest: 64 lower-case hex digits.
    pub sha256: String,
    /// When its last byte was written.
    pub changed: Timestamp,
}

/// A published image whose bytes can be read, also when another one takes its name meanwhile.
#[derive(Debug)]
pub struct OpenImage {
    /// What it is.
    pub image: Published,
    file: Arc<File>,
    store: FileStore,
}

impl OpenImage {
    /// Its bytes from the one at `from` on, up to the one before `until`. A disk that gives no answer ends them with an error.
    pub fn read(&self, from: u64, until: u64) -> ByteStream {
        self.store.0.bytes(&self.file, from, Some(until))
    }
}

impl FileStore {
    /// What is published now, sorted by name.
    pub async fn published(&self) -> Result<Vec<Published>, CloudError> {
        self.0.with("list the images", Records::published).await
    }

    /// The published image of this name; `None` when there is none.
    pub async fn open(&self, name: &str) -> Result<Option<OpenImage>, CloudError> {
        let wanted = name.to_owned();
        let open = move |records: &Records| records.open_published(&wanted);
        let opened = self.0.with("open the image", open).await?;
        Ok(opened.map(|(image, file)| OpenImage {
            image,
            file: Arc::new(file),
            store: self.clone(),
        }))
    }
}

impl Records {
    fn published(&self) -> Result<Vec<Published>, RecordError> {
        let held = self.held()?;
        let mut images = Vec::new();
        for name in disk::names(self.layout.directory())? {
            images.extend(self.open_named(&name, &held)?.map(|(image, _)| image));
        }
        Ok(images)
    }

    fn open_published(&self, name: &str) -> Result<Option<(Published, File)>, RecordError> {
        // Before anything of the disk is asked by this name.
        if layout::refusal(name).is_some() {
            return Ok(None);
        }
        self.open_named(name, &self.held()?)
    }

    fn open_named(
        &self,
        name: &str,
        held: &[(Inode, Option<String>)],
    ) -> Result<Option<(Published, File)>, RecordError> {
        if layout::refusal(name).is_some() {
            return Ok(None);
        }
        let Some(sums) = disk::read(&self.layout.sums(name))? else {
            return Ok(None);
        };
        let Some(file) = disk::open_file(&self.layout.published(name))? else {
            return Ok(None);
        };
        let inode = disk::inode_of(&file)?;
        // While one image takes the place of another, the digest beside it is of one of the two: the record says of which. Without a record the image
        // was given away, and nobody replaces it.
        let sha256 = match held.iter().find(|(held, _)| held.is(&inode)) {
            Some((_, digest)) => digest.clone(),
            None => digest_of(&sums, name),
        };
        let Some(sha256) = sha256 else { return Ok(None) };
        let changed = file.metadata()?.modified()?;
        let image = Published {
            name: name.to_owned(),
            bytes: inode.size,
            sha256,
            changed: Timestamp::try_from(changed).map_err(io::Error::other)?,
        };
        Ok(Some((image, file)))
    }
}

/// The digest in a line as `sha256sum` writes it, if it is for this name.
fn digest_of(sums: &[u8], name: &str) -> Option<String> {
    let line = std::str::from_utf8(sums).ok()?.strip_suffix('\n')?;
    let (digest, named) = line.split_once("  ")?;
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_digest && named == name).then(|| digest.to_owned())
}
