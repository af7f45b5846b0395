//! Who the operator is at a registry, as the Secret says by which Pods pull. Text in, values out, and none of it in a message.

use std::{collections::BTreeMap, fmt};

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// What a registry is told by those who may ask it.
#[derive(Clone)]
pub struct Login {
    /// The name.
    pub username: String,
    /// The password.
    pub password: SecretString,
}

/// The name may be a secret too.
impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Login").finish_non_exhaustive()
    }
}

/// What a Secret has for registries, by how it names them.
#[derive(Clone, Default)]
pub struct Logins(BTreeMap<String, Login>);

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    /// Both of them, in base64.
    #[serde(default)]
    auth: Option<String>,
}

impl Logins {
    /// What is in this text; `None` when it is not of the form. What a parser met is not told: it would repeat the text.
    pub fn parse(text: &SecretString) -> Option<Self> {
        let config: Config = serde_json::from_str(text.expose_secret()).ok()?;
        let logins = config.auths.into_iter().filter_map(|(place, entry)| {
            let place = place_of(&place);
            Some((place, entry.login()?))
        });
        Some(Self(logins.collect()))
    }

    /// The one for a repository of a registry (its host, with the port if it has one): of the places that the repository is below, the one that is told
    /// most closely.
    pub fn of(&self, host: &str, repository: &str) -> Option<Login> {
        let whole = format!("{host}/{repository}");
        let places = self.0.iter().filter(|(place, _)| is_below(&whole, place));
        places
            .max_by_key(|(place, _)| place.len())
            .map(|(_, login)| login.clone())
    }
}

impl Entry {
    fn login(self) -> Option<Login> {
        if let (Some(username), Some(password)) = (self.username.filter(|name| !name.is_empty()), self.password) {
            let password = SecretString::from(password);
            return Some(Login { username, password });
        }
        let decoded = BASE64_STANDARD.decode(self.auth?.trim()).ok()?;
        let pair = String::from_utf8(decoded).ok()?;
        let (username, password) = pair.split_once(':')?;
        Some(Login {
            username: username.to_owned(),
            password: SecretString::from(password.trim_end_matches('\0').to_owned()),
        })
    }
}

/// Host and path without what tools have put around them: `https://index.docker.io/v1/` is Docker's own registry.
fn place_of(written: &str) -> String {
    let bare = written
        .strip_prefix("https://")
        .or_else(|| written.strip_prefix("http://"));
    let bare = bare.unwrap_or(written).trim_end_matches('/');
    let bare = ["/v1", "/v2"]
        .iter()
        .find_map(|end| bare.strip_suffix(end))
        .unwrap_or(bare);
    let (host, path) = bare.split_once('/').map_or((bare, ""), |(host, path)| (host, path));
    let host = match host.to_ascii_lowercase() {
        host if matches!(host.as_str(), "index.docker.io" | "registry-1.docker.io") => "docker.io".to_owned(),
        host => host,
    };
    if path.is_empty() {
        host
    } else {
        format!("{host}/{path}")
    }
}

/// Whether a repository is at a place or below it. A label `*` of the host stands for any one label.
fn is_below(repository: &str, place: &str) -> bool {
    let (mut parts, mut wanted) = (repository.split('/'), place.split('/'));
    let is_host = match (parts.next(), wanted.next()) {
        (Some(host), Some(pattern)) => is_like(host, pattern),
        _ => false,
    };
    is_host && wanted.all(|part| parts.next() == Some(part))
}

fn is_like(host: &str, pattern: &str) -> bool {
    let (labels, patterns) = (host.split('.'), pattern.split('.'));
    host.split('.').count() == pattern.split('.').count()
        && labels
            .zip(patterns)
            .all(|(label, pattern)| pattern == "*" || label == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins(text: &str) -> Logins {
        Logins::parse(&SecretString::from(text)).unwrap()
    }

    fn name(logins: &Logins, host: &str, repository: &str) -> Option<String> {
        logins.of(host, repository).map(|login| login.username)
    }

    #[test]
    fn a_login_is_found_by_the_closest_place() {
        let logins = logins(
            r#"{ "auths": {
                "https://index.docker.io/v1/": { "username": "hub", "password": "1" },
                "registry.example:5000": { "username": "whole", "password": "2" },
                "registry.example:5000/team": { "username": "team", "password": "3" },
                "*.mirror.example": { "username": "mirror", "password": "4" },
                "empty.example": {}
            } }"#,
        );
        for (host, repository, expected) in [
            ("docker.io", "kindest/node", Some("hub")),
            ("registry.example:5000", "other/node", Some("whole")),
            ("registry.example:5000", "team/node", Some("team")),
            ("registry.example:5000", "teammates/node", Some("whole")),
            ("registry.example", "team/node", None),
            ("eu.mirror.example", "node", Some("mirror")),
            ("a.b.mirror.example", "node", None),
            ("empty.example", "node", None),
        ] {
            assert_eq!(
                name(&logins, host, repository).as_deref(),
                expected,
                "{host}/{repository}"
            );
        }
    }

    #[test]
    fn name_and_password_may_be_written_as_one() {
        let auth = BASE64_STANDARD.encode("robot:pass:word");
        let logins = logins(&format!(
            r#"{{ "auths": {{ "registry.example": {{ "auth": "{auth}" }} }} }}"#
        ));
        let login = logins.of("registry.example", "node").unwrap();
        assert_eq!(
            (login.username.as_str(), login.password.expose_secret()),
            ("robot", "pass:word")
        );
        assert!(!format!("{login:?}").contains("robot"));
    }

    #[test]
    fn what_is_no_configuration_of_registries_is_none() {
        for text in ["", "auths", r#"{ "auths": 7 }"#] {
            assert!(Logins::parse(&SecretString::from(text)).is_none(), "{text}");
        }
        assert!(logins("{}").of("registry.example", "node").is_none());
    }
}
