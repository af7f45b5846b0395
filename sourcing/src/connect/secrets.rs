//! What a source is given, by Secrets or by the operator: read when the source is connected to and by the poll after something failed, never kept
//! in a cache, never shown.

use crds::source::Source;
use kube::Client;
use release::Digest;
use release::http::{Credentials, SecretString};

use crate::{FileError, NamedFile, NamedSecret, SecretError};

/// What names the Secrets.
const FIELD: &str = "spec.source";
/// Where a token is, unless another key is named.
const TOKEN: &str = "token";
const USERNAME: &str = "username";
const PASSWORD: &str = "password";
/// Where certificates are, unless another key is named; as cert-manager calls it.
const CERTIFICATES: &str = "ca.crt";
/// Longest file of certificates, as much as a Secret may hold.
pub(super) const MAX_CERTIFICATES: usize = 1 << 20;

/// What a source is given.
#[derive(Default)]
pub(super) struct Secrets {
    pub(super) credentials: Option<Credentials>,
    pub(super) certificates: Option<Vec<u8>>,
    /// All that was read, to notice that it has changed.
    read: Vec<u8>,
}

impl Secrets {
    /// What the operator was started with. Its environment does not change while it runs; a file does.
    pub(super) async fn of_operator(
        credentials: Option<Credentials>,
        certificates: Option<&NamedFile>,
    ) -> Result<Self, FileError> {
        let certificates = match certificates {
            None => None,
            Some(file) => Some(file.read().await?),
        };
        Ok(Self {
            credentials,
            read: certificates.clone().unwrap_or_default(),
            certificates,
        })
    }

    /// Reads the Secrets that a source names, in its namespace.
    pub(super) async fn read(client: &Client, source: &Source, namespace: &str) -> Result<Self, SecretError> {
        let (given, certificates, only_token) = match source {
            Source::Github(source) => (&source.token_secret_ref, &source.ca_secret_ref, true),
            Source::Oci(source) => (&source.credentials_secret_ref, &source.ca_secret_ref, false),
            Source::Http(source) => (&source.credentials_secret_ref, &source.ca_secret_ref, false),
            Source::Directory(_) => return Ok(Self::default()),
        };
        let mut secrets = Self::default();
        if let Some(reference) = given {
            let read = NamedSecret::read(client, FIELD, reference, namespace).await?;
            secrets.credentials = Some(credentials(&read, only_token)?);
            secrets.read.extend(read.everything());
        }
        if let Some(reference) = certificates {
            let read = NamedSecret::read(client, FIELD, reference, namespace).await?;
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

/// A token, or name and password. A key that is named is that of a token.
fn credentials(read: &NamedSecret<'_>, only_token: bool) -> Result<Credentials, SecretError> {
    let key = read.reference.key.as_deref().unwrap_or(TOKEN);
    if let Some(token) = read.text(key)? {
        return Ok(Credentials::Bearer(token.into()));
    }
    if only_token || read.reference.key.is_some() {
        return Err(read.missing(&format!("key {key:?}")));
    }
    match (read.text(USERNAME)?, read.text(PASSWORD)?) {
        (Some(username), Some(password)) => Ok(Credentials::Basic {
            username,
            password: SecretString::from(password),
        }),
        _ => Err(read.missing(&format!("key {TOKEN:?}, nor the keys {USERNAME:?} and {PASSWORD:?}"))),
    }
}
