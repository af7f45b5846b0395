//! Why a registry gave no answer that can be used, and what can end that.

use std::{fmt, time::Duration};

use thiserror::Error;

use super::{Repository, manifest::ManifestError, tags::MAX_PAGES, tags::MAX_TAGS};
use crate::{
    Digest, ErrorClass,
    http::{HttpError, Place, StatusCode},
};

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The list of tags.
    Tags,
    /// What a tag stands for.
    Manifest(String),
    /// The bytes of a file.
    File(String),
    /// The signatures of a release.
    Signatures(String),
}

impl fmt::Display for Wanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tags => formatter.write_str("the tags"),
            Self::Manifest(tag) => write!(formatter, "the manifest of {tag}"),
            Self::File(name) => write!(formatter, "the file {name}"),
            Self::Signatures(tag) => write!(formatter, "the signatures of {tag}"),
        }
    }
}

/// Why a registry gave no answer that can be used.
#[derive(Debug, Error)]
pub enum OciError {
    /// No answer came.
    #[error("unable to get {wanted} from {repository}")]
    Request {
        /// What was asked for.
        wanted: Wanted,
        /// Where.
        repository: Repository,
        /// What went wrong.
        #[source]
        source: Box<HttpError>,
    },
    /// The whole list took too long.
    #[error("the list of tags of {repository} did not end within {} seconds", .after.as_secs())]
    SlowList {
        /// Where.
        repository: Repository,
        /// The time allowed.
        after: Duration,
    },
    /// The registry wants to know who asks, and nobody told us what to say.
    #[error("{repository} is not public, or does not exist; give the source credentials that may pull from it")]
    Unauthenticated {
        /// Where.
        repository: Repository,
    },
    /// The registry does not take what it was told.
    #[error("{repository} refuses the credentials; correct the name and password or the token of the source")]
    CredentialsRefused {
        /// Where.
        repository: Repository,
    },
    /// Whoever asks may not have it.
    #[error("{repository} does not let us read {wanted}; give the account of the source the right to pull")]
    Denied {
        /// What was asked for.
        wanted: Wanted,
        /// Where.
        repository: Repository,
    },
    /// There is no such repository, or it has no tags.
    #[error("there is no repository {repository} (yet); push a release, or correct its name")]
    MissingRepository {
        /// Where.
        repository: Repository,
    },
    /// Nothing has this tag or digest.
    #[error("{repository} has nothing under {name} (yet); push it, or correct the name")]
    MissingManifest {
        /// The tag or digest.
        name: String,
        /// Where.
        repository: Repository,
    },
    /// What stands under a tag has no file that could be meant.
    #[error("{name} in {repository} has no file that can be used")]
    Layer {
        /// Where.
        repository: Repository,
        /// The tag or digest.
        name: String,
        /// What it is instead.
        #[source]
        source: Box<ManifestError>,
    },
    /// A file of a manifest that the registry does not have.
    #[error("{repository} lists the file {file}, but does not have it; push it again")]
    MissingFile {
        /// Name of the file.
        file: String,
        /// Where.
        repository: Repository,
    },
    /// Too many requests, of us or of all together.
    #[error("{repository} is asked too often; it is asked again when it wants to be")]
    RateLimited {
        /// Where.
        repository: Repository,
        /// When the registry wants to be asked again, if it told.
        wait: Option<Duration>,
    },
    /// Some other status.
    #[error("{repository} answers {status}{} when asked for {wanted}", reported(.code.as_deref()))]
    Status {
        /// What was asked for.
        wanted: Wanted,
        /// Where.
        repository: Repository,
        /// The status.
        status: StatusCode,
        /// The code of the registry's own error, if it told one.
        code: Option<String>,
    },
    /// The registry wants proof that we cannot give.
    #[error("{repository} wants to be told who asks in a way that is not supported; name and password or tokens are")]
    Challenge {
        /// Where.
        repository: Repository,
    },
    /// Only a name and password would do.
    #[error("{repository} wants name and password, but the source has a token; give the source both")]
    PasswordWanted {
        /// Where.
        repository: Repository,
    },
    /// A server for tokens that cannot be used.
    #[error("{repository} sends us for tokens to an address that {problem}")]
    Realm {
        /// Where.
        repository: Repository,
        /// What is wrong with the address.
        problem: &'static str,
    },
    /// A server for tokens that credentials do not go to.
    #[error(
        "{repository} wants the credentials to be sent to {realm}, which is not of its domain; if it belongs to the registry, name its host \
         as a host for tokens"
    )]
    ForeignRealm {
        /// Where.
        repository: Repository,
        /// Scheme, host and port of the server for tokens.
        realm: Place,
    },
    /// No answer of the server for tokens.
    #[error("unable to get a token for {repository}")]
    TokenRequest {
        /// Where.
        repository: Repository,
        /// What went wrong.
        #[source]
        source: Box<HttpError>,
    },
    /// An answer without a token.
    #[error("{realm} answers {status} and no token for {repository} that can be used")]
    Token {
        /// Where.
        repository: Repository,
        /// Scheme, host and port of the server for tokens.
        realm: Place,
        /// The status.
        status: StatusCode,
    },
    /// A list of tags that is none.
    #[error(
        "the list of tags of {repository} is not one of the OCI distribution specification; is this the address of a registry?"
    )]
    Tags {
        /// Where.
        repository: Repository,
        /// What the parser met, and where.
        #[source]
        source: serde_json::Error,
    },
    /// A great many tags.
    #[error(
        "{repository} has more than {MAX_TAGS} tags; keep releases in a repository of their own, and delete old ones"
    )]
    TooManyTags {
        /// Where.
        repository: Repository,
    },
    /// A list that does not end, or leads in a circle.
    #[error("the list of tags of {repository} does not end within {MAX_PAGES} pages")]
    EndlessTags {
        /// Where.
        repository: Repository,
    },
    /// A list with a next page that nobody can ask for.
    #[error("the list of tags of {repository} goes on, but does not say where")]
    LostPage {
        /// Where.
        repository: Repository,
    },
    /// The bytes are not those that the registry speaks of.
    #[error("{repository} says that the manifest of {tag} has the digest {promised:?}, but gives one with {found}")]
    Digest {
        /// Where.
        repository: Repository,
        /// The tag.
        tag: String,
        /// The digest of what came.
        found: Digest,
        /// What the registry says.
        promised: String,
    },
    /// The signatures of a release are not what they must be.
    #[error("{repository} has signatures of {tag} that cannot be read: {problem}")]
    Signatures {
        /// Where.
        repository: Repository,
        /// The tag of the release.
        tag: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// What stands under a tag is no chart.
    #[error("{tag} in {repository} is not a chart that can be used")]
    Chart {
        /// Where.
        repository: Repository,
        /// The tag.
        tag: String,
        /// What it is instead.
        #[source]
        source: Box<ManifestError>,
    },
    /// A chart that takes more room than it may.
    #[error(
        "the chart {tag} in {repository} has {size} bytes, more than the {limit} allowed; leave out what is not needed"
    )]
    ChartTooLarge {
        /// Where.
        repository: Repository,
        /// The tag.
        tag: String,
        /// What the manifest says.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// The bytes are not those that the manifest names.
    #[error("{repository} lists the chart {promised} under {tag}, but gives {found} in its place; push it again")]
    ChartDigest {
        /// Where.
        repository: Repository,
        /// The tag.
        tag: String,
        /// The digest in the manifest.
        promised: Digest,
        /// The digest of what came.
        found: Digest,
    },
    /// What stands under a tag is no release.
    #[error("{tag} in {repository} is not a release that can be read")]
    Artifact {
        /// Where.
        repository: Repository,
        /// The tag.
        tag: String,
        /// What it is instead.
        #[source]
        source: Box<ManifestError>,
    },
}

/// A code of an error as a part of a sentence.
fn reported(code: Option<&str>) -> String {
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}

impl OciError {
    /// What can end the problem.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Request { source, .. } | Self::TokenRequest { source, .. } => source.class(),
            Self::MissingRepository { .. } | Self::MissingManifest { .. } | Self::RateLimited { .. } => {
                ErrorClass::Waiting
            }
            Self::Artifact { .. } | Self::Layer { .. } | Self::Chart { .. } | Self::ChartTooLarge { .. } => {
                ErrorClass::Terminal
            }
            // Nobody tells of corrected credentials, rights and registries but time.
            _ => ErrorClass::Transient,
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Request { source, .. } | Self::TokenRequest { source, .. } => source.reason(),
            Self::SlowList { .. } => "SourceTimedOut",
            Self::Unauthenticated { .. }
            | Self::CredentialsRefused { .. }
            | Self::Challenge { .. }
            | Self::PasswordWanted { .. }
            | Self::Denied { .. } => "SourceDenied",
            Self::MissingRepository { .. } | Self::MissingManifest { .. } => "SourceMissing",
            Self::RateLimited { .. } => "SourceRateLimited",
            Self::Realm { .. } | Self::ForeignRealm { .. } => "SourceNotAllowed",
            Self::Status { .. } | Self::Token { .. } => "SourceFailed",
            Self::Tags { .. } | Self::LostPage { .. } | Self::Signatures { .. } => "SourceUnreadable",
            Self::TooManyTags { .. } | Self::EndlessTags { .. } | Self::ChartTooLarge { .. } => "SourceTooLarge",
            Self::Digest { .. } | Self::ChartDigest { .. } => "DigestMismatch",
            Self::MissingFile { .. } => "SourceIncomplete",
            Self::Artifact { .. } | Self::Layer { .. } | Self::Chart { .. } => "ReleaseFileInvalid",
        }
    }

    /// Whether nobody answered, or will for now, whatever is asked for.
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Request { source, .. } | Self::TokenRequest { source, .. } => source.is_silence(),
            Self::RateLimited { .. } => true,
            _ => false,
        }
    }

    /// How long it is of no use to try again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Request { source, .. } | Self::TokenRequest { source, .. } => source.retry_after(),
            Self::RateLimited { wait, .. } => *wait,
            _ => None,
        }
    }
}
