//! OpenStack: the kinds of the Go provider, field by field, with optional fields beside.

use std::{borrow::Cow, collections::BTreeMap};

use kube::{CustomResource, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Definition, Provider, ProviderImage, ProviderRelease,
    image_options::{ImageContent, ImageWishes, WishesForAll, of_image},
    image_status::{NodeImageStatus, ProviderReleaseStatus},
};
use crate::release_files::{NodeImageError, NodeImages, openstack_images};

/// The Secret with the credentials, as Cluster API's provider for OpenStack names it in v1alpha7.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    Rule::new("self.kind == 'Secret'").message("only a Secret of this namespace can be used").field_path(".kind"),
]))]
pub struct IdentityReference {
    /// Kind of the object; only Secret.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of a Secret of the same namespace, with the key `clouds.yaml`, and if need be `cloudName` (else `openstack`) and `cacert`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl Default for IdentityReference {
    fn default() -> Self {
        Self {
            kind: "Secret".to_owned(),
            name: "openstack".to_owned(),
        }
    }
}

/// Which cloud the images of the release come into, and how.
#[expect(clippy::duplicated_attributes, reason = "several columns have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "OpenStackClusterStackRelease",
    plural = "openstackclusterstackreleases",
    shortname = "oscsr",
    namespaced,
    status = "ProviderReleaseStatus",
    derive = "PartialEq",
    doc = "OpenStackClusterStackRelease brings the node images of one release into an OpenStack cloud. Its name is the release tag.",
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
pub struct OpenStackClusterStackReleaseSpec {
    /// The Secret with the credentials of the cloud.
    #[serde(default)]
    pub identity_ref: IdentityReference,
    /// What holds for all images of the release.
    #[serde(flatten)]
    pub for_all: WishesForAll,
}

/// What the release objects of a stack are made from.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "OpenStackClusterStackReleaseTemplate",
    plural = "openstackclusterstackreleasetemplates",
    shortname = "oscsrt",
    namespaced,
    derive = "PartialEq",
    doc = "OpenStackClusterStackReleaseTemplate is what a ClusterStack refers to whose node images are to come into an OpenStack cloud."
)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterStackReleaseTemplateSpec {
    /// What each release object becomes.
    pub template: OpenStackClusterStackReleaseResource,
}

/// A release object without its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterStackReleaseResource {
    /// Its spec.
    pub spec: OpenStackClusterStackReleaseSpec,
}

/// One image, and the cloud that it comes into.
#[expect(clippy::duplicated_attributes, reason = "several columns have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "OpenStackNodeImageRelease",
    plural = "openstacknodeimagereleases",
    shortname = "osnir",
    namespaced,
    status = "NodeImageStatus",
    derive = "PartialEq",
    doc = "OpenStackNodeImageRelease is one node image in an OpenStack cloud. Releases that need the same image share it.",
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
pub struct OpenStackNodeImageReleaseSpec {
    /// The Secret with the credentials of the cloud.
    pub identity_ref: IdentityReference,
    /// The image.
    pub image: OpenStackImage,
    /// How it is treated.
    #[serde(flatten)]
    pub wishes: ImageWishes,
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
