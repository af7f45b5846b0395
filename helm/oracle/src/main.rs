//! `helm-oracle`: our chart engine beside the real Helm.
//!
//! This file knows the words of the command line and the exit codes; what a command does is decided in the library.

mod arguments;

use std::{
    fs,
    io::{Write as _, stdout},
    path::Path,
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use helm::Profile;
use helm_oracle::{
    Lab, bench,
    conformance::{self, Settings},
    fuzz::{self, Oracle, Search},
};

use self::arguments::{ConformanceArguments, FuzzArguments, FuzzCommand, OracleBenchCommand, RenderArguments};

// What is measured here runs with it in all our programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compares our chart engine with the real Helm, measures both, and searches for differences
///
/// Needs what `cargo xtask setup` builds and fetches, and our `helm-template` beside this program.
#[derive(Debug, Parser)]
// People reach it through the chores.
#[command(name = "helm-oracle", bin_name = "cargo xtask", version, max_term_width = 120)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Render charts with the real Helm and with ours, and compare what they answer
    Conformance(ConformanceArguments),
    /// Measure: prints a table, and with --json FILE writes the same as JSON
    #[command(subcommand)]
    Bench(OracleBenchCommand),
    /// Search for differences with generated charts
    #[command(subcommand)]
    Fuzz(FuzzCommand),
}

fn main() -> ExitCode {
    rendering::serve_tera();
    run(Arguments::parse().command).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Conformance(arguments) => conformance(arguments),
        Command::Bench(OracleBenchCommand::Render(arguments)) => bench(arguments),
        Command::Fuzz(FuzzCommand::Helm(arguments)) => fuzz(&arguments),
    }
}

/// Where a report cannot be written, that is said before the minutes of work.
fn is_writable(file: Option<&Path>) -> bool {
    let opened = file.map(|file| (file, fs::OpenOptions::new().create(true).append(true).open(file)));
    let Some((file, Err(error))) = opened else {
        return true;
    };
    eprintln!("error: unable to write {}: {error}", file.display());
    false
}

/// The exit code of wrong arguments, which is clap's too.
const WRONG_ARGUMENTS: u8 = 2;

fn bench(arguments: RenderArguments) -> anyhow::Result<ExitCode> {
    if !is_writable(arguments.json.as_deref()) {
        return Ok(ExitCode::from(WRONG_ARGUMENTS));
    }
    let report = bench::run(&Lab::load()?)?;
    write!(stdout(), "{report}").context("failed to write to standard output")?;
    if let Some(file) = arguments.json {
        let text = serde_json::to_string_pretty(&report).context("failed to write the report as JSON")?;
        fs::write(&file, text + "\n").with_context(|| format!("failed to write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn conformance(arguments: ConformanceArguments) -> anyhow::Result<ExitCode> {
    let ConformanceArguments {
        profiles,
        charts,
        names,
        json,
        keep,
    } = arguments;
    if !is_writable(json.as_deref()) {
        return Ok(ExitCode::from(WRONG_ARGUMENTS));
    }
    let settings = Settings {
        profiles,
        charts,
        names,
        keep,
        remember: true,
    };
    let report = conformance::run(&settings, &Lab::load()?)?;
    if report.total.renders == 0 {
        eprintln!("error: {}", nothing_to_render(&settings));
    } else {
        write!(stdout(), "{report}").context("failed to write to standard output")?;
    }
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(&report).context("failed to write the report as JSON")?;
        fs::write(&file, text + "\n").with_context(|| format!("failed to write {}", file.display()))?;
    }
    Ok(if report.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn nothing_to_render(settings: &Settings) -> String {
    match (&settings.charts, settings.names.as_slice()) {
        (_, names @ [_, ..]) => format!("no chart has {} in its path", names.join(" or ")),
        (Some(folder), []) => format!(
            "there is no *.tgz below {}; folders of charts are packed with `helm package`",
            folder.display()
        ),
        (None, []) => "there is no chart to render".to_owned(),
    }
}

/// 0 when everything is alike, 1 when something is different.
fn fuzz(arguments: &FuzzArguments) -> anyhow::Result<ExitCode> {
    let clock = || {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    };
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    let search = Search {
        time: Duration::from_secs(u64::from(arguments.minutes) * 60),
        oracles: oracles(&arguments.profiles)?,
        enough: fuzz::ENOUGH,
        seed: arguments.seed.unwrap_or_else(clock),
        rows: arguments
            .rows
            .clone()
            .unwrap_or_else(|| room.join("../tests/micro/found.txt")),
    };
    eprintln!("searching for {} min with --seed {}", arguments.minutes, search.seed);
    let found = fuzz::search(&search, |difference| Ok(writeln!(stdout(), "{difference}")?))?;
    writeln!(stdout(), "{}", found.summary())?;
    if found.differences.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("the templates are in {}", search.rows.display());
    Ok(ExitCode::FAILURE)
}

/// The real binaries of these profiles, or of all when none is named.
fn oracles(profiles: &[String]) -> anyhow::Result<Vec<Oracle>> {
    let lab = Lab::load()?;
    let wanted = Profile::all()
        .iter()
        .filter(|profile| profiles.is_empty() || profiles.iter().any(|name| name == profile.name));
    wanted
        .map(|profile| {
            Ok(Oracle {
                profile,
                binary: lab.helm(profile.name)?.to_owned(),
            })
        })
        .collect()
}
