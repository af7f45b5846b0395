//! Digests that are promised for files, and how they are computed. Only algorithms that nobody can make collide.

pub mod sums;

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::{Context, SHA256, SHA512};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};
use thiserror::Error;

/// How a digest is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Algorithm {
    /// 64 hex digits.
    Sha256,
    /// 128 hex digits.
    Sha512,
}

impl Algorithm {
    /// How many hex digits it has.
    pub const fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// A digest of a file: `sha256:<64 lower-case hex digits>` or `sha512:<128 of them>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pinned {
    algorithm: Algorithm,
    hex: String,
}

impl Pinned {
    /// The digest in this text.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let refused = || DigestError::Parse { text: text.to_owned() };
        let (name, hex) = text.split_once(':').ok_or_else(refused)?;
        if matches!(name, "md5" | "sha1") {
            return Err(DigestError::Weak { name: name.to_owned() });
        }
        let algorithm = name.parse().map_err(|_| refused())?;
        Self::new(algorithm, hex).ok_or_else(refused)
    }

    /// The digest of these lower-case hex digits, if there are as many as the algorithm has.
    pub fn new(algorithm: Algorithm, hex: &str) -> Option<Self> {
        let is_digest =
            hex.len() == algorithm.digits() && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_digest.then(|| Self {
            algorithm,
            hex: hex.to_owned(),
        })
    }

    /// How it is computed.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digits without the name of the algorithm.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl fmt::Display for Pinned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.algorithm, self.hex)
    }
}

impl FromStr for Pinned {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Pinned {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        Self::parse(&text)
    }
}

impl From<Pinned> for String {
    fn from(digest: Pinned) -> Self {
        digest.to_string()
    }
}

/// Why a text is not a digest that can be relied on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DigestError {
    /// Neither of the two forms.
    #[error("{text:?} is not a digest of the form sha256:<64 hex digits> or sha512:<128 hex digits>")]
    Parse {
        /// What it was.
        text: String,
    },
    /// Others can make a file with the same digest.
    #[error("digests by {name} can be forged; give one by sha256 or sha512")]
    Weak {
        /// The algorithm.
        name: String,
    },
}

/// Digests and counts bytes. By the cryptography of TLS, which is fast also on processors without instructions for it.
#[derive(Clone)]
pub struct Hasher {
    algorithm: Algorithm,
    context: Context,
    count: u64,
}

impl Hasher {
    /// Of no bytes yet.
    pub fn new(algorithm: Algorithm) -> Self {
        let context = match algorithm {
            Algorithm::Sha256 => Context::new(&SHA256),
            Algorithm::Sha512 => Context::new(&SHA512),
        };
        Self {
            algorithm,
            context,
            count: 0,
        }
    }

    /// Of these bytes too.
    pub fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
        self.count += bytes.len() as u64;
    }

    /// How many bytes there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The digest of all of them.
    pub fn finish(self) -> Pinned {
        Pinned {
            algorithm: self.algorithm,
            hex: hex::encode(self.context.finish()),
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Hasher({} of {} bytes)", self.algorithm, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_survives_printing_and_refuses_other_spellings() {
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            let mut hasher = Hasher::new(algorithm);
            hasher.update(b"a");
            hasher.update(b"bc");
            assert_eq!(hasher.count(), 3);
            let digest = hasher.finish();
            assert_eq!(digest.to_string().parse(), Ok(digest.clone()));
            assert_eq!(digest.hex().len(), algorithm.digits());
            for text in [
                digest.hex().to_owned(),
                digest.to_string().to_uppercase(),
                format!("{algorithm}:{}", digest.hex().to_uppercase()),
                format!("{algorithm}:00"),
                format!("sha384:{}", digest.hex()),
            ] {
                assert_eq!(Pinned::parse(&text), Err(DigestError::Parse { text }));
            }
        }
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(b"abc");
        assert_eq!(
            hasher.finish().to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn digests_that_can_be_forged_are_refused_with_words() {
        let error = Pinned::parse("md5:d41d8cd98f00b204e9800998ecf8427e").unwrap_err();
        assert_eq!(
            error.to_string(),
            "digests by md5 can be forged; give one by sha256 or sha512"
        );
    }
}
