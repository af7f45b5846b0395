//! What the object of an image is called.

use crds::names::{ReleaseStem, StackVersion};
use crds::object_name::LONGEST;
use sha2::{Digest, Sha256};

/// Digits of the digest that tells names apart which become alike.
const DIGITS: usize = 8;

/// `<stem>-<name of the image>-<version>`, as the Go provider has it, so that releases with the same image find the same object.
///
/// Where that is no name of an object, because an image in a cloud may be called anything, it is brought into the form of one, and a digest of what it was
/// keeps different names apart.
pub fn object_name(stem: &ReleaseStem, image: &str, version: &StackVersion) -> String {
    let name = format!("{stem}-{image}-{version}");
    if is_subdomain(&name) {
        return name;
    }
    let digest = hex::encode(Sha256::digest(&name));
    let fitting = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9') => letter,
        _ => '-',
    };
    let fitted: String = name.chars().map(fitting).take(LONGEST - DIGITS - 1).collect();
    format!("{}-{}", fitted.trim_matches('-'), &digest[..DIGITS])
}

/// The rule of the API server for names of custom resources.
fn is_subdomain(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let edges = [bytes.first(), bytes.last()];
        edges.iter().all(|edge| edge.is_some_and(is_edge)) && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
    };
    name.len() <= LONGEST && name.split('.').all(is_label)
}
