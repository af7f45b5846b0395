//! `helm-template`: what `helm template` writes, without Helm.
//!
//! The library computes; this program reads the files that the arguments name, the clock and the system's randomness, and writes what comes out.
//! It never talks to a cluster, a registry or a repository, and starts no other program.

mod arguments;
mod chance;
mod directory;
mod flags;
mod inputs;

use std::io::{self, Write as _};
use std::process::ExitCode;

use helm::RenderOptions;

use self::arguments::{Arguments, Request};

/// Rendering allocates in small pieces by the hundred thousand.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why nothing was rendered: what Helm writes after `Error: `, or our own words.
struct Failure(String);

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
        Ok(output) => match io::stdout().lock().write_all(&output) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(Failure(text)) => {
            eprintln!("Error: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: Vec<String>) -> Result<Vec<u8>, Failure> {
    match Request::read(words)? {
        Request::Help(text) => Ok(text.into_bytes()),
        Request::Render(arguments) => render(&arguments),
    }
}

fn render(arguments: &Arguments) -> Result<Vec<u8>, Failure> {
    let path = inputs::locate(&arguments.chart)?;
    let values = arguments.values.values(&mut inputs::read_values)?;
    let chart = inputs::load(&path)?;
    let options = RenderOptions {
        kube_version: arguments.kube_version.clone(),
        api_versions: arguments.api_versions.clone(),
        profile: arguments.profile,
        include_crds: arguments.include_crds,
        answers: chance::answers(arguments.seed, arguments.now)?,
        ..RenderOptions::new(&arguments.release_name, &arguments.namespace)
    };
    let rendering = chart.render(&values, &options).map_err(|error| {
        let text = error.stderr();
        Failure(text.trim_start_matches("Error: ").trim_end().to_owned())
    })?;
    for warning in &rendering.warnings {
        eprintln!("{warning}");
    }
    Ok(rendering.stdout())
}
