//! `cargo xtask test`: everything that must hold, in one run.

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
    lanes::{Ended, News, Surroundings},
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
/// Asks tests for every position at which something can be stopped; one such test may take hours.
const POSITIONS: &str = "STACKWRIGHT_POSITIONS";
/// The slowest test takes some five minutes where others compute beside it.
const PATIENCE: Duration = Duration::from_mins(15);

/// Which tests.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only tests whose names contain one of these words
    filters: Vec<String>,
    /// Tests on Cluster API use all its minors, not only the oldest and the newest
    #[arg(long)]
    matrix: bool,
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
        } = self;
        filters.is_empty() && packages.is_empty() && passed_on.is_empty()
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
    let parts = if arguments.matrix { Parts::Matrix } else { Parts::All };
    summary.add("set-up", setup::run(workspace, parts)?, Outcome::Good, "ok");
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
    let surroundings = Surroundings {
        calls: calls.as_deref(),
        matrix: arguments.matrix,
        patience: if env::var_os(POSITIONS).is_some() {
            PATIENCE * 12
        } else {
            PATIENCE
        },
    };
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
