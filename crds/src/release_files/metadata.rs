//! metadata.yaml: which versions a release consists of.

use serde::{Deserialize, Serialize};

use super::{ReleaseFileError, read_yaml};
use crate::names::{KubernetesMinor, NameError, StackVersion};

/// The versions of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Version of the stack; the tag must end with it.
    pub cluster_stack: StackVersion,
    /// Full Kubernetes version as it is written, normally with `v`. `Cluster.spec.topology.version` must equal it letter by letter.
    pub kubernetes: String,
    /// Version of the add-ons.
    pub cluster_addon: StackVersion,
    /// Version of the node images; releases whose images come from elsewhere have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_image: Option<StackVersion>,
}

impl Metadata {
    /// Reads metadata.yaml. A missing version is reported before a wrong one, in the words of the contract.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReleaseFileError> {
        let File { versions } = read_yaml(bytes)?;
        let Versions {
            cluster_stack,
            kubernetes,
            components,
        } = versions;
        let Components {
            cluster_addon,
            node_image,
        } = components;
        if cluster_stack.is_empty() {
            return Err(ReleaseFileError::ClusterStackVersionEmpty);
        }
        if kubernetes.is_empty() {
            return Err(ReleaseFileError::KubernetesVersionEmpty);
        }
        if cluster_addon.is_empty() {
            return Err(ReleaseFileError::ClusterAddonVersionEmpty);
        }
        KubernetesMinor::of_full_version(&kubernetes).map_err(|source| ReleaseFileError::ReadVersion {
            field: "versions.kubernetes",
            source,
        })?;
        Ok(Self {
            cluster_stack: version("versions.clusterStack", &cluster_stack)?,
            kubernetes,
            cluster_addon: version("versions.components.clusterAddon", &cluster_addon)?,
            node_image: match node_image.as_str() {
                "" => None,
                text => Some(version("versions.components.nodeImage", text)?),
            },
        })
    }

    /// The Kubernetes minor that clusters of this release have.
    pub fn kubernetes_minor(&self) -> Result<KubernetesMinor, NameError> {
        KubernetesMinor::of_full_version(&self.kubernetes)
    }

    /// The text of metadata.yaml for a new release: the same versions always give the same bytes.
    pub fn to_yaml(&self) -> String {
        let Self {
            cluster_stack,
            kubernetes,
            cluster_addon,
            node_image,
        } = self;
        let node_image = node_image
            .as_ref()
            .map_or_else(String::new, |version| format!("    nodeImage: {version}\n"));
        format!(
            "apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1\n\
             versions:\n  clusterStack: {cluster_stack}\n  kubernetes: {kubernetes}\n  \
             components:\n    clusterAddon: {cluster_addon}\n{node_image}"
        )
    }
}

fn version(field: &'static str, text: &str) -> Result<StackVersion, ReleaseFileError> {
    text.parse()
        .map_err(|source| ReleaseFileError::ReadVersion { field, source })
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    versions: Versions,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Versions {
    cluster_stack: String,
    kubernetes: String,
    components: Components,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Components {
    cluster_addon: String,
    node_image: String,
}
