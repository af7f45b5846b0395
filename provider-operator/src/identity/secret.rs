//! Reads Secrets, by name and one at a time: the operator may neither list nor watch them. What was read holds for a minute, so that many images of one
//! Secret do not ask for it one by one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::manifests::ProviderOperatorRole;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use provider_plugin::Identity;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::time::Instant;

use crate::kinds::{ImageWish, Kind};

/// The role that is named where it is missing.
const SECRETS: &str = ProviderOperatorRole::Secrets.name();

/// Which of the clouds in a Secret is meant, where it does not say itself: as Cluster API's provider for OpenStack has it.
const USUAL_CLOUD: &str = "openstack";
/// The key of a Secret that says which cloud is meant.
const CLOUD_NAME: &str = "cloudName";

/// How long what was read holds.
const HOLDS: Duration = Duration::from_mins(1);

/// How long one is let be that is not there: as long as an object waits that asks for it again, so that all that name it ask once together.
const MISSING: Duration = Duration::from_secs(20);

/// Where a Secret is.
type Place = (String, String);

/// Reads Secrets. Never shows what is in them.
pub(crate) struct Secrets {
    client: Client,
    read: Mutex<HashMap<Place, (Instant, Arc<Seen>)>>,
    missing: Mutex<HashMap<Place, Instant>>,
}

/// A Secret as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// `uid/resourceVersion`: another one for other contents, also when it was deleted and made anew.
    pub(crate) version: String,
    /// What it is made for; `None` where that is left open.
    type_: Option<String>,
    /// Its values that are text, by their keys; others are of no use to anybody here.
    pub(crate) data: BTreeMap<String, SecretString>,
}

/// A Secret could not be read.
#[derive(Debug, Error)]
pub(crate) enum SecretError {
    /// The API server refused or did not answer.
    #[error("unable to read the Secret {namespace}/{name}")]
    Read {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Why. Of a read, so it repeats no value.
        #[source]
        source: Box<kube::Error>,
    },
    /// A right is missing, which somebody has to give.
    #[error("the operator may not read the Secret {namespace}/{name}; give it the role {SECRETS} in this namespace")]
    Forbidden {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// In the words of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// It is made for something else.
    #[error(
        "the Secret {namespace}/{name} is of type {type_}, and so for others; make one without a type for the credentials, and name that"
    )]
    OfAType {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its type.
        type_: String,
        /// What tells it from the one that comes next, as in an identity.
        version: String,
    },
}

impl Secrets {
    /// Has read nothing yet.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            read: Mutex::default(),
            missing: Mutex::default(),
        }
    }

    /// The Secret of this name; `None` when there is none, or was none within the last seconds.
    pub(crate) async fn get(&self, namespace: &str, name: &str) -> Result<Option<Arc<Seen>>, SecretError> {
        let place = (namespace.to_owned(), name.to_owned());
        if let Some(seen) = self.remembered(&place) {
            return Ok(Some(seen));
        }
        if self.is_missing(&place) {
            return Ok(None);
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let read = api.get_opt(name).await.map_err(|source| unread(&place, source))?;
        let seen = read.map(|secret| Arc::new(Seen::of(secret)));
        let now = Instant::now();
        if let Some(seen) = &seen {
            self.read().insert(place, (now, Arc::clone(seen)));
        } else {
            self.read().remove(&place);
            self.missing().insert(place, now);
        }
        Ok(seen)
    }

    /// Who the operator is in the cloud of an image in this namespace: as the Secret says that it names, else the store that it names, else anybody.
    /// `None` where the Secret is not there, an error where it is of a type that is not for this kind. `cloud` is the name of the cloud where the image says it itself.
    pub(crate) async fn identity_of(
        &self,
        namespace: &str,
        kind: &Kind,
        wish: &ImageWish,
        cloud: Option<String>,
    ) -> Result<Option<Identity>, SecretError> {
        let without_secret = |name: String, version: String| Identity {
            name,
            data: BTreeMap::new(),
            version,
        };
        let Some(name) = wish.secret() else {
            return Ok(Some(match wish.store() {
                Some(store) => without_secret(store.to_owned(), format!("store/{store}")),
                // Whoever needs no Secret asks as anybody.
                None => without_secret(cloud.unwrap_or_default(), "anybody".to_owned()),
            }));
        };
        let Some(secret) = self.get(namespace, name).await? else {
            return Ok(None);
        };
        if let Some(type_) = &secret.type_
            && kind.secret_type != Some(type_.as_str())
        {
            // Whoever makes it anew wants to know at once whether that one is better.
            self.forget(namespace, name);
            return Err(SecretError::OfAType {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                type_: type_.clone(),
                version: secret.version.clone(),
            });
        }
        let named = secret.data.get(CLOUD_NAME);
        let named = named.map(|name| name.expose_secret().trim().to_owned());
        let named = cloud.or(named.filter(|name| !name.is_empty()));
        let identity = secret.identity(named.as_deref().unwrap_or(USUAL_CLOUD));
        Ok(Some(match (kind.secret_key, wish.secret_key()) {
            (Some(usual), Some(key)) if usual != key => of_key(identity, usual, key),
            _ => identity,
        }))
    }

    /// The next one who asks for this Secret is given it as it is then: for when a cloud refused what is in it.
    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        let place = (namespace.to_owned(), name.to_owned());
        self.read().remove(&place);
        self.missing().remove(&place);
    }

    fn read(&self) -> MutexGuard<'_, HashMap<Place, (Instant, Arc<Seen>)>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self) -> MutexGuard<'_, HashMap<Place, Instant>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_missing(&self, place: &Place) -> bool {
        let mut missing = self.missing();
        missing.retain(|_, at| at.elapsed() < MISSING);
        missing.contains_key(place)
    }

    fn remembered(&self, place: &Place) -> Option<Arc<Seen>> {
        let mut remembered = self.read();
        // Nothing of a Secret is kept longer than it is of use.
        remembered.retain(|_, (at, _)| at.elapsed() < HOLDS);
        remembered.get(place).map(|(_, seen)| Arc::clone(seen))
    }
}

fn unread((namespace, name): &Place, source: kube::Error) -> SecretError {
    let is_forbidden = matches!(&source, kube::Error::Api(status) if status.code == 403);
    let (namespace, name, source) = (namespace.clone(), name.clone(), Box::new(source));
    if is_forbidden {
        return SecretError::Forbidden {
            namespace,
            name,
            source,
        };
    }
    SecretError::Read {
        namespace,
        name,
        source,
    }
}

/// With what the Secret has under this key in the place of the usual one. Another key is another identity.
fn of_key(mut identity: Identity, usual: &str, key: &str) -> Identity {
    identity.version = format!("{}/{key}", identity.version);
    match identity.data.remove(key) {
        Some(value) => identity.data.insert(usual.to_owned(), value),
        None => identity.data.remove(usual),
    };
    identity
}

impl Seen {
    fn of(secret: Secret) -> Self {
        let (uid, version) = (secret.metadata.uid, secret.metadata.resource_version);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok().map(SecretString::from);
        let data = secret.data.unwrap_or_default().into_iter();
        Self {
            version: format!("{}/{}", uid.unwrap_or_default(), version.unwrap_or_default()),
            type_: secret.type_.filter(|type_| !matches!(type_.as_str(), "" | "Opaque")),
            data: data.filter_map(|(key, value)| Some((key, text(value.0)?))).collect(),
        }
    }

    /// Who the operator is in the cloud of this name.
    pub(crate) fn identity(&self, cloud: &str) -> Identity {
        Identity {
            name: cloud.to_owned(),
            data: self.data.clone(),
            version: self.version.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_named_stands_for_the_usual_one_and_is_another_identity() {
        let identity = || Identity {
            name: "registry.example".to_owned(),
            data: [("usual", "one"), ("named", "other"), ("ca.crt", "authority")]
                .map(|(key, value)| (key.to_owned(), SecretString::from(value)))
                .into(),
            version: "uid/1".to_owned(),
        };
        let told = |identity: Identity| {
            let data = identity.data.into_iter();
            let data = data.map(|(key, value)| format!("{key}={}", value.expose_secret()));
            (identity.version, data.collect::<Vec<_>>().join(" "))
        };
        let named = told(of_key(identity(), "usual", "named"));
        assert_eq!(
            named,
            ("uid/1/named".to_owned(), "ca.crt=authority usual=other".to_owned())
        );
        let (_, without) = told(of_key(identity(), "usual", "missing"));
        assert_eq!(
            without, "ca.crt=authority named=other",
            "another key is not tried instead"
        );
    }
}
