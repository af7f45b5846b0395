//! Keeps connections for as long as somebody uses them: one for each provider, version of a Secret and name of a cloud in it, so that images of one
//! Secret share tokens and sockets, and none outlives the Secret it was made from.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crds::providers::Provider as Name;
use provider_plugin::{Addresses, CloudError, ErrorClass, Identity};
use tokio::time::Instant;

use super::Connection;
use crate::metrics::Clouds;
use crate::registry::Registry;

/// How long a connection is kept that nobody asks for: longer than an image that is as wanted is left alone.
const UNUSED: Duration = Duration::from_mins(15);

/// Provider, version of the Secret, name of the cloud.
type Key = (Name, String, String);

/// All connections of this process.
pub(crate) struct Connections {
    registry: Registry,
    addresses: Arc<dyn Addresses>,
    clouds: Clouds,
    kept: Mutex<BTreeMap<Key, (Instant, Arc<Connection>)>>,
}

impl Connections {
    /// None yet. `addresses` says where clouds may be.
    pub(crate) fn new(registry: Registry, addresses: Arc<dyn Addresses>) -> Self {
        Self {
            registry,
            addresses,
            clouds: Clouds::default(),
            kept: Mutex::default(),
        }
    }

    /// The same, and what is asked of clouds is counted there.
    pub(crate) fn counted(self, clouds: Clouds) -> Self {
        Self { clouds, ..self }
    }

    /// The connection of this identity; asks nobody.
    ///
    /// # Errors
    /// The identity does not say which cloud it is for, or the provider is not served.
    pub(crate) fn get(&self, provider: Name, identity: Identity) -> Result<Arc<Connection>, CloudError> {
        let key = (provider, identity.version.clone(), identity.name.clone());
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (used, _)| now.duration_since(*used) < UNUSED);
        if let Some((used, connection)) = kept.get_mut(&key) {
            *used = now;
            return Ok(Arc::clone(connection));
        }
        let known = self.registry.get(provider).ok_or_else(|| {
            let words =
                format!("the operator does not serve the provider {provider}; start it with --providers={provider}");
            CloudError::new(ErrorClass::Invalid, "find the cloud", words)
        })?;
        let connection = Connection::new(Arc::clone(known), identity, Arc::clone(&self.addresses))?;
        let connection = Arc::new(connection.counted(&self.clouds));
        kept.insert(key, (now, Arc::clone(&connection)));
        Ok(connection)
    }
}
