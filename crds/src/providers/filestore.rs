//! Files in a directory that the operator was started with, served over HTTP: the kinds of the provider that needs no cloud.

use std::borrow::Cow;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Definition, Provider, ProviderImage, ProviderRelease,
    image_options::{ImageContent, ImageWishes, WishesForAll, of_image},
    image_status::{NodeImageStatus, ProviderReleaseStatus},
};
use crate::release_files::{NodeImageError, NodeImages, filestore_images};

/// A label of DNS: what a store may be called.
const STORE: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

fn default_store() -> String {
    "default".to_owned()
}

/// Which store the images of the release come into, and how.
#[expect(clippy::duplicated_attributes, reason = "several columns have the same type")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "FileStoreClusterStackRelease",
    plural = "filestoreclusterstackreleases",
    shortname = "fscsr",
    namespaced,
    status = "ProviderReleaseStatus",
    derive = "PartialEq",
    doc = "FileStoreClusterStackRelease brings the node images of one release into a directory. Its name is the release tag.",
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].message"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct FileStoreClusterStackReleaseSpec {
    /// The store, by the name that the operator was given for its directory.
    #[serde(default = "default_store")]
    #[schemars(length(min = 1, max = 63), regex(pattern = STORE))]
    pub store: String,
    /// What holds for all images of the release.
    #[serde(flatten)]
    pub for_all: WishesForAll,
}

impl Default for FileStoreClusterStackReleaseSpec {
    fn default() -> Self {
        Self {
            store: default_store(),
            for_all: WishesForAll::default(),
        }
    }
}

/// What the release objects of a stack are made from.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "FileStoreClusterStackReleaseTemplate",
    plural = "filestoreclusterstackreleasetemplates",
    shortname = "fscsrt",
    namespaced,
    derive = "PartialEq",
    doc = "FileStoreClusterStackReleaseTemplate is what a ClusterStack refers to whose node images are to come into a directory."
)]
#[serde(rename_all = "camelCase")]
pub struct FileStoreClusterStackReleaseTemplateSpec {
    /// What each release object becomes.
    pub template: FileStoreClusterStackReleaseResource,
}

/// A release object without its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileStoreClusterStackReleaseResource {
    /// Its spec.
    pub spec: FileStoreClusterStackReleaseSpec,
}

/// One image, and the store that it comes into.
#[expect(clippy::duplicated_attributes, reason = "several columns have the same type")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "FileStoreNodeImageRelease",
    plural = "filestorenodeimagereleases",
    shortname = "fsnir",
    namespaced,
    status = "NodeImageStatus",
    derive = "PartialEq",
    doc = "FileStoreNodeImageRelease is one node image in a directory. Releases that need the same image share it.",
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Done", type_ = "string", json_path = ".status.transfer.summary"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].message"
    ),
    printcolumn(name = "Image", type_ = "string", json_path = ".status.image.id", priority = 1),
    printcolumn(name = "Attempt", type_ = "integer", json_path = ".status.attempt", priority = 1),
    printcolumn(
        name = "Holder",
        type_ = "string",
        json_path = ".status.transfer.holder",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = of_image()))]
pub struct FileStoreNodeImageReleaseSpec {
    /// The store, by the name that the operator was given for its directory.
    #[serde(default = "default_store")]
    #[schemars(length(min = 1, max = 63), regex(pattern = STORE))]
    pub store: String,
    /// The image.
    pub image: FileStoreImage,
    /// How it is treated.
    #[serde(flatten)]
    pub wishes: ImageWishes,
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
