//! What the path of a request names. Text in, values out: a path never becomes one of the disk here, but a store and the name of an image in it.

use std::fmt::Write as _;

/// The end of the name of a file with a digest.
const SUMS: &str = ".sha256";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Which images there are.
    Index,
    /// The bytes of an image.
    Image { store: String, name: String },
    /// The digest of an image.
    Sums { store: String, name: String },
}

/// What this path names: `/`, `/STORE/IMAGE` or `/STORE/IMAGE.sha256`.
pub(super) fn target(path: &str) -> Option<Target> {
    let path = path.strip_prefix('/')?;
    if path.is_empty() {
        return Some(Target::Index);
    }
    let (store, name) = path.split_once('/')?;
    if name.contains('/') {
        return None;
    }
    let (store, name) = (decoded(store)?, decoded(name)?);
    Some(match name.strip_suffix(SUMS) {
        Some(name) => Target::Sums {
            store,
            name: name.to_owned(),
        },
        None => Target::Image { store, name },
    })
}

/// The path of an image from the root of the server on.
pub(super) fn path_of(store: &str, name: &str) -> String {
    format!("/{}/{}", encoded(store), encoded(name))
}

/// The path of the digest of an image.
pub(super) fn sums_of(store: &str, name: &str) -> String {
    path_of(store, name) + SUMS
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Nothing can fail that is written into a text.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The text of one part of a path; `None` when it is none.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => digit(rest.next()?)? * 16 + digit(rest.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_under_its_path() {
        for (store, name) in [
            ("default", "node-v1"),
            ("a b", "ubuntu 24.04 (ä).qcow2"),
            ("a/b", "50%"),
        ] {
            let image = Target::Image {
                store: store.to_owned(),
                name: name.to_owned(),
            };
            assert_eq!(target(&path_of(store, name)), Some(image));
            let sums = target(&sums_of(store, name));
            assert!(matches!(sums, Some(Target::Sums { name: found, .. }) if found == name));
        }
        assert_eq!(target("/"), Some(Target::Index));
    }

    #[test]
    fn what_names_nothing_is_nothing() {
        for path in [
            "",
            "default",
            "/default",
            "/a/b/c",
            "/default/%",
            "/default/%4",
            "/default/%zz",
            "/default/%ff",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }
}
