//! A certificate and its key as files, as cert-manager and kubelets leave them in a folder.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use storage::{BlockingWork, ReadError};
use x509_parser::prelude::{FromDer, X509Certificate};

const CERTIFICATE_FILE: &str = "tls.crt";
const KEY_FILE: &str = "tls.key";

/// A chain of certificates takes a few kilobytes.
const FILE_LIMIT: usize = 1 << 20;

/// For a storage that hangs.
const READ_DEADLINE: Duration = Duration::from_secs(5);

/// The files cannot be used. Nothing of their content is in the words.
#[derive(Debug, thiserror::Error)]
pub(super) enum CertificateError {
    /// A file is missing, or may not be read.
    #[error("unable to read {path}", path = path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file is larger than any certificate.
    #[error("unable to use {path}: it has more than {FILE_LIMIT} bytes", path = path.display())]
    Size { path: PathBuf },
    /// A file is no PEM, or has nothing in it that belongs there.
    #[error("unable to use {path}: it holds no {what} in PEM", path = path.display())]
    Parse {
        path: PathBuf,
        what: &'static str,
        #[source]
        source: Option<pem::Error>,
    },
    /// The certificate cannot be read, or tells no date.
    #[error("unable to use {path}: its first certificate is none", path = path.display())]
    Certificate { path: PathBuf },
    /// The key is of a kind that TLS does not use, or belongs to another certificate.
    #[error("unable to use {KEY_FILE} with {CERTIFICATE_FILE} in {directory}", directory = directory.display())]
    Match {
        directory: PathBuf,
        #[source]
        source: rustls::Error,
    },
}

/// The folder in which both files are. However often they are looked at, one thread at most waits for their storage.
pub(super) struct Folder {
    directory: PathBuf,
    work: Arc<BlockingWork>,
}

impl Folder {
    pub(super) fn new(directory: PathBuf) -> Self {
        let work = BlockingWork::new(1, READ_DEADLINE);
        Self { directory, work }
    }

    /// Reads both files.
    pub(super) async fn read(&self) -> Result<Pair, CertificateError> {
        Ok(Pair {
            directory: self.directory.clone(),
            certificate: self.content(CERTIFICATE_FILE).await?,
            key: self.content(KEY_FILE).await?,
        })
    }

    async fn content(&self, file: &str) -> Result<Vec<u8>, CertificateError> {
        let path = self.directory.join(file);
        let read = self.work.read(path.clone(), FILE_LIMIT).await;
        read.map_err(|error| match error {
            ReadError::Read(source) => CertificateError::Read { path, source },
            ReadError::TooLarge { .. } => CertificateError::Size { path },
        })
    }
}

/// The content of both files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    directory: PathBuf,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// What a server needs of a pair.
#[derive(Debug)]
pub(super) struct Usable {
    pub(super) certified: CertifiedKey,
    /// When the first certificate ends.
    pub(super) not_after: Timestamp,
}

impl Pair {
    /// Checks that both are what they should be and belong together.
    pub(super) fn usable(&self) -> Result<Usable, CertificateError> {
        let path = self.directory.join(CERTIFICATE_FILE);
        let unparsed = |path: PathBuf, what, source| CertificateError::Parse { path, what, source };
        let chain = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| unparsed(path.clone(), "certificate", Some(source)))?;
        let Some(first) = chain.first() else {
            return Err(unparsed(path, "certificate", None));
        };
        let not_after = end_of(first).ok_or(CertificateError::Certificate { path })?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|source| unparsed(self.directory.join(KEY_FILE), "private key", Some(source)))?;
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| default_provider().into());
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|source| CertificateError::Match {
            directory: self.directory.clone(),
            source,
        })?;
        Ok(Usable { certified, not_after })
    }
}

fn end_of(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}
