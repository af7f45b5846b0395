//! The chores that show and measure: each makes the lab complete, builds, and becomes the binary `lab` of the crate `e2e`, which has the
//! words and the terminal from then on.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use anyhow::Context;

use crate::{setup, step::Step, workspace::Workspace};

/// What the lab and the journeys start, for `cargo build`.
pub(crate) const BINARIES: [&str; 7] = [
    "--package",
    "core-operator",
    "--package",
    "cli",
    "--package",
    "e2e",
    "--bins",
];

/// For `lab demo`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct DemoArguments {
    /// Passed on; `--help` tells what there is
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// For `lab bench`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArguments {
    /// `converge` or `idle`, and what they take; `--help` tells what there is
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// For `lab control-plane`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ControlPlaneArguments {
    /// `up`, `down` or `kubeconfig`, and what they take; `--help` tells what there is
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// What cargo builds with, and the folder it builds into.
#[derive(Clone, Copy)]
enum Profile {
    /// Shared with the tests: on a new machine one of the two is built already.
    Debug,
    Release,
}

pub(crate) fn demo(workspace: &Workspace, demo: &DemoArguments) -> anyhow::Result<ExitCode> {
    become_lab(workspace, Profile::Debug, "demo", &demo.arguments)
}

pub(crate) fn bench(workspace: &Workspace, bench: &BenchArguments) -> anyhow::Result<ExitCode> {
    become_lab(workspace, Profile::Release, "bench", &bench.arguments)
}

pub(crate) fn control_plane(workspace: &Workspace, arguments: &ControlPlaneArguments) -> anyhow::Result<ExitCode> {
    become_lab(workspace, Profile::Debug, "control-plane", &arguments.arguments)
}

/// Replaces this process, so that signals and the exit code are the lab's: it has processes to end when it is interrupted.
fn become_lab(
    workspace: &Workspace,
    profile: Profile,
    command: &str,
    arguments: &[OsString],
) -> anyhow::Result<ExitCode> {
    let asks_for_help = |argument: &OsString| argument == "--help" || argument == "-h" || argument == "help";
    let profile = if arguments.iter().any(asks_for_help) {
        // Nobody waits for an optimised build to read a page.
        Profile::Debug
    } else {
        setup::run(workspace)?;
        profile
    };
    let mut cargo = workspace.cargo();
    cargo.arg("build").args(BINARIES);
    let folder = match profile {
        Profile::Debug => "debug",
        Profile::Release => {
            cargo.arg("--release");
            "release"
        }
    };
    Step::new(workspace, &format!("build for {command} ({folder})"), cargo).run()?;
    let program = workspace.built(folder).join("lab");
    let error = Command::new(&program).arg(command).args(arguments).exec();
    Err(error).with_context(|| format!("failed to run {}", program.display()))
}
