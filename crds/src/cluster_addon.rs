//! `ClusterAddon`: the add-ons of one workload cluster. The operator writes it; its name is [`name_for`] the cluster.

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::Time};
use kube::{CustomResource, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions::{Condition, known_time, known_time_or_none},
    resource::Resource,
    schema::atomic_object_reference,
};

/// The name of the `ClusterAddon` of a cluster.
pub fn name_for(cluster: &str) -> String {
    format!("cluster-addon-{cluster}")
}

/// Which cluster the add-ons are for.
#[expect(clippy::duplicated_attributes, reason = "several columns have the same type")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "ClusterAddon",
    plural = "clusteraddons",
    shortname = "caddon",
    namespaced,
    status = "ClusterAddonStatus",
    derive = "PartialEq",
    doc = "ClusterAddon is what runs in a workload cluster because its class belongs to a cluster stack. It is written by the operator.",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".metadata.ownerReferences[?(@.kind==\"Cluster\")].name"
    ),
    printcolumn(name = "Hook", type_ = "string", json_path = ".status.hook.name"),
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
pub struct ClusterAddonSpec {
    /// The Cluster, in the same namespace. Its kind and name cannot be changed.
    #[schemars(schema_with = "atomic_object_reference", extend("x-kubernetes-validations" = [
        Rule::new("has(self.kind) && self.kind == 'Cluster'").message("kind must be cluster").field_path(".kind"),
        Rule::new("has(self.name) && self.name != ''").message("must not be empty").field_path(".name"),
        Rule::new("has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)")
            .message("field is immutable").field_path(".name"),
    ]))]
    pub cluster_ref: ObjectReference,
    /// Class of the cluster when its add-ons were last complete. Written by the Go operator; read once when its objects are taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_stack: Option<String>,
    /// Version of the add-ons that was last begun. Written by the Go operator, and read by nobody; status.target is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Lifecycle hook that was last called. Written by the Go operator, and read by nobody; status.hook is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
}

/// What the operator found and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterAddonStatus {
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Generation of the Cluster that the rest is about. Whoever asks about a later one is not answered from this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_generation: Option<i64>,
    /// What the cluster shall have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<AddonVersion>,
    /// What the cluster has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<AddonVersion>,
    /// The lifecycle hook whose stages are being worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookProgress>,
    /// How far each stage is, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageProgress>,
    /// Every object of the add-ons, and how it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// The bytes of the release that the target is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assets: Option<AddonAssets>,
    /// The Secret with what the charts drew at random, so that it is drawn once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memo: Option<AddonMemo>,
    /// What the annotation clusterstack.x-k8s.io/approve-prune said when it approved a deletion, until the last of those objects is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_prune: Option<String>,
    /// Whether the add-ons are complete.
    pub ready: bool,
    /// The value of the annotation clusterstack.x-k8s.io/requestedAt that was answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// What is true of the add-ons, Ready first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A state of the add-ons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonVersion {
    /// Class of the cluster.
    pub cluster_stack: String,
    /// Version of the add-ons, as metadata.yaml of the release has it.
    pub version: String,
    /// Kubernetes version of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Digest of all that decides what the objects are: version of the add-ons, Kubernetes version, values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The files that add-ons are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AddonAssets {
    /// Digest of the archive with the charts.
    pub digest: String,
}

/// What is known of the memo without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AddonMemo {
    /// Digest of its content.
    pub digest: String,
    /// How many answers it holds.
    pub entries: i64,
}

/// A lifecycle hook that is being answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookProgress {
    /// Name of the hook, such as `BeforeClusterUpgrade`.
    pub name: String,
    /// Since when it is being answered.
    #[serde(deserialize_with = "known_time")]
    pub since: Time,
    /// When waiting for it ends.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_time_or_none"
    )]
    pub deadline: Option<Time>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far one stage is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageProgress {
    /// Name of the stage: the directory of its chart.
    pub name: String,
    /// What the stage does with the objects of its chart: apply or delete.
    pub action: StageAction,
    /// The lifecycle hook that the release lists the stage under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// How far it is: Pending, waitingForPreCondition, applyingOrDeleting, waitingForPostCondition or done.
    #[serde(default)]
    #[schemars(with = "String")]
    pub phase: StagePhase,
    /// Why it is not further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when it has been in this phase.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_time_or_none"
    )]
    pub since: Option<Time>,
    /// When it takes longer than the release gives it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_time_or_none"
    )]
    pub deadline: Option<Time>,
    /// What it waits for, in the words of whoever holds it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether what comes after it goes on without it, because it takes too long or waits for what cannot be, and the release allows that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passed_over: bool,
}

/// What a stage does with the objects of its chart.
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
    JsonSchema,
    strum::Display,
    strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum StageAction {
    /// Applies them.
    Apply,
    /// Deletes them.
    Delete,
}

/// How far a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum StagePhase {
    /// Not begun.
    #[serde(rename = "Pending")]
    #[strum(to_string = "Pending")]
    Pending,
    /// What must hold before it does not hold yet.
    WaitingForPreCondition,
    /// At work.
    ApplyingOrDeleting,
    /// What must hold after it does not hold yet.
    WaitingForPostCondition,
    /// Finished.
    Done,
    /// Not said (the Go operator leaves it so where a stage is not in its list), or what another version of the operator calls differently.
    #[default]
    #[serde(rename = "", other)]
    #[strum(to_string = "")]
    Unknown,
}
