//! `helm-template`: what `helm template` writes, without Helm.
//!
//! The library computes; this program reads the files that the arguments name, the clock and the system's randomness, and writes what comes
//! out. It never talks to a cluster, a registry or a repository, and starts no other program.

mod arguments;
mod chance;
mod directory;
mod flags;
mod inputs;
mod kinds;
mod output;
mod table;

use std::io::{self, Write as _};
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use helm::Profile;
use helm::command_line::ValueArguments;
use helm::yaml::Node;

use self::arguments::{Arguments, Request};

/// Rendering allocates in small pieces by the hundred thousand.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = concat!(
    "helm-template ",
    env!("CARGO_PKG_VERSION"),
    "\n\n",
    include_str!("help.txt")
);

/// What follows an error that Helm would not give.
const LIMIT: &str =
    "\n\nThis limit is helm-template's; Helm has none and might go on: see docs/reference/helm-limits.md";

/// Why nothing was rendered: what Helm writes after `Error: `, or our own words.
struct Failure(String);

impl Failure {
    fn of(text: String, is_limit: bool) -> Self {
        Self(if is_limit { text + LIMIT } else { text })
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// 0: done. 1: not done, and the error output says why, as Helm's does.
fn main() -> ExitCode {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned()).collect();
    match run(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(text)) => {
            eprintln!("Error: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: Vec<String>) -> Result<(), Failure> {
    match Request::read(words)? {
        Request::Help => write(HELP.as_bytes()),
        Request::Render(arguments) => render(&arguments),
    }
}

fn render(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments {
        chart,
        values,
        options,
        printing,
        output,
    } = arguments;
    let path = inputs::locate(chart)?;
    let values = read_values(values, options.profile)?;
    // What ends with the process is not taken apart piece by piece before.
    let chart = ManuallyDrop::new(inputs::load(&path, options.profile)?);
    let rendered = chart.render(&values, options);
    let warnings = match &rendered {
        Ok(rendering) => &rendering.warnings,
        Err(error) => error.warnings(),
    };
    for warning in warnings {
        eprintln!("{}", warning.line());
    }
    let rendering = match rendered {
        Ok(rendering) => ManuallyDrop::new(rendering),
        Err(error) if output.debug => {
            if let Some(output) = error.debug_output() {
                write(&output)?;
            }
            return Err(Failure::of(error.to_string(), error.is_limit()));
        }
        Err(error) => {
            let text = error.stderr();
            let text = text.strip_prefix("Error: ").unwrap_or(&text);
            let text = text.strip_suffix('\n').unwrap_or(text);
            return Err(Failure::of(text.to_owned(), error.is_limit()));
        }
    };
    match &output.folder {
        None => write(&rendering.print(printing, options.profile)?),
        Some(folder) => output::write(&rendering, folder.as_ref(), arguments),
    }
}

/// The values that the arguments set.
fn read_values(arguments: &ValueArguments, profile: &Profile) -> Result<Node, Failure> {
    let mut is_limit = false;
    let mut files = inputs::ArgumentFiles::new();
    let mut read = |name: &str| {
        files.read(name).map_err(|unread| {
            is_limit |= unread.is_limit;
            unread.problem
        })
    };
    arguments
        .values(profile, &mut read)
        .map_err(|error| Failure::of(error.to_string(), is_limit || error.is_limit()))
}

/// How a shell tells of a program that wrote to a pipe which nobody reads anymore; Helm ends so.
const NOBODY_READS: i32 = 128 + 13;

/// Writes to the standard output.
fn write(text: &[u8]) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(NOBODY_READS),
        written => written.map_err(|error| Failure(format!("unable to write: {}", inputs::reason(&error)))),
    }
}
