//! `cargo xtask regenerate`: the tests that compare committed files with what the code makes of them write these files instead.

use std::process::ExitCode;

use crate::{screen, setup, step::Step, workspace::Workspace};

/// Every test program that understands `STACKWRIGHT_REGENERATE`, with its crate: CRDs, roles and references, golden plans, answers of the real Helm.
const TESTS: [(&str, &str); 6] = [
    ("core-operator", "core-operator"),
    ("crds", "generated"),
    ("crds", "reference"),
    ("planning", "decisions"),
    ("helm", "conformance"),
    ("helm", "micro"),
];

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    setup::run(workspace)?;
    for (package, test) in TESTS {
        let mut cargo = workspace.cargo();
        cargo
            .env("STACKWRIGHT_REGENERATE", "1")
            .args(["test", "--package", package]);
        // A binary has no test program of its own beside it.
        if package == test {
            cargo.args(["--bin", test]);
        } else {
            cargo.args(["--test", test]);
        }
        Step::new(workspace, &format!("regenerate {package} {test}"), cargo).run()?;
    }
    screen::say("look at the difference before you commit it: git diff --stat");
    Ok(ExitCode::SUCCESS)
}
