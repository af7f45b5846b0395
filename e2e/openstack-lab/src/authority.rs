//! An authority that nobody trusts but those who are told to, and the certificate that it gave to the servers of one cloud on this machine.

use std::sync::Arc;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
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
        let server_key = KeyPair::generate().context("failed to make the key of a server")?;
        let mut server = CertificateParams::new(["127.0.0.1", "localhost"].map(str::to_owned))?;
        server.distinguished_name.push(DnType::CommonName, "localhost");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let certificate = server
            .signed_by(&server_key, &issuer)
            .context("failed to sign a certificate")?;
        Ok(Self {
            pem,
            certificate: certificate.pem(),
            key: server_key.serialize_pem(),
        })
    }

    /// What makes a connection of this process one by TLS.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor> {
        let chain = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let chain = vec![chain.context("unable to read the certificate of the services")?];
        let key =
            PrivateKeyDer::from_pem_slice(self.key.as_bytes()).context("unable to read the key of the services")?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
