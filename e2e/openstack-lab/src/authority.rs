//! An authority that nobody trusts but those who are told to, and the certificates that it gave to the servers of one cloud on this machine and to their client.

use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio_rustls::TlsAcceptor;

/// The authority and what it signed, in PEM.
pub(crate) struct Authority {
    /// Its own certificate.
    pub(crate) pem: String,
    /// The certificate of the servers.
    pub(crate) certificate: String,
    /// Their key.
    pub(crate) key: String,
    /// What a client shows to servers that ask for it.
    pub(crate) client: Pair,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let key = KeyPair::generate().context("failed to make the key of an authority")?;
        let mut authority = CertificateParams::new(vec![])?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL asks for these, and takes a certificate whose subject is that of its issuer for one that signed itself.
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        authority
            .distinguished_name
            .push(DnType::CommonName, "authority of the lab");
        let pem = authority
            .self_signed(&key)
            .context("failed to sign an authority")?
            .pem();
        let issuer = Issuer::new(authority, key);
        let server = signed(
            &issuer,
            &["127.0.0.1", "localhost"],
            ExtendedKeyUsagePurpose::ServerAuth,
        )?;
        let client = signed(&issuer, &["client"], ExtendedKeyUsagePurpose::ClientAuth)?;
        Ok(Self {
            pem,
            certificate: server.certificate,
            key: server.key,
            client,
        })
    }

    /// What makes a connection of this process one by TLS, with whomever or only with the client of the authority.
    pub(crate) fn acceptor(&self, asks_for_certificates: bool) -> Result<TlsAcceptor> {
        let chain = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let chain = vec![chain.context("unable to read the certificate of the services")?];
        let key =
            PrivateKeyDer::from_pem_slice(self.key.as_bytes()).context("unable to read the key of the services")?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let config = if asks_for_certificates {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).context("unable to read the authority")?)?;
            config.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .context("unable to ask for certificates")?,
            )
        } else {
            config.with_no_client_auth()
        };
        let config = config.with_single_cert(chain, key)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// A new pair for these names, the last of which is its subject.
fn signed(issuer: &Issuer<'_, KeyPair>, names: &[&str], usage: ExtendedKeyUsagePurpose) -> Result<Pair> {
    let key = KeyPair::generate().context("failed to make a key")?;
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())?;
    if let Some(subject) = names.last() {
        params.distinguished_name.push(DnType::CommonName, *subject);
    }
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, issuer).context("failed to sign a certificate")?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}
