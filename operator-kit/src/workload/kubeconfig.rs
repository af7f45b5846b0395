//! Reads how a workload cluster is reached, from the Secret `<cluster>-kubeconfig` that Cluster API writes, or somebody who may write it.
//!
//! A kubeconfig can name programs to run, files to read, and proxies to go through, and kube does all of that. So this is a reader of our own,
//! which knows a server, its authority, and a certificate or a token; everything else that would change where we go or as whom is refused by
//! the name of its field. It opens nothing, asks nobody, and repeats no value: the words of an error are all here.

mod file;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use k8s_openapi::api::core::v1::Secret;
use kube::config::{AuthInfo, Config};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use url::{Host, Url};

use self::file::{Cluster, File, Hidden, List, Named, Presence, User};
use super::addresses::Addresses;

/// The type of Secrets that Cluster API keeps kubeconfigs in (`cluster-api/util/secret`).
pub const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

/// The key of the kubeconfig in such a Secret.
pub const SECRET_KEY: &str = "value";

/// Most bytes of a kubeconfig; a Secret has no room for more.
pub const KUBECONFIG_LIMIT: usize = 1 << 20;

/// Most certificates of an authority, or of a client.
const MOST_CERTIFICATES: usize = 64;

const SUFFIX: &str = "-kubeconfig";

/// The name of the Secret with the kubeconfig of a Cluster, in its namespace.
pub fn secret_name(cluster: &str) -> String {
    format!("{cluster}{SUFFIX}")
}

/// The name of the Cluster whose kubeconfig is in a Secret of this name, if that may be.
pub fn cluster_name(secret: &str) -> Option<&str> {
    secret.strip_suffix(SUFFIX).filter(|cluster| !cluster.is_empty())
}

/// Why a kubeconfig is refused. Whatever it is, somebody has to write another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    /// The Secret is not one of Cluster API.
    #[error("the Secret is not of type {SECRET_TYPE}; kubeconfigs are read from such Secrets only")]
    SecretType,
    /// The Secret has no kubeconfig.
    #[error("the Secret has no key {SECRET_KEY:?} with a kubeconfig")]
    SecretKey,
    /// It is longer than kubeconfigs are.
    #[error("the kubeconfig has more than {KUBECONFIG_LIMIT} bytes")]
    Size,
    /// It is no YAML, or not of the shape of a kubeconfig.
    #[error("the kubeconfig cannot be read{}; give it the form of a kubeconfig", place(*.line))]
    Parse {
        /// The line, from 1, where that is known.
        line: Option<usize>,
    },
    /// What is to be used is not there, or there more than once.
    #[error("the kubeconfig {problem}")]
    Choose {
        /// What is wrong, and what to write.
        problem: &'static str,
    },
    /// A field that we do not obey.
    #[error("the kubeconfig has the field {field}, which {problem}")]
    Forbidden {
        /// Its name.
        field: &'static str,
        /// What it would do, and what to write instead.
        problem: &'static str,
    },
    /// A field that cannot be used.
    #[error("{field} of the kubeconfig {problem}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is wrong, and what to write.
        problem: &'static str,
    },
}

fn place(line: Option<usize>) -> String {
    line.map(|line| format!(" at line {line}")).unwrap_or_default()
}

fn wrong(field: &'static str, problem: &'static str) -> KubeconfigError {
    KubeconfigError::Field { field, problem }
}

/// How a workload cluster is reached, and as whom. Printed it shows nothing but that, and what is secret in it is wiped when it goes; the copies that
/// the parsers of JSON, YAML and TLS make are theirs.
#[derive(Clone)]
pub struct Access {
    server: Uri,
    authorities: Vec<CertificateDer<'static>>,
    server_name: Option<String>,
    credentials: Credentials,
    digest: [u8; 32],
}

#[derive(Clone)]
enum Credentials {
    /// Both in PEM, as base64.
    Certificate {
        certificate: String,
        key: SecretString,
    },
    Token(SecretString),
}

impl fmt::Debug for Access {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Access(..)")
    }
}

impl Access {
    /// Reads the Secret.
    pub fn of_secret(mut secret: Secret, addresses: Addresses) -> Result<Self, KubeconfigError> {
        if secret.type_.as_deref() != Some(SECRET_TYPE) {
            return Err(KubeconfigError::SecretType);
        }
        let value = secret.data.as_mut().and_then(|data| data.remove(SECRET_KEY));
        let value = Zeroizing::new(value.ok_or(KubeconfigError::SecretKey)?.0);
        Self::parse(&value, addresses)
    }

    /// Reads a kubeconfig.
    pub fn parse(bytes: &[u8], addresses: Addresses) -> Result<Self, KubeconfigError> {
        if bytes.len() > KUBECONFIG_LIMIT {
            return Err(KubeconfigError::Size);
        }
        // What the parser says may repeat what stands there, so that only the place is told.
        let file: File = serde_yaml::from_slice(bytes).map_err(|error| KubeconfigError::Parse {
            line: error.location().map(|location| location.line()),
        })?;
        let (cluster, user) = choose(file)?;
        refuse_of_cluster(&cluster)?;
        refuse_of_user(&user)?;
        Ok(Self {
            server: server(&cluster.server.0, addresses)?,
            authorities: authorities(&cluster.certificate_authority_data.0)?,
            server_name: server_name(cluster.tls_server_name.0)?,
            credentials: credentials(user)?,
            digest: Sha256::digest(bytes).into(),
        })
    }

    /// Where the API server is: scheme, host, port, and the path before those of the API.
    pub fn server(&self) -> &Uri {
        &self.server
    }

    /// Whether both were read from the same bytes.
    pub fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// What kube makes a client of. Nothing in it names a file or a program, and nothing of the environment is in it.
    pub fn config(&self) -> Config {
        let mut config = Config::new(self.server.clone());
        let authorities = self.authorities.iter();
        config.root_cert = Some(authorities.map(|certificate| certificate.to_vec()).collect());
        config.tls_server_name.clone_from(&self.server_name);
        config.auth_info = match &self.credentials {
            Credentials::Certificate { certificate, key } => AuthInfo {
                client_certificate_data: Some(certificate.clone()),
                client_key_data: Some(key.clone()),
                ..AuthInfo::default()
            },
            Credentials::Token(token) => AuthInfo {
                token: Some(token.clone()),
                ..AuthInfo::default()
            },
        };
        config.default_retry = false;
        config.disable_compression = true;
        config
    }
}

/// The cluster and the user of the context that is to be used.
fn choose(file: File) -> Result<(Cluster, User), KubeconfigError> {
    let current = file.current_context.0;
    let context = if current.is_empty() {
        let only = <[_; 1]>::try_from(file.contexts.0).map_err(|_| KubeconfigError::Choose {
            problem: "has no current-context, and not exactly one context; name one",
        })?;
        let [only] = only;
        only.context
    } else {
        let problem = "has a current-context that is not the name of exactly one of its contexts";
        find(file.contexts, &current, problem)?.context
    };
    let context = context.ok_or(KubeconfigError::Choose {
        problem: "has a context without a cluster and a user",
    })?;
    let problem = "has a context whose cluster is not the name of exactly one of its clusters";
    let cluster = find(file.clusters, &context.cluster.0, problem)?.cluster;
    let problem = "has a context whose user is not the name of exactly one of its users";
    let user = find(file.users, &context.user.0, problem)?.user;
    let cluster = cluster.ok_or_else(|| wrong("server", "is missing"))?;
    Ok((cluster, user.ok_or_else(no_credentials)?))
}

fn find<T: Named>(list: List<T>, name: &str, problem: &'static str) -> Result<T, KubeconfigError> {
    let mut found = list.0.into_iter().filter(|entry| entry.name() == name);
    match (found.next(), found.next()) {
        (Some(entry), None) => Ok(entry),
        _ => Err(KubeconfigError::Choose { problem }),
    }
}

/// Names the first field that says something it must not.
fn refuse(fields: impl IntoIterator<Item = (&'static str, Presence, &'static str)>) -> Result<(), KubeconfigError> {
    let mut said = fields.into_iter().filter(|(_, presence, _)| presence.0);
    said.next().map_or(Ok(()), |(field, _, problem)| {
        Err(KubeconfigError::Forbidden { field, problem })
    })
}

const FILE: &str = "names a file of this machine; put what is in it into the kubeconfig";
const IMPERSONATION: &str = "would make us somebody else; give the credentials of whom we are to be";
const BASIC: &str = "API servers take no more; give a certificate or a token";

fn refuse_of_cluster(cluster: &Cluster) -> Result<(), KubeconfigError> {
    let insecure = "would trust whoever answers; give certificate-authority-data instead";
    let proxy = "would lead us to somebody who connects for us; give a server that is reached directly";
    refuse([
        ("certificate-authority", cluster.certificate_authority, FILE),
        ("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify, insecure),
        ("proxy-url", cluster.proxy_url, proxy),
    ])
}

fn refuse_of_user(user: &User) -> Result<(), KubeconfigError> {
    let program = "would run a program of this machine; give a certificate or a token";
    let provider = "would ask somebody else for credentials; give a certificate or a token";
    refuse([
        ("exec", user.exec, program),
        ("auth-provider", user.auth_provider, provider),
        ("client-certificate", user.client_certificate, FILE),
        ("client-key", user.client_key, FILE),
        ("tokenFile", user.token_file, FILE),
        ("username", user.username, BASIC),
        ("password", user.password, BASIC),
        ("as", user.impersonated, IMPERSONATION),
        ("as-uid", user.as_uid, IMPERSONATION),
        ("as-groups", user.as_groups, IMPERSONATION),
        ("as-user-extra", user.as_user_extra, IMPERSONATION),
    ])
}

fn server(text: &str, addresses: Addresses) -> Result<Uri, KubeconfigError> {
    let wrong = |problem| wrong("server", problem);
    if text.is_empty() {
        return Err(wrong("is missing"));
    }
    let url = Url::parse(text).ok().filter(Url::has_host);
    let url = url.ok_or_else(|| wrong("is no URL"))?;
    if url.scheme() != "https" {
        return Err(wrong("has to begin with https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("has a user or a password; leave them out"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has more than a host, a port and a path; leave the rest out"));
    }
    let refusal = match url.host() {
        Some(Host::Ipv4(address)) => addresses.refusal(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => addresses.refusal(IpAddr::V6(address)),
        Some(Host::Domain(name)) => (is_local(name) && !addresses.loopback).then_some("this machine itself"),
        None => None,
    };
    if refusal.is_some() {
        return Err(wrong(
            "is at an address where no cluster is: of this machine, of its network segment, of none or of many, or of a service that gives \
             machines their credentials",
        ));
    }
    // As the URL is understood here, not as it is written.
    let whole = url.as_str().trim_end_matches('/').parse();
    whole.map_err(|_| wrong("is no URL that can be asked"))
}

/// Whether a name is one of this machine wherever it is looked up (RFC 6761).
fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

fn server_name(text: String) -> Result<Option<String>, KubeconfigError> {
    if text.is_empty() {
        return Ok(None);
    }
    match ServerName::try_from(text.as_str()) {
        Ok(_) => Ok(Some(text)),
        Err(_) => Err(wrong("tls-server-name", "is neither a name nor an address")),
    }
}

/// Without an authority that is named, everybody whom the machine trusts could be the cluster.
fn authorities(data: &str) -> Result<Vec<CertificateDer<'static>>, KubeconfigError> {
    const FIELD: &str = "certificate-authority-data";
    if data.is_empty() {
        return Err(wrong(
            FIELD,
            "is missing; give the certificate of the authority that the cluster's certificate is of",
        ));
    }
    certificates(FIELD, &decoded(FIELD, data)?)
}

fn certificates(field: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, KubeconfigError> {
    let read = CertificateDer::pem_slice_iter(pem).take(MOST_CERTIFICATES + 1);
    let certificates = read.collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|_| wrong(field, "is no PEM"))?;
    match certificates.len() {
        0 => Err(wrong(field, "holds no certificate in PEM")),
        1..=MOST_CERTIFICATES => Ok(certificates),
        _ => Err(wrong(field, "holds more certificates than anybody needs")),
    }
}

fn decoded(field: &'static str, data: &str) -> Result<Zeroizing<Vec<u8>>, KubeconfigError> {
    // Go steps over the ends of lines.
    let text: Zeroizing<Vec<u8>> = Zeroizing::new(data.bytes().filter(|byte| !b"\r\n".contains(byte)).collect());
    let bytes = STANDARD
        .decode(text.as_slice())
        .map_err(|_| wrong(field, "is no base64"))?;
    Ok(Zeroizing::new(bytes))
}

fn no_credentials() -> KubeconfigError {
    KubeconfigError::Choose {
        problem: "has no credentials; give client-certificate-data with client-key-data, or token",
    }
}

fn credentials(user: User) -> Result<Credentials, KubeconfigError> {
    let (certificate, Hidden(key), Hidden(token)) = (user.client_certificate_data.0, user.client_key_data, user.token);
    let has = |secret: &SecretString| !secret.expose_secret().is_empty();
    match (!certificate.is_empty(), has(&key), has(&token)) {
        (false, false, false) => Err(no_credentials()),
        (false, false, true) => token_of(token),
        (true, true, false) => certified(&certificate, &key),
        (true, false, _) => Err(wrong(
            "client-key-data",
            "is missing, and client-certificate-data is there",
        )),
        (false, true, _) => Err(wrong(
            "client-certificate-data",
            "is missing, and client-key-data is there",
        )),
        (true, true, true) => Err(wrong(
            "token",
            "is there beside client-certificate-data; leave one of them out",
        )),
    }
}

fn token_of(token: SecretString) -> Result<Credentials, KubeconfigError> {
    if token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Credentials::Token(token));
    }
    Err(wrong("token", "has characters that no token has"))
}

/// Checks that the two belong together.
fn certified(certificate: &str, key: &SecretString) -> Result<Credentials, KubeconfigError> {
    const CERTIFICATE: &str = "client-certificate-data";
    const KEY: &str = "client-key-data";
    let pem = decoded(CERTIFICATE, certificate)?;
    let chain = certificates(CERTIFICATE, &pem)?;
    let key_pem = decoded(KEY, key.expose_secret())?;
    let private = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|_| wrong(KEY, "holds no private key in PEM"))?;
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(default_provider()));
    CertifiedKey::from_der(chain, private, &provider)
        .map_err(|_| wrong(KEY, "is not the key of client-certificate-data"))?;
    Ok(Credentials::Certificate {
        certificate: STANDARD.encode(pem.as_slice()),
        key: SecretString::from(STANDARD.encode(key_pem.as_slice())),
    })
}

#[cfg(test)]
mod tests;
