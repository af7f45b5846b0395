//! The chores that show, measure and compare: each makes the lab complete, builds, and becomes the binary `lab` of the crate `e2e` or
//! `helm-oracle` of the crate of that name, which has the words and the terminal from then on. What they take is defined in the programs' own
//! `arguments.rs`.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::Context;

use crate::{
    setup::{self, Parts},
    step::Step,
    workspace::Workspace,
};

/// What the lab and the journeys start, for `cargo build`: crates, and last which of their targets.
pub(crate) const BINARIES: [&str; 9] = [
    "--package",
    "core-operator",
    "--package",
    "provider-operator",
    "--package",
    "cli",
    "--package",
    "e2e",
    "--bins",
];

/// What starts and ends a control plane: whoever wants one need not wait for an operator.
const CONTROL_PLANE: [&str; 4] = ["--package", "e2e", "--bin", "lab"];

/// What measures an operator that is built already.
const LAB: [&str; 5] = ["--package", "cli", "--package", "e2e", "--bins"];

/// What is compared with the real Helm, and what compares.
pub(crate) const ORACLE: [&str; 5] = ["--package", "helm", "--package", "helm-oracle", "--bins"];

/// `helm-template` as it is compared and measured: one file at a fixed address, as Go links Helm. Finding libraries and moving tables would be a
/// seventh of what a small chart takes.
const HELM_TEMPLATE: [&str; 10] = [
    "rustc",
    "--release",
    "--package",
    "helm",
    "--bin",
    "helm-template",
    "--",
    "-Ctarget-feature=+crt-static",
    "-Crelocation-model=static",
    "-Cstrip=symbols",
];

/// The operator as it ships and is measured: one file, in which of the libraries of C is what it uses. They would be 2.5 MiB beside it.
const CORE_OPERATOR: [&str; 8] = [
    "rustc",
    "--release",
    "--package",
    "core-operator",
    "--bin",
    "core-operator",
    "--",
    "-Ctarget-feature=+crt-static",
];

/// The same for the operator that brings node images.
const PROVIDER_OPERATOR: [&str; 8] = [
    "rustc",
    "--release",
    "--package",
    "provider-operator",
    "--bin",
    "provider-operator",
    "--",
    "-Ctarget-feature=+crt-static",
];

/// What cargo builds with, and the folder it builds into.
#[derive(Clone, Copy)]
pub(crate) enum Profile {
    /// Shared with the tests: on a new machine one of the two is built already.
    Debug,
    Release,
}

/// Makes these parts of the lab complete and replaces this process by it, with the arguments of this process, which are understood already. So signals
/// and the exit code are the lab's: it has processes to end when it is interrupted.
pub(crate) fn become_lab(workspace: &Workspace, parts: Parts, profile: Profile) -> anyhow::Result<ExitCode> {
    setup::run(workspace, parts)?;
    match profile {
        Profile::Debug => become_program(
            workspace,
            "the operator and the programs around it",
            &BINARIES,
            profile,
            "lab",
        ),
        Profile::Release => {
            let mut cargo = workspace.cargo();
            cargo.args(CORE_OPERATOR);
            Step::new(workspace, "build the operator (release)", cargo)
                .silent_when_quick()
                .run()?;
            become_program(workspace, "the lab", &LAB, profile, "lab")
        }
    }
}

/// The same for what measures the operator that brings node images, as it ships, beside a real OpenStack.
pub(crate) fn become_lab_for_images(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    setup::run(workspace, Parts::OpenStack)?;
    let mut cargo = workspace.cargo();
    cargo.args(PROVIDER_OPERATOR);
    Step::new(workspace, "build the provider operator (release)", cargo)
        .silent_when_quick()
        .run()?;
    become_program(workspace, "the lab", &LAB, Profile::Release, "lab")
}

/// The same for what needs a control plane and no operator.
pub(crate) fn become_control_plane(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    setup::run(workspace, Parts::ControlPlane)?;
    become_program(
        workspace,
        "the control plane's program",
        &CONTROL_PLANE,
        Profile::Debug,
        "lab",
    )
}

/// The same for what is asked of a cluster of somebody else: nothing of the lab is needed.
pub(crate) fn become_guest(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    become_program(workspace, "the test", &CONTROL_PLANE, Profile::Debug, "lab")
}

/// The same with an operator in which bugs can be planted, beside the one without.
pub(crate) fn become_lab_with_mutants(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    setup::run(workspace, Parts::ControlPlane)?;
    let [crates @ .., _] = &BINARIES;
    build_mutants(workspace, crates)?;
    become_program(
        workspace,
        "the operator and the programs around it",
        &BINARIES,
        Profile::Debug,
        "lab",
    )
}

/// Builds the operator in which bugs can be planted. Cargo knows one name for it and for the one without, so that it moves aside; whoever calls this
/// builds the other one next. `selected` are the crates of that build: it then shares what they are built on.
pub(crate) fn build_mutants(workspace: &Workspace, selected: &[&str]) -> anyhow::Result<Duration> {
    let mut cargo = workspace.cargo();
    cargo
        .arg("build")
        .args(selected)
        .args(["--bin", "core-operator", "--features", "core-operator/mutants"]);
    let step = Step::new(workspace, "build the operator with mutants (debug)", cargo);
    let elapsed = step.silent_when_quick().run()?.elapsed;
    let built = workspace.built("debug");
    let (from, to) = (built.join("core-operator"), built.join("core-operator-with-mutants"));
    fs::rename(&from, &to).with_context(|| format!("failed to move {} to {}", from.display(), to.display()))?;
    Ok(elapsed)
}

/// The same with the program that compares our chart engine with the real Helm.
pub(crate) fn become_oracle(workspace: &Workspace) -> anyhow::Result<ExitCode> {
    setup::run(workspace, Parts::Helm)?;
    let mut cargo = workspace.cargo();
    cargo.args(HELM_TEMPLATE);
    Step::new(workspace, "build helm-template (release)", cargo)
        .silent_when_quick()
        .run()?;
    let oracle = ["--package", "helm-oracle", "--bins"];
    become_program(workspace, "its oracle", &oracle, Profile::Release, "helm-oracle")
}

fn become_program(
    workspace: &Workspace,
    title: &str,
    what: &[&str],
    profile: Profile,
    program: &str,
) -> anyhow::Result<ExitCode> {
    let mut cargo = workspace.cargo();
    cargo.arg("build").args(what);
    let folder = match profile {
        Profile::Debug => "debug",
        Profile::Release => {
            cargo.arg("--release");
            "release"
        }
    };
    Step::new(workspace, &format!("build {title} ({folder})"), cargo)
        .silent_when_quick()
        .run()?;
    let program = workspace.built(folder).join(program);
    let error = Command::new(&program).args(env::args_os().skip(1)).exec();
    Err(error).with_context(|| format!("failed to run {}", program.display()))
}
