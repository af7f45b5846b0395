//! What may be asked of an image, whichever provider brings it: its bytes, how they are checked and made, how they travel, and what becomes of
//! them. What a field does to a cloud is each provider's matter.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    schema::{LENGTH_OF_TIME, choice, quantities, quantity},
    source::SecretReference,
};

/// A digest as it stands in a spec.
pub(crate) const DIGEST: &str = "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$";

/// What must hold between the fields of a spec with an image that has a URL, content and wishes.
pub(super) fn of_image() -> [Rule; 3] {
    let url = ".image.url";
    [
        Rule::new("size(self.image.url) > 0 || has(self.image.build) || (has(self.policy) && self.policy == 'Adopt')")
            .message("an image needs a url or a build, unless its policy is Adopt")
            .field_path(url),
        Rule::new("!(size(self.image.url) > 0 && has(self.image.build))")
            .message("an image that is built has no url")
            .field_path(url),
        Rule::new("!has(self.image.digest) || !has(self.image.sums)")
            .message("digest and sums exclude each other")
            .field_path(".image.sums"),
    ]
}

/// What the bytes of an image must be, and how they are come by. Stands beside the URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Digest of the file at the URL as it is there, also when it is compressed: `sha256:` or `sha512:` and hexadecimal digits in lower case. Other
    /// bytes are refused. Without it those are trusted that come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 135), regex(pattern = DIGEST))]
    pub digest: Option<String>,
    /// A file with the digests of several files, of which the image is one. Instead of a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sums: Option<SumsFile>,
    /// How the file at the URL is compressed; it arrives decompressed. Auto: as its first bytes say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "choice::<Compression>")]
    pub compression: Option<Compression>,
    /// How the image is built, instead of being fetched; the URL is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Secret with PEM certificates that the server at the URL may have besides the usual ones; the key is `ca.crt` unless another one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<SecretReference>,
    /// Secret for the server at the URL, with the keys `username` and `password`, or `token`; for a registry also the one by which Pods pull.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<SecretReference>,
}

/// A file with the digests of several files, as `sha256sum` and its like write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SumsFile {
    /// Where it is.
    #[schemars(length(max = 2048), regex(pattern = r"^https?://"))]
    pub url: String,
    /// The name that the image has in it, when it is not the last part of its URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
}

/// How a file is compressed.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
)]
pub enum Compression {
    /// As its first bytes say.
    #[default]
    Auto,
    /// Not at all; what is compressed is refused where the format of the image is another.
    None,
    /// By gzip.
    Gzip,
    /// By xz.
    Xz,
    /// By bzip2.
    Bzip2,
    /// By zstd.
    Zstd,
}

/// How an image is built: in a container that leaves it as a file. The container gets neither a Secret nor a token of the API server. Converting an
/// image of another format is a build too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Build {
    /// Image of the container, best with its digest.
    #[schemars(length(min = 1, max = 2048))]
    pub image: String,
    /// What runs in it; the entry point of the image unless it is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub command: Vec<String>,
    /// Arguments of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub args: Vec<String>,
    /// Environment of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub env: Vec<EnvironmentValue>,
    /// The file that the build leaves, as a path below `/artifact`.
    #[serde(default = "default_artifact")]
    #[schemars(length(min = 1, max = 255), regex(pattern = "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$"), extend("x-kubernetes-validations" = [
        Rule::new("!self.split('/').exists(part, part == '..')").message("must be a path without .."),
    ]))]
    pub artifact: String,
    /// How large `/artifact` may grow; the build ends when it does.
    #[serde(default = "default_size_limit")]
    #[schemars(schema_with = "quantity")]
    pub size_limit: Quantity,
    /// How long the build may take.
    #[serde(default = "default_deadline")]
    #[schemars(length(max = 63), regex(pattern = LENGTH_OF_TIME), extend("x-kubernetes-validations" = [
        Rule::new("duration(self) >= duration('1m')").message("must be at least 1m"),
    ]))]
    pub deadline: String,
    /// What the container may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Labels of the nodes on which it may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that it may run on all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tolerations: Vec<Toleration>,
}

impl Build {
    /// How long a build may take that does not say.
    pub const DEADLINE: Duration = Duration::from_hours(2);

    /// `deadline` as a duration; [`Self::DEADLINE`] when it cannot be read, which the API server does not let happen.
    pub fn deadline(&self) -> Duration {
        self.deadline
            .parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|deadline| Duration::try_from(deadline).ok())
            .unwrap_or(Self::DEADLINE)
    }
}

fn default_artifact() -> String {
    "image".to_owned()
}

fn default_size_limit() -> Quantity {
    Quantity("20Gi".to_owned())
}

fn default_deadline() -> String {
    "2h".to_owned()
}

/// One variable of an environment. Its value stands here: nothing is read from Secrets or elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentValue {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its value.
    #[serde(default)]
    pub value: String,
}

/// What a container asks for, and what it gets at most, such as `cpu`, `memory` and `ephemeral-storage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// What it asks for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub requests: BTreeMap<String, Quantity>,
    /// What it gets at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub limits: BTreeMap<String, Quantity>,
}

/// A taint of nodes on which a Pod may run all the same, as Kubernetes has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Key of the taint; every taint without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Exists, or Equal (the default): whether the value counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; all of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// How many seconds a taint `NoExecute` is borne.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How an image is treated. Stands beside the image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageWishes {
    /// How the bytes travel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// Create: bring the image. Adopt: use one that somebody else put there, and wait for it. `IfMissing`: use one that is there, else bring it.
    #[serde(default)]
    pub policy: ImagePolicy,
    /// What becomes of an image that was brought when its object goes: Delete (the default) or Retain. An adopted one always stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "choice::<DeletionPolicy>")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Where the work is done. Auto: what is built in a Job, all else in the operator.
    #[serde(default)]
    pub execution: Execution,
    /// What the Job gets, where the work is done in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobShape>,
}

/// What a release object says for all of its images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WishesForAll {
    /// How the bytes travel, for every image of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// Create, Adopt or `IfMissing`, for every image of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "choice::<ImagePolicy>")]
    pub policy: Option<ImagePolicy>,
    /// Delete or Retain, for every image of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "choice::<DeletionPolicy>")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Auto, `InProcess` or Job, for every image of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "choice::<Execution>")]
    pub execution: Option<Execution>,
    /// What the Jobs get, where the work is done in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobShape>,
}

impl WishesForAll {
    /// How an image is treated that says nothing itself.
    pub fn wishes(&self) -> ImageWishes {
        let Self {
            transfer,
            policy,
            deletion_policy,
            execution,
            job,
        } = self;
        ImageWishes {
            transfer: transfer.clone(),
            policy: policy.unwrap_or_default(),
            deletion_policy: *deletion_policy,
            execution: execution.unwrap_or_default(),
            job: job.clone(),
        }
    }
}

/// How the bytes of an image travel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transfer {
    /// Upload: the operator reads them and sends them on. `ServerSide`: the cloud fetches them itself, and is checked afterwards: with a sha512 by the cloud's
    /// own, with a sha256 by the operator, which reads the whole image back; without a digest they are sent. Staged: sent to where the cloud takes them from,
    /// and converts them if it is set up so; what it makes of them cannot be checked then, and Verified says so. Auto: Upload.
    #[serde(default)]
    pub via: Via,
    /// The stores of the cloud that shall have them; its default store without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub stores: Vec<String>,
}

/// The way that bytes take.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
)]
pub enum Via {
    /// As is best.
    #[default]
    Auto,
    /// Through the operator.
    Upload,
    /// The cloud fetches them.
    ServerSide,
    /// Through the operator into the cloud's staging area.
    Staged,
}

/// Where an image comes from.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
)]
pub enum ImagePolicy {
    /// From us.
    #[default]
    Create,
    /// From somebody else; it is used and never changed.
    Adopt,
    /// From somebody else if it is there, else from us.
    IfMissing,
}

/// What becomes of an image whose object goes.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
)]
pub enum DeletionPolicy {
    /// It goes too.
    #[default]
    Delete,
    /// It stays, and is nobody's from then on.
    Retain,
}

/// Where work is done.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
)]
pub enum Execution {
    /// As the work needs.
    #[default]
    Auto,
    /// In the operator.
    InProcess,
    /// In a Job of Kubernetes.
    Job,
}

/// What a Job gets that does the work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobShape {
    /// What its container may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Labels of the nodes on which it may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that it may run on all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub tolerations: Vec<Toleration>,
}
