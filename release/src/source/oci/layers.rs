//! Files that lie in a repository as layers of artifacts, whatever they are: which one is meant, and its bytes from any of them on. Knows no releases, and
//! compares no bytes with a digest: whoever reads them does.

use super::{Layer, ManifestName, OciError, OciOptions, Wanted, manifest, registry::Registry};
use crate::{
    Digest,
    http::{HttpError, Network, Response, StatusCode},
};

/// The layers of the artifacts of one repository. Keeps a token and nothing that it found.
#[derive(Debug)]
pub struct Layers {
    registry: Registry,
}

impl Layers {
    /// Asks nobody yet.
    ///
    /// # Errors
    /// The credentials or certificates cannot be used, or the network allows no plain HTTP and it is asked for.
    pub fn new(network: &Network, options: OciOptions) -> Result<Self, HttpError> {
        let registry = Registry::new(network, options)?;
        Ok(Self { registry })
    }

    /// The layer with this title in the artifact that has this name now; without a title the only one that it has.
    ///
    /// # Errors
    /// There is no such artifact or layer, it is something else than files, or the registry gave no answer that can be used.
    pub async fn find(&self, name: &ManifestName, title: Option<&str>) -> Result<Layer, OciError> {
        let repository = || self.registry.repository.clone();
        let given = self.registry.manifest(&name.to_string()).await?;
        let given = given.ok_or_else(|| OciError::MissingManifest {
            name: name.to_string(),
            repository: repository(),
        })?;
        if let ManifestName::Digest(asked) = name
            && *asked != given.digest
        {
            return Err(OciError::Digest {
                repository: repository(),
                tag: name.to_string(),
                found: given.digest,
                promised: asked.to_string(),
            });
        }
        let read = manifest::layer(&given.bytes, given.media_type.as_deref(), title);
        read.map_err(|source| OciError::Layer {
            repository: repository(),
            name: name.to_string(),
            source: Box::new(source),
        })
    }

    /// The bytes of a layer from this one on (from 0), wherever the registry sends for them. The answer is 200 with all of it, where the registry cannot do
    /// otherwise, 206 with the part, or 416 where nothing begins there. Credentials stay with the registry.
    ///
    /// # Errors
    /// The registry does not have it any more, or gave no answer that can be used.
    pub async fn open(&self, digest: Digest, from: u64) -> Result<Response, OciError> {
        let file = digest.to_string();
        let response = self.registry.blob(Wanted::File(file.clone()), digest, from).await?;
        match response.status() {
            StatusCode::NOT_FOUND => Err(OciError::MissingFile {
                file,
                repository: self.registry.repository.clone(),
            }),
            _ => Ok(response),
        }
    }

    /// Words about the registry without what it and its server for tokens were told.
    pub fn without_secrets(&self, words: &str) -> String {
        self.registry.without_secrets(words)
    }
}
