//! What can be wrong with a YAML text, in the words of Go's reader, because charts and users see these words.

use crate::bounds::BoundError;

/// Why a text cannot be read as YAML.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not YAML. The line counts as Go counts it, which is often one less than an editor says.
    #[error("yaml: {}{problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Syntax {
        /// The line, when Go names one.
        line: Option<u64>,
        /// What is wrong there.
        problem: String,
    },
    /// The text is YAML with a meaning that Go's reader refuses.
    #[error("yaml: {0}")]
    Content(String),
    /// The document is YAML, but has no JSON form.
    #[error("{0}")]
    NotJson(String),
    /// The document is larger or nests deeper than we go; Go might go on.
    #[error(transparent)]
    Bound(BoundError),
}

impl Error {
    pub(super) fn syntax(line: Option<u64>, problem: &str) -> Self {
        Self::Syntax {
            line,
            problem: problem.to_owned(),
        }
    }
}
