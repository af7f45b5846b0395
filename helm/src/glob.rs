//! The patterns of `.Files.Glob`: the Go library gobwas/glob 0.2.3 with `/` as separator, and with what that library gets wrong.
//!
//! Its answers come from how it works, not from a grammar: alternatives lose what they begin and end with alike, neighbours are glued to
//! one matcher, and some of these matchers take counts of characters for counts of bytes. So those stages are here as well: [`parse`] reads,
//! [`compile`](mod@compile) builds, [`matcher`] and [`search`] answer. What cannot be seen from outside is left out.

mod compile;
mod matcher;
mod parse;
mod search;

#[cfg(test)]
mod tests;

use crate::bounds::{BYTES_PER_STEP, BoundError, beyond, spend};
use matcher::Matcher;
use parse::ParseError;

/// The longest pattern.
const MAX_PATTERN: usize = 4 << 10;

/// How deeply a pattern, and what it is built to, may nest.
const MAX_DEPTH: usize = 250;

/// How many steps of a template take about as long as compiling a byte of a pattern.
const STEPS_PER_BYTE: u64 = 8;

/// Why no answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GlobError {
    /// More than [`MAX_PATTERN`].
    #[error("glob is longer than {MAX_PATTERN} bytes")]
    Length,
    /// More than [`MAX_DEPTH`].
    #[error("glob nests deeper than {MAX_DEPTH} levels")]
    Depth,
    /// The steps of the render are used up, or it was cancelled.
    #[error(transparent)]
    Bound(BoundError),
    /// Go's library cuts behind the end of a name, which is a panic. The words are those of Go.
    #[error("runtime error: slice bounds out of range [:{end}] with length {length}")]
    Cut { end: usize, length: usize },
}

impl From<GlobError> for String {
    fn from(error: GlobError) -> Self {
        error.to_string()
    }
}

/// A pattern that names are compared with.
pub(crate) struct Glob(Matcher);

impl Glob {
    pub(crate) fn is_match(&self, name: &str) -> Result<bool, GlobError> {
        self.0.is_match(name.as_bytes())
    }
}

/// Compiles a pattern. One that cannot be read matches everything, as in Helm; one that is too large is an error.
pub(crate) fn compile(pattern: &str) -> Result<Option<Glob>, GlobError> {
    if pattern.len() > MAX_PATTERN {
        return Err(beyond(GlobError::Length));
    }
    pay(STEPS_PER_BYTE * (1 + pattern.len() as u64))?;
    match parse::parse(pattern) {
        Ok(nodes) => compile::sequence(nodes, 0).map(|matcher| Some(Glob(matcher))),
        Err(ParseError::Depth) => Err(beyond(GlobError::Depth)),
        Err(ParseError::Syntax) => Ok(None),
    }
}

fn pay(steps: u64) -> Result<(), GlobError> {
    spend(steps).map_err(GlobError::Bound)
}

/// Pays for a look at so many bytes of a name.
fn pay_for(bytes: usize) -> Result<(), GlobError> {
    pay(1 + (bytes / BYTES_PER_STEP) as u64)
}
