//! One Secret that an object names: read when it is needed, never kept in a cache, never shown.

use crds::source::SecretReference;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use operator_kit::failure::{Class, class_of};
use release::ErrorClass;
use thiserror::Error;

/// Why a Secret does not give what is wanted of it.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The API server refused or did not answer.
    #[error("failed to read the Secret {namespace}/{name}, which {field} names")]
    Read {
        /// Which field names it.
        field: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The API server's answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// The operator may not read it (any more).
    #[error(
        "the operator may not read the Secret {namespace}/{name}, which {field} names; give it the right to get that Secret"
    )]
    Forbidden {
        /// Which field names it.
        field: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The API server's answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// There is no such Secret.
    #[error("there is no Secret {namespace}/{name}, which {field} names; create it, or name another one")]
    Missing {
        /// Which field names it.
        field: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// It is for something else.
    #[error(
        "the Secret {namespace}/{name} is of type {type_}, which is not read for {field}: whoever writes that need not be allowed to read it; \
         make a Secret without a type for it"
    )]
    OfAType {
        /// Which field names it.
        field: &'static str,
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
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Read { source, .. } => match class_of(source) {
                Class::Terminal => ErrorClass::Waiting,
                _ => ErrorClass::Transient,
            },
            Self::Forbidden { .. }
            | Self::Missing { .. }
            | Self::OfAType { .. }
            | Self::MissingKey { .. }
            | Self::NoText { .. } => ErrorClass::Waiting,
        }
    }
}

/// One Secret as it was read.
pub struct NamedSecret<'reference> {
    pub(crate) reference: &'reference SecretReference,
    namespace: &'reference str,
    secret: Secret,
}

impl<'reference> NamedSecret<'reference> {
    /// Reads the Secret of this namespace that a field (such as `spec.source`) names. Only one without a type: others are for others.
    pub async fn read(
        client: &Client,
        field: &'static str,
        reference: &'reference SecretReference,
        namespace: &'reference str,
    ) -> Result<Self, SecretError> {
        Self::read_or_of_type(client, field, reference, namespace, None).await
    }

    /// The same, which may also have this type. What is in such a Secret is for whom it says: whoever calls this gives it to nobody else.
    pub async fn read_or_of_type(
        client: &Client,
        field: &'static str,
        reference: &'reference SecretReference,
        namespace: &'reference str,
        allowed: Option<&str>,
    ) -> Result<Self, SecretError> {
        let (name, namespace_name) = (reference.name.clone(), namespace.to_owned());
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let found = api.get_opt(&reference.name).await;
        let found = found.map_err(|source| {
            let (namespace, name, source) = (namespace_name.clone(), name.clone(), Box::new(source));
            match &*source {
                // Whoever takes the right away takes away what the Secret gave: no outage is answered so.
                kube::Error::Api(status) if status.is_forbidden() => SecretError::Forbidden {
                    field,
                    namespace,
                    name,
                    source,
                },
                _ => SecretError::Read {
                    field,
                    namespace,
                    name,
                    source,
                },
            }
        })?;
        let secret = found.ok_or_else(|| SecretError::Missing {
            field,
            namespace: namespace_name.clone(),
            name: name.clone(),
        })?;
        match secret.type_.as_deref() {
            None | Some("Opaque" | "") => {}
            type_ if type_ == allowed => {}
            Some(type_) => {
                return Err(SecretError::OfAType {
                    field,
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

    /// Whether it has a type, and so is for others too.
    pub fn has_type(&self) -> bool {
        !matches!(self.secret.type_.as_deref(), None | Some("Opaque" | ""))
    }

    /// The text of a key, if it has that.
    pub fn text(&self, key: &str) -> Result<Option<String>, SecretError> {
        let text = self.value(key).map(|value| String::from_utf8(value.to_vec()));
        text.transpose().map_err(|_| SecretError::NoText {
            namespace: self.namespace.to_owned(),
            name: self.reference.name.clone(),
            key: key.to_owned(),
        })
    }

    /// The bytes of a key, if it has that.
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        let ByteString(value) = self.secret.data.as_ref()?.get(key)?;
        Some(value)
    }

    /// All that is in it, to notice that it has changed.
    pub(crate) fn everything(&self) -> Vec<u8> {
        serde_json::to_vec(&self.secret.data).unwrap_or_default()
    }

    /// That it does not have what was wanted, such as `key "token"`.
    pub fn missing(&self, wanted: &str) -> SecretError {
        SecretError::MissingKey {
            namespace: self.namespace.to_owned(),
            name: self.reference.name.clone(),
            wanted: wanted.to_owned(),
        }
    }
}
