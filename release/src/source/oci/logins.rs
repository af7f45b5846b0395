//! Who somebody is at registries, as his configuration for Docker or Helm says. Text in, values out, and none of it in a message; runs no helper.

use std::{collections::BTreeMap, fmt};

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::IgnoredAny};

use super::Repository;
use crate::http::Credentials;

/// What a configuration has for registries, by how it names them.
#[derive(Clone, Default)]
pub struct Logins {
    places: BTreeMap<String, Credentials>,
    has_helper: bool,
}

/// The names may be secrets too.
impl fmt::Debug for Logins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Logins").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
    creds_store: Option<IgnoredAny>,
    cred_helpers: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Entry {
    username: Option<String>,
    password: Option<String>,
    /// Both of them, in base64.
    auth: Option<String>,
    #[serde(rename = "registrytoken")]
    token: Option<String>,
}

impl Logins {
    /// What is in this text; `None` when it is not of the form. What a parser met is not told: it would repeat the text.
    pub fn parse(text: &SecretString) -> Option<Self> {
        let config: Config = serde_json::from_str(text.expose_secret()).ok()?;
        let places = config.auths.into_iter().filter_map(|(place, entry)| {
            let place = place_of(&place);
            Some((place, entry.credentials()?))
        });
        Some(Self {
            places: places.collect(),
            has_helper: config.creds_store.is_some() || config.cred_helpers.is_some(),
        })
    }

    /// What both have; where both name a place, what this one has for it.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        for (place, credentials) in other.places {
            self.places.entry(place).or_insert(credentials);
        }
        self.has_helper |= other.has_helper;
        self
    }

    /// The one for a repository: of the places that it is at or below, that of the closest.
    pub fn of(&self, repository: &Repository) -> Option<&Credentials> {
        let whole = repository.to_string();
        let is_below = |place: &str| {
            whole
                .strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let places = self.places.iter().filter(|(place, _)| is_below(place));
        places
            .max_by_key(|(place, _)| place.len())
            .map(|(_, credentials)| credentials)
    }

    /// Whether there may be more that only another program can tell.
    pub fn has_helper(&self) -> bool {
        self.has_helper
    }
}

impl Entry {
    fn credentials(self) -> Option<Credentials> {
        let Self {
            username,
            password,
            auth,
            token,
        } = self;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = given(token) {
            return Some(Credentials::Bearer(token.into()));
        }
        if let (Some(username), Some(password)) = (given(username), given(password)) {
            let password = SecretString::from(password);
            return Some(Credentials::Basic { username, password });
        }
        let decoded = BASE64_STANDARD.decode(auth?.trim()).ok()?;
        let pair = String::from_utf8(decoded).ok()?;
        let (username, password) = pair.split_once(':')?;
        Some(Credentials::Basic {
            username: username.to_owned(),
            password: SecretString::from(password.trim_end_matches('\0')),
        })
    }
}

/// Host and path without what tools have put around them: `https://index.docker.io/v1/` is Docker's own registry.
fn place_of(written: &str) -> String {
    let bare = ["https://", "http://"]
        .iter()
        .find_map(|scheme| written.strip_prefix(scheme))
        .unwrap_or(written)
        .trim_end_matches('/');
    let bare = ["/v1", "/v2"]
        .iter()
        .find_map(|end| bare.strip_suffix(end))
        .unwrap_or(bare);
    let (host, path) = bare.split_at(bare.find('/').unwrap_or(bare.len()));
    match host.to_ascii_lowercase().as_str() {
        "index.docker.io" | "registry-1.docker.io" => format!("docker.io{path}"),
        host => format!("{host}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins(text: &str) -> Logins {
        Logins::parse(&SecretString::from(text)).unwrap()
    }

    fn told(logins: &Logins, repository: &str) -> Option<String> {
        logins
            .of(&repository.parse().unwrap())
            .map(|credentials| match credentials {
                Credentials::Basic { username, password } => format!("{username}:{}", password.expose_secret()),
                Credentials::Bearer(token) => token.expose_secret().to_owned(),
            })
    }

    #[test]
    fn a_login_is_found_by_the_closest_place_in_all_the_ways_that_tools_write_it() {
        let pair = BASE64_STANDARD.encode("robot:pass:word");
        let logins = logins(&format!(
            r#"{{ "auths": {{
                "https://index.docker.io/v1/": {{ "auth": "{pair}" }},
                "Registry.Example:5000": {{ "username": "whole", "password": "2" }},
                "registry.example:5000/team": {{ "username": "team", "password": "3" }},
                "tokens.example": {{ "registrytoken": "token", "auth": "" }},
                "empty.example": {{}}
            }} }}"#
        ));
        for (repository, expected) in [
            ("docker.io/kindest/charts", Some("robot:pass:word")),
            ("registry.example:5000/other/charts", Some("whole:2")),
            ("registry.example:5000/team/charts", Some("team:3")),
            ("registry.example:5000/teammates/charts", Some("whole:2")),
            ("registry.example/team/charts", None),
            ("tokens.example/charts", Some("token")),
            ("empty.example/charts", None),
        ] {
            assert_eq!(told(&logins, repository).as_deref(), expected, "{repository}");
        }
        assert!(!logins.has_helper());
        let shown = format!("{logins:?}");
        assert!(!shown.contains("robot") && !shown.contains("pass"), "{shown}");
    }

    #[test]
    fn of_two_configurations_the_first_counts_and_a_helper_is_not_run_but_known() {
        let first = logins(r#"{ "auths": { "a.example": { "username": "first", "password": "1" } } }"#);
        let second = r#"{ "credsStore": "desktop", "auths": { "a.example": {}, "b.example": { "username": "second", "password": "2" } } }"#;
        let both = first.or(logins(second));
        assert_eq!(told(&both, "a.example/x").as_deref(), Some("first:1"));
        assert_eq!(told(&both, "b.example/x").as_deref(), Some("second:2"));
        assert!(both.has_helper());
    }

    #[test]
    fn what_is_no_configuration_of_registries_is_none() {
        for text in ["", "auths", r#"{ "auths": 7 }"#] {
            assert!(Logins::parse(&SecretString::from(text)).is_none(), "{text}");
        }
        assert_eq!(told(&logins("{}"), "registry.example/charts"), None);
    }
}
