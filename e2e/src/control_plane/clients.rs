//! Users who show a certificate: whoever signs them makes them known to an API server, and with the signer they are forgotten.

use std::fmt;

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use kube::Client;
use rcgen::{BasicConstraints, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::{
    Access, ControlPlane,
    access::{client_of, yaml},
    credentials::{CLIENT_AUTHORITIES, named, signed, write_private},
};

/// An authority that signs certificates of users.
pub struct ClientAuthority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for ClientAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAuthority").finish_non_exhaustive()
    }
}

impl ClientAuthority {
    /// A new one, which nobody trusts yet.
    pub fn new() -> Result<Self> {
        let key = KeyPair::generate().context("failed to make the key of an authority")?;
        let mut parameters = named("stackwright-clients", &[])?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = parameters
            .self_signed(&key)
            .context("failed to sign an authority")?
            .pem();
        Ok(Self {
            pem,
            issuer: Issuer::new(parameters, key),
        })
    }

    /// The kubeconfig of an administrator of this name with a new certificate, as YAML.
    pub fn kubeconfig(&self, access: &Access, name: &str) -> Result<String> {
        yaml(&access.kubeconfig(&self.credentials(name)?))
    }

    /// A client with such a certificate.
    pub async fn client(&self, access: &Access, name: &str) -> Result<Client> {
        client_of(access.kubeconfig(&self.credentials(name)?)).await
    }

    fn credentials(&self, name: &str) -> Result<Value> {
        let mut parameters = named(name, &[])?;
        parameters
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        parameters.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        let (certificate, key) = signed(&parameters, &self.issuer)?;
        Ok(json!({
            "client-certificate-data": BASE64_STANDARD.encode(certificate),
            "client-key-data": BASE64_STANDARD.encode(key),
        }))
    }
}

impl ControlPlane {
    /// From soon on users with certificates of these authorities are known, and no others: the API server looks at the list by itself. It has to be one that
    /// takes [certificates](super::Options::certificates).
    pub fn know_clients_of(&self, authorities: &[&ClientAuthority]) -> Result<()> {
        let pem: String = authorities.iter().map(|authority| authority.pem.as_str()).collect();
        write_private(&self.folder().join(CLIENT_AUTHORITIES), &pem)
    }
}
