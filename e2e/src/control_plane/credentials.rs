//! The files a new control plane needs before its first start: keys, certificates, the admin's token, the audit policy.

use std::{io::Write, path::Path};

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::NamedTempFile;

use super::{Access, Options};

/// What clients of the server trust, and what a kubelet believes the server by.
pub(crate) const CA_CERTIFICATE: &str = "ca.crt";
pub(super) const SERVER_CERTIFICATE: &str = "api-server.crt";
pub(super) const SERVER_KEY: &str = "api-server.key";
pub(super) const KUBELET_CLIENT_CERTIFICATE: &str = "kubelet-client.crt";
pub(super) const KUBELET_CLIENT_KEY: &str = "kubelet-client.key";
pub(super) const SERVICE_ACCOUNT_KEY: &str = "service-account.key";
pub(super) const SERVICE_ACCOUNT_PUBLIC_KEY: &str = "service-account.pub";
/// Of the users who show a certificate.
pub(super) const CLIENT_AUTHORITIES: &str = "client-authorities.crt";
pub(super) const TOKENS: &str = "tokens.csv";
pub(super) const AUDIT_POLICY: &str = "audit-policy.yaml";

/// Every request once it was answered: who, what, outcome, and the body that was sent if so asked. (A watch is written when it begins and
/// when it ends.)
fn every_request(bodies: bool) -> String {
    let level = if bodies { "Request" } else { "Metadata" };
    format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: {level}\n")
}

/// Writes all of them into `folder` and returns the access of the administrator.
pub(super) fn write(folder: &Path, port: u16, options: &Options) -> Result<Access> {
    let keep = |name: &str, text: &str| write_private(&folder.join(name), text);
    let authority_key = KeyPair::generate().context("failed to make the authority's key")?;
    let mut authority = named("stackwright-lab", &[])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_certificate = authority
        .self_signed(&authority_key)
        .context("failed to sign the authority")?
        .pem();
    keep(CA_CERTIFICATE, &authority_certificate)?;
    if options.certificates {
        // An empty list would be refused.
        keep(CLIENT_AUTHORITIES, &authority_certificate)?;
    }

    let authority = Issuer::new(authority, authority_key);

    let address = options
        .serving
        .as_ref()
        .map_or_else(|| "127.0.0.1".to_owned(), |serving| serving.address.to_string());
    let mut server = named(
        "kube-apiserver",
        &[
            &address,
            "127.0.0.1",
            "10.96.0.1",
            "localhost",
            "kubernetes.default.svc",
        ],
    )?;
    server.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
    let (certificate, key) = signed(&server, &authority)?;
    keep(SERVER_CERTIFICATE, &certificate)?;
    keep(SERVER_KEY, &key)?;

    let mut client = named("kube-apiserver-kubelet-client", &[])?;
    client.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    let (certificate, key) = signed(&client, &authority)?;
    keep(KUBELET_CLIENT_CERTIFICATE, &certificate)?;
    keep(KUBELET_CLIENT_KEY, &key)?;

    let service_account_key = KeyPair::generate().context("failed to make the service account key")?;
    keep(SERVICE_ACCOUNT_KEY, &service_account_key.serialize_pem())?;
    keep(SERVICE_ACCOUNT_PUBLIC_KEY, &service_account_key.public_key_pem())?;

    // Nobody outside this machine reaches the server, but others on it do: the token has to be a secret.
    let token = format!(
        "{:x}",
        Secret(&KeyPair::generate().context("failed to make the admin's token")?)
    );
    keep(TOKENS, &format!("{token},admin,admin,system:masters\n"))?;
    keep(AUDIT_POLICY, &every_request(options.audit_bodies))?;
    Ok(Access::admin(
        format!("https://{address}:{port}"),
        authority_certificate,
        token,
    ))
}

/// Writes a file that only its owner may read, at once: journeys that share a control plane write and read the same kubeconfig.
pub(super) fn write_private(path: &Path, text: &str) -> Result<()> {
    let write = || {
        let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|error| error.error)
    };
    write()
        .map(drop)
        .with_context(|| format!("failed to write {}", path.display()))
}

/// A certificate of this authority and its new key, in PEM.
pub(super) fn signed(parameters: &CertificateParams, authority: &Issuer<'_, KeyPair>) -> Result<(String, String)> {
    let key = KeyPair::generate().context("failed to make a key")?;
    let certificate = parameters
        .signed_by(&key, authority)
        .context("failed to sign a certificate")?;
    Ok((certificate.pem(), key.serialize_pem()))
}

pub(super) fn named(name: &str, addresses: &[&str]) -> Result<CertificateParams> {
    let addresses: Vec<String> = addresses.iter().map(|&address| address.to_owned()).collect();
    let mut parameters = CertificateParams::new(addresses).context("failed to describe a certificate")?;
    parameters.distinguished_name.push(DnType::CommonName, name);
    Ok(parameters)
}

/// The last 32 bytes of a fresh key: as good a random number as this room has without another dependency.
struct Secret<'a>(&'a KeyPair);

impl std::fmt::LowerHex for Secret<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.0.public_key_raw();
        key[key.len().saturating_sub(32)..]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
