//! Whether something is in a repository, and which: the manifest of a tag or a digest, of which nothing but its head is asked for. Knows no
//! releases, and reads no manifest.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::{CONTENT_DIGEST, OciError, OciOptions, Wanted, manifest, registry::Registry};
use crate::{
    Digest,
    http::{HttpError, Network, Response, StatusCode},
};

/// Most bytes of a tag, by the distribution specification.
const LONGEST_TAG: usize = 128;

/// How a manifest of a repository is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ManifestName {
    /// By a name that can be moved: a letter, a digit or an underscore, and at most 127 more of these, dots and dashes.
    Tag(String),
    /// By what it is.
    Digest(Digest),
}

/// A text that names no manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is neither a tag nor a digest by sha256")]
pub struct InvalidManifestName {
    text: String,
}

impl FromStr for ManifestName {
    type Err = InvalidManifestName;

    fn from_str(text: &str) -> Result<Self, InvalidManifestName> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let begins = text.bytes().next().is_some_and(is_word);
        let goes_on = text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
        if begins && goes_on && text.len() <= LONGEST_TAG {
            return Ok(Self::Tag(text.to_owned()));
        }
        let invalid = || InvalidManifestName { text: text.to_owned() };
        text.parse().map(Self::Digest).map_err(|_| invalid())
    }
}

impl fmt::Display for ManifestName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => formatter.write_str(tag),
            Self::Digest(digest) => digest.fmt(formatter),
        }
    }
}

/// A manifest that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundManifest {
    /// Which one, as the registry says, or by its bytes where it does not say.
    pub digest: Digest,
}

/// The manifests of one repository, of images as of anything else. Keeps a token and nothing that it found.
#[derive(Debug)]
pub struct Manifests {
    registry: Registry,
}

impl Manifests {
    /// Asks nobody yet.
    pub fn new(network: &Network, options: OciOptions) -> Result<Self, HttpError> {
        let registry = Registry::new(network, options)?;
        Ok(Self { registry })
    }

    /// The manifest that has this name now; `None` when there is none, or no such repository.
    ///
    /// # Errors
    /// The registry gave no answer that can be used, which says nothing about what is there.
    pub async fn find(&self, name: &ManifestName) -> Result<Option<FoundManifest>, OciError> {
        let wanted = Wanted::Manifest(name.to_string());
        let path = format!("manifests/{name}");
        let response = self.registry.head(wanted, &path, manifest::ACCEPTED).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let digest = match (said(&response), name) {
            (Some(digest), _) => digest,
            // It has said yes to this one.
            (None, ManifestName::Digest(digest)) => *digest,
            (None, ManifestName::Tag(tag)) => match self.registry.manifest(tag).await? {
                Some(given) => given.digest,
                None => return Ok(None),
            },
        };
        if let ManifestName::Digest(asked) = name
            && *asked != digest
        {
            return Err(OciError::Digest {
                repository: self.registry.repository.clone(),
                tag: name.to_string(),
                found: *asked,
                promised: digest.to_string(),
            });
        }
        Ok(Some(FoundManifest { digest }))
    }

    /// Words about the registry without what it and its server for tokens were told.
    pub fn without_secrets(&self, words: &str) -> String {
        self.registry.without_secrets(words)
    }
}

/// What the head of an answer says of the bytes; of other algorithms than ours it says nothing.
fn said(response: &Response) -> Option<Digest> {
    response.headers().get(CONTENT_DIGEST)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_part_of_an_address_is_a_tag_or_a_digest() {
        let digest = Digest::of(b"manifest");
        assert_eq!(digest.to_string().parse(), Ok(ManifestName::Digest(digest)));
        for tag in ["v1.34.0", "_x", "latest", &"a".repeat(LONGEST_TAG)] {
            let read: ManifestName = tag.parse().unwrap();
            assert_eq!(
                (read.to_string().as_str(), &read),
                (tag, &ManifestName::Tag(tag.to_owned()))
            );
        }
        for text in [
            "",
            ".v1",
            "-v1",
            "v1/../v2",
            "v1?x",
            "ä",
            "sha256:00",
            "sha512:00",
            &"a".repeat(LONGEST_TAG + 1),
        ] {
            assert!(text.parse::<ManifestName>().is_err(), "{text}");
        }
    }
}
