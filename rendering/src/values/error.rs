//! Why a template gives no values, and whether trying again can help.

use std::error::Error;
use std::io;
use std::time::Duration;

use helm::OtherProblem;
use helm::go_text::TextError;

use super::MAX_WRITTEN;
use crate::ErrorClass;
use crate::tera::{self, TeraError};

/// Why there are no values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// The text is no template, or fails for these objects. The source says where, in Go's words; of a function that looks at the world it
    /// says what that looks at.
    #[error("unable to execute the values template {file}{}", reason(source))]
    Go {
        /// The path of the template.
        file: String,
        /// What is wrong.
        #[source]
        source: TextError,
    },
    /// The same, for a Tera template.
    #[error("unable to execute the values template {file}{}", line.map(|line| format!(":{line}")).unwrap_or_default())]
    Tera {
        /// The path of the template.
        file: String,
        /// The line in it, from 1, where one is known.
        line: Option<usize>,
        /// Whether trying again can help.
        class: ErrorClass,
        /// What is wrong, in Tera's words.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The template ran too long.
    #[error("the values template {file} did not end within {limit:?}, so it was stopped: take work out of its loops")]
    Deadline {
        /// The path of the template.
        file: String,
        /// How long it had.
        limit: Duration,
    },
    /// The template wrote too much.
    #[error("the values template {file} wrote {bytes} bytes, {MAX_WRITTEN} are allowed: shorten a loop")]
    TooLong {
        /// The path of the template.
        file: String,
        /// How many bytes it wrote.
        bytes: usize,
    },
    /// What the template wrote is no YAML.
    #[error("the values template {file} wrote what is no YAML: quote what comes from the cluster")]
    Read {
        /// The path of the template.
        file: String,
        /// What is wrong with it. Lines are those of the output.
        #[source]
        source: helm::yaml::Error,
    },
    /// What the template wrote is a list or a scalar.
    #[error("the values template {file} has to write a mapping: of values, or with the key `values` and a text")]
    NoMapping {
        /// The path of the template.
        file: String,
    },
    /// Helm takes no such values.
    #[error("Helm does not take what the values template {file} wrote")]
    Take {
        /// The path of the template.
        file: String,
        /// What is wrong, in Helm's words. Lines are those of the output.
        #[source]
        source: helm::command_line::ValuesError,
    },
    /// What lies over the values of a template is no mapping. What it says is not told.
    #[error(
        "{name} is no mapping of values in YAML{}: what it says is not shown; try it with `helm template --values`",
        line.map(|line| format!(", about line {line}")).unwrap_or_default()
    )]
    Document {
        /// What it is called.
        name: String,
        /// The line where that shows, if it does.
        line: Option<u64>,
    },
    /// Together they are more than fits.
    #[error("the values of the template and those that lie over them are too many together: take some out")]
    Together,
    /// The system has no thread for the deadline.
    #[error("unable to watch how long a values template runs")]
    Watch(#[source] io::Error),
}

impl ValuesError {
    pub(super) fn of_tera(file: &str, problem: OtherProblem) -> Self {
        let OtherProblem { line, source, .. } = problem;
        if let Some(TeraError::Deadline) = source.downcast_ref() {
            let limit = tera::DEADLINE;
            return Self::Deadline {
                file: file.to_owned(),
                limit,
            };
        }
        let class = source
            .downcast_ref::<TeraError>()
            .map_or(ErrorClass::Terminal, TeraError::class);
        Self::Tera {
            file: file.to_owned(),
            line,
            class,
            source,
        }
    }

    /// What it is when the time was over as it came.
    pub(super) fn late(self, limit: Duration) -> Self {
        match self {
            Self::Go { file, source } if source.is_cancelled() => Self::Deadline { file, limit },
            Self::Tera {
                file,
                class: ErrorClass::Transient,
                ..
            } => Self::Deadline { file, limit },
            other => other,
        }
    }

    /// Whether trying again can help, with the same template and the same objects.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Go {
                source: TextError::Thread(_),
                ..
            }
            | Self::Deadline { .. }
            | Self::Watch(_) => ErrorClass::Transient,
            Self::Tera { class, .. } => *class,
            Self::Go { .. }
            | Self::TooLong { .. }
            | Self::Read { .. }
            | Self::NoMapping { .. }
            | Self::Take { .. }
            | Self::Document { .. }
            | Self::Together => ErrorClass::Terminal,
        }
    }

    /// The function that the template calls and that there is not, if that is what is wrong.
    pub fn unknown_function(&self) -> Option<&str> {
        match self {
            Self::Go {
                source: TextError::Parse(error),
                ..
            } => error.unknown_function(),
            _ => None,
        }
    }

    /// What is wrong, without the [place](Self::place) of what is wrong before a template runs.
    pub fn problem(&self) -> String {
        match self {
            Self::Go { source, .. } => format!("{}{}", source.problem(), reason(source)),
            Self::Tera { source, .. } => chained(&**source),
            other => chained(other),
        }
    }

    /// The file that the error is about, and the line in it where one is known, from 1.
    pub fn place(&self) -> Option<(&str, Option<usize>)> {
        match self {
            Self::Go { file, source } => Some((file, source.line())),
            Self::Tera { file, line, .. } => Some((file, *line)),
            Self::Deadline { file, .. }
            | Self::TooLong { file, .. }
            | Self::Read { file, .. }
            | Self::NoMapping { file }
            | Self::Take { file, .. } => Some((file, None)),
            Self::Document { .. } | Self::Together | Self::Watch(_) => None,
        }
    }
}

/// Why values have no function that looks at the world, as the end of a sentence.
fn reason(error: &TextError) -> &'static str {
    match error {
        TextError::World { .. } => ": values follow from the objects of the cluster alone",
        _ => "",
    }
}

/// An error with everything that caused it.
fn chained(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
