//! The list of sums beside the files of a release: one line for each, as `sha256sum` writes them, so that one signature is for all.
//!
//! The list and its signatures vouch for a release and are no part of it: a release that is signed later is the same release.

use std::{collections::BTreeMap, str};

use thiserror::Error;

use crate::{Digest, FileRef};

/// The list of the files of a release with their digests.
pub const SUMS: &str = "sha256sums.txt";
/// Its signature in base64, as `cosign sign-blob` writes it without a bundle.
pub const SUMS_SIGNATURE: &str = "sha256sums.txt.sig";
/// Its signature as a bundle of sigstore.
pub const SUMS_BUNDLE: &str = "sha256sums.txt.sigstore.json";

/// How a list of sums and the files of a release differ.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SumsError {
    /// Not a line of a list of sums.
    #[error("its line {number} is not `<64 hex digits>  <name>`; write it with sha256sum, and sign it again")]
    Line {
        /// Which, from 1.
        number: usize,
    },
    /// A name with two lines.
    #[error("names the file {file} twice; write it anew, and sign it again")]
    Twice {
        /// The file.
        file: String,
    },
    /// A file that nobody signed.
    #[error("does not name the file {file} of the release; write it anew, and sign it again")]
    Unnamed {
        /// The file.
        file: String,
    },
    /// A file that is gone.
    #[error(
        "names the file {file}, which the release does not have; publish that file, or write the list anew and sign it again"
    )]
    NotThere {
        /// The file.
        file: String,
    },
    /// A file with other bytes than were signed.
    #[error(
        "says that the file {file} has the digest {signed}, and it has {found}; publish the file that was signed, or write the list anew and sign it again"
    )]
    OtherDigest {
        /// The file.
        file: String,
        /// What was signed.
        signed: Digest,
        /// What is there.
        found: Digest,
    },
}

/// Whether a file of this name vouches for a release, and therefore is no part of it.
pub(crate) fn is_beside(name: &str) -> bool {
    matches!(name, SUMS | SUMS_SIGNATURE | SUMS_BUNDLE)
}

/// Whether a list names exactly these files with exactly these digests. Lines for itself and its signatures say nothing of the release: who
/// lists a whole directory has them.
pub(super) fn check(list: &[u8], files: &[FileRef]) -> Result<(), SumsError> {
    let signed = read(list)?;
    for file in files {
        let unnamed = || SumsError::Unnamed {
            file: file.name.clone(),
        };
        let signed = *signed.get(file.name.as_str()).ok_or_else(unnamed)?;
        if signed != file.sha256 {
            return Err(SumsError::OtherDigest {
                file: file.name.clone(),
                signed,
                found: file.sha256,
            });
        }
    }
    let is_there = |name: &str| files.iter().any(|file| file.name == name);
    match signed.keys().find(|name| !is_there(name)) {
        Some(name) => Err(SumsError::NotThere {
            file: (*name).to_owned(),
        }),
        None => Ok(()),
    }
}

pub(super) fn read(list: &[u8]) -> Result<BTreeMap<&str, Digest>, SumsError> {
    let mut signed = BTreeMap::new();
    for (index, line) in list
        .strip_suffix(b"\n")
        .unwrap_or(list)
        .split(|byte| *byte == b'\n')
        .enumerate()
    {
        let (digest, name) = sum(line).ok_or(SumsError::Line { number: index + 1 })?;
        if !is_beside(name) && signed.insert(name, digest).is_some() {
            return Err(SumsError::Twice { file: name.to_owned() });
        }
    }
    Ok(signed)
}

/// `<digest>  <name>`, or `<digest> *<name>` where the file was read as binary, which is the same on every system that we know.
fn sum(line: &[u8]) -> Option<(Digest, &str)> {
    let (digest, name) = str::from_utf8(line).ok()?.split_once(' ')?;
    let name = name.strip_prefix([' ', '*'])?;
    let name = name.strip_prefix("./").unwrap_or(name);
    let is_name = crate::files::is_file_name(name);
    let digest = format!("sha256:{digest}").parse().ok()?;
    is_name.then_some((digest, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, content: &[u8]) -> FileRef {
        FileRef {
            name: name.to_owned(),
            size: content.len() as u64,
            sha256: Digest::of(content),
        }
    }

    fn line(name: &str, content: &[u8]) -> String {
        format!("{}  {name}\n", Digest::of(content).hex())
    }

    #[test]
    fn list_names_every_file_of_the_release_and_no_other() {
        let files = [file("a.tgz", b"a"), file("metadata.yaml", b"m")];
        let list = line("a.tgz", b"a") + &line("metadata.yaml", b"m");
        assert_eq!(check(list.as_bytes(), &files), Ok(()));
        assert_eq!(check(list.trim_end().as_bytes(), &files), Ok(()));
        assert_eq!(check(list.replace("  ", " *").as_bytes(), &files), Ok(()));
        assert_eq!(check(list.replace("  ", "  ./").as_bytes(), &files), Ok(()));
        let with_itself = line(SUMS, b"") + &list + &line(SUMS_SIGNATURE, b"old");
        assert_eq!(check(with_itself.as_bytes(), &files), Ok(()));

        let unnamed = check(line("a.tgz", b"a").as_bytes(), &files).unwrap_err();
        assert!(
            unnamed.to_string().contains("does not name the file metadata.yaml"),
            "{unnamed}"
        );
        let gone = check((list.clone() + &line("b", b"b")).as_bytes(), &files).unwrap_err();
        assert!(
            gone.to_string()
                .contains("names the file b, which the release does not have"),
            "{gone}"
        );
        let other = list.replace(&Digest::of(b"m").hex(), &Digest::of(b"n").hex());
        let other = check(other.as_bytes(), &files).unwrap_err();
        assert!(
            other.to_string().contains("the file metadata.yaml has the digest"),
            "{other}"
        );
        let twice = check((list.clone() + &line("a.tgz", b"b")).as_bytes(), &files).unwrap_err();
        assert_eq!(
            twice,
            SumsError::Twice {
                file: "a.tgz".to_owned()
            }
        );
    }

    #[test]
    fn text_that_is_no_list_of_sums_is_refused_by_its_line() {
        let good = line("a", b"a");
        for (list, number) in [
            (String::new(), 1),
            ("\n".to_owned(), 1),
            (good.clone() + "\n" + &good, 2),
            (good.clone() + "# comment\n", 2),
            (good.replace("  ", " "), 1),
            (good.replace('\n', "\r\n"), 1),
            (good.to_uppercase(), 1),
            (line("../a", b"a"), 1),
            (line("b c", b"a"), 1),
            (format!("\\{good}"), 1),
            (good[1..].to_owned(), 1),
        ] {
            let error = check(list.as_bytes(), &[file("a", b"a")]);
            assert_eq!(error, Err(SumsError::Line { number }), "{list:?}");
        }
        assert_eq!(check(b"\xff\xfe", &[]), Err(SumsError::Line { number: 1 }));
    }
}
