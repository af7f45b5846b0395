//! An authority of certificates that nobody trusts but those who are told to.

use std::{error::Error, io, sync::Arc};

use anyhow::{Context, Result};
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use openstack_lab::listening::{Listening, Port, speak};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::TlsAcceptor;

/// One that signs certificates of servers on this machine.
#[derive(Debug)]
pub(crate) struct Authority {
    /// Its certificate.
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let key = KeyPair::generate().context("failed to make a key")?;
        let mut params = CertificateParams::new(Vec::new()).context("failed to describe an authority")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).context("failed to sign an authority")?.pem();
        Ok(Self {
            pem,
            issuer: Issuer::new(params, key),
        })
    }

    /// A new pair for a server on loopback.
    pub(crate) fn sign(&self) -> Result<Pair> {
        let key = KeyPair::generate().context("failed to make a key")?;
        let mut params =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).context("failed to describe a certificate")?;
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        let certificate = params
            .signed_by(&key, &self.issuer)
            .context("failed to sign a certificate")?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

impl Pair {
    /// Answers every question at a port so, over TLS. An error closes the connection.
    pub(crate) fn answer<F, B>(
        &self,
        port: Port,
        answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    ) -> Result<Listening>
    where
        F: Future<Output = io::Result<Response<B>>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let (acceptor, answer) = (self.acceptor()?, Arc::new(answer));
        Ok(port.take_in(move |stream| {
            let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    speak(stream, |request| answer(request)).await;
                }
            }
        }))
    }

    /// What makes a connection of this process one by TLS.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor> {
        crate::use_one_cryptography();
        let chain =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).context("unable to read a certificate")?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).context("unable to read a key")?;
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .context("unable to serve a certificate")?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
