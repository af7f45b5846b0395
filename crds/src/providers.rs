//! The kinds by which node images come into a cloud: for each provider a release object, its template, and one object for each image.
//!
//! What differs between providers stands in a file of its own each and in [`DEFINITIONS`]; what an image may be asked to be, and what is told of it,
//! is the same for all. Kinds, fields and conditions of the Go provider for OpenStack are kept; whatever it does not have is optional.

pub mod docker;
pub mod filestore;
pub mod image_options;
pub mod image_status;
pub mod kinds;
pub mod openstack;

use std::borrow::Cow;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use self::image_options::{ImageContent, ImageWishes};
use crate::{
    conditions::ConditionType,
    release_files::{NodeImageError, NodeImages},
};

/// Whose kinds.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumIter,
    strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Provider {
    /// Images in Glance.
    OpenStack,
    /// Files in a directory, served over HTTP.
    FileStore,
    /// Images that are in a registry already.
    Docker,
}

impl Provider {
    /// What its kinds and words are.
    pub const fn definition(self) -> &'static Definition {
        match self {
            Self::OpenStack => &DEFINITIONS[0],
            Self::FileStore => &DEFINITIONS[1],
            Self::Docker => &DEFINITIONS[2],
        }
    }
}

/// The names under which a provider is known. All kinds are of [`crate::PROVIDER_GROUP`] and [`crate::VERSION`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Which provider.
    pub provider: Provider,
    /// Kind of its object for a release of a stack. That of the template is the same with `Template` behind it.
    pub release_kind: &'static str,
    /// Plural of `release_kind`.
    pub release_plural: &'static str,
    /// Kind of its object for one image.
    pub image_kind: &'static str,
    /// Plural of `image_kind`.
    pub image_plural: &'static str,
    /// Key of its images in node-images.yaml.
    pub images_key: &'static str,
    /// The condition of the release object that all images are ready.
    pub images_ready: ConditionType,
}

/// All providers, in the order of [`Provider`].
pub const DEFINITIONS: [Definition; 3] = [
    Definition {
        provider: Provider::OpenStack,
        release_kind: "OpenStackClusterStackRelease",
        release_plural: "openstackclusterstackreleases",
        image_kind: "OpenStackNodeImageRelease",
        image_plural: "openstacknodeimagereleases",
        images_key: "openStackNodeImages",
        images_ready: ConditionType::OpenStackNodeImageReleasesReady,
    },
    Definition {
        provider: Provider::FileStore,
        release_kind: "FileStoreClusterStackRelease",
        release_plural: "filestoreclusterstackreleases",
        image_kind: "FileStoreNodeImageRelease",
        image_plural: "filestorenodeimagereleases",
        images_key: "fileStoreNodeImages",
        images_ready: ConditionType::NodeImageReleasesReady,
    },
    Definition {
        provider: Provider::Docker,
        release_kind: "DockerClusterStackRelease",
        release_plural: "dockerclusterstackreleases",
        image_kind: "DockerNodeImageRelease",
        image_plural: "dockernodeimagereleases",
        images_key: "dockerImages",
        images_ready: ConditionType::NodeImageReleasesReady,
    },
];

/// The spec of a release object, whoever's.
pub trait ProviderRelease: DeserializeOwned {
    /// The spec of the image objects that belong to it.
    type Image: ProviderImage + DeserializeOwned + Serialize;

    /// The images that a release needs of the provider, in the order of its node-images.yaml, with what holds for all of them.
    ///
    /// # Errors
    /// An entry cannot be used; the error says which, and which field.
    fn images(&self, file: &NodeImages) -> Result<Vec<Self::Image>, NodeImageError>;
}

/// The spec of an image object, whoever's: what a driver reads that serves all providers.
pub trait ProviderImage {
    /// The provider that the kind belongs to.
    fn definition() -> &'static Definition
    where
        Self: Sized;

    /// What the bytes must be, and how they are come by.
    fn content(&self) -> Cow<'_, ImageContent>;

    /// Where the bytes are; empty for an image that is built, adopted or in its registry already.
    fn url(&self) -> &str;

    /// How the image is treated.
    fn wishes(&self) -> &ImageWishes;

    /// What the image is to be in the cloud, in the provider's own words.
    fn options(&self) -> Map<String, Value>;

    /// The name that the image has in the cloud.
    fn name(&self) -> &str;

    /// The Secret of the same namespace that opens the cloud; `None` where none is needed.
    fn secret(&self) -> Option<&str>;

    /// The key of that Secret that is read, where the object names another than the provider's usual one.
    fn secret_key(&self) -> Option<&str> {
        None
    }

    /// The store among those that the operator was started with; `None` where a Secret says which cloud it is.
    fn store(&self) -> Option<&str> {
        None
    }
}
