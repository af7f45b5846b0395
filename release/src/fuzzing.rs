//! What must hold of every parser of remote bytes in this room, whatever the bytes are: one function for each, called by the programs in
//! `fuzz`, which search for long, and by the tests below, which search for a moment.
//!
//! Each says more than that nothing panics: what is accepted keeps to its limits and survives being written and read again, what is refused
//! is classed and told, and no verdict is good that nobody signed for.

use std::error::Error;

use crate::ErrorClass;
pub use crate::{
    archive::fuzzing::archive,
    files::fuzzing::descriptions,
    http::fuzzing::headers,
    source::fuzzing::{github, index, manifest, registry},
    trust::fuzzing::{bundle, evidence, keys_of_secret, root_of_secret, sums},
};

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was understood.
    Accepted,
    /// It was not, and the reason was told.
    Refused,
}

/// A parser with what must hold of it.
pub type Target = fn(&[u8]) -> Outcome;

/// All of them, by the names of their folders of seeds.
pub const TARGETS: [(&str, Target); 12] = [
    ("index", index),
    ("manifest", manifest),
    ("registry", registry),
    ("github", github),
    ("headers", headers),
    ("archive", archive),
    ("descriptions", descriptions),
    ("sums", sums),
    ("evidence", evidence),
    ("bundle", bundle),
    ("keys", keys_of_secret),
    ("root", root_of_secret),
];

/// Checks how a refusal is told.
pub(crate) fn refused(error: &(dyn Error + 'static), class: ErrorClass, reason: &str) -> Outcome {
    let mut next = Some(error);
    while let Some(link) = next {
        let words = link.to_string();
        assert!(!words.trim().is_empty(), "an error without words: {link:?}");
        next = link.source();
    }
    assert!(
        reason.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !reason.is_empty(),
        "{reason:?}"
    );
    assert!(matches!(
        class,
        ErrorClass::Transient | ErrorClass::Waiting | ErrorClass::Terminal
    ));
    Outcome::Refused
}

#[cfg(test)]
mod tests;
