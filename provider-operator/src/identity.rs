//! How a Secret becomes a connected image store: read in the namespace of the object alone, connected when something is first asked of the cloud, and
//! kept for as long as the Secret is the same one. Never shows what is in a Secret, and decides nothing about what a missing one means.

mod cache;
mod secret;

use std::fmt;
use std::sync::Arc;

use provider_plugin::{Addresses, CloudError, CloudName, Identity, ImageStore, Provider};
use tokio::sync::OnceCell;

pub(crate) use self::cache::Connections;
pub(crate) use self::secret::{SecretError, Secrets};
use crate::metrics::{CloudCounts, Clouds};

/// A cloud as one identity sees it. Connected by the first deed that needs it: whoever has this has not waited for a cloud.
pub(crate) struct Connection {
    provider: Arc<dyn Provider>,
    identity: Identity,
    addresses: Arc<dyn Addresses>,
    cloud: CloudName,
    counts: CloudCounts,
    store: OnceCell<Arc<dyn ImageStore>>,
}

impl Connection {
    /// Asks nobody.
    ///
    /// # Errors
    /// The identity does not say which cloud it is for; of class `Invalid`, and without a value of the Secret.
    pub(crate) fn new(
        provider: Arc<dyn Provider>,
        identity: Identity,
        addresses: Arc<dyn Addresses>,
    ) -> Result<Self, CloudError> {
        let cloud = provider.cloud_of(&identity)?;
        Ok(Self {
            // Counted by nobody yet.
            counts: Clouds::default().of(provider.name(), &cloud),
            provider,
            identity,
            addresses,
            cloud,
            store: OnceCell::new(),
        })
    }

    /// Which cloud: those of one cloud share lanes and gates, whoever they are.
    pub(crate) fn cloud(&self) -> &CloudName {
        &self.cloud
    }

    /// The same, with counts that somebody looks at.
    pub(crate) fn counted(self, clouds: &Clouds) -> Self {
        Self {
            counts: clouds.of(self.provider.name(), &self.cloud),
            ..self
        }
    }

    /// What is counted of the cloud.
    pub(crate) fn counts(&self) -> &CloudCounts {
        &self.counts
    }

    /// Who asks it, in this version of the Secret. Without a value of it.
    pub(crate) fn identity(&self) -> (&str, &str) {
        (&self.identity.name, &self.identity.version)
    }

    /// The keys of the Secret that the provider reads, of those that are there.
    pub(crate) fn keys(&self) -> Vec<String> {
        let read = self.provider.secret_keys().iter();
        let is_there = |key: &&&str| self.identity.data.contains_key(**key);
        read.filter(is_there).map(|key| (*key).to_owned()).collect()
    }

    /// The store. Only a deed asks for it: connecting may take as long as the cloud likes. What failed is tried again by the next one.
    pub(crate) async fn store(&self) -> Result<Arc<dyn ImageStore>, CloudError> {
        let connecting = || {
            let (addresses, requests) = (Arc::clone(&self.addresses), self.counts.requests());
            self.provider.connect_counted(&self.identity, addresses, requests)
        };
        self.store.get_or_try_init(connecting).await.map(Arc::clone)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connection")
            .field("cloud", &self.cloud)
            .field("identity", &self.identity())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
