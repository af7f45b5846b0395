//! Where the bytes of images come from: files on web servers, in registries and of releases, each as an [`ImageSource`]. Says how a file is asked for; what it
//! must be, and what follows when it is not, others know.

mod counted;
mod http;
mod layer;
mod release_file;

use std::sync::Arc;

use provider_plugin::ImageSource;

pub(crate) use self::http::{Asked, WebFiles};
pub(crate) use self::layer::{LayerAddress, is_in_registry};
pub(crate) use self::release_file::ReleaseFiles;

/// The files that an image is made from.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// The image.
    pub(crate) image: Arc<dyn ImageSource>,
    /// Where its digest stands, when it is not known otherwise.
    pub(crate) sums: Option<SumsFile>,
    /// Whether the tag that the image's source tells of it is its digest.
    pub(crate) tag_is_digest: bool,
}

/// A file with the digests of several files.
#[derive(Clone, Debug)]
pub(crate) struct SumsFile {
    /// The file.
    pub(crate) file: Arc<dyn ImageSource>,
    /// Under which name the image stands in it.
    pub(crate) name: String,
}
