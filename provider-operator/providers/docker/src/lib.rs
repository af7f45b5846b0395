//! Node images that are in a container registry already: looked up by the name that machines pull them by, and never changed.
//!
//! Nothing is transferred. An image is there as long as its registry knows its manifest; which one that is says its digest. How a registry is
//! asked is not known here: whoever makes the provider brings [`Registries`].

mod login;
mod reference;
mod registry;
mod store;

use std::sync::Arc;

use async_trait::async_trait;
use provider_plugin::{Addresses, CloudError, CloudName, ErrorClass, Identity, ImageSpec, ImageStore, Provider};

pub use self::login::{Login, Logins};
pub use self::reference::{InvalidReference, Manifest, Reference};
pub use self::registry::{Asked, Registries, Repository};
pub use self::store::DockerStore;

/// The key of a Secret with what opens registries, as Pods have it.
pub const LOGINS: &str = ".dockerconfigjson";
/// The type of a Secret that Pods pull with.
pub const LOGINS_TYPE: &str = "kubernetes.io/dockerconfigjson";
/// The key of a Secret with certificates of authorities that are trusted besides the usual ones, in PEM.
pub const CERTIFICATES: &str = "ca.crt";

/// Images in registries. Those of one registry are asked for through one identity.
#[derive(Clone, Debug)]
pub struct Docker {
    registries: Arc<dyn Registries>,
}

impl Docker {
    /// Images in these registries.
    pub fn new(registries: Arc<dyn Registries>) -> Self {
        Self { registries }
    }
}

#[async_trait]
impl Provider for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    /// Asks nobody: a registry says who may ask only when it is asked for something. Where registries may be is up to [`Registries`].
    async fn connect(
        &self,
        identity: &Identity,
        _addresses: Arc<dyn Addresses>,
    ) -> Result<Arc<dyn ImageStore>, CloudError> {
        let store = DockerStore::new(Arc::clone(&self.registries), identity)?;
        Ok(Arc::new(store))
    }

    fn cloud_of(&self, identity: &Identity) -> Result<CloudName, CloudError> {
        Ok(CloudName(identity.name.clone()))
    }

    /// The registry, by its host.
    fn cloud_of_image(&self, name: &str) -> Option<String> {
        let reference: Reference = name.parse().ok()?;
        Some(reference.host().to_owned())
    }

    fn check(&self, image: &ImageSpec) -> Result<(), CloudError> {
        let refused = |words: String| CloudError::new(ErrorClass::Invalid, "look for the image", words);
        let reference: Reference = image
            .subject
            .name
            .parse()
            .map_err(|error: InvalidReference| refused(error.to_string()))?;
        match (reference.manifest(), &image.source_digest) {
            (Manifest::Digest(named), Some(pinned)) if named != pinned => Err(refused(format!(
                "spec.image.reference names {named}, and spec.image.digest {pinned}; leave one of them out"
            ))),
            _ => Ok(()),
        }
    }
}
