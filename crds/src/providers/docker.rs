//! Images that are in a container registry already: the kinds of the provider that only looks whether they are there.

use std::borrow::Cow;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Definition, Provider, ProviderImage, ProviderRelease,
    image_options::{Execution, ImageContent, ImagePolicy, ImageWishes},
    image_status::NodeImageStatus,
    kinds::{release_kind, template_kind},
};
use crate::{
    release_files::{NodeImageError, NodeImages, docker_images},
    source::SecretReference,
};

/// Every image is somebody else's.
static WISHES: ImageWishes = ImageWishes {
    transfer: None,
    policy: ImagePolicy::Adopt,
    deletion_policy: None,
    execution: Execution::InProcess,
    job: None,
};

release_kind! {
    kind = "DockerClusterStackRelease",
    plural = "dockerclusterstackreleases",
    shortname = "dcsr",
    doc = "DockerClusterStackRelease looks whether the node images of one release are in their registries. Its name is the release tag.",
    /// How the registries of the release's images are asked.
    #[derive(Default)]
    pub struct DockerClusterStackReleaseSpec {
        /// Secret for the registry, as Pods have it; the key is `.dockerconfigjson` unless another one is named. Without it the registry is asked as
        /// anybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pull_secret_ref: Option<SecretReference>,
    }
}

template_kind! {
    kind = "DockerClusterStackReleaseTemplate",
    plural = "dockerclusterstackreleasetemplates",
    shortname = "dcsrt",
    doc = "DockerClusterStackReleaseTemplate is what a ClusterStack refers to whose node images are in a container registry.",
    pub struct DockerClusterStackReleaseTemplateSpec of DockerClusterStackReleaseSpec;
}

/// One image in a registry.
#[expect(clippy::duplicated_attributes, reason = "several columns have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "DockerNodeImageRelease",
    plural = "dockernodeimagereleases",
    shortname = "dnir",
    namespaced,
    status = "NodeImageStatus",
    derive = "PartialEq",
    doc = "DockerNodeImageRelease is one node image in a container registry. It is looked at and never changed.",
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
    ),
    printcolumn(name = "Image", type_ = "string", json_path = ".status.image.id", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct DockerNodeImageReleaseSpec {
    /// Secret for the registry, as Pods have it; the key is `.dockerconfigjson` unless another one is named. Without it the registry is asked as
    /// anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret_ref: Option<SecretReference>,
    /// The image.
    pub image: DockerImage,
}

/// An image in a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DockerImage {
    /// The image as Pods name it: registry, repository and tag, or digest.
    #[schemars(length(min = 1, max = 2048))]
    pub reference: String,
    /// Digest that its manifest must have: `sha256:` and 64 hexadecimal digits in lower case. Without it the one is trusted that is found first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
}

impl ProviderRelease for DockerClusterStackReleaseSpec {
    type Image = DockerNodeImageReleaseSpec;

    fn images(&self, file: &NodeImages) -> Result<Vec<Self::Image>, NodeImageError> {
        let images = docker_images(file)?
            .into_iter()
            .map(|image| DockerNodeImageReleaseSpec {
                pull_secret_ref: self.pull_secret_ref.clone(),
                image,
            });
        Ok(images.collect())
    }
}

impl ProviderImage for DockerNodeImageReleaseSpec {
    fn definition() -> &'static Definition {
        Provider::Docker.definition()
    }

    fn content(&self) -> Cow<'_, ImageContent> {
        Cow::Owned(ImageContent {
            digest: self.image.digest.clone(),
            ..ImageContent::default()
        })
    }

    fn url(&self) -> &'static str {
        ""
    }

    fn wishes(&self) -> &ImageWishes {
        &WISHES
    }

    fn options(&self) -> Map<String, Value> {
        let reference = ("reference".to_owned(), Value::from(self.image.reference.as_str()));
        [reference].into_iter().collect()
    }

    fn name(&self) -> &str {
        &self.image.reference
    }

    fn secret(&self) -> Option<&str> {
        self.pull_secret_ref.as_ref().map(|secret| secret.name.as_str())
    }

    fn secret_key(&self) -> Option<&str> {
        self.pull_secret_ref.as_ref()?.key.as_deref()
    }
}
