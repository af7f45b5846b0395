//! Why Tera templates have no output.

use isolation::{AskError, Death};

use super::{LIMITS, MAX_OUTPUT, MAX_ROOT, MAX_SOURCE};
use crate::ErrorClass;

/// What is wrong with the Tera templates of a chart, or with the process that renders them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TeraError {
    /// A template is wrong, in Tera's words.
    #[error("{message}")]
    Template {
        /// One line.
        message: String,
    },
    /// A file is no text.
    #[error("a template has to be UTF-8")]
    Encoding(#[source] std::str::Utf8Error),
    /// The files are too large.
    #[error(
        "the Tera files of a chart may have {MAX_SOURCE} bytes together, these have {bytes}: move data into values or files"
    )]
    Source {
        /// How many bytes they have.
        bytes: usize,
    },
    /// Values and files are too large.
    #[error(
        "Tera templates may see {MAX_ROOT} bytes of values and files, the chart has {bytes}: use a Go template, or take files out of the chart"
    )]
    Root {
        /// How many bytes they are as JSON.
        bytes: usize,
    },
    /// What templates see cannot be said in JSON.
    #[error("unable to pass values to Tera templates")]
    Encode(#[source] serde_json::Error),
    /// The templates write too much.
    #[error("Tera templates of a chart may write {MAX_OUTPUT} bytes: shorten a loop")]
    Output,
    /// They took too long. The limit is told by who has set it.
    #[error("Tera counts no steps, so its templates are bounded by time: take work out of their loops")]
    Deadline,
    /// They took too much memory.
    #[error(
        "Tera templates need more than {} MiB of memory, or nest too deeply: shorten loops, and texts that grow in them",
        LIMITS.memory >> 20
    )]
    Memory,
    /// The engine failed.
    #[error("the template engine failed at it, write it in another way")]
    Engine,
    /// Something outside of the templates failed.
    #[error("unable to render Tera templates in a process of their own")]
    Process(#[source] AskError),
    /// The process said what nobody understands.
    #[error("the process that renders Tera templates does not give a whole answer")]
    Misheard,
}

impl TeraError {
    /// Whether trying again can help.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Deadline | Self::Process(_) | Self::Misheard => ErrorClass::Transient,
            Self::Template { .. }
            | Self::Encoding(_)
            | Self::Source { .. }
            | Self::Root { .. }
            | Self::Encode(_)
            | Self::Output
            | Self::Memory
            | Self::Engine => ErrorClass::Terminal,
        }
    }
}

impl From<AskError> for TeraError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Deadline { .. } => Self::Deadline,
            AskError::TooLong { .. } => Self::Output,
            AskError::Died { death, .. } => match death {
                Death::Exhausted => Self::Memory,
                Death::ProcessorTime => Self::Deadline,
                Death::Panicked => Self::Engine,
                Death::Killed | Death::Unlimited | Death::Other(_) => Self::Process(error),
            },
            AskError::NotServed { .. } | AskError::Start(_) | AskError::Talk(_) | AskError::Stopped => {
                Self::Process(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn an_end_that_comes_with_every_try_is_not_tried_again() {
        for (death, class) in [
            (Death::Exhausted, ErrorClass::Terminal),
            (Death::Panicked, ErrorClass::Terminal),
            (Death::ProcessorTime, ErrorClass::Transient),
            (Death::Killed, ErrorClass::Transient),
            (Death::Unlimited, ErrorClass::Transient),
            (Death::Other(ExitStatus::default()), ErrorClass::Transient),
        ] {
            let said = Vec::new();
            let error = TeraError::from(AskError::Died { death, said });
            assert_eq!(error.class(), class, "{death}");
        }
    }
}
