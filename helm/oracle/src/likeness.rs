//! Whether an answer is one that the real Helm could have given, where Helm itself answers otherwise each time.
//!
//! Several real answers show what is fixed and what is drawn. What is fixed must be equal to the byte. What is drawn must be alike in shape:
//! of the same length and class of characters; a certificate with the same names, key and lifetime, signed by the same one; a date of the same
//! minute. Base64 is looked into. One value that the real answers have in several places must be one value in ours.
//!
//! Only looks at texts: who asks how often, and what follows from the answer, is decided in [`crate::conformance`].

mod align;
mod class;
mod moment;
mod pem;
mod relations;
mod tokens;
mod x509;

#[cfg(test)]
mod tests;

use self::align::{Alignment, Value};

/// How much of an answer could not be compared byte by byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Masked {
    /// Bytes that are only alike in shape.
    pub drawn: usize,
    /// Bytes of keys and certificates, which were read and verified instead.
    pub verified: usize,
}

/// Where an answer cannot be one of the real ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct Unlike {
    /// Counted from 1, in our answer.
    pub line: usize,
    /// What was expected there.
    pub reason: String,
}

/// Compares one answer with real ones, of which there must be at least two.
pub fn compare(theirs: &[&[u8]], ours: &[u8]) -> Result<Masked, Unlike> {
    let mut alignment = Alignment::default();
    alignment.texts(theirs, ours)?;
    let values = alignment.values;
    for value in &values {
        value.check()?;
    }
    relations::one_value_stays_one(&values)?;
    relations::digests_stay_digests(&values)?;
    x509::compare(&values)?;
    let (verified, drawn): (Vec<_>, Vec<_>) = values.iter().partition(|value| x509::is_read(value));
    let bytes = |values: Vec<&Value>| values.into_iter().map(|value| value.weight).sum::<usize>();
    Ok(Masked {
        drawn: bytes(drawn) + alignment.moved,
        verified: bytes(verified),
    })
}
