//! One line of an inventory: an object that we applied, and how it is. Shared by the status of releases and add-ons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object that belongs to the release, and how it is.
// Empty texts are absent on the wire, so an inventory of thousands stays small.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Resource {
    /// API group; absent for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version of the API.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace; absent for objects of the whole cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether the object is as the release wants it: synced or not-synced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub status: Option<SyncStatus>,
    /// Why it is not, in the words of the API server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Digest of what we want the object to be.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// How the object itself is: Current, `InProgress`, Failed, Terminating or Unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub health: Option<Health>,
    /// The field manager that owns fields which the release wants to set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manager: String,
    /// The newer release of the stack that has the object, in a form of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub superseded_by: String,
    /// Why the object is left otherwise than the release wants it: Drifted, or `InNewerForm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub left: Option<Left>,
    /// Whether the object left the release and its deletion is approved, by the digest in approvedPrune of the status.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prune_approved: bool,
    /// Of an add-on: the chart that the object comes from.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stage: String,
}

/// Why an object is left otherwise than its release wants it.
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
    strum::EnumIter,
)]
pub enum Left {
    /// Somebody changed it, and the drift policy is `Warn`.
    Drifted,
    /// A newer release gave it another form and is gone; going back would lose stored data.
    InNewerForm,
    /// A reason that a later version of the operator knows.
    #[serde(other)]
    Unknown,
}

/// Whether an object is as its release wants it.
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
    strum::EnumIter,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SyncStatus {
    /// It was applied as wanted.
    Synced,
    /// It was not, or not yet.
    #[serde(other)]
    NotSynced,
}

/// How an object is, by the rules of kstatus.
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
    strum::EnumIter,
)]
pub enum Health {
    /// It has become what its spec says.
    Current,
    /// It is on the way.
    InProgress,
    /// It says itself that it failed.
    Failed,
    /// It is being deleted.
    Terminating,
    /// It cannot be told.
    #[serde(other)]
    Unknown,
}
