//! `cargo xtask check`: the gates that need no test to run. Every gate runs, also after one has failed.

use std::{
    ffi::OsString,
    process::{Command, ExitCode, Stdio},
};

use anyhow::Context;
use cargo_metadata::MetadataCommand;

use crate::{
    step::Step,
    summary::{Outcome, Summary},
    workspace::Workspace,
};

/// Installed into the cache when this machine has none.
const DENY_VERSION: &str = "0.20.2";

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    let mut summary = Summary::default();
    let fmt = ["fmt", "--all", "--check"];
    summary.attempt("fmt", cargo(workspace, "fmt", &fmt), Outcome::Bad);
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    summary.attempt("clippy", cargo(workspace, "clippy", &clippy), Outcome::Bad);
    // With all providers at once nobody sees what is of one alone.
    for provider in providers(workspace)? {
        let alone = [
            "-p",
            "provider-operator",
            "--no-default-features",
            "--features",
            &provider,
        ];
        let clippy = [&["clippy"], &alone[..], &["--", "-D", "warnings"]].concat();
        let title = format!("provider {provider} alone");
        summary.attempt(&title, cargo(workspace, &title, &clippy), Outcome::Bad);
    }
    summary.attempt("docs", docs(workspace), Outcome::Bad);

    // Licences, bans and sources are about our own choices. Advisories are about the world, which changes without a commit of ours.
    let deny = deny(workspace)?;
    let cargo_deny = |title, checks: &[&str]| {
        let mut command = Command::new(&deny);
        command
            .current_dir(&workspace.root)
            .args(["--all-features", "check"])
            .args(checks);
        Step::new(workspace, title, command)
    };
    summary.attempt(
        "dependencies",
        cargo_deny("dependencies", &["bans", "licenses", "sources"]),
        Outcome::Bad,
    );
    summary.attempt("advisories", cargo_deny("advisories", &["advisories"]), Outcome::Notice);
    Ok(summary.print())
}

fn cargo<'a>(workspace: &Workspace, title: &'a str, arguments: &[&str]) -> Step<'a> {
    let mut cargo = workspace.cargo();
    cargo.args(arguments);
    Step::new(workspace, title, cargo)
}

/// The providers that can be compiled into the operator: its default features.
fn providers(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace.root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo does not tell what is in the workspace")?;
    let operator = metadata
        .packages
        .iter()
        .find(|package| package.name == "provider-operator");
    let operator = operator.context("there is no provider-operator in the workspace")?;
    Ok(operator.features.get("default").cloned().unwrap_or_default())
}

fn docs(workspace: &Workspace) -> Step<'static> {
    let mut cargo = workspace.cargo();
    cargo
        .args(["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    Step::new(workspace, "docs", cargo)
}

/// The program cargo-deny: the one on PATH, else our own.
fn deny(workspace: &Workspace) -> anyhow::Result<OsString> {
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
    Ok(program.into())
}
