//! Whom we trust, and by which certificate we are known.

use std::sync::{Arc, LazyLock};

use provider_plugin::{CloudError, ErrorClass};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use secrecy::ExposeSecret;

use crate::clouds::Tls;

/// What cannot be done without usable certificates.
const OPERATION: &str = "set up TLS with the cloud";
/// Most certificates of authorities that a user may bring.
const MOST: usize = 512;

/// The authorities that this machine trusts, read once for all clouds.
static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        tracing::warn!(%error, "unable to read some of the certificates that this machine trusts");
    }
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(loaded.certs);
    Arc::new(store)
});

fn refused(words: &str) -> CloudError {
    CloudError::new(ErrorClass::Invalid, OPERATION, words)
}

/// How to speak TLS with a cloud.
pub(super) fn config(tls: &Tls) -> Result<ClientConfig, CloudError> {
    let mut roots = Arc::clone(&ROOTS);
    if let Some(authorities) = &tls.authorities {
        add(Arc::make_mut(&mut roots), authorities)?;
    }
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(aws_lc_rs::default_provider()));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| refused("there is no usable version of TLS").because(error))?;
    let builder = if tls.is_blind {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Blind(provider)))
    } else {
        // Without any authority every server is refused when it is met; a cloud without TLS never is.
        builder.with_root_certificates(roots)
    };
    match &tls.client {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
            let chain = chain.map_err(|_| refused("our own certificate (cert) is no PEM"))?;
            let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes());
            let key =
                key.map_err(|_| refused("the key of our own certificate (key) is no PEM of a key without a password"))?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|_| refused("our own certificate (cert) and its key (key) do not fit together"))
        }
    }
}

fn add(store: &mut RootCertStore, bundle: &[u8]) -> Result<(), CloudError> {
    let before = store.len();
    for (index, certificate) in CertificateDer::pem_slice_iter(bundle).enumerate() {
        if index == MOST {
            return Err(refused("cacert has more than 512 certificates"));
        }
        let certificate = certificate.map_err(|_| refused("cacert is no PEM"))?;
        let added = store.add(certificate);
        added.map_err(|_| refused("cacert has something that is no certificate of an authority"))?;
    }
    if store.len() == before {
        return Err(refused(
            "cacert has no certificate; give those of the cloud's authorities in PEM",
        ));
    }
    Ok(())
}

/// Believes everybody, as a user asked by `verify: false`. Signatures of the handshake are still looked at.
#[derive(Debug)]
struct Blind(Arc<CryptoProvider>);

impl ServerCertVerifier for Blind {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let schemes = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_are_none_are_refused_with_what_to_do() {
        let with = |bundle: &str| Tls {
            authorities: Some(bundle.as_bytes().to_vec()),
            ..Tls::default()
        };
        for (bundle, words) in [
            ("", "no certificate"),
            ("/etc/ssl/ca.pem", "no certificate"),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "no certificate of an authority",
            ),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "no PEM"),
        ] {
            let error = config(&with(bundle)).unwrap_err();
            assert_eq!(error.class, ErrorClass::Invalid);
            assert!(error.to_string().contains(words), "{error}");
        }
        let client = Some((b"nothing".to_vec(), "secret".into()));
        let error = config(&Tls {
            client,
            ..Tls::default()
        })
        .unwrap_err();
        assert!(error.to_string().contains("key of our own certificate"), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
