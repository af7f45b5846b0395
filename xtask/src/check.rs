//! `cargo xtask check`: the gates that need no test to run. Every gate runs, also after one has failed.

use std::process::{Command, ExitCode, Stdio};

use crate::{
    screen,
    step::Step,
    summary::{Outcome, Summary},
    workspace::Workspace,
};

/// Installed into the cache when this machine has none.
const DENY_VERSION: &str = "0.20.2";

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    let mut summary = Summary::default();
    summary.attempt("fmt", || {
        cargo_step(workspace, "fmt", &["fmt", "--all", "--check"]).run()
    });
    summary.attempt("clippy", || {
        cargo_step(
            workspace,
            "clippy",
            &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        )
        .run()
    });
    summary.attempt("docs", || {
        let mut cargo = workspace.cargo();
        cargo
            .args(["doc", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings");
        Step::new(workspace, "docs", cargo).run()
    });
    deny(workspace, &mut summary)?;
    Ok(summary.print())
}

fn cargo_step<'a>(workspace: &Workspace, title: &'a str, arguments: &[&str]) -> Step<'a> {
    let mut cargo = workspace.cargo();
    cargo.args(arguments);
    Step::new(workspace, title, cargo)
}

/// Licences, bans and sources are about our own choices and block. Advisories are about the world, which changes without a commit of ours:
/// they are shown.
fn deny(workspace: &Workspace, summary: &mut Summary) -> anyhow::Result<()> {
    let program = deny_program(workspace)?;
    let step = |title, checks: &[&str]| {
        let mut deny = Command::new(&program);
        deny.current_dir(&workspace.root)
            .args(["--all-features", "check"])
            .args(checks);
        Step::new(workspace, title, deny)
    };
    summary.attempt("dependencies", || {
        step("dependencies", &["bans", "licenses", "sources"]).run()
    });
    match step("advisories", &["advisories"]).run() {
        Ok(elapsed) => summary.add("advisories", elapsed, Outcome::Good, "none"),
        Err(error) => {
            screen::failure(&error);
            summary.add(
                "advisories",
                std::time::Duration::ZERO,
                Outcome::Notice,
                "not clean or not to be had, see above",
            );
        }
    }
    Ok(())
}

fn deny_program(workspace: &Workspace) -> anyhow::Result<std::path::PathBuf> {
    let mut probe = Command::new("cargo-deny");
    probe
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if probe.status().is_ok_and(|status| status.success()) {
        return Ok("cargo-deny".into());
    }
    let folder = workspace.cache.join("tools").join(format!("cargo-deny-{DENY_VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        let mut cargo = workspace.cargo();
        cargo
            .args(["install", "--locked", "cargo-deny", "--version", DENY_VERSION, "--root"])
            .arg(&folder);
        Step::new(workspace, "install cargo-deny", cargo).run()?;
    }
    Ok(program)
}
