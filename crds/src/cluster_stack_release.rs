//! `ClusterStackRelease`: one release of a stack in one namespace. The operator writes it; its name is the release tag.

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    GROUP, PROVIDER_GROUP,
    conditions::Condition,
    policy::ReleasePolicy,
    resource::Resource,
    schema::{atomic_object_reference, of_provider_group},
    source::Source,
};

/// What is wrong with a reference that [`provider_kind`] does not accept.
pub const FOREIGN_PROVIDER_REF: &str =
    "invalid provider ref: use a kind of the group infrastructure.clusterstack.x-k8s.io";

/// The kind that a reference to an object of a provider names; `None` for any kind outside [`PROVIDER_GROUP`].
///
/// The operator reads, controls and creates what is referred to with its own rights, which reach further than those of whoever wrote the
/// reference; only a provider's own kinds are made for that.
pub fn provider_kind(reference: &ObjectReference) -> Option<&str> {
    let (group, _version) = reference.api_version.as_deref()?.split_once('/')?;
    reference
        .kind
        .as_deref()
        .filter(|kind| group == PROVIDER_GROUP && !kind.is_empty())
}

/// Whether an owner is a ClusterStack of ours, in whatever version: other groups may have a kind of that name.
pub fn is_stack(owner: &OwnerReference) -> bool {
    owner.kind == "ClusterStack"
        && owner
            .api_version
            .split_once('/')
            .is_some_and(|(group, _)| group == GROUP)
}

impl ClusterStackRelease {
    /// The ClusterStacks among its owners.
    pub fn stacks(&self) -> impl Iterator<Item = &OwnerReference> {
        let owners = self.metadata.owner_references.iter().flatten();
        owners.filter(|owner| is_stack(owner))
    }
}

/// What the stack wants of this release.
#[expect(clippy::duplicated_attributes, reason = "several columns have the same type")]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "ClusterStackRelease",
    plural = "clusterstackreleases",
    shortname = "cskr",
    namespaced,
    status = "ClusterStackReleaseStatus",
    derive = "PartialEq",
    doc = "ClusterStackRelease is one release of a cluster stack. Its name is the release tag. It is written by the operator.",
    printcolumn(name = "K8s Version", type_ = "string", json_path = ".status.kubernetesVersion"),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
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
pub struct ClusterStackReleaseSpec {
    /// The provider's release object, of a kind of the group infrastructure.clusterstack.x-k8s.io. Without it the release needs nothing of a
    /// provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "atomic_object_reference", extend("x-kubernetes-validations" = [of_provider_group()]))]
    pub provider_ref: Option<ObjectReference>,
    /// Where the release comes from, as in the stack. Without it, from the source that the operator was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// How the release is treated, as in the stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ReleasePolicy>,
}

/// What the operator found and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStackReleaseStatus {
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The files of the release that are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assets: Option<ReleaseAssets>,
    /// Every object of the release, and how it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// Kubernetes version that clusters of this release must have, such as v1.27.3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Whether the release can be used. Goes back to false when something breaks.
    pub ready: bool,
    /// What the annotation clusterstack.x-k8s.io/approve-prune said when it approved a deletion, until the last of those objects is gone: it goes
    /// on after an interruption. With another value there the approval is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_prune: Option<String>,
    /// The value of the annotation clusterstack.x-k8s.io/requestedAt that was answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// What is true of the release, Ready first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The bytes that a release is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseAssets {
    /// Digest of the release: `sha256:` and 64 hexadecimal digits. Other bytes under the same tag are refused from now on.
    pub digest: String,
    /// How many bytes all files of the release have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Where the bytes came from.
    #[serde(default)]
    pub source: String,
    /// Who signed the release; absent when signatures were not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_by: Option<String>,
}
