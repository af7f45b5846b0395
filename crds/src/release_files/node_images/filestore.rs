//! The images that become files in a directory.

use super::{
    NodeImageError, NodeImages,
    entry::{Fields, entries},
};
use crate::providers::{Provider, filestore::FileStoreImage};

/// The images under `fileStoreNodeImages`; none when a release has no such key.
pub fn filestore_images(file: &NodeImages) -> Result<Vec<FileStoreImage>, NodeImageError> {
    entries(file, Provider::FileStore).map(image).collect()
}

fn image(mut entry: Fields) -> Result<FileStoreImage, NodeImageError> {
    let url: String = entry.take("url")?.unwrap_or_default();
    Ok(FileStoreImage {
        name: entry.text("name")?,
        format: entry.take("format")?,
        content: entry.content(&url)?,
        url,
    })
}
