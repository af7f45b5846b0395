//! `cargo xtask regenerate`: the tests that compare committed files with what the code makes of them write these files instead.

use std::process::ExitCode;

use crate::{screen, setup, step::Step, workspace::Workspace};

/// For each crate the tests that understand `STACKWRIGHT_REGENERATE`: CRDs, roles and references, golden plans, the table of kinds that the API
/// server publishes, answers of the real Helm, of Go and of the real cel-go.
const TESTS: [(&str, &[&str]); 10] = [
    ("crds", &["--test", "generated", "--test", "reference"]),
    ("core-operator", &["the_reference"]),
    ("provider-operator", &["the_reference"]),
    ("planning", &["--test", "decisions"]),
    ("release", &["--test", "it", "seeds_of_signatures"]),
    ("rendering", &["--test", "values"]),
    ("e2e", &["--test", "journeys", "table_of_kinds"]),
    ("expressions", &["--test", "recorded"]),
    ("helm", &["--lib", "the_table_for_people"]),
    (
        "helm",
        &[
            "--test",
            "conformance",
            "--test",
            "functions",
            "--test",
            "small_charts",
            "--test",
            "command",
            "--test",
            "hostile",
        ],
    ),
];

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    setup::run(workspace, setup::Parts::All)?;
    for (package, selection) in TESTS {
        one(workspace, package, selection)?;
    }
    screen::say("look at the difference before you commit it: git diff --stat");
    Ok(ExitCode::SUCCESS)
}

/// The same for CRDs, roles and their references alone, which need nothing of the lab.
pub(crate) fn manifests(workspace: &Workspace) -> anyhow::Result<()> {
    let [(package, selection), ..] = TESTS;
    one(workspace, package, selection)
}

fn one(workspace: &Workspace, package: &str, selection: &[&str]) -> anyhow::Result<()> {
    let mut cargo = workspace.cargo();
    cargo
        .env("STACKWRIGHT_REGENERATE", "1")
        .args(["test", "--package", package])
        .args(selection);
    Step::new(workspace, &format!("regenerate {package}"), cargo).run()?;
    Ok(())
}
