//! Node images in a directory: resumable, confirmed by the disk, with their sums beside them.
//!
//! For machines that fetch their images from a file server or a volume, and for a cloud of one's own to try things with. A part that was cut
//! off is gone on with; a published image is one file under its name, which appears at once and whole, and one with its digest. Touches the
//! directories that the operator was started with, and nothing else.

mod disk;
mod error;
#[cfg(test)]
mod faults;
mod holding;
mod layout;
mod part;
mod published;
mod records;
mod sidecar;
mod store;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use provider_plugin::{Addresses, CloudError, CloudName, ErrorClass, Identity, ImageSpec, ImageStore, Provider};
use thiserror::Error;

pub use self::published::{OpenImage, Published};
pub use self::store::FileStore;

/// The directories that there are, by the names that users choose from.
#[derive(Clone, Debug, Default)]
pub struct FileStores {
    directories: BTreeMap<String, PathBuf>,
}

/// An option that does not name a directory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OptionError {
    /// Not of the form.
    #[error("{option:?} is not of the form NAME=DIRECTORY, with an absolute directory")]
    Parse {
        /// What it was.
        option: String,
    },
    /// A name twice.
    #[error("the store {name:?} is given two directories; give it one")]
    Twice {
        /// The name.
        name: String,
    },
}

impl FileStores {
    /// The directories of these options, each `NAME=DIRECTORY`. Looks at none of them.
    pub fn parse<'a>(options: impl IntoIterator<Item = &'a str>) -> Result<Self, OptionError> {
        let mut directories = BTreeMap::new();
        for option in options {
            let parts = option.split_once('=').map(|(name, path)| (name, PathBuf::from(path)));
            let (name, directory) = parts
                .filter(|(name, path)| !name.is_empty() && path.is_absolute())
                .ok_or_else(|| OptionError::Parse {
                    option: option.to_owned(),
                })?;
            if directories.insert(name.to_owned(), directory).is_some() {
                return Err(OptionError::Twice { name: name.to_owned() });
            }
        }
        Ok(Self { directories })
    }

    /// All of them by their names, sorted; connected anew, so that whoever reads much does not stand in the way of whoever writes.
    pub fn stores(&self) -> impl Iterator<Item = (&str, FileStore)> {
        let stores = self.directories.iter();
        stores.map(|(name, directory)| (name.as_str(), FileStore::new(directory.clone())))
    }

    fn directory(&self, identity: &Identity) -> Result<&PathBuf, CloudError> {
        let names = || {
            self.directories
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        };
        self.directories.get(&identity.name).ok_or_else(|| {
            let words = format!("the operator has no store {:?}, but these: {}", identity.name, names());
            CloudError::new(ErrorClass::Invalid, "find the directory of the images", words)
        })
    }
}

#[async_trait]
impl Provider for FileStores {
    fn name(&self) -> &'static str {
        "filestore"
    }

    async fn connect(
        &self,
        identity: &Identity,
        _addresses: Arc<dyn Addresses>,
    ) -> Result<Arc<dyn ImageStore>, CloudError> {
        Ok(Arc::new(FileStore::new(self.directory(identity)?.clone())))
    }

    fn cloud_of(&self, identity: &Identity) -> Result<CloudName, CloudError> {
        Ok(CloudName(self.directory(identity)?.display().to_string()))
    }

    fn check(&self, image: &ImageSpec) -> Result<(), CloudError> {
        store::check(image)
    }
}
