//! What providers tell: the status of release objects and of image objects, the same for all of them.
//!
//! All of it can be read when it is empty, as the Go provider leaves it, and when it has words of a later version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    cluster_stack_release::ReleaseAssets,
    conditions::{Condition, known_time, known_time_or_none},
    schema::never_falls,
};

/// What a provider found and did for a release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderReleaseStatus {
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether all images of the release can be used. Goes back to false when one cannot.
    pub ready: bool,
    /// What is being done: Pending, Reading, Preparing, Building, Transferring, Importing, Verifying, Ready, Failed or Deleting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub phase: Option<ProviderPhase>,
    /// The same in words, of the first image that is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How far all images are together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Each image of the release, at most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageRow>,
    /// The files of the release that are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assets: Option<ReleaseAssets>,
    /// The value of the annotation clusterstack.x-k8s.io/requestedAt that was answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// What is true of the release, Ready first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Most rows of [`ProviderReleaseStatus::images`].
pub const MOST_IMAGE_ROWS: usize = 64;

/// What is being done for a release: what is done for that of its images that is furthest behind, or what comes before.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display, strum::EnumIter,
)]
pub enum ProviderPhase {
    /// Nothing yet.
    Pending,
    /// The files of the release are fetched and read.
    Reading,
    /// See [`ImagePhase::Preparing`].
    Preparing,
    /// See [`ImagePhase::Building`].
    Building,
    /// See [`ImagePhase::Transferring`].
    Transferring,
    /// See [`ImagePhase::Importing`].
    Importing,
    /// See [`ImagePhase::Verifying`].
    Verifying,
    /// All images can be used.
    Ready,
    /// One image, or the release itself, needs somebody.
    Failed,
    /// The release goes.
    Deleting,
    /// What another version calls differently.
    #[serde(other)]
    Unknown,
}

/// How far work is that can be counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// What is done.
    #[serde(default)]
    pub done: i64,
    /// What there is to do, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// Of what: bytes or images.
    #[serde(default)]
    pub unit: String,
}

/// One image of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRow {
    /// Name of its object.
    pub name: String,
    /// Whether it can be used.
    #[serde(default)]
    pub ready: bool,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub phase: Option<ImagePhase>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What a provider found and did for one image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeImageStatus {
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the image is in the cloud, whole, and what it must be. Goes back to false when that is no longer so.
    pub ready: bool,
    /// What is being done: Pending, Preparing, Building, Transferring, Importing, Verifying, Ready, Failed or Deleting.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub phase: Option<ImagePhase>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Which attempt is under way or was the last, from 1. Written before anything is made in the cloud; a record that failed is thrown away, and the
    /// next attempt makes another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
    /// What the attempts are at: a digest of whose image it is, where its bytes come from and what they must be. Another one begins anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_key: Option<String>,
    /// Under which owner its images are marked in the cloud, from the first attempt on. What the annotation clusterstack.x-k8s.io/image-owner says
    /// otherwise is put back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The image in the cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<CloudImage>,
    /// Id of the image that is about to be marked as verified and shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publishing: Option<String>,
    /// Where the work is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionStatus>,
    /// The transfer that is under way, or was the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<TransferStatus>,
    /// What is tried again, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// The last of the transfers in a row that were for nothing, where it matters how many there were. What else fails in between does not end the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_vain: Option<Retry>,
    /// What happened to images so often in a row that the next one is brought otherwise, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setbacks: Option<Setbacks>,
    /// What went wrong last, also when it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// Why nothing more is tried until somebody acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halted: Option<Halted>,
    /// The value of the annotation clusterstack.x-k8s.io/requestedAt that was answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// What is true of the image, Ready first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What is being done for an image.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display, strum::EnumIter,
)]
pub enum ImagePhase {
    /// Nothing yet.
    Pending,
    /// The cloud and the source are looked at, the record in the cloud is made.
    Preparing,
    /// The image is built.
    Building,
    /// Its bytes are sent.
    Transferring,
    /// The cloud takes them in by itself.
    Importing,
    /// They are compared with what they must be.
    Verifying,
    /// The image can be used.
    Ready,
    /// Somebody is needed.
    Failed,
    /// The image goes.
    Deleting,
    /// What another version calls differently.
    #[serde(other)]
    Unknown,
}

/// An image in a cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudImage {
    /// Its id in the cloud.
    pub id: String,
    /// Its name in the cloud.
    #[serde(default)]
    pub name: String,
    /// How many bytes the cloud has of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// SHA-512 of these bytes, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha512: Option<String>,
    /// Digest of the file that it was made from, as at its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_digest: Option<String>,
    /// The format that the cloud says it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_format: Option<String>,
    /// Whether somebody else made it. It is never changed or deleted then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
}

/// Where work is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutionStatus {
    /// `InProcess` or Job.
    #[schemars(with = "String")]
    pub form: ExecutionForm,
    /// Why there.
    #[serde(default)]
    pub reason: String,
    /// Name of the Job, once it has been made. It stays when the Job is over, until there is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The command that shows its logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<String>,
}

/// Where work is done: what [`super::image_options::Execution`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display, strum::EnumIter)]
pub enum ExecutionForm {
    /// In the operator.
    InProcess,
    /// In a Job of Kubernetes.
    Job,
    /// What another version calls differently.
    #[serde(other)]
    Unknown,
}

/// How far a transfer is. Written every ten seconds, or for every twentieth part, by whoever does it, and by nobody else; of what the cloud fetches itself the
/// operator tells what it sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransferStatus {
    /// Of which attempt.
    pub attempt: i64,
    /// Upload, `ServerSide` or Staged.
    #[schemars(with = "String")]
    pub via: SentVia,
    /// How many bytes were sent, or are stored of what the cloud fetches itself.
    pub sent_bytes: i64,
    /// How many there are to send, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<i64>,
    /// How many were sent in a second of late.
    #[serde(default)]
    pub bytes_per_second: i64,
    /// How long the rest takes at this rate, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<i64>,
    /// When bytes were last seen to move.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_time_or_none"
    )]
    pub last_progress_time: Option<Time>,
    /// How often the source broke off and went on where it was.
    #[serde(default)]
    pub resumes: i64,
    /// When it began.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_time_or_none"
    )]
    pub started_at: Option<Time>,
    /// Who does it: a Pod. Empty while the cloud does.
    #[serde(default)]
    pub holder: String,
    /// All this in a few words, for the column DONE.
    #[serde(default)]
    pub summary: String,
    /// What was sent, written before its last byte is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

/// The way that bytes take: what [`super::image_options::Via`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display, strum::EnumIter)]
pub enum SentVia {
    /// Through the operator.
    Upload,
    /// The cloud fetches them.
    ServerSide,
    /// Through the operator into the cloud's staging area.
    Staged,
    /// What another version calls differently.
    #[serde(other)]
    Unknown,
}

/// What was sent: whatever the cloud has afterwards is compared with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sealed {
    /// Of which attempt.
    #[schemars(extend("x-kubernetes-validations" = [never_falls()]))]
    pub attempt: i64,
    /// Digest of the file at its source: `sha256:` or `sha512:` and hexadecimal digits.
    pub source_digest: String,
    /// SHA-512 of the bytes that were sent, in hexadecimal digits.
    pub sha512: String,
    /// How many bytes were sent.
    pub size_bytes: i64,
}

/// What is tried again. The wait is over before its time when one of the last two is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Why, as one word.
    pub reason: String,
    /// Why, in words for people.
    #[serde(default)]
    pub message: String,
    /// What failed, such as Create or Transfer.
    #[serde(default)]
    pub deed: String,
    /// How it failed, as the operator tells failures apart; finer than the reason.
    #[serde(default)]
    pub class: String,
    /// How often it failed so in a row.
    #[serde(default)]
    pub count: i64,
    /// When it failed so for the first time.
    #[serde(deserialize_with = "known_time")]
    pub first_time: Time,
    /// When it is tried again.
    #[serde(deserialize_with = "known_time")]
    pub until: Time,
    /// The version of the Secret that it failed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The value of the annotation clusterstack.x-k8s.io/requestedAt that was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The generation of the spec that it failed with; another one is tried at once.
    #[serde(default)]
    pub generation: i64,
}

/// What happened to images of the same content in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Setbacks {
    /// How often the cloud could not fetch the bytes. After the second time they are sent.
    pub imports_failed: i64,
    /// How many images were whole and had other bytes than they must. After the second nothing more is tried.
    pub mismatches: i64,
    /// How many images were whole and could not be compared with anything. After the third nothing more is tried.
    pub unverifiable: i64,
}

/// What went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    /// In which attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
    /// What, as one word.
    pub reason: String,
    /// What, in words for people.
    #[serde(default)]
    pub message: String,
    /// The number under which the cloud's own people find the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// When.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_time_or_none"
    )]
    pub time: Option<Time>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Why nothing more is tried. It is over when one of the last four is another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Halted {
    /// Why, as one word.
    pub reason: String,
    /// Why, in words for people.
    #[serde(default)]
    pub message: String,
    /// The contentKey that it is about.
    #[serde(default)]
    pub key: String,
    /// The generation of the spec that it is about.
    #[serde(default)]
    pub generation: i64,
    /// The version of the Secret that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The value of the annotation clusterstack.x-k8s.io/requestedAt that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}
