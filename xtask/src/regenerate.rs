//! `cargo xtask regenerate`: the tests that compare generated files with the committed ones write them instead.

use std::process::ExitCode;

use crate::{screen, step::Step, workspace::Workspace};

/// Only what is made from code is in these crates' tests; every such test has this word in its name.
const WORD: &str = "generated";
const PACKAGES: [&str; 2] = ["crds", "cli"];

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    let mut cargo = workspace.cargo();
    cargo.arg("test").env("STACKWRIGHT_REGENERATE", "1");
    for package in PACKAGES {
        cargo.args(["--package", package]);
    }
    cargo.args(["--", WORD]);
    Step::new(workspace, "regenerate", cargo).run()?;
    screen::say("look at the difference before you commit it: git diff --stat");
    Ok(ExitCode::SUCCESS)
}
