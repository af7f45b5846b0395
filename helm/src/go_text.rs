//! Texts by Go's template language that are no files of a chart: with the functions of slim-sprig, as Go executes them, and without
//! anything that Helm adds. [`check`] reads them without executing anything.
//!
//! Like everything here they are hermetic: a function that would look at the environment, the network, the clock or at randomness ends the
//! text with [`TextError::World`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::answers::Refusing;
use crate::bounds;
use crate::functions::FunctionTable;
use crate::template::{ExecError, Executor, Limits, ParseError, Place, StackError, Templates, on_deep_stack};
use crate::yaml::Node;

/// Why a text gives nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// It is no template. Says so as Go does.
    #[error(transparent)]
    Parse(ParseError),
    /// It calls a function whose answer does not follow from the data.
    #[error("{file}:{line}:{column}: <{node}>: the function {function:?} {reads}", file = place.file, line = place.line, column = place.column, node = place.node)]
    World {
        /// The name of the function.
        function: &'static str,
        /// What the function would do: `reads the clock`.
        reads: &'static str,
        /// Where it is called.
        place: Box<Place>,
    },
    /// It failed while it ran. Says so as Go does.
    #[error(transparent)]
    Execute(ExecError),
    /// The system has no thread for it.
    #[error(transparent)]
    Thread(StackError),
}

impl TextError {
    /// The line that it is about, from 1.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Parse(error) => Some(error.line),
            Self::World { place, .. } => Some(place.line),
            Self::Execute(error) => Some(error.place()?.line),
            Self::Thread(_) => None,
        }
    }

    /// What is wrong, without the place where that is [known](Self::line) before the text runs.
    pub fn problem(&self) -> String {
        match self {
            Self::Parse(error) => error.message.clone(),
            Self::World { function, reads, .. } => format!("the function {function:?} {reads}"),
            Self::Execute(_) | Self::Thread(_) => self.to_string(),
        }
    }

    /// Whether the text did nothing wrong, but had to stop because somebody raised its flag.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Execute(error) if error.is_cancelled())
    }
}

/// Executes a text, which errors call `name`, over `data`: an integer is Go's `int64`, as in objects of Kubernetes. A missing key is written
/// as `<no value>`. Ends soon after `cancelled` is raised.
///
/// Runs on a thread of its own, because templates may nest deeply, and returns when it is done.
pub fn execute(
    name: &str,
    text: &[u8],
    data: &Node,
    limits: Limits,
    cancelled: &Arc<AtomicBool>,
) -> Result<Vec<u8>, TextError> {
    let run = || {
        bounds::begin(limits.steps, cancelled);
        let mut templates = Templates::new(FunctionTable::of_slim_sprig());
        templates.parse(name, text).map_err(TextError::Parse)?;
        let mut executor = Executor::new(&templates, limits, Arc::new(Refusing)).cancelled_by(Arc::clone(cancelled));
        let written = executor.execute_as_go(name, data.to_user_value());
        executor.dismantle();
        written.map_err(classified)
    };
    on_deep_stack(run).map_err(TextError::Thread)?
}

/// The functions that look at the world whatever they are given.
const OF_WORLD: [&str; 6] = ["ago", "env", "expandenv", "getHostByName", "now", "randInt"];

/// Whether a text is a template that calls none of the functions which look at the world: one that does gives nothing, wherever it does so.
/// Executes nothing.
pub fn check(name: &str, text: &[u8], limits: Limits, cancelled: &Arc<AtomicBool>) -> Result<(), TextError> {
    let read = || {
        bounds::begin(limits.steps, cancelled);
        let templates = Templates::new(FunctionTable::of_slim_sprig());
        let file = templates.parse_file(name, &text.into()).map_err(TextError::Parse)?;
        match file.call_of(&OF_WORLD) {
            None => Ok(()),
            Some((function, place)) => Err(TextError::World {
                function,
                reads: what_is_read(function),
                place: Box::new(place),
            }),
        }
    };
    on_deep_stack(read).map_err(TextError::Thread)?
}

/// The names of the functions that texts can call, in no particular order.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    FunctionTable::of_slim_sprig().names()
}

fn classified(error: ExecError) -> TextError {
    match (error.lacks(), error.place()) {
        (Some(function), Some(place)) => TextError::World {
            function,
            reads: what_is_read(function),
            place: Box::new(place.clone()),
        },
        _ => TextError::Execute(error),
    }
}

fn what_is_read(function: &str) -> &'static str {
    match function {
        "env" | "expandenv" => "reads the environment of the program",
        "getHostByName" => "asks the network",
        "randInt" => "is random",
        "ago" | "now" => "reads the clock",
        _ => "reads the clock when it is given no time",
    }
}
