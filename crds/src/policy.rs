//! What a provider of clusters decides about the treatment of releases; shared by `ClusterStack.spec` and `ClusterStackRelease.spec.policy`.

use std::{borrow::Cow, fmt, str::FromStr};

use kube::core::Rule;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::source::SecretReference;

/// What happens when somebody changes or deletes objects of a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum DriftPolicy {
    /// Put our fields back, make deleted objects again.
    #[default]
    Correct,
    /// Say so in a condition. Without one of its objects a release is not ready.
    Warn,
    /// As `Warn`, but do not look at fields.
    Ignore,
}

/// Whose behaviour the rendering of charts follows.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
)]
pub enum HelmProfile {
    /// Helm 3.19, which the Go operator ships.
    #[default]
    #[serde(rename = "v3.19")]
    #[strum(to_string = "v3.19")]
    V3_19,
    /// Helm 4.1.
    #[serde(rename = "v4.1")]
    #[strum(to_string = "v4.1")]
    V4_1,
    /// Helm 4.2.
    #[serde(rename = "v4.2")]
    #[strum(to_string = "v4.2")]
    V4_2,
    /// Helm 4.3.
    #[serde(rename = "v4.3")]
    #[strum(to_string = "v4.3")]
    V4_3,
}

/// What a missing or wrong signature means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum VerificationMode {
    /// Signatures are not looked at.
    #[default]
    Off,
    /// The release is used, with a warning.
    Warn,
    /// The release is refused; also when the signature cannot be checked.
    Require,
}

/// How signatures of releases are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    Rule::new("self.mode == 'Off' || has(self.cosign)").message("cosign must be set unless mode is Off"),
]))]
pub struct Verification {
    /// "Off" (in quotes, or YAML takes it for false): signatures are not looked at. Warn: a bad one is a warning. Require: a bad or missing one
    /// refuses the release.
    #[serde(default)]
    pub mode: VerificationMode,
    /// Whose signatures of cosign are good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosign: Option<Cosign>,
}

/// Exactly one way to know a good signature.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(with = "CosignSchema")]
pub enum Cosign {
    /// Made with the private half of a key in this Secret.
    PublicKeySecretRef(SecretReference),
    /// Made by an identity that an issuer vouches for.
    Keyless(Keyless),
}

/// How the enum looks to Kubernetes, see `SourceSchema`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-validations" = [
    Rule::new("has(self.publicKeySecretRef) != has(self.keyless)").message("exactly one of publicKeySecretRef and keyless must be set"),
]))]
#[expect(dead_code, reason = "only its schema is used")]
struct CosignSchema {
    /// Secret with the public key in PEM form, or several of which any is good; the key is `cosign.pub` unless another one is named.
    public_key_secret_ref: Option<SecretReference>,
    /// Signatures by short-lived certificates that name an identity.
    keyless: Option<Keyless>,
}

/// Signatures by short-lived certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Keyless {
    /// URL of the issuer that must have vouched for the identity.
    #[schemars(length(min = 1, max = 2048))]
    pub issuer: String,
    /// The identity itself: a mail address, or the URL of a workflow.
    #[schemars(length(min = 1, max = 2048))]
    pub identity: String,
    /// Secret with the trusted root in the JSON form of sigstore; the key is `trusted_root.json` unless another one is named. Without it the
    /// one is taken that the operator was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_root_secret_ref: Option<SecretReference>,
}

/// The policy of a stack as its releases carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePolicy {
    /// Whose behaviour the rendering of charts follows: v3.19 (as the Go operator), v4.1, v4.2 or v4.3.
    #[serde(default)]
    pub helm_profile: HelmProfile,
    /// What happens when somebody changes or deletes objects of the release: Correct, Warn or Ignore.
    #[serde(default)]
    pub drift: DriftPolicy,
    /// How signatures of releases are checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Most objects that one pass may delete without approval: a number, or a percentage of what there is.
    #[serde(default)]
    pub prune_limit: PruneLimit,
}

/// Most objects that one pass may delete without approval: a number, or a percentage such as `50%` (the default).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PruneLimit {
    /// That many.
    Count(u32),
    /// That share of what there is, at most 100.
    Percent(u8),
}

/// A limit that is neither a number nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid prune limit {value:?}: use a number or a percentage up to 100%")]
pub struct InvalidPruneLimit {
    value: String,
}

impl PruneLimit {
    /// Deleting so few objects is always allowed: with small releases every percentage would be one or two objects.
    pub const ALWAYS_ALLOWED: usize = 10;

    /// How many of `total` objects may be deleted, rounded down, never below [`Self::ALWAYS_ALLOWED`].
    pub fn of(self, total: usize) -> usize {
        let limit = match self {
            Self::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
            Self::Percent(percent) => total.saturating_mul(usize::from(percent)) / 100,
        };
        limit.max(Self::ALWAYS_ALLOWED)
    }
}

impl Default for PruneLimit {
    fn default() -> Self {
        Self::Percent(50)
    }
}

impl FromStr for PruneLimit {
    type Err = InvalidPruneLimit;

    fn from_str(text: &str) -> Result<Self, InvalidPruneLimit> {
        let limit = match text.strip_suffix('%') {
            Some(percent) => percent
                .parse()
                .ok()
                .filter(|percent| *percent <= 100)
                .map(Self::Percent),
            None => text.parse().ok().map(Self::Count),
        };
        limit.ok_or_else(|| InvalidPruneLimit { value: text.to_owned() })
    }
}

impl fmt::Display for PruneLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(formatter, "{count}"),
            Self::Percent(percent) => write!(formatter, "{percent}%"),
        }
    }
}

impl Serialize for PruneLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u32(*count),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for PruneLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum NumberOrText {
            Number(u32),
            Text(String),
        }
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(count) => Ok(Self::Count(count)),
            NumberOrText::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

impl JsonSchema for PruneLimit {
    fn schema_name() -> Cow<'static, str> {
        "PruneLimit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The pattern binds texts only, the bounds numbers only.
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "pattern": "^(100|[0-9]{1,2})%$",
            "minimum": 0,
            "maximum": u32::MAX,
        })
    }
}
