//! Files of sums, as publishers of images write them: which digest they give for one file. Reads text; where it comes from, others know.

use thiserror::Error;

use super::{Algorithm, Pinned};

/// A file of sums has no more bytes.
pub const LARGEST: usize = 1024 * 1024;

/// Why a file of sums gives no digest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SumsError {
    /// More than a file of sums has.
    #[error(
        "the file of sums has more than {LARGEST} bytes, so it is something else; give the address of the sums alone"
    )]
    TooLarge,
    /// The file is not in it.
    #[error("the file of sums does not name {name:?}; give the name under which it is listed there")]
    NotNamed {
        /// The file.
        name: String,
    },
    /// It says two things.
    #[error("the file of sums gives {name:?} two different digests, so it cannot be relied on; give the digest itself")]
    TwoDigests {
        /// The file.
        name: String,
    },
    /// Only digests that others can make collide, or of another algorithm.
    #[error("the digest of {name:?} in the file of sums is neither sha256 nor sha512; give one of these")]
    OtherAlgorithm {
        /// The file.
        name: String,
    },
}

/// The digest that a file of sums gives for the file of this name, sha512 where it gives both.
///
/// Understood are, in lines that end with LF or CRLF: `<hex>  <name>`, `<hex> *<name>`, also with `./` before the name; `SHA256 (<name>) =
/// <hex>`; and a file that is one bare `<hex>`, which is for any name. Other lines say nothing.
pub fn find(text: &str, name: &str) -> Result<Pinned, SumsError> {
    if text.len() > LARGEST {
        return Err(SumsError::TooLarge);
    }
    let named = || name.to_owned();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut found: Vec<Pinned> = Vec::new();
    let mut is_named = false;
    let mut count = 0;
    for line in lines.clone() {
        count += 1;
        let Some((digits, _)) = sum(line).filter(|(_, file)| *file == name) else {
            continue;
        };
        is_named = true;
        let Some(digest) = of_digits(digits) else { continue };
        match found.iter().find(|other| other.algorithm() == digest.algorithm()) {
            Some(other) if *other != digest => return Err(SumsError::TwoDigests { name: named() }),
            Some(_) => {}
            None => found.push(digest),
        }
    }
    if !is_named && count == 1 {
        let bare = lines.clone().next().filter(|line| is_hex(line));
        is_named = bare.is_some();
        found.extend(bare.and_then(of_digits));
    }
    match found.into_iter().max_by_key(Pinned::algorithm) {
        Some(digest) => Ok(digest),
        None if is_named => Err(SumsError::OtherAlgorithm { name: named() }),
        None => Err(SumsError::NotNamed { name: named() }),
    }
}

/// Digits and name of a line.
fn sum(line: &str) -> Option<(&str, &str)> {
    let (digits, name) = in_words(line).or_else(|| beside(line))?;
    Some((digits, name.strip_prefix("./").unwrap_or(name)))
}

/// `SHA256 (<name>) = <hex>`.
fn in_words(line: &str) -> Option<(&str, &str)> {
    let (algorithm, rest) = line.split_once(" (")?;
    let (name, digits) = rest.rsplit_once(") = ")?;
    (!algorithm.contains(' ') && is_hex(digits)).then_some((digits, name))
}

/// `<hex>  <name>` or `<hex> *<name>`.
fn beside(line: &str) -> Option<(&str, &str)> {
    let (digits, name) = line.split_once([' ', '\t'])?;
    let name = name.trim_start();
    is_hex(digits).then(|| (digits, name.strip_prefix('*').unwrap_or(name)))
}

/// Whether it could be a digest of any algorithm.
fn is_hex(digits: &str) -> bool {
    digits.len() >= 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn of_digits(digits: &str) -> Option<Pinned> {
    let digits = digits.to_ascii_lowercase();
    [Algorithm::Sha256, Algorithm::Sha512]
        .into_iter()
        .find_map(|algorithm| Pinned::new(algorithm, &digits))
}
