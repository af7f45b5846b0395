//! OpenStack: the kinds of the Go provider, field by field, with optional fields beside.

use std::{borrow::Cow, collections::BTreeMap};

use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Definition, Provider, ProviderImage, ProviderRelease,
    image_options::{ImageContent, ImageWishes, WishesForAll},
    kinds::{image_kind, release_kind, template_kind},
};
use crate::release_files::{NodeImageError, NodeImages, openstack_images};
use crate::schema::of_place;

/// The Secret with the credentials, as Cluster API's provider for OpenStack names it in v1alpha7.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [of_secret()]))]
pub struct IdentityReference {
    /// Kind of the object; only Secret.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of a Secret of the same namespace, with the key `clouds.yaml`, and if need be `cloudName` (else `openstack`) and `cacert`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

fn of_secret() -> Rule {
    Rule::new("self.kind == 'Secret'")
        .message("only a Secret of this namespace can be used")
        .field_path(".kind")
}

impl Default for IdentityReference {
    fn default() -> Self {
        Self {
            kind: "Secret".to_owned(),
            name: "openstack".to_owned(),
        }
    }
}

release_kind! {
    kind = "OpenStackClusterStackRelease",
    plural = "openstackclusterstackreleases",
    shortname = "oscsr",
    doc = "OpenStackClusterStackRelease brings the node images of one release into an OpenStack cloud. Its name is the release tag.",
    /// Which cloud the images of the release come into, and how.
    #[derive(Default)]
    pub struct OpenStackClusterStackReleaseSpec {
        /// The Secret with the credentials of the cloud.
        #[serde(default)]
        pub identity_ref: IdentityReference,
        /// What holds for all images of the release.
        #[serde(flatten)]
        pub for_all: WishesForAll,
    }
}

template_kind! {
    kind = "OpenStackClusterStackReleaseTemplate",
    plural = "openstackclusterstackreleasetemplates",
    shortname = "oscsrt",
    doc = "OpenStackClusterStackReleaseTemplate is what a ClusterStack refers to whose node images are to come into an OpenStack cloud.",
    pub struct OpenStackClusterStackReleaseTemplateSpec of OpenStackClusterStackReleaseSpec;
}

image_kind! {
    kind = "OpenStackNodeImageRelease",
    plural = "openstacknodeimagereleases",
    shortname = "osnir",
    doc = "OpenStackNodeImageRelease is one node image in an OpenStack cloud. Releases that need the same image share it.",
    /// One image, and the cloud that it comes into.
    #[derive(Default)]
    pub struct OpenStackNodeImageReleaseSpec {
        /// The Secret with the credentials of the cloud. Cannot be changed.
        #[schemars(extend("x-kubernetes-validations" = [of_secret(), of_place()]))]
        pub identity_ref: IdentityReference,
        /// The image.
        pub image: OpenStackImage,
        /// How it is treated.
        #[serde(flatten)]
        pub wishes: ImageWishes,
    }
}

/// An image for Glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackImage {
    /// Where the bytes are: https, oci, release (a file of the release itself), and http where the operator was started with a flag that allows it.
    /// Empty for an image that is built or adopted.
    #[schemars(length(max = 2048))]
    pub url: String,
    /// What the image is to be in Glance.
    pub create_opts: OpenStackCreateOptions,
    /// What its bytes must be, and how they are come by.
    #[serde(flatten)]
    pub content: ImageContent,
}

/// What an image is to be in Glance, in the words of its API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenStackCreateOptions {
    /// Name of the image.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Id of the image; one of the operator's choice without it. Only the first attempt has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Who sees the image: public, private, shared or community.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
    /// Whether the image is left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_hidden: Option<bool>,
    /// Tags of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Format of the container, such as bare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_format: Option<String>,
    /// Format of the disk, such as qcow2 or raw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_format: Option<String>,
    /// Smallest disk that the image boots from, in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_disk: Option<i64>,
    /// Least memory that the image boots with, in MB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ram: Option<i64>,
    /// Whether the image cannot be deleted by others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<bool>,
    /// Properties of the image, such as `hw_disk_bus`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

impl ProviderRelease for OpenStackClusterStackReleaseSpec {
    type Image = OpenStackNodeImageReleaseSpec;

    fn images(&self, file: &NodeImages) -> Result<Vec<Self::Image>, NodeImageError> {
        let images = openstack_images(file)?
            .into_iter()
            .map(|image| OpenStackNodeImageReleaseSpec {
                identity_ref: self.identity_ref.clone(),
                image,
                wishes: self.for_all.wishes(),
            });
        Ok(images.collect())
    }
}

impl ProviderImage for OpenStackNodeImageReleaseSpec {
    fn definition() -> &'static Definition {
        Provider::OpenStack.definition()
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
        match serde_json::to_value(&self.image.create_opts) {
            Ok(Value::Object(options)) => options,
            // A struct with named fields is an object.
            _ => Map::new(),
        }
    }

    fn name(&self) -> &str {
        &self.image.create_opts.name
    }

    fn secret(&self) -> Option<&str> {
        Some(&self.identity_ref.name)
    }
}
