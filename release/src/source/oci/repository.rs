//! The name of a repository in a registry: which host is asked, and for what. Asks nobody.

use std::{fmt, str::FromStr, sync::Arc};

use thiserror::Error;

use crate::http::Url;

/// Most bytes of a repository's name, without the host; longer ones cannot be pulled by all clients.
const MAX_NAME: usize = 255;

/// The name under which people know the registry of Docker, and its host.
const DOCKER: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// A repository in an OCI registry: `registry.example.com:5000/kaas/cluster-stacks`.
///
/// The host always stands first, as for the Go operator and oras; nothing is taken for a repository of Docker Hub. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Repository(Arc<Parts>);

#[derive(PartialEq, Eq, Hash)]
struct Parts {
    /// With the port, if one is given.
    host: String,
    name: String,
    base: Url,
}

/// A text that names no repository.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no repository: {why}; write it as registry.example.com/path/name")]
pub struct InvalidRepository {
    text: String,
    why: &'static str,
}

impl Repository {
    /// The host, with the port if one is given.
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// The path behind the host.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Who publishes there, as far as the name tells: the host with the first part of the path.
    pub(super) fn publisher(&self) -> String {
        let first = self.0.name.split('/').next().unwrap_or_default();
        format!("{}/{first}", self.0.host)
    }

    /// Where the registry's API has this repository: a URL that ends in a slash.
    pub(super) fn base(&self, plain_http: bool) -> Url {
        let mut base = self.0.base.clone();
        if plain_http {
            // Between these two schemes there is nothing that can be refused.
            let _ = base.set_scheme("http");
        }
        base
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.0.host, self.0.name)
    }
}

impl fmt::Debug for Repository {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Repository {
    type Err = InvalidRepository;

    /// Takes `oci://` before the host, as Helm writes it.
    fn from_str(text: &str) -> Result<Self, InvalidRepository> {
        let invalid = |why| InvalidRepository {
            text: text.to_owned(),
            why,
        };
        let plain = text.strip_prefix("oci://").unwrap_or(text);
        if plain.contains("://") {
            return Err(invalid("a registry is named without http or https"));
        }
        let (host, name) = plain
            .split_once('/')
            .ok_or_else(|| invalid("nothing stands behind the host"))?;
        if name.contains('@') || name.contains(':') {
            return Err(invalid("tags and digests are chosen by the operator"));
        }
        if !is_name(name) {
            return Err(invalid("its path has characters that repositories may not have"));
        }
        let host = host.to_ascii_lowercase();
        let reached = if host == DOCKER.0 { DOCKER.1 } else { &host };
        let base = Url::parse(&format!("https://{reached}/v2/{name}/"));
        // The bytes of user names and of what a URL would leave out or rewrite are not those of hosts.
        match base {
            Ok(base) if !host.is_empty() && host.bytes().all(is_of_host) => {
                let name = name.to_owned();
                Ok(Self(Arc::new(Parts { host, name, base })))
            }
            _ => Err(invalid("the host is none")),
        }
    }
}

fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
}

/// The grammar of the OCI distribution specification: words of lower-case letters and digits between single separators.
fn is_name(name: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| alphanumeric(*byte));
    let separator = |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    let component = |component: &str| {
        let mut separators = component.split(|c: char| u8::try_from(c).is_ok_and(alphanumeric));
        edge(component.as_bytes().first()) && edge(component.as_bytes().last()) && separators.all(separator)
    };
    name.len() <= MAX_NAME && name.split('/').all(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_read_as_oras_and_helm_write_them() {
        for (text, base) in [
            (
                "registry.scs.community/kaas/cluster-stacks",
                "https://registry.scs.community/v2/kaas/cluster-stacks/",
            ),
            ("oci://Example.com:5000/a", "https://example.com:5000/v2/a/"),
            ("localhost/a__b/c-d--e.f", "https://localhost/v2/a__b/c-d--e.f/"),
            ("[::1]:5000/a", "https://[::1]:5000/v2/a/"),
            (
                "docker.io/harbor/stacks",
                "https://registry-1.docker.io/v2/harbor/stacks/",
            ),
        ] {
            let repository: Repository = text.parse().unwrap();
            assert_eq!(repository.base(false).as_str(), base);
        }
        let repository: Repository = "harbor:5000/stacks".parse().unwrap();
        assert_eq!(repository.base(true).as_str(), "http://harbor:5000/v2/stacks/");
        assert_eq!(repository.to_string(), "harbor:5000/stacks");
    }

    #[test]
    fn texts_that_name_something_else_are_refused() {
        for text in [
            "",
            "registry.example.com",
            "registry.example.com/",
            "/stacks",
            "https://registry.example.com/stacks",
            "registry.example.com/stacks:v1",
            "registry.example.com/stacks@sha256:00",
            "registry.example.com/Stacks",
            "registry.example.com/a//b",
            "registry.example.com/../b",
            "registry.example.com/a/./b",
            "registry.example.com/-a",
            "registry.example.com/a___b",
            "registry.example.com/ä",
            "registry.example.com/a?b",
            "registry.example.com/a%2f",
            "user@registry.example.com/a",
            "user:word@registry.example.com/a",
            "registry.example.com:port/a",
            "registry.example.com:99999/a",
            "registry example.com/a",
            "[::1/a",
            &format!("registry.example.com/{}", "a".repeat(256)),
        ] {
            assert!(text.parse::<Repository>().is_err(), "{text}");
        }
    }
}
