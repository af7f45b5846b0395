//! What an image is called by those who pull it: a registry, a repository in it, and a tag or a digest. Text in, values out.

use std::{fmt, str::FromStr};

use provider_plugin::{Algorithm, Pinned};
use thiserror::Error;

/// The registry of names that have none, as Pods know it.
const USUAL_HOST: &str = "docker.io";
/// Where it keeps repositories of one word.
const USUAL_FOLDER: &str = "library";
/// The tag of names that have none.
const USUAL_TAG: &str = "latest";
/// Most bytes of a repository's name with its registry, and of a tag.
const LONGEST: (usize, usize) = (255, 128);

/// An image as Pods name it, with nothing left out: `docker.io/library/alpine:latest` is what `alpine` means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    host: String,
    repository: String,
    manifest: Manifest,
}

/// How a manifest of a repository is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Manifest {
    /// By a name that can be moved.
    Tag(String),
    /// By what it is. A tag that stands before a digest says nothing more.
    Digest(Pinned),
}

/// A text that names no image.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no reference of an image: {why}; write it like registry.example.com/path/name:tag")]
pub struct InvalidReference {
    text: String,
    why: &'static str,
}

impl Reference {
    /// The registry, with the port if one is given.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The repository in the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Which of the repository's manifests.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The image of the same repository that has this digest, wherever tags are moved to.
    #[must_use]
    pub fn at(&self, digest: Pinned) -> Self {
        Self {
            manifest: Manifest::Digest(digest),
            ..self.clone()
        }
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => formatter.write_str(tag),
            Self::Digest(digest) => digest.fmt(formatter),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = match self.manifest {
            Manifest::Tag(_) => ':',
            Manifest::Digest(_) => '@',
        };
        write!(formatter, "{}/{}{between}{}", self.host, self.repository, self.manifest)
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let invalid = |why| InvalidReference {
            text: text.to_owned(),
            why,
        };
        let (named, digest) = match text.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash is that of a port.
        let (path, tag) = match named.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (named, None),
        };
        let (host, repository) = home(path);
        if !is_host(&host) {
            return Err(invalid("the registry is no host"));
        }
        if !is_repository(&repository) || host.len() + repository.len() >= LONGEST.0 {
            return Err(invalid("the path is not one that repositories have"));
        }
        if !tag.is_none_or(is_tag) {
            return Err(invalid("the tag has characters that tags may not have"));
        }
        let manifest = match digest.map(Pinned::parse) {
            Some(Ok(digest)) if digest.algorithm() == Algorithm::Sha256 => Manifest::Digest(digest),
            Some(_) => {
                return Err(invalid(
                    "the digest is not sha256: and 64 hexadecimal digits in lower case",
                ));
            }
            None => Manifest::Tag(tag.unwrap_or(USUAL_TAG).to_owned()),
        };
        Ok(Self {
            host,
            repository,
            manifest,
        })
    }
}

/// Registry and repository. The first part is a registry if it cannot be a word of a path.
fn home(path: &str) -> (String, String) {
    let is_registry = |first: &str| first.contains(['.', ':']) || first == "localhost";
    match path.split_once('/') {
        Some((first, rest)) if is_registry(first) => {
            let host = first.to_ascii_lowercase();
            let is_short = host == USUAL_HOST && !rest.contains('/');
            let repository = if is_short {
                in_usual_folder(rest)
            } else {
                rest.to_owned()
            };
            (host, repository)
        }
        Some(_) => (USUAL_HOST.to_owned(), path.to_owned()),
        None => (USUAL_HOST.to_owned(), in_usual_folder(path)),
    }
}

fn in_usual_folder(name: &str) -> String {
    format!("{USUAL_FOLDER}/{name}")
}

fn is_host(host: &str) -> bool {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "443"));
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_name = !name.is_empty() && name.bytes().all(is_of_name);
    is_name && port.parse::<u16>().is_ok_and(|number| number > 0)
}

/// Words of lower-case letters and digits between single separators, as the distribution specification has it.
fn is_repository(path: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_separator = |text: &str| matches!(text, "" | "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    path.split('/').all(|part| {
        let ends = [part.bytes().next(), part.bytes().last()];
        let mut separators = part.split(|letter: char| u8::try_from(letter).is_ok_and(is_letter));
        ends.into_iter().all(|end| end.is_some_and(is_letter)) && separators.all(is_separator)
    })
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = tag.bytes().next().is_some_and(is_word);
    begins && tag.len() <= LONGEST.1 && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_read_as_pods_name_it() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (text, whole) in [
            ("alpine", "docker.io/library/alpine:latest".to_owned()),
            ("kindest/node:v1.34.0", "docker.io/kindest/node:v1.34.0".to_owned()),
            ("docker.io/alpine:3", "docker.io/library/alpine:3".to_owned()),
            ("localhost/node", "localhost/node:latest".to_owned()),
            (
                "Registry.example:5000/a/b__c:V1",
                "registry.example:5000/a/b__c:V1".to_owned(),
            ),
            (&format!("quay.io/node:v1@{digest}"), format!("quay.io/node@{digest}")),
            (&format!("quay.io/node@{digest}"), format!("quay.io/node@{digest}")),
        ] {
            let reference: Reference = text.parse().unwrap();
            assert_eq!(reference.to_string(), whole);
            assert_eq!(whole.parse(), Ok(reference), "what is written is read again");
        }
    }

    #[test]
    fn what_names_no_image_is_refused_with_what_is_wrong() {
        for (text, why) in [
            ("", "path"),
            ("registry.example/", "path"),
            ("registry.example/Node", "path"),
            ("registry.example/../node", "path"),
            ("registry.example/a//b", "path"),
            ("https://registry.example/node", "host"),
            ("registry.example:port/node", "host"),
            ("user@registry.example/node", "digest"),
            ("registry.example/node:", "tag"),
            ("registry.example/node:a?b", "tag"),
            ("registry.example/node@sha256:00", "digest"),
            (&format!("registry.example/node@sha512:{}", "ab".repeat(64)), "digest"),
            (&format!("registry.example/{}", "a".repeat(255)), "path"),
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("registry.example.com/path/name:tag"),
                "{error}"
            );
        }
    }
}
