//! What a provider gives the operator: its name, how an identity becomes a connected store, and what it refuses before anything is asked.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use secrecy::SecretString;

use crate::{Addresses, CloudError, ImageSpec, ImageStore, Requests};

/// A kind of clouds.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The word for it in flags and metrics: lower-case letters and digits.
    fn name(&self) -> &'static str;

    /// A store for this identity. May ask the cloud; the store is kept for as long as the identity is the same.
    async fn connect(
        &self,
        identity: &Identity,
        addresses: Arc<dyn Addresses>,
    ) -> Result<Arc<dyn ImageStore>, CloudError>;

    /// The same, and tells of every request that the store sends. A provider that sends none over a network has nothing to tell, and leaves this as it is.
    async fn connect_counted(
        &self,
        identity: &Identity,
        addresses: Arc<dyn Addresses>,
        requests: Arc<dyn Requests>,
    ) -> Result<Arc<dyn ImageStore>, CloudError> {
        drop(requests);
        self.connect(identity, addresses).await
    }

    /// Which cloud this identity is for: those of one cloud wait for each other and are shut out together. Asks nothing.
    fn cloud_of(&self, identity: &Identity) -> Result<CloudName, CloudError>;

    /// The name of the cloud that an image of this name is in, for [`Identity::name`], where images say it themselves; `None` where a Secret or a
    /// flag does. Asks nothing.
    fn cloud_of_image(&self, _name: &str) -> Option<String> {
        None
    }

    /// The keys of the Secret that [`Provider::connect`] reads: a program that is given the Secret is given these alone.
    fn secret_keys(&self) -> &'static [&'static str] {
        &[]
    }

    /// Refuses with [`ErrorClass::Invalid`](crate::ErrorClass) what cannot become an image. Asks nothing.
    fn check(&self, image: &ImageSpec) -> Result<(), CloudError>;
}

/// Who the operator is in a cloud, as a user wrote it down.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Which of the clouds in `data` is meant; where there is no `data`, which of those that the operator was started with. Where images say in which
    /// cloud they are, that one.
    pub name: String,
    /// What the Secret holds. No value of it is ever in a message, a log or a metric.
    pub data: BTreeMap<String, SecretString>,
    /// Other for other data.
    pub version: String,
}

/// A cloud as lanes, gates and metrics know it: of a host or a directory, never of a tenant, and never a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloudName(pub String);

impl fmt::Display for CloudName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
