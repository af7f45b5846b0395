//! `ClusterStack`: a provider of clusters says which releases of a stack shall be there.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{CustomResource, core::Rule};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    conditions::Condition,
    names::{Channel, NameError, ReleaseStem},
    policy::{DriftPolicy, HelmProfile, PruneLimit, ReleasePolicy, Verification},
    schema::{atomic_object_reference, immutable, of_provider_group},
    source::Source,
};

/// Most entries of `spec.versions`. The API server counts what its rules may cost at most, and refuses rules over unbounded lists; this list
/// with texts of [`PART_LENGTH`] stays below its limit.
pub const VERSIONS_LENGTH: u32 = 1024;
/// Longest provider, name, channel and version: the longest label value.
pub const PART_LENGTH: u32 = 63;

/// What is wrong with a stack that names no provider and does not say that it needs none: the contract's words, and what to write.
pub const NO_PROVIDER_REF: &str =
    "empty provider ref, even though noProvider mode is turned off; set spec.providerRef, or spec.noProvider: true";

/// How versions are written; it follows the contract's words about one that is not.
pub const VERSION_FORM: &str = "write v1, v2 or v0-sha.abc";

/// What is wrong with a `spec.providerRef` whose kind leaves no name for the kind of the release objects.
pub const NO_TEMPLATE_REF: &str =
    "invalid provider ref: use a kind whose name ends with Template, such as OpenStackClusterStackReleaseTemplate";

/// A family of releases for one Kubernetes minor, and which of them shall be usable in this namespace.
// Texts are kept as they are: a stack that the Go operator admitted may hold what cannot be parsed, and must still be readable.
#[expect(clippy::duplicated_attributes, reason = "several columns have the same type")]
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "clusterstack.x-k8s.io",
    version = "v1alpha1",
    kind = "ClusterStack",
    plural = "clusterstacks",
    shortname = "csk",
    namespaced,
    status = "ClusterStackStatus",
    derive = "PartialEq",
    doc = "ClusterStack says which releases of a cluster stack shall be usable in its namespace.",
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.provider"),
    printcolumn(name = "ClusterStack", type_ = "string", json_path = ".spec.name"),
    printcolumn(name = "K8s", type_ = "string", json_path = ".spec.kubernetesVersion"),
    printcolumn(name = "Channel", type_ = "string", json_path = ".spec.channel"),
    printcolumn(name = "Autosubscribe", type_ = "string", json_path = ".spec.autoSubscribe"),
    printcolumn(name = "Usable", type_ = "string", json_path = ".status.usableVersions"),
    printcolumn(name = "Latest", type_ = "string", json_path = ".status.latestRelease"),
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
#[schemars(extend("x-kubernetes-validations" = [
    Rule::new("self.noProvider || has(self.providerRef)")
        .message(NO_PROVIDER_REF)
        .field_path(".providerRef"),
]))]
pub struct ClusterStackSpec {
    /// Infrastructure that the stack is made for, such as openstack. It is the first part of the release tags. Cannot be changed.
    #[schemars(length(min = 1, max = PART_LENGTH), extend("x-kubernetes-validations" = [
        immutable(),
        Rule::new("self.matches('^[a-z0-9]+$')")
            .message("invalid provider: use lower-case letters and digits only, as it is a part of the release tags"),
    ]))]
    pub provider: String,
    /// Name of the stack. It is the second part of the release tags. Cannot be changed.
    #[schemars(length(min = 1, max = PART_LENGTH), extend("x-kubernetes-validations" = [
        immutable(),
        Rule::new("self.matches('^[a-z0-9]+$')")
            .message("invalid name: use lower-case letters and digits only, as it is a part of the release tags"),
    ]))]
    pub name: String,
    /// Kubernetes minor version of the stack, such as "1.32". Cannot be changed.
    #[schemars(length(max = PART_LENGTH), regex(pattern = r"^\d\.\d+$"), extend("x-kubernetes-validations" = [
        immutable(),
        // The API server says of a pattern only that it does not match.
        Rule::new("self.matches('^[0-9][.][0-9]+$')").message("write the minor version only, such as \"1.27\""),
    ]))]
    pub kubernetes_version: String,
    /// Which kind of versions the stack follows: stable (v1, v2), custom (every version that is not stable), or the word of the versions
    /// themselves, such as alpha, beta or sha. Cannot be changed.
    #[serde(default = "stable")]
    #[schemars(length(max = PART_LENGTH), regex(pattern = "^[a-z0-9]+$"), extend("x-kubernetes-validations" = [immutable()]))]
    pub channel: String,
    /// Versions that shall be usable whatever else is, such as v1 or v0-sha.abc.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "versions")]
    pub versions: Vec<String>,
    /// Whether the newest release of the channel is taken as soon as it appears; only that one, so it hides those before it while it is broken.
    /// The one before goes when the new one is ready, unless spec.versions lists it or a Cluster uses it.
    #[serde(default = "yes")]
    pub auto_subscribe: bool,
    /// Whether the releases need nothing of a provider, such as node images.
    #[serde(default)]
    pub no_provider: bool,
    /// Template of the provider's release objects, in the same namespace, of a kind of the group infrastructure.clusterstack.x-k8s.io. Required
    /// unless noProvider is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "atomic_object_reference", extend("x-kubernetes-validations" = [
        of_provider_group(),
        Rule::new("!has(self.kind) || (self.kind.endsWith('Template') && self.kind != 'Template')").message(NO_TEMPLATE_REF),
    ]))]
    pub provider_ref: Option<ObjectReference>,
    /// Where releases come from. Without it they come from the source that the operator was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// How often the source is asked for new releases, such as 5m or 1h30m; at least 10s.
    #[serde(default = "five_minutes")]
    #[schemars(length(max = PART_LENGTH), regex(pattern = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"), extend("x-kubernetes-validations" = [
        Rule::new("duration(self) >= duration('10s')").message("must be at least 10s"),
    ]))]
    pub interval: String,
    /// How signatures of releases are checked. Without it they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// What happens when somebody changes or deletes objects of a release. Correct: fields that the release sets are put back, deleted
    /// objects made again; what others add stays. Warn: the status says so, and they stay as they are; a release without one of its objects is not
    /// ready. Ignore: as Warn, but changed fields are not looked at. Under all three an object that loses the operator's label is written anew, because it could not be watched without.
    #[serde(default)]
    pub drift: DriftPolicy,
    /// Whose behaviour the rendering of charts follows: v3.19 (as the Go operator), v4.1, v4.2 or v4.3.
    #[serde(default)]
    pub helm_profile: HelmProfile,
    /// Stops the reconciliation of this stack: no release is created, changed or deleted. Those that are there are still looked after; each can be
    /// paused by the annotation cluster.x-k8s.io/paused.
    #[serde(default)]
    pub suspend: bool,
    /// Most objects that one pass may delete because they left a rendering, or releases because they left the source, without the annotation
    /// clusterstack.x-k8s.io/approve-prune: a number, or a percentage of what there is. Up to 10 objects may always be deleted. What you drop
    /// from spec.versions while the source has it, and what your own deletion asks for, is not limited.
    #[serde(default)]
    pub prune_limit: PruneLimit,
}

impl ClusterStackSpec {
    /// The first four parts of the tags of this stack. Fails for what an older operator admitted but no tag can contain.
    pub fn stem(&self) -> Result<ReleaseStem, NameError> {
        ReleaseStem::new(&self.provider, &self.name, self.kubernetes_version.parse()?)
    }

    /// `channel`, parsed.
    pub fn parsed_channel(&self) -> Result<Channel, NameError> {
        self.channel.parse()
    }

    /// `interval` as a duration; the default when it cannot be read, which the API server does not let happen.
    pub fn poll_interval(&self) -> Duration {
        self.interval
            .parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|interval| Duration::try_from(interval).ok())
            .unwrap_or(DEFAULT_INTERVAL)
    }

    /// What the releases of this stack carry in `spec.policy`.
    pub fn policy(&self) -> ReleasePolicy {
        ReleasePolicy {
            helm_profile: self.helm_profile,
            drift: self.drift,
            verification: self.verification.clone(),
            prune_limit: self.prune_limit,
        }
    }
}

const DEFAULT_INTERVAL: Duration = Duration::from_mins(5);

fn stable() -> String {
    Channel::STABLE.to_owned()
}

fn yes() -> bool {
    true
}

fn five_minutes() -> String {
    "5m".to_owned()
}

/// A list of versions in dot form; each bad one is refused by its own name.
fn versions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": VERSIONS_LENGTH,
        "items": {
            "type": "string",
            "maxLength": PART_LENGTH,
            "x-kubernetes-validations": [{
                "rule": "self.matches('^v[0-9]+(-[0-9A-Za-z_]+[.][0-9A-Za-z_]+)?$')",
                "messageExpression": format!("'invalid version: invalid version string ' + self + '; {VERSION_FORM}'"),
            }],
        },
    })
}

/// What the operator found and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStackStatus {
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The newest release that is ready and its Kubernetes version, as "docker-ferrol-1-27-v2 | v1.27.3".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_release: Option<String>,
    /// How far each release is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<ReleaseSummary>,
    /// The versions that are ready, as "v1, v2".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable_versions: Option<String>,
    /// The newest releases that the source offers, newest first, at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available: Vec<AvailableRelease>,
    /// How many releases the source offers for this stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_count: Option<i64>,
    /// How many names the source has that are no release tags. They are passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_count: Option<i64>,
    /// The release that is being made ready and will be the latest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_release: Option<String>,
    /// What an operator before this one left behind of releases that are no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphans: Option<Orphans>,
    /// The deletion of releases that was approved, until the last of them is on its way: it goes on after an interruption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_prune: Option<ApprovedPrune>,
    /// The value of the annotation clusterstack.x-k8s.io/requestedAt that was answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// What is true of the stack, Ready first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A deletion of more than pruneLimit that somebody approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedPrune {
    /// What the annotation clusterstack.x-k8s.io/approve-prune says. With another value the approval is over.
    #[serde(default)]
    pub digest: String,
    /// The releases that it allows to delete.
    #[serde(default)]
    pub releases: Vec<String>,
}

/// What is left of releases that an operator before this one dropped without deleting their objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Orphans {
    /// How many ClusterClasses are left.
    #[serde(default)]
    pub count: i64,
    /// Those of them that come next, at most 20: first what may be deleted, then what Clusters use.
    #[serde(default)]
    pub classes: Vec<OrphanedClass>,
}

/// A ClusterClass without a release. It stays as it is until somebody allows to delete it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrphanedClass {
    /// Name of the ClusterClass.
    pub name: String,
    /// What the annotation clusterstack.x-k8s.io/approve-orphans has to name to have the class and its objects deleted. Missing while Clusters use
    /// the class, or while it is going.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The objects that go with it, each as "Kind name", at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    /// The Clusters that use it, each as "namespace/name", at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
    /// Why it could not be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far one release is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseSummary {
    /// Version of the release in the form of tags, such as v1 or v0-sha-abc.
    pub name: String,
    /// Whether the release can be used.
    #[serde(default)]
    pub ready: bool,
    /// What is being done: downloading release assets, provider-specific work, applying objects, or done.
    #[serde(default)]
    #[schemars(with = "String")]
    pub phase: ReleasePhase,
    /// Why the release is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What is being done to make a release ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumIter)]
pub enum ReleasePhase {
    /// Its files are fetched.
    #[serde(rename = "downloading release assets")]
    #[strum(to_string = "downloading release assets")]
    DownloadingAssets,
    /// The provider works.
    #[serde(rename = "provider-specific work")]
    #[strum(to_string = "provider-specific work")]
    ProviderWork,
    /// Objects are applied, or are not healthy yet.
    #[serde(rename = "applying objects")]
    #[strum(to_string = "applying objects")]
    ApplyingObjects,
    /// The release is ready.
    #[serde(rename = "done")]
    #[strum(to_string = "done")]
    Done,
    /// Nothing yet, or what another version of the operator calls differently.
    #[default]
    #[serde(rename = "", other)]
    #[strum(to_string = "")]
    Unknown,
}

/// A release that the source offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableRelease {
    /// Version as it would be written in spec.versions.
    pub version: String,
    /// Tag of the release.
    pub release: String,
    /// Kubernetes version, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Digest of the release, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether the release can be used now.
    #[serde(default)]
    pub ready: bool,
}
