//! `cargo xtask test`: everything that must hold, in one run.

mod results;

use std::{env, path::Path, process::ExitCode, time::Duration};

use self::results::Results;
use crate::{
    lab::{BINARIES, ORACLE},
    screen, setup,
    step::{Finished, Step, read_log},
    summary::{Outcome, Summary},
    workspace::Workspace,
};

const CORPUS: &str = "STACKWRIGHT_CORPUS";

/// Which tests.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only tests whose names contain one of these words
    filters: Vec<String>,
    /// Only the tests of this crate; may be repeated
    #[arg(short, long = "package", value_name = "CRATE")]
    packages: Vec<String>,
    /// For the test programs, such as `--test-threads 1` or `--nocapture`
    #[arg(last = true)]
    passed_on: Vec<String>,
}

/// Ends with a table; the test programs' own output goes to standard output.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut summary = Summary::default();
    check_corpus(&mut summary);
    summary.add("set-up", setup::run(workspace)?, Outcome::Good, "ok");
    summary.add("build", build(workspace, &arguments.packages)?, Outcome::Good, "ok");
    test(workspace, arguments, &mut summary)?;
    Ok(summary.print())
}

/// A run without real releases proves less: that must be seen at its beginning and at its end.
fn check_corpus(summary: &mut Summary) {
    let text = match env::var_os(CORPUS) {
        None => format!("{CORPUS} is not set: what uses real releases and charts is reduced to our own"),
        Some(path) if !Path::new(&path).is_absolute() => format!("{CORPUS} is not an absolute path"),
        Some(path) if !Path::new(&path).is_dir() => format!("{CORPUS} names no folder: {}", path.display()),
        Some(_) => return,
    };
    screen::warn(&text);
    summary.add("corpus", Duration::ZERO, Outcome::Notice, text);
}

/// The journeys start the operators as a user does, and the oracle starts `helm-template`, so binaries are built beside the tests. Building all
/// targets of the workspace at once resolves the same features as testing them: nothing is compiled twice. For one room, what it starts is enough.
fn build(workspace: &Workspace, packages: &[String]) -> anyhow::Result<Duration> {
    let whole: &[&str] = &["--workspace", "--all-targets"];
    let programs = [("e2e", BINARIES.as_slice()), ("helm-oracle", ORACLE.as_slice())];
    let started = |(room, _): &(&str, _)| packages.iter().any(|package| package == room);
    let wanted: Vec<_> = if packages.is_empty() {
        vec![whole]
    } else {
        programs.into_iter().filter(started).map(|(_, what)| what).collect()
    };
    let mut elapsed = Duration::ZERO;
    for what in wanted {
        let mut cargo = workspace.cargo();
        cargo.arg("build").args(what);
        elapsed += Step::new(workspace, "build", cargo).run()?.elapsed;
    }
    Ok(elapsed)
}

fn test(workspace: &Workspace, arguments: &Arguments, summary: &mut Summary) -> anyhow::Result<()> {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--no-fail-fast"]);
    if arguments.packages.is_empty() {
        cargo.arg("--workspace");
    }
    for package in &arguments.packages {
        cargo.args(["--package", package]);
    }
    cargo.arg("--").args(&arguments.passed_on).args(&arguments.filters);
    let Finished {
        status,
        elapsed,
        log,
        repeat,
    } = Step::new(workspace, "test", cargo).shown().finish()?;
    let results = Results::read(&read_log(&log)?);
    results.show_failures(&log, &repeat);
    let outcome = if status.success() { Outcome::Good } else { Outcome::Bad };
    summary.add("test", elapsed, outcome, results.counts());
    Ok(())
}
