//! `clouds.yaml`, as users of OpenStack have it: which cloud, who we are, whom to trust. It decides what of it is good, reads no file and no
//! environment, and asks nobody. What it says about a file never has a value of the file in it.

use secrecy::SecretString;
use serde_json::{Map, Value};
use thiserror::Error;
use url::Url;

use crate::{
    auth::{Auth, CredentialName, Scope, Who},
    catalogue::Interface,
};

/// Longest file in bytes; real ones have some hundred lines.
const LONGEST: usize = 256 * 1024;
/// How a certificate or key begins that stands in the file itself.
const PEM: &str = "-----BEGIN";

/// One cloud of the file.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// Keystone, with `/v3` at its end and no slash behind it.
    pub auth_url: Url,
    /// How we prove who we are.
    pub auth: Auth,
    /// The region whose endpoints count; none where the file says none.
    pub region: Option<String>,
    /// Which of the endpoints of a service.
    pub interface: Interface,
    /// Whom to trust.
    pub tls: Tls,
    /// The image service, where the file knows better than the catalogue.
    pub image_endpoint: Option<Url>,
}

/// Whom to trust, and by which certificate we are known. All of it in PEM.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Authorities to trust besides those of the machine.
    pub authorities: Option<Vec<u8>>,
    /// Our certificate and its key, for clouds that ask for one.
    pub client: Option<(Vec<u8>, SecretString)>,
    /// Whoever answers is believed to be the cloud. Users say so by `verify: false`, for clouds whose certificate nobody vouches for.
    pub is_blind: bool,
}

/// What may lie beside the file, where the file only names paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// Authorities to trust.
    pub cacert: Option<&'a str>,
    /// Our certificate.
    pub cert: Option<&'a str>,
    /// Its key.
    pub key: Option<&'a SecretString>,
}

/// Why a file is no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CloudsError {
    /// No YAML, or not of the shape of such a file.
    #[error("clouds.yaml cannot be read{}; give it the form of an OpenStack client configuration", place(*.line))]
    Parse {
        /// The line, from 1, where that is known.
        line: Option<usize>,
    },
    /// Longer than such files are.
    #[error("clouds.yaml has more than {LONGEST} bytes")]
    Bound,
    /// The cloud is not in the file.
    #[error("clouds.yaml has no cloud called {name:?}; name one of those that it has: {}", .known.join(", "))]
    Find {
        /// What was looked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A field that cannot be used.
    #[error("{field} in clouds.yaml {problem}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is wrong, and what to write.
        problem: String,
    },
}

fn place(line: Option<usize>) -> String {
    line.map(|line| format!(" at line {line}")).unwrap_or_default()
}

fn wrong(field: &'static str, problem: impl Into<String>) -> CloudsError {
    CloudsError::Field {
        field,
        problem: problem.into(),
    }
}

/// The cloud of this name.
pub fn cloud(yaml: &[u8], name: &str, beside: Beside<'_>) -> Result<Cloud, CloudsError> {
    if yaml.len() > LONGEST {
        return Err(CloudsError::Bound);
    }
    // What the parser says may repeat what stands there, so that only the place is told.
    let file: Value = serde_yaml::from_slice(yaml).map_err(|error| CloudsError::Parse {
        line: error.location().map(|location| location.line()),
    })?;
    let clouds = file.get("clouds").and_then(Value::as_object);
    let clouds = clouds.ok_or(CloudsError::Parse { line: None })?;
    let Some(entry) = clouds.get(name) else {
        return Err(CloudsError::Find {
            name: name.to_owned(),
            known: clouds.keys().cloned().collect(),
        });
    };
    let entry = Fields(entry.as_object().ok_or(CloudsError::Parse { line: None })?);
    let empty = Map::new();
    let auth = Fields(entry.0.get("auth").and_then(Value::as_object).unwrap_or(&empty));
    for field in ["profile", "cloud"] {
        if entry.0.contains_key(field) {
            let problem = "names a cloud that is described elsewhere; write all of its fields down here";
            return Err(wrong(field, problem));
        }
    }
    if !matches!(version(entry), None | Some('3')) {
        return Err(wrong(
            "identity_api_version",
            "has to be 3, the only version that is spoken",
        ));
    }
    Ok(Cloud {
        auth_url: auth_url(auth)?,
        auth: who(entry, auth)?,
        region: entry.text("region_name")?,
        interface: interface(entry)?,
        tls: tls(entry, beside)?,
        image_endpoint: image_endpoint(entry)?,
    })
}

fn version(entry: Fields<'_>) -> Option<char> {
    match entry.0.get("identity_api_version")? {
        Value::String(text) => text.trim_start_matches('v').chars().next(),
        other => other.to_string().chars().next(),
    }
}

/// The fields of an entry.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    /// A text; none where it is missing or empty.
    fn text(self, field: &'static str) -> Result<Option<String>, CloudsError> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(wrong(field, "is no text; put it in quotes")),
        }
    }

    fn either(self, fields: [&'static str; 2]) -> Result<Option<String>, CloudsError> {
        let [first, second] = fields;
        Ok(match self.text(first)? {
            Some(text) => Some(text),
            None => self.text(second)?,
        })
    }

    fn needed(self, field: &'static str) -> Result<String, CloudsError> {
        self.text(field)?.ok_or_else(|| wrong(field, "is missing"))
    }

    fn secret(self, field: &'static str) -> Result<SecretString, CloudsError> {
        self.needed(field).map(SecretString::from)
    }
}

/// A URL of a service, without a slash at its end.
fn service_url(field: &'static str, text: &str) -> Result<Url, CloudsError> {
    let url = Url::parse(text).ok().filter(Url::has_host);
    let mut url = url.ok_or_else(|| wrong(field, "is no URL"))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(wrong(field, "has to begin with https:// (or http://)"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(
            field,
            "has more than a host, a port and a path; leave the rest out",
        ));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

fn auth_url(auth: Fields<'_>) -> Result<Url, CloudsError> {
    let mut url = service_url("auth_url", &auth.needed("auth_url")?)?;
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/v3") {
        url.set_path(&format!("{path}/v3"));
    }
    Ok(url)
}

fn image_endpoint(entry: Fields<'_>) -> Result<Option<Url>, CloudsError> {
    let field = "image_endpoint_override";
    entry.text(field)?.map(|text| service_url(field, &text)).transpose()
}

fn interface(entry: Fields<'_>) -> Result<Interface, CloudsError> {
    let Some(text) = entry.either(["interface", "endpoint_type"])? else {
        return Ok(Interface::Public);
    };
    match text.trim_end_matches("URL") {
        "public" => Ok(Interface::Public),
        "internal" => Ok(Interface::Internal),
        "admin" => Ok(Interface::Admin),
        _ => Err(wrong("interface", "has to be public, internal or admin")),
    }
}

/// How we prove who we are; where no kind is named, the fields tell.
fn who(entry: Fields<'_>, auth: Fields<'_>) -> Result<Auth, CloudsError> {
    let has = |field: &str| auth.0.contains_key(field);
    let named = entry.text("auth_type")?;
    let kind = named.as_deref().unwrap_or({
        if has("application_credential_id") || has("application_credential_name") {
            "v3applicationcredential"
        } else if has("token") && !has("password") {
            "token"
        } else {
            "password"
        }
    });
    match kind {
        "v3applicationcredential" => Ok(Auth::ApplicationCredential {
            by: credential(auth)?,
            secret: auth.secret("application_credential_secret")?,
        }),
        "token" | "v3token" => Ok(Auth::Token {
            token: auth.secret("token")?,
            scope: scope(auth)?,
        }),
        "password" | "v3password" => Ok(Auth::Password {
            user: user(auth)?,
            password: auth.secret("password")?,
            scope: scope(auth)?,
        }),
        _ => Err(wrong(
            "auth_type",
            "is of a kind that is not spoken; use v3applicationcredential, password or token",
        )),
    }
}

fn credential(auth: Fields<'_>) -> Result<CredentialName, CloudsError> {
    if let Some(id) = auth.text("application_credential_id")? {
        return Ok(CredentialName::Id(id));
    }
    Ok(CredentialName::OfUser {
        name: auth.needed("application_credential_name")?,
        user: user(auth)?,
    })
}

fn user(auth: Fields<'_>) -> Result<Who, CloudsError> {
    if let Some(id) = auth.text("user_id")? {
        return Ok(Who::Id(id));
    }
    let name = auth.needed("username")?;
    let domain = domain(auth, ["user_domain_id", "user_domain_name"])?;
    let domain = domain.ok_or_else(|| wrong("user_domain_name", "is missing"))?;
    Ok(Who::named(name, domain))
}

/// A domain by id or by name, or the one that stands for all.
fn domain(auth: Fields<'_>, [id, name]: [&'static str; 2]) -> Result<Option<Who>, CloudsError> {
    for (id, name) in [(id, name), ("domain_id", "domain_name")] {
        if let Some(id) = auth.text(id)? {
            return Ok(Some(Who::Id(id)));
        }
        if let Some(name) = auth.text(name)? {
            return Ok(Some(Who::Name { name, domain: None }));
        }
    }
    Ok(auth.text("default_domain")?.map(Who::Id))
}

fn scope(auth: Fields<'_>) -> Result<Scope, CloudsError> {
    if let Some(text) = auth.text("system_scope")? {
        return match text.as_str() {
            "all" => Ok(Scope::System),
            _ => Err(wrong("system_scope", "has to be all")),
        };
    }
    if let Some(id) = auth.either(["project_id", "tenant_id"])? {
        return Ok(Scope::Project(Who::Id(id)));
    }
    let name = auth.either(["project_name", "tenant_name"])?;
    let name = name.ok_or_else(|| wrong("project_name", "is missing"))?;
    let domain = domain(auth, ["project_domain_id", "project_domain_name"])?;
    let domain = domain.ok_or_else(|| wrong("project_domain_name", "is missing"))?;
    Ok(Scope::Project(Who::named(name, domain)))
}

fn tls(entry: Fields<'_>, beside: Beside<'_>) -> Result<Tls, CloudsError> {
    let authorities = pem(entry, "cacert", beside.cacert)?;
    let cert = pem(entry, "cert", beside.cert)?;
    let key = match beside.key {
        Some(key) => Some(key.clone()),
        None => pem(entry, "key", None)?.map(SecretString::from),
    };
    let client = match (cert, key) {
        (None, None) => None,
        (Some(cert), Some(key)) => Some((cert.into_bytes(), key)),
        (Some(_), None) => return Err(wrong("key", "is missing, and cert is there; give both or neither")),
        (None, Some(_)) => return Err(wrong("cert", "is missing, and key is there; give both or neither")),
    };
    let is_blind = match entry.0.get("verify") {
        None | Some(Value::Null | Value::Bool(true)) => false,
        Some(Value::Bool(false)) => true,
        Some(_) => return Err(wrong("verify", "has to be true or false")),
    };
    Ok(Tls {
        authorities: authorities.map(String::into_bytes),
        client,
        is_blind,
    })
}

/// What lies beside the file, or stands in it. A path leads nowhere in the operator's own files and is passed over, as other programs pass over it that read
/// such a file in a Secret: it is of no use to them, and stands there because it is of use to somebody else. Where it is missed, the cloud is not trusted, or
/// asks for our certificate, and either is told with the key that it belongs under.
fn pem(entry: Fields<'_>, field: &'static str, beside: Option<&str>) -> Result<Option<String>, CloudsError> {
    let found = match beside {
        Some(beside) => Some(beside.to_owned()),
        None => entry.text(field)?.filter(|text| text.trim_start().starts_with(PEM)),
    };
    Ok(found)
}

#[cfg(test)]
mod tests;
