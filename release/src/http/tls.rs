//! Whom we trust: the authorities of the machine or image, and those that a source brings.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, pem::PemObject},
};

use super::HttpError;

/// Most certificates that a source may bring: a bundle of a distribution has some 150.
const MAX_CERTIFICATES: usize = 512;
/// Longest bundle in bytes; a Secret cannot be longer.
const LONGEST_BUNDLE: usize = 1024 * 1024;

/// The authorities that this machine trusts. Whoever brings none of his own shares them: they take 70 KiB.
#[derive(Clone, Debug)]
pub(super) struct Roots(Arc<RootCertStore>);

impl Roots {
    /// Reads them where distributions keep them, or where `SSL_CERT_FILE` and `SSL_CERT_DIR` say. What cannot be read is left out: one bad
    /// file must not take the trust in all others.
    pub(super) fn load() -> Self {
        let loaded = rustls_native_certs::load_native_certs();
        for error in &loaded.errors {
            tracing::warn!(%error, "unable to read some of the certificates that this machine trusts");
        }
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(loaded.certs);
        Self(Arc::new(store))
    }

    /// Whether nobody is trusted who brings no certificates.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How to speak TLS to servers that these authorities, or those in PEM, vouch for. Without any every such server is refused.
    pub(super) fn config(&self, certificates: Option<&[u8]>) -> Result<ClientConfig, HttpError> {
        let mut store = Arc::clone(&self.0);
        if let Some(bundle) = certificates {
            add(Arc::make_mut(&mut store), bundle)?;
        }
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| HttpError::InvalidCertificates {
                problem: "the cryptography of this program has no usable version of TLS",
            })?;
        Ok(config.with_root_certificates(store).with_no_client_auth())
    }
}

fn add(store: &mut RootCertStore, bundle: &[u8]) -> Result<(), HttpError> {
    let invalid = |problem| HttpError::InvalidCertificates { problem };
    if bundle.len() > LONGEST_BUNDLE {
        return Err(invalid("they have more than 1 MiB"));
    }
    let before = store.len();
    for (index, certificate) in CertificateDer::pem_slice_iter(bundle).enumerate() {
        if index == MAX_CERTIFICATES {
            return Err(invalid("there are more than 512"));
        }
        let certificate = certificate.map_err(|_| invalid("they are no PEM"))?;
        store
            .add(certificate)
            .map_err(|_| invalid("one of them is no certificate of an authority"))?;
    }
    if store.len() == before {
        return Err(invalid("there is none"));
    }
    Ok(())
}

#[cfg(test)]
impl Roots {
    /// A machine that trusts nobody.
    pub(super) fn none() -> Self {
        Self(Arc::new(RootCertStore::empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_are_none_are_refused_with_the_reason() {
        let key = rcgen::KeyPair::generate().unwrap();
        let good = rcgen::CertificateParams::new(vec![])
            .unwrap()
            .self_signed(&key)
            .unwrap()
            .pem();
        let roots = Roots::none();
        assert!(roots.config(Some(good.as_bytes())).is_ok());
        let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let cut = &good[..good.len() / 2];
        for (bundle, words) in [
            ("", "there is none"),
            ("hello", "there is none"),
            (key.serialize_pem().as_str(), "there is none"),
            (garbage, "no certificate of an authority"),
            (cut, "no PEM"),
            ("x".repeat(LONGEST_BUNDLE + 1).as_str(), "more than 1 MiB"),
            (good.repeat(600).as_str(), "more than 512"),
        ] {
            let error = roots.config(Some(bundle.as_bytes())).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
