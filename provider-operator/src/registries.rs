//! Registries of images, asked through the guarded client of `release`: what it may connect to, how long and for how much, is said by the flags for sources.
//! Only HTTPS. Decides nothing about what is found.

use std::sync::Arc;

use async_trait::async_trait;
use operator_kit::failure::{chain, chain_without};
use provider_docker::{Asked, Manifest, Registries, Repository};
use provider_plugin::{CloudError, ErrorClass, Pinned};
use release::ErrorClass as Ending;
use release::http::{Credentials, Network};
use release::source::oci::{InvalidManifestName, InvalidRepository, ManifestName, Manifests, OciError, OciOptions};

/// What is done, to read after "unable to".
const LOOK: &str = "look for the image";

/// Registries as this network has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebRegistries {
    network: Option<Network>,
}

impl WebRegistries {
    /// Through this network; without one nobody is asked.
    pub(crate) fn of(network: Option<&Network>) -> Self {
        Self {
            network: network.map(|network| network.counted_as("image")),
        }
    }
}

impl Registries for WebRegistries {
    fn repository(&self, asked: &Asked) -> Result<Arc<dyn Repository>, CloudError> {
        let refused = |words: String| CloudError::new(ErrorClass::Invalid, LOOK, words);
        let network = self.network.as_ref();
        let network = network.ok_or_else(|| refused("the operator has no network".to_owned()))?;
        let repository = format!("{}/{}", asked.host, asked.name).parse();
        let login = asked.login.clone();
        let options = OciOptions {
            repository: repository.map_err(|error: InvalidRepository| refused(chain(&error)))?,
            plain_http: false,
            credentials: login.map(|login| Credentials::Basic {
                username: login.username,
                password: login.password,
            }),
            certificates: asked.certificates.clone().map(String::into_bytes),
            token_hosts: Vec::new(),
        };
        // What cannot be used is in the Secret: an authority, or a password that no header can hold.
        let manifests = Manifests::new(network, options)
            .map_err(|error| CloudError::new(ErrorClass::Credentials, LOOK, chain(&error)))?;
        Ok(Arc::new(WebRepository(manifests)))
    }
}

/// One repository.
#[derive(Debug)]
struct WebRepository(Manifests);

#[async_trait]
impl Repository for WebRepository {
    async fn find(&self, manifest: &Manifest) -> Result<Option<Pinned>, CloudError> {
        let invalid = |error: InvalidManifestName| CloudError::new(ErrorClass::Invalid, LOOK, chain(&error));
        let name: ManifestName = manifest.to_string().parse().map_err(invalid)?;
        let found = self.0.find(&name).await.map_err(|error| CloudError {
            retry_after: error.retry_after(),
            ..CloudError::new(class_of(&error), LOOK, self.words(&error))
        })?;
        Ok(found.and_then(|found| Pinned::parse(&found.digest.to_string()).ok()))
    }
}

impl WebRepository {
    /// A registry may repeat what it was told.
    fn words(&self, error: &OciError) -> String {
        chain_without(error, |words| self.0.without_secrets(words))
    }
}

fn class_of(error: &OciError) -> ErrorClass {
    match error {
        OciError::Unauthenticated { .. }
        | OciError::CredentialsRefused { .. }
        | OciError::PasswordWanted { .. }
        | OciError::ForeignRealm { .. } => ErrorClass::Credentials,
        OciError::Denied { .. } => ErrorClass::Permission,
        OciError::RateLimited { .. } => ErrorClass::Throttled,
        error if error.class() == Ending::Terminal => ErrorClass::Invalid,
        _ => ErrorClass::Unavailable,
    }
}
