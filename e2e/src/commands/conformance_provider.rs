//! `lab conformance-provider`: the rows of the contract, and what was found of each.

use std::{fs, io::stdout, path::Path, process::ExitCode, time::Duration};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use e2e::conformance::{Conformance, Level, Outcome, Plan, Report, Row};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use unicode_width::UnicodeWidthStr;

use crate::{arguments::ConformanceProviderArguments, progress::Progress};

/// As a shell has it for a program that Ctrl-C ended, or SIGTERM.
const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;
/// Long enough to take objects away that an operator holds on to.
const CLEAR_DEADLINE: Duration = Duration::from_mins(5);
/// Columns of a table.
const WIDTH: usize = 110;
const INDENT: usize = 9;

pub(crate) async fn run(arguments: ConformanceProviderArguments) -> Result<ExitCode> {
    let mut interrupted = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    let mut terminated = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let client = client(&arguments.kubeconfig).await?;
    let json = arguments.json.clone();
    let conformance = Conformance::new(client, plan(arguments)?);
    let progress = Progress::start("conformance".to_owned());
    let outcome = tokio::select! {
        biased;
        _ = interrupted.recv() => Err(INTERRUPTED),
        _ = terminated.recv() => Err(TERMINATED),
        outcome = conformance.run(|step| progress.step(step)) => Ok(outcome),
    };
    progress.step("takes everything away again");
    // A second Ctrl-C ends it at once.
    let cleared = tokio::select! {
        biased;
        _ = interrupted.recv() => anyhow::bail!("interrupted while clearing up: look for objects in the namespace"),
        cleared = timeout(CLEAR_DEADLINE, conformance.clear()) => cleared,
    };
    drop(progress);
    let cleared = cleared.context("clearing up took too long: look for objects in the namespace");
    // What was found is told also where something is left.
    let conforms = match outcome {
        Ok(report) => tell(&report?, json.as_deref())?,
        Err(code) => {
            cleared??;
            return Ok(ExitCode::from(code));
        }
    };
    for name in cleared?? {
        say(&format!(
            "The operator did not let go of {name}; it was freed by force. Look in the cloud for what may be left of it."
        ));
    }
    Ok(if conforms { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the table and writes the file; whether no MUST is broken.
fn tell(report: &Report, json: Option<&Path>) -> Result<bool> {
    say(&table(report, AutoStream::choice(&stdout()) != ColorChoice::Never));
    if let Some(file) = json {
        write(file, report)?;
    }
    Ok(report.conforms())
}

async fn client(file: &Path) -> Result<Client> {
    e2e::use_one_cryptography();
    let kubeconfig = Kubeconfig::read_from(file).with_context(|| format!("unable to read {}", file.display()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.with_context(|| format!("{} cannot be used", file.display()))?;
    Client::try_from(config).with_context(|| format!("{} cannot be used", file.display()))
}

fn plan(arguments: ConformanceProviderArguments) -> Result<Plan> {
    let spec = match &arguments.spec {
        None => serde_json::json!({}),
        Some(file) => read_spec(file)?,
    };
    Ok(Plan {
        kind: arguments.kind,
        release: arguments.release,
        other_release: arguments.other_release,
        namespace: arguments.namespace,
        spec,
        breaking: arguments.breaking,
        kubeconfig: arguments.kubeconfig,
        deadline: Duration::from_secs(arguments.deadline),
        rest: Duration::from_secs(arguments.rest),
    })
}

fn read_spec(file: &Path) -> Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("unable to read {}", file.display()))?;
    let spec: Value = serde_yaml::from_str(&text).with_context(|| format!("{} is no YAML", file.display()))?;
    anyhow::ensure!(
        spec.is_object(),
        "{} has no fields; it must be what stands under spec.template.spec of a template",
        file.display()
    );
    Ok(spec)
}

fn write(file: &Path, report: &Report) -> Result<()> {
    let text = serde_json::to_string_pretty(&report.json()?)?;
    fs::write(file, text + "\n").with_context(|| format!("unable to write {}", file.display()))
}

/// The rows in the order of the contract: what holds in one line each, what does not with the reason and what to do.
fn table(report: &Report, coloured: bool) -> String {
    let painted = |style: Style, text: &str| {
        if coloured {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    };
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    let mut lines = Vec::new();
    let mut level = None;
    for (row, outcome) in report.rows() {
        if level != Some(row.level()) {
            level = Some(row.level());
            let word = match row.level() {
                Level::Must => "MUST",
                Level::Should => "SHOULD",
            };
            lines.push(painted(Style::new().bold(), word));
        }
        let (sign, style, details) = match outcome {
            Outcome::Passed { seen } => ("✓", colour(AnsiColor::Green), vec![seen.clone()]),
            Outcome::Failed { reason } => (
                "✗",
                colour(AnsiColor::Red).bold(),
                vec![reason.clone(), format!("→ {}", row.remedy())],
            ),
            Outcome::NotShown { reason } => ("–", colour(AnsiColor::Yellow), vec![format!("not shown: {reason}")]),
        };
        lines.push(format!(
            "  {} {:<4} {}",
            painted(style, sign),
            row.id(),
            row.statement()
        ));
        let faint = Style::new().dimmed();
        let is_bad = matches!(outcome, Outcome::Failed { .. });
        for line in details.iter().flat_map(|detail| wrap(detail, WIDTH - INDENT)) {
            let line = if is_bad { line } else { painted(faint, &line) };
            lines.push(format!("{:INDENT$}{line}", ""));
        }
    }
    lines.push(summary(report));
    lines.join("\n")
}

fn summary(report: &Report) -> String {
    let count = |level, is: fn(&Outcome) -> bool| {
        report
            .rows()
            .filter(|(row, outcome)| row.level() == level && is(outcome))
            .count()
    };
    let is_passed = |outcome: &Outcome| matches!(outcome, Outcome::Passed { .. });
    let is_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. });
    let of = |level| {
        let all = Row::ALL.iter().filter(|row| row.level() == level).count();
        let (passed, failed) = (count(level, is_passed), count(level, is_failed));
        format!(
            "{passed} of {all} hold, {failed} do not, {} not shown",
            all - passed - failed
        )
    };
    let verdict = if report.conforms() {
        "no MUST is broken"
    } else {
        "the contract is broken"
    };
    format!(
        "\nMUST: {}. SHOULD: {}. In short: {verdict}.",
        of(Level::Must),
        of(Level::Should)
    )
}

/// Lines of at most so many columns, broken at spaces and without what steers a terminal.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word: String = word.chars().filter(|letter| !letter.is_control()).collect();
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[expect(clippy::print_stdout, reason = "what this program is asked for")]
fn say(text: &str) {
    println!("{text}");
}
