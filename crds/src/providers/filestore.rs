//! Files in a directory that the operator was started with, served over HTTP: the kinds of the provider that needs no cloud.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Definition, Provider, ProviderImage, ProviderRelease,
    image_options::{ImageContent, ImageWishes, WishesForAll},
    kinds::{image_kind, release_kind, template_kind},
};
use crate::release_files::{NodeImageError, NodeImages, filestore_images};
use crate::schema::of_place;

/// A label of DNS: what a store may be called.
const STORE: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

fn default_store() -> String {
    "default".to_owned()
}

release_kind! {
    kind = "FileStoreClusterStackRelease",
    plural = "filestoreclusterstackreleases",
    shortname = "fscsr",
    doc = "FileStoreClusterStackRelease brings the node images of one release into a directory. Its name is the release tag.",
    /// Which store the images of the release come into, and how.
    pub struct FileStoreClusterStackReleaseSpec {
        /// The store, by the name that the operator was given for its directory.
        #[serde(default = "default_store")]
        #[schemars(length(min = 1, max = 63), regex(pattern = STORE))]
        pub store: String,
        /// What holds for all images of the release.
        #[serde(flatten)]
        pub for_all: WishesForAll,
    }
}

impl Default for FileStoreClusterStackReleaseSpec {
    fn default() -> Self {
        Self {
            store: default_store(),
            for_all: WishesForAll::default(),
        }
    }
}

template_kind! {
    kind = "FileStoreClusterStackReleaseTemplate",
    plural = "filestoreclusterstackreleasetemplates",
    shortname = "fscsrt",
    doc = "FileStoreClusterStackReleaseTemplate is what a ClusterStack refers to whose node images are to come into a directory.",
    pub struct FileStoreClusterStackReleaseTemplateSpec of FileStoreClusterStackReleaseSpec;
}

image_kind! {
    kind = "FileStoreNodeImageRelease",
    plural = "filestorenodeimagereleases",
    shortname = "fsnir",
    doc = "FileStoreNodeImageRelease is one node image in a directory. Releases that need the same image share it.",
    /// One image, and the store that it comes into.
    pub struct FileStoreNodeImageReleaseSpec {
        /// The store, by the name that the operator was given for its directory. Cannot be changed.
        #[serde(default = "default_store")]
        #[schemars(
            length(min = 1, max = 63),
            regex(pattern = STORE),
            extend("x-kubernetes-validations" = [of_place()])
        )]
        pub store: String,
        /// The image.
        pub image: FileStoreImage,
        /// How it is treated.
        #[serde(flatten)]
        pub wishes: ImageWishes,
    }
}

/// An image as a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileStoreImage {
    /// Where the bytes are: https, oci, release (a file of the release itself), and http where the operator was started with a flag that allows it.
    /// Empty for an image that is built or adopted.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub url: String,
    /// Name of the file.
    #[schemars(length(min = 1, max = 200), regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9._+~-]*$"))]
    pub name: String,
    /// Format of the disk, such as qcow2 or raw, which the bytes are held against; any without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub format: Option<String>,
    /// What its bytes must be, and how they are come by.
    #[serde(flatten)]
    pub content: ImageContent,
}

impl ProviderRelease for FileStoreClusterStackReleaseSpec {
    type Image = FileStoreNodeImageReleaseSpec;

    fn images(&self, file: &NodeImages) -> Result<Vec<Self::Image>, NodeImageError> {
        let images = filestore_images(file)?
            .into_iter()
            .map(|image| FileStoreNodeImageReleaseSpec {
                store: self.store.clone(),
                image,
                wishes: self.for_all.wishes(),
            });
        Ok(images.collect())
    }
}

impl ProviderImage for FileStoreNodeImageReleaseSpec {
    fn definition() -> &'static Definition {
        Provider::FileStore.definition()
    }

    fn content(&self) -> Cow<'_, ImageContent> {
        Cow::Borrowed(&self.image.content)
    }

    fn url(&self) -> &str {
        &self.image.url
    }

    fn wishes(&self) -> &ImageWishes {
        &self.wishes
    }

    fn options(&self) -> Map<String, Value> {
        let name = ("name".to_owned(), Value::from(self.image.name.as_str()));
        let format = self.image.format.as_deref();
        let format = format.map(|format| ("format".to_owned(), Value::from(format)));
        [name].into_iter().chain(format).collect()
    }

    fn name(&self) -> &str {
        &self.image.name
    }

    fn secret(&self) -> Option<&str> {
        None
    }

    fn store(&self) -> Option<&str> {
        Some(&self.store)
    }
}
