//! Where the releases of a stack come from: `spec.source`.

use std::fmt;

use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Exactly one place that offers releases.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(with = "SourceSchema")]
pub enum Source {
    /// Releases of a repository on GitHub, or on a server that speaks its API.
    Github(GithubSource),
    /// Artifacts in an OCI registry, one tag for each release.
    Oci(OciSource),
    /// Files on a web server with an index.
    Http(HttpSource),
    /// A directory of the operator's own file system.
    Directory(DirectorySource),
}

/// In words for people: what it is, and where.
impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Github(source) => write!(formatter, "repository {}/{}", source.owner, source.repository),
            Self::Oci(source) => write!(formatter, "registry {}", source.repository),
            Self::Http(source) => write!(formatter, "web server {}", source.url),
            Self::Directory(source) => write!(formatter, "directory {:?}", source.path),
        }
    }
}

/// How the enum looks to Kubernetes, whose schemas know no alternatives: one optional field each, and a rule in words.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("x-kubernetes-validations" = [Rule::new(
    "[has(self.github), has(self.oci), has(self.http), has(self.directory)].filter(present, present).size() == 1"
).message("exactly one of github, oci, http and directory must be set")]))]
#[expect(dead_code, reason = "only its schema is used")]
struct SourceSchema {
    /// Releases of a repository on GitHub, or on a server that speaks its API.
    github: Option<GithubSource>,
    /// Artifacts in an OCI registry, one tag for each release.
    oci: Option<OciSource>,
    /// Files on a web server with an index.
    http: Option<HttpSource>,
    /// A directory of the operator's own file system, below the root that the operator was started with.
    directory: Option<DirectorySource>,
}

/// A repository with releases on GitHub.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GithubSource {
    /// Owner of the repository: a user or an organisation.
    #[schemars(length(min = 1, max = 253))]
    pub owner: String,
    /// Name of the repository.
    #[schemars(length(min = 1, max = 253))]
    pub repository: String,
    /// Base URL of the API when it is not that of github.com.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^https?://"))]
    pub api_url: Option<String>,
    /// Secret with an access token; the key is `token` unless another one is named. Without it only public repositories can be read, and rarely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_secret_ref: Option<SecretReference>,
    /// Secret with PEM certificates to trust besides the usual ones; the key is `ca.crt` unless another one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<SecretReference>,
}

/// A repository in an OCI registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OciSource {
    /// Registry and repository without tag, such as `registry.example.com/kaas/cluster-stacks`.
    #[schemars(length(min = 1, max = 2048))]
    pub repository: String,
    /// Secret with the keys `username` and `password`, or `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<SecretReference>,
    /// Secret with PEM certificates to trust besides the usual ones; the key is `ca.crt` unless another one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<SecretReference>,
    /// Speak HTTP instead of HTTPS. The operator must have been started with a flag that allows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
}

/// A web server with an index of releases.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSource {
    /// URL of the directory that contains the index.
    #[schemars(length(max = 2048), regex(pattern = r"^https?://"))]
    pub url: String,
    /// Secret with the keys `username` and `password`, or `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<SecretReference>,
    /// Secret with PEM certificates to trust besides the usual ones; the key is `ca.crt` unless another one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret_ref: Option<SecretReference>,
}

/// A directory of releases, one subdirectory for each tag.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DirectorySource {
    /// Path below the root for directories that the operator was started with; empty for the root itself.
    #[schemars(length(max = 1024), extend("x-kubernetes-validations" = [
        Rule::new("!self.startsWith('/') && !self.split('/').exists(part, part == '..')").message("must be a relative path without .."),
    ]))]
    pub path: String,
}

/// A Secret in the namespace of the object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key of the Secret, when it is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub key: Option<String>,
}
