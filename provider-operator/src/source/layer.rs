//! A file that lies in a container registry as a layer of an artifact: how it is written, and how it is asked for through the client of `release`. It is known
//! by its digest, so that half of one file is never followed by half of another, wherever the tag is moved meanwhile.

use std::fmt;

use async_trait::async_trait;
use http::StatusCode;
use operator_kit::failure::chain_without;
use provider_plugin::{ErrorClass, ImageSource, Opened, Probe, SourceError};
use release::Digest;
use release::http::{Credentials, Network};
use release::source::oci::{Layers, ManifestName, OciError, OciOptions, Repository};

use super::http::{bytes, error_of, part_of, probe_of};

/// How such a file is written, and the same for a registry without TLS.
const SCHEMES: [(&str, bool); 2] = [("oci://", false), ("oci+http://", true)];
/// The tag of names that have none, as Pods know it.
const USUAL_TAG: &str = "latest";

/// Whether an image at this address is in a registry.
pub(crate) fn is_in_registry(url: &str) -> bool {
    SCHEMES.iter().any(|(scheme, _)| url.starts_with(scheme))
}

/// Where such a file is: `oci://registry.example.com/path/name:tag`; a digest of the manifest (`@sha256:…`) may stand instead of the tag or behind it, and then
/// counts alone; `#title` stands last and says which layer is meant, where there are several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LayerAddress {
    repository: Repository,
    plain_http: bool,
    manifest: ManifestName,
    title: Option<String>,
}

impl LayerAddress {
    /// Reads it; `None` when it is none. Why is not told: what is none may hold anything, also a password.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let (rest, plain_http) = SCHEMES
            .iter()
            .find_map(|(scheme, plain_http)| Some((url.strip_prefix(scheme)?, *plain_http)))?;
        let (named, title) = match rest.split_once('#') {
            Some((named, title)) => (named, Some(title).filter(|title| !title.is_empty())),
            None => (rest, None),
        };
        let (named, digest) = match named.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (named, None),
        };
        // A colon before the last slash is that of a port.
        let (repository, tag) = match named.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, tag),
            _ => (named, USUAL_TAG),
        };
        let tag = ManifestName::Tag(tag.to_owned());
        let manifest = match digest {
            Some(digest) => ManifestName::Digest(digest.parse().ok()?),
            // Nothing but a tag has the form of one.
            None => tag.to_string().parse().ok().filter(|read| *read == tag)?,
        };
        Some(Self {
            repository: repository.parse().ok()?,
            plain_http,
            manifest,
            title: title.map(str::to_owned),
        })
    }

    /// Registry and repository.
    #[cfg(feature = "docker")]
    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The name of the file as its publisher has it, where it is told.
    pub(super) fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }
}

impl fmt::Display for LayerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = match self.manifest {
            ManifestName::Tag(_) => ':',
            ManifestName::Digest(_) => '@',
        };
        write!(formatter, "oci://{}{between}{}", self.repository, self.manifest)?;
        match &self.title {
            Some(title) => write!(formatter, "#{title}"),
            None => Ok(()),
        }
    }
}

/// One file in a registry.
pub(super) struct LayerFile {
    place: String,
    /// How it is asked for, or why it cannot be.
    way: Result<Way, (ErrorClass, String)>,
}

struct Way {
    layers: Layers,
    address: LayerAddress,
}

impl LayerFile {
    /// Asks nobody. Of an address that cannot be read it is told when somebody reads.
    pub(super) fn new(
        network: &Network,
        address: Option<LayerAddress>,
        credentials: Option<Credentials>,
        certificates: Option<Vec<u8>>,
    ) -> Self {
        let Some(address) = address else {
            let words = "the url of the image cannot be read: in a registry it is like oci://registry.example.com/path/name:tag, with @sha256: and the digest of \
                         the manifest instead of the tag, if you like, and #title behind it where there are several files; correct it";
            return Self {
                place: "the url of the image".to_owned(),
                way: Err((ErrorClass::SourceGone, words.to_owned())),
            };
        };
        let options = OciOptions {
            repository: address.repository.clone(),
            plain_http: address.plain_http,
            credentials,
            certificates,
            token_hosts: Vec::new(),
        };
        let place = address.to_string();
        let way = Layers::new(network, options).map(|layers| Way { layers, address });
        let way = way.map_err(|error| {
            let error = error_of(&error);
            (error.class, error.message)
        });
        Self { place, way }
    }

    fn way(&self) -> Result<&Way, SourceError> {
        let way = self.way.as_ref();
        way.map_err(|(class, words)| SourceError::new(*class, words))
    }

    fn broken(&self, words: &str) -> SourceError {
        SourceError::new(ErrorClass::SourceBroken, format!("{} {words}", self.place))
    }
}

#[async_trait]
impl ImageSource for LayerFile {
    fn place(&self) -> &str {
        &self.place
    }

    /// Which file it is now. The tag of the answer is its digest.
    async fn probe(&self) -> Result<Probe, SourceError> {
        let Way { layers, address } = self.way()?;
        let found = layers.find(&address.manifest, address.title()).await;
        let layer = found.map_err(|error| refusal_of(layers, &error))?;
        Ok(Probe {
            size: Some(layer.size),
            tag: Some(layer.digest.to_string()),
            // A registry that cannot gives everything.
            ranges: true,
            content_type: None,
        })
    }

    async fn open(&self, at: u64, probe: &Probe) -> Result<Opened, SourceError> {
        let Way { layers, .. } = self.way()?;
        let digest: Option<Digest> = probe.tag.as_ref().and_then(|tag| tag.parse().ok());
        let Some(digest) = digest else {
            return Ok(Opened::Changed);
        };
        let answer = layers.open(digest, at).await;
        let answer = answer.map_err(|error| refusal_of(layers, &error))?;
        let differs = |told: Option<u64>| matches!((told, probe.size), (Some(told), Some(size)) if told != size);
        let (length, part) = (probe_of(answer.headers()).size, part_of(answer.headers()));
        match answer.status() {
            StatusCode::OK if differs(length) => {
                Err(self.broken("gives a file of another length than its manifest says"))
            }
            StatusCode::OK if at == 0 => Ok(Opened::At(bytes(answer.into_body()))),
            StatusCode::OK => Ok(Opened::FromStart(bytes(answer.into_body()))),
            StatusCode::PARTIAL_CONTENT => match part {
                Some(part) if part.from == at && !differs(part.total) => Ok(Opened::At(bytes(answer.into_body()))),
                _ => Err(self.broken("gave another part of the file than the one that was asked for")),
            },
            _ => Err(self.broken("has less of the file than its manifest says")),
        }
    }
}

impl fmt::Debug for LayerFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LayerFile({})", self.place)
    }
}

/// No answer, or none that gives the file. A registry may repeat what it was told.
fn refusal_of(layers: &Layers, error: &OciError) -> SourceError {
    let (class, status) = match error {
        OciError::Request { source, .. } | OciError::TokenRequest { source, .. } => (error_of(source).class, None),
        OciError::RateLimited { .. } => (ErrorClass::Throttled, Some(429)),
        OciError::Status { status, .. } | OciError::Token { status, .. } if status.is_server_error() => {
            (ErrorClass::Unavailable, Some(status.as_u16()))
        }
        OciError::Digest { .. } => (ErrorClass::SourceMismatch, None),
        // Somebody has to push something, or to change a URL or a Secret.
        _ => (ErrorClass::SourceGone, None),
    };
    SourceError {
        status,
        retry_after: error.retry_after(),
        ..SourceError::new(class, chain_without(error, |words| layers.without_secrets(words)))
    }
}

#[cfg(test)]
mod tests;
