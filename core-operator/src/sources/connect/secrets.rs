//! What the Secrets of a source hold: read when the source is connected to, never kept in a cache, never shown.

use crds::source::{SecretReference, Source};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use operator_kit::failure::{Class, class_of};
use release::http::{Credentials, SecretString};
use release::{Digest, ErrorClass};
use thiserror::Error;

/// Where a token is, unless another key is named.
const TOKEN: &str = "token";
const USERNAME: &str = "username";
const PASSWORD: &str = "password";
/// Where certificates are, unless another key is named; as cert-manager calls it.
const CERTIFICATES: &str = "ca.crt";

/// Why a Secret does not give what a source needs.
#[derive(Debug, Error)]
pub(crate) enum SecretError {
    /// The API server refused or did not answer.
    #[error("failed to read the Secret {namespace}/{name}, which spec.source names")]
    Read {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The API server's answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// There is no such Secret.
    #[error("there is no Secret {namespace}/{name}, which spec.source names; create it, or name another one")]
    Missing {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// It is for something else.
    #[error(
        "the Secret {namespace}/{name} is of type {type_}, which no source is given: whoever writes spec.source need not be allowed to read it; \
         make a Secret for the source"
    )]
    NotForSources {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its type.
        type_: String,
    },
    /// It has other keys.
    #[error("the Secret {namespace}/{name} has no {wanted}; it must have that")]
    MissingKey {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Which keys would do.
        wanted: String,
    },
    /// A value is binary.
    #[error("the key {key:?} of the Secret {namespace}/{name} is no text")]
    NoText {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Which key.
        key: String,
    },
}

impl SecretError {
    /// What can end the problem.
    pub(super) fn class(&self) -> ErrorClass {
        match self {
            Self::Read { source, .. } => match class_of(source) {
                Class::Terminal => ErrorClass::Waiting,
                _ => ErrorClass::Transient,
            },
            Self::Missing { .. } | Self::NotForSources { .. } | Self::MissingKey { .. } | Self::NoText { .. } => {
                ErrorClass::Waiting
            }
        }
    }
}

/// What a source is given.
#[derive(Default)]
pub(super) struct Secrets {
    pub(super) credentials: Option<Credentials>,
    pub(super) certificates: Option<Vec<u8>>,
    /// All that was read, to notice that it has changed.
    read: Vec<u8>,
}

impl Secrets {
    /// What the environment of the operator gives: it does not change while it runs.
    pub(super) fn of_environment(credentials: Option<Credentials>) -> Self {
        Self {
            credentials,
            ..Self::default()
        }
    }

    /// Reads the Secrets that a source names, in its namespace.
    pub(super) async fn read(client: &Client, source: &Source, namespace: &str) -> Result<Self, SecretError> {
        let (credentials, certificates, only_token) = match source {
            Source::Github(source) => (&source.token_secret_ref, &source.ca_secret_ref, true),
            Source::Oci(source) => (&source.credentials_secret_ref, &source.ca_secret_ref, false),
            Source::Http(source) => (&source.credentials_secret_ref, &source.ca_secret_ref, false),
            Source::Directory(_) => return Ok(Self::default()),
        };
        let mut secrets = Self::default();
        if let Some(reference) = credentials {
            let read = Read::new(client, reference, namespace).await?;
            secrets.credentials = Some(read.credentials(only_token)?);
            secrets.read.extend(read.everything());
        }
        if let Some(reference) = certificates {
            let read = Read::new(client, reference, namespace).await?;
            let key = reference.key.as_deref().unwrap_or(CERTIFICATES);
            let certificates = read.value(key).ok_or_else(|| read.missing(&format!("key {key:?}")))?;
            secrets.certificates = Some(certificates.to_vec());
            secrets.read.extend(read.everything());
        }
        Ok(secrets)
    }

    /// Changes with all that was read, and says nothing of it.
    pub(super) fn fingerprint(&self) -> Digest {
        Digest::of(&self.read)
    }
}

/// One Secret.
struct Read<'reference> {
    reference: &'reference SecretReference,
    namespace: &'reference str,
    secret: Secret,
}

impl<'reference> Read<'reference> {
    async fn new(
        client: &Client,
        reference: &'reference SecretReference,
        namespace: &'reference str,
    ) -> Result<Self, SecretError> {
        let (name, namespace_name) = (reference.name.clone(), namespace.to_owned());
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let found = api.get_opt(&reference.name).await;
        let found = found.map_err(|source| SecretError::Read {
            namespace: namespace_name.clone(),
            name: name.clone(),
            source: Box::new(source),
        })?;
        let secret = found.ok_or_else(|| SecretError::Missing {
            namespace: namespace_name.clone(),
            name: name.clone(),
        })?;
        match secret.type_.as_deref() {
            None | Some("Opaque" | "") => {}
            Some(type_) => {
                return Err(SecretError::NotForSources {
                    namespace: namespace_name,
                    name,
                    type_: type_.to_owned(),
                });
            }
        }
        Ok(Self {
            reference,
            namespace,
            secret,
        })
    }

    /// A token, or name and password. A key that is named is that of a token.
    fn credentials(&self, only_token: bool) -> Result<Credentials, SecretError> {
        let key = self.reference.key.as_deref().unwrap_or(TOKEN);
        if let Some(token) = self.text(key)? {
            return Ok(Credentials::Bearer(token.into()));
        }
        if only_token || self.reference.key.is_some() {
            return Err(self.missing(&format!("key {key:?}")));
        }
        match (self.text(USERNAME)?, self.text(PASSWORD)?) {
            (Some(username), Some(password)) => Ok(Credentials::Basic {
                username,
                password: SecretString::from(password),
            }),
            _ => Err(self.missing(&format!("key {TOKEN:?}, nor the keys {USERNAME:?} and {PASSWORD:?}"))),
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, SecretError> {
        let text = self.value(key).map(|value| String::from_utf8(value.to_vec()));
        text.transpose().map_err(|_| SecretError::NoText {
            namespace: self.namespace.to_owned(),
            name: self.reference.name.clone(),
            key: key.to_owned(),
        })
    }

    fn value(&self, key: &str) -> Option<&[u8]> {
        let ByteString(value) = self.secret.data.as_ref()?.get(key)?;
        Some(value)
    }

    fn everything(&self) -> Vec<u8> {
        serde_json::to_vec(&self.secret.data).unwrap_or_default()
    }

    fn missing(&self, wanted: &str) -> SecretError {
        SecretError::MissingKey {
            namespace: self.namespace.to_owned(),
            name: self.reference.name.clone(),
            wanted: wanted.to_owned(),
        }
    }
}
