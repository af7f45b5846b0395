//! `cargo xtask test`: everything that must hold, in one run.

mod cost;
mod lanes;
mod listen;
mod programs;
mod report;
mod results;

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use anyhow::Context;

use self::{
    lanes::{Ended, News, POSITIONS, Surroundings},
    programs::Program,
    report::Report,
};
use crate::{
    lab::{self, BINARIES, ORACLE},
    screen::{self, Progress},
    setup::{self, Parts},
    step::{Newest, Step},
    summary::{Outcome, Summary},
    workspace::Workspace,
};

const CORPUS: &str = "STACKWRIGHT_CORPUS";
/// The slowest test takes some five minutes where others compute beside it.
const PATIENCE: Duration = Duration::from_mins(15);
/// The same where every position is tried: one such test may take hours.
const PATIENCE_FOR_POSITIONS: Duration = Duration::from_hours(3);

/// Which tests.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only tests whose names contain one of these words
    filters: Vec<String>,
    /// Tests on Cluster API use all its minors, not only the oldest and the newest
    #[arg(long)]
    matrix: bool,
    /// Tests that kill an operator, lose an event or fail a call try each position of their journeys, not one in three: hours
    #[arg(long)]
    positions: bool,
    /// Only the tests of this crate; may be repeated
    #[arg(short, long = "package", value_name = "CRATE")]
    packages: Vec<String>,
    /// For the test programs, such as `--test-threads 1` or `--nocapture`
    #[arg(last = true)]
    passed_on: Vec<String>,
}

impl Arguments {
    /// Makes a command of cargo one for the crates that are meant.
    fn select(&self, cargo: &mut Command) {
        if self.packages.is_empty() {
            cargo.arg("--workspace");
        }
        cargo.args(self.packages.iter().flat_map(|package| ["--package", package]));
    }

    /// Whether every test of the workspace is meant.
    fn is_everything(&self) -> bool {
        let Self {
            filters,
            packages,
            passed_on,
            matrix: _,
            positions: _,
        } = self;
        filters.is_empty() && packages.is_empty() && passed_on.is_empty()
    }

    /// What every test program finds in its environment, and how long it is waited for.
    fn surroundings<'a>(&self, calls: Option<&'a Path>) -> Surroundings<'a> {
        // Whoever has asked by the environment waits as long.
        let tries_all = self.positions || env::var_os(POSITIONS).is_some();
        Surroundings {
            calls,
            matrix: self.matrix,
            positions: self.positions,
            patience: if tries_all { PATIENCE_FOR_POSITIONS } else { PATIENCE },
        }
    }

    /// What every test program is started with.
    fn words(&self) -> Vec<String> {
        self.passed_on.iter().chain(&self.filters).cloned().collect()
    }
}

/// Ends with a table; the test programs' own output goes to standard output.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut summary = Summary::default();
    check_corpus(&mut summary);
    summary.add("set-up", setup::run(workspace, Parts::All)?, Outcome::Good, "ok");
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
/// targets of the workspace at once resolves the same features as testing them: nothing is compiled twice but the operator, in which the storms
/// look for bugs that are planted. For one room, what it starts is enough.
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
    if packages.is_empty() {
        // A test is among the targets so that the features are those of the build of everything.
        elapsed += lab::build_mutants(workspace, &["--workspace", "--test", "architecture"])?;
    } else if packages.iter().any(|package| package == "e2e") {
        let [crates @ .., _] = &BINARIES;
        elapsed += lab::build_mutants(workspace, crates)?;
    }
    for what in wanted {
        let mut cargo = workspace.cargo();
        cargo.arg("build").args(what);
        elapsed += Step::new(workspace, "build", cargo).run()?.elapsed;
    }
    Ok(elapsed)
}

/// Where the programs note what their operators ask for; nowhere in a run of only some, which cannot ask for everything.
fn empty_folder_for_calls(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<Option<PathBuf>> {
    if !arguments.is_everything() {
        return Ok(None);
    }
    let folder = workspace.lab().join("calls");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("failed to empty {}", folder.display()));
        }
        _ => {}
    }
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    Ok(Some(folder))
}

/// Runs programs to their ends, while somebody watches.
fn run_programs(
    programs: Vec<Program>,
    words: &[String],
    surroundings: Surroundings<'_>,
    begin: Instant,
    progress: &mut Progress,
    mut add: impl FnMut(&Ended) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    lanes::run(programs, words, surroundings, |news| {
        match news {
            News::Ended(ended) => {
                progress.clear();
                add(&ended)?;
            }
            News::Running(sight) => progress.tick(begin.elapsed(), &Newest::of(sight)),
        }
        Ok(())
    })
}

/// Runs the test programs, those that failed once more alone, then the examples in the documentation.
fn test(workspace: &Workspace, arguments: &Arguments, summary: &mut Summary) -> anyhow::Result<()> {
    let begin = Instant::now();
    let programs = programs::build(workspace, arguments)?;
    let has_examples = programs.iter().any(Program::is_library);
    let mut report = Report::begin(workspace)?;
    let log = report.log.clone();
    let mut progress = Progress::new("test", &log, None);
    progress.appear();
    let calls = empty_folder_for_calls(workspace, arguments)?;
    let (last, others): (Vec<_>, Vec<_>) = programs.into_iter().partition(Program::is_last);
    let words = arguments.words();
    let surroundings = arguments.surroundings(calls.as_deref());
    for programs in [others, last] {
        let add = |ended: &Ended| report.add(workspace, ended);
        run_programs(programs, &words, surroundings, begin, &mut progress, add)?;
    }
    // Whoever runs a few tests looks at what fails; in a run of everything one of thousands may have had no processor when its time came.
    let again = arguments.is_everything().then(|| report.to_look_at_again());
    for failed in again.into_iter().flatten() {
        let words: Vec<String> = [vec!["--exact".to_owned()], failed.tests].concat();
        let add = |ended: &Ended| report.add_second_look(ended);
        run_programs(vec![failed.program], &words, surroundings, begin, &mut progress, add)?;
    }
    progress.finish(begin.elapsed(), report.verdict());
    if has_examples {
        let mut cargo = workspace.cargo();
        cargo.args(["test", "--doc", "--no-fail-fast"]);
        arguments.select(&mut cargo);
        cargo.arg("--").args(arguments.words());
        report.add_step(&Step::new(workspace, "test the documentation", cargo).shown().finish()?)?;
    }
    let results = report.results();
    results.show_failures(&log);
    let outcome = if report.is_good() { Outcome::Good } else { Outcome::Bad };
    summary.add("test", begin.elapsed(), outcome, results.counts());
    for (program, cost) in report.longest() {
        summary.add(format!("  {program}"), cost.elapsed, Outcome::Good, cost.told());
    }
    if !results.ground().is_empty() {
        summary.add("ran on", Duration::ZERO, Outcome::Good, results.ground().join(", "));
    }
    for test in results.unsteady() {
        let text = format!("{test} failed beside others and passed alone");
        summary.add("unsteady", Duration::ZERO, Outcome::Notice, text);
    }
    for reduction in results.reductions() {
        summary.add("reduced", Duration::ZERO, Outcome::Notice, reduction);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn whoever_asks_for_every_position_has_it_told_to_the_programs_and_waits_longer_for_them() {
        let of = |line: &[&str]| Line::try_parse_from(line).unwrap().arguments.surroundings(None);
        let all = of(&["test", "--positions"]);
        assert_eq!((all.positions, all.patience), (true, PATIENCE_FOR_POSITIONS));
        assert!(!of(&["test", "--matrix"]).positions);
    }
}
