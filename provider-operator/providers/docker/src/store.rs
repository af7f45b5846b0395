//! The images of one registry as one identity sees them: what is there is somebody else's, and stays as it is.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use provider_plugin::{
    Attempt, ByteStream, Capabilities, CloudError, Content, Created, Discarded, ErrorClass, Foreign, Identity, ImageId,
    ImageSpec, ImageStore, Marked, Observed, Owned, OwnerId, Preflight, Report, Sent, Subject,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time;

use crate::{Asked, CERTIFICATES, InvalidReference, LOGINS, Reference, Registries, Repository, login::Logins};

/// A registry may take so long for one answer, with all that it wants to know before.
const DEADLINE: Duration = Duration::from_secs(45);
/// So many repositories are known at once, each with the token of its registry.
const REPOSITORIES: usize = 256;

/// Images of one registry. Keeps the ways to its repositories, and nothing of what was found.
pub struct DockerStore {
    registries: Arc<dyn Registries>,
    host: String,
    logins: Logins,
    certificates: Option<SecretString>,
    known: Mutex<HashMap<String, Arc<dyn Repository>>>,
}

impl fmt::Debug for DockerStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DockerStore")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl DockerStore {
    /// The images of the registry that the identity is for. Asks nobody.
    ///
    /// # Errors
    /// The Secret has nothing that could be for registries.
    pub fn new(registries: Arc<dyn Registries>, identity: &Identity) -> Result<Self, CloudError> {
        let refused = |words: &str| CloudError::new(ErrorClass::Credentials, "read the Secret for the registry", words);
        let certificates = identity.data.get(CERTIFICATES).cloned();
        let logins = match identity.data.get(LOGINS) {
            Some(text) => Logins::parse(text).ok_or_else(|| {
                refused("what it has for registries is not of the form that Pods read; make it with kubectl create secret docker-registry")
            })?,
            None if identity.data.is_empty() || certificates.is_some() => Logins::default(),
            None => return Err(refused("it has no key with what opens registries; put that under .dockerconfigjson, or name the key")),
        };
        Ok(Self {
            registries,
            host: identity.name.clone(),
            logins,
            certificates,
            known: Mutex::default(),
        })
    }

    fn repository(&self, reference: &Reference) -> Result<Arc<dyn Repository>, CloudError> {
        let name = reference.repository();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(repository) = known.get(name) {
            return Ok(Arc::clone(repository));
        }
        let repository = self.registries.repository(&Asked {
            host: reference.host().to_owned(),
            name: name.to_owned(),
            login: self.logins.of(reference.host(), name),
            certificates: self.certificates.as_ref().map(|text| text.expose_secret().to_owned()),
        })?;
        if known.len() >= REPOSITORIES {
            known.clear();
        }
        known.insert(name.to_owned(), Arc::clone(&repository));
        Ok(repository)
    }

    async fn find(&self, text: &str) -> Result<Option<Foreign>, CloudError> {
        const LOOK: &str = "look for the image";
        let reference: Reference = text
            .parse()
            .map_err(|error: InvalidReference| CloudError::new(ErrorClass::Invalid, LOOK, error.to_string()))?;
        if reference.host() != self.host {
            let words = format!("{reference} is not in the registry {}", self.host);
            return Err(CloudError::new(ErrorClass::Invalid, LOOK, words));
        }
        let repository = self.repository(&reference)?;
        let finding = time::timeout(DEADLINE, repository.find(reference.manifest()));
        let found = finding.await.map_err(|_| {
            let words = format!(
                "the registry {} does not answer within {} s",
                self.host,
                DEADLINE.as_secs()
            );
            CloudError::new(ErrorClass::Unavailable, LOOK, words)
        })??;
        Ok(found.map(|digest| Foreign {
            id: ImageId(reference.at(digest.clone()).to_string()),
            is_of_our_project: true,
            is_usable: true,
            is_of_community: false,
            size: None,
            sha512: None,
            digest: Some(digest),
            description: format!("{reference}, in its registry"),
        }))
    }
}

fn unsupported<T>(operation: &'static str) -> Result<T, CloudError> {
    let words = "images in registries are looked for and never made or changed; push it there";
    Err(CloudError::new(ErrorClass::Unsupported, operation, words))
}

#[async_trait]
impl ImageStore for DockerStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// One image at most: what has the name now.
    async fn observe(&self, subject: &Subject, _image: &ImageSpec) -> Result<Observed, CloudError> {
        let is_asked = subject.look_for_others || subject.adopt.is_some();
        let found = if is_asked {
            self.find(&subject.name).await?
        } else {
            None
        };
        Ok(Observed {
            records: Vec::new(),
            others: found.into_iter().collect(),
        })
    }

    async fn preflight(&self, _image: &ImageSpec, _bytes: Option<u64>) -> Result<Preflight, CloudError> {
        Ok(Preflight::default())
    }

    async fn create(&self, _image: &ImageSpec, _attempt: Attempt) -> Result<Created, CloudError> {
        unsupported("make the image")
    }

    async fn transfer(
        &self,
        _id: &ImageId,
        _image: &ImageSpec,
        _content: Content,
        _report: &dyn Report,
    ) -> Result<Sent, CloudError> {
        unsupported("send the image")
    }

    async fn import(&self, _id: &ImageId, _image: &ImageSpec, _uri: &str) -> Result<(), CloudError> {
        unsupported("import the image")
    }

    async fn read_back(&self, _id: &ImageId) -> Result<ByteStream, CloudError> {
        unsupported("read the image")
    }

    async fn publish(&self, _id: &ImageId, _image: &ImageSpec, _verified: &str) -> Result<(), CloudError> {
        unsupported("publish the image")
    }

    async fn amend(&self, _id: &ImageId, _image: &ImageSpec) -> Result<(), CloudError> {
        unsupported("amend the image")
    }

    /// Nothing is ours.
    async fn hold(&self, _id: &ImageId, _owner: &OwnerId, _holder: &OwnerId) -> Result<(), CloudError> {
        let words = "images in registries belong to whoever pushed them";
        Err(CloudError::new(ErrorClass::NotOurs, "take the image over", words))
    }

    async fn discard(&self, _id: &ImageId, _marked: &Marked) -> Result<Discarded, CloudError> {
        let words = "images in registries belong to whoever pushed them";
        Err(CloudError::new(ErrorClass::NotOurs, "delete the image", words))
    }

    async fn relinquish(&self, _id: &ImageId, _owner: &OwnerId, _holder: Option<&OwnerId>) -> Result<(), CloudError> {
        let words = "images in registries belong to whoever pushed them";
        Err(CloudError::new(ErrorClass::NotOurs, "give the image away", words))
    }

    async fn owned(&self, _owner: &OwnerId) -> Result<Vec<Owned>, CloudError> {
        Ok(Vec::new())
    }
}
