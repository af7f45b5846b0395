//! `kubectl-stacks`: what people do with cluster stacks. Parsing arguments and printing are here, everything else is in the rooms below.

mod addons;
mod arguments;
mod class;
mod manifests;
mod registries;
mod release_create;

use std::{
    error::Error,
    io::{self, ErrorKind, Write},
    process::ExitCode,
};

use clap::Parser;
use crds::conditions::one_line;
use release::pack::PackError;

use self::arguments::{Arguments, Command, ReleaseCommand};

/// What was asked for is done, but standard output does not tell it.
const UNTOLD: u8 = 3;

/// 0: done. 1: not done, and the message says why. 2 (from clap): the command was not understood. 3: done and not told.
fn main() -> ExitCode {
    rendering::serve_tera();
    let Arguments { command } = Arguments::parse();
    let mut out = io::stdout().lock();
    let result = match command {
        Command::Manifests(arguments) => manifests::run(&arguments, &mut out),
        Command::Release(ReleaseCommand::Create(arguments)) => release_create::run(&arguments, &mut out),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in told(error.as_ref()) {
                tell(&format!("error: {line}"));
            }
            if error.is::<release_create::Untold>() {
                UNTOLD.into()
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Writes a line to standard error. Where that cannot be written there is nobody to tell, and the exit code says what was done.
fn tell(line: &str) {
    _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// What came of writing to standard output. Who reads no further has seen enough.
fn heard(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// An error in one line, unless it is many mistakes of one file, which have a line each.
fn told(error: &(dyn Error + 'static)) -> Vec<String> {
    match error.downcast_ref() {
        Some(PackError::AddonStages { faults }) => faults.lines().collect(),
        _ => vec![chain(error)],
    }
}

/// An error with everything that caused it, in one line: templates say what they like, and this is a terminal.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    one_line(&text, usize::MAX)
}
