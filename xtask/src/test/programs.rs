//! The test programs of the workspace: builds them and says which there are, in cargo's order. Starts none of them.

use std::{
    io::Cursor,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use cargo_metadata::{Artifact, Message};

use super::Arguments;
use crate::{
    step::{Step, read_log},
    workspace::Workspace,
};

/// The programs that take a minute and more, the longest first: begun last, one of them would run alone while the other lane has nothing left. Those that
/// keep both processors busy by themselves do not stand beside each other; what `jobs` does between them is mostly waiting. The two tests at a time of
/// `addons` wait for Cluster API as often as they compute, so that the heaviest of the others run beside them.
const LONG: [&str; 18] = [
    "e2e --test addons",
    "e2e --test journeys",
    "e2e --test crashes",
    "e2e --test jobs",
    "e2e --test storms",
    "e2e --test running",
    "e2e --test openstack",
    "e2e --test killed",
    "openstack-lab --test real_facts",
    "provider-openstack --test lab",
    "e2e --test cluster_api",
    "e2e --test shim",
    "e2e --test hooks",
    "e2e --test idle",
    "e2e --test demo",
    "planning --test decisions",
    "e2e --test node",
    "e2e --test lab",
];

/// Holds what all operators of a run asked for against their rights; and compiles a provider, for which the machine is to be free.
const LAST: [&str; 2] = ["e2e --test rights", "xtask --bin xtask"];

/// One test program that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// The crate.
    package: String,
    /// What selects this program of the crate for `cargo test`: `--lib`, `--test journeys`.
    target: String,
    /// The file with its `main`, as cargo names it: `tests/journeys/main.rs`.
    source: PathBuf,
    is_unit: bool,
    executable: PathBuf,
    folder: PathBuf,
}

impl Program {
    /// The line by which cargo announces the program.
    pub(super) fn announcement(&self, workspace: &Workspace) -> String {
        let kind = if self.is_unit { "unittests " } else { "" };
        let executable = self
            .executable
            .strip_prefix(&workspace.root)
            .unwrap_or(&self.executable);
        format!(
            "     Running {kind}{} ({})\n",
            self.source.display(),
            executable.display()
        )
    }

    /// Whether it has to come after all others.
    pub(super) fn is_last(&self) -> bool {
        LAST.contains(&self.name().as_str())
    }

    /// Starts where and with what cargo would start it.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package);
        command
    }

    /// Whether it holds the tests of a library, which may have examples in its documentation.
    pub(super) fn is_library(&self) -> bool {
        self.target == "--lib"
    }

    /// As they become ready is another order each time.
    fn turn(&self) -> impl Ord + use<> {
        let name = self.name();
        let long = LONG.iter().position(|long| *long == name).unwrap_or(LONG.len());
        (long, self.package.clone(), !self.is_unit, self.source.clone())
    }

    /// `e2e --test journeys`
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }
}

/// Builds the test programs and lists them: the long ones first, the others in cargo's order.
pub(super) fn build(workspace: &Workspace, arguments: &Arguments) -> anyhow::Result<Vec<Program>> {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    arguments.select(&mut cargo);
    let built = Step::new(workspace, "list the tests", cargo)
        .silent_when_quick()
        .run()?;
    let log = read_log(&built.log)?;
    // Beside the messages the log has what cargo says to people.
    let messages: String = log
        .lines()
        .filter(|line| line.starts_with('{'))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut programs = Vec::new();
    for message in Message::parse_stream(Cursor::new(messages)) {
        if let Message::CompilerArtifact(artifact) = message.context("cargo lists its tests in words that are new")? {
            programs.extend(program(artifact));
        }
    }
    programs.sort_by_cached_key(Program::turn);
    Ok(programs)
}

/// Nothing when the artifact is no test program.
fn program(artifact: Artifact) -> Option<Program> {
    let executable = artifact.executable.filter(|_| artifact.profile.test)?;
    let folder = Path::new(&artifact.manifest_path).parent()?.to_owned();
    let target = &artifact.target;
    let source = Path::new(&target.src_path);
    let selection = if target.is_lib() {
        "--lib".to_owned()
    } else if target.is_bin() {
        format!("--bin {}", target.name)
    } else {
        format!("--test {}", target.name)
    };
    Some(Program {
        package: package_name(&artifact.package_id.repr, &folder),
        target: selection,
        source: source.strip_prefix(&folder).unwrap_or(source).to_owned(),
        is_unit: !target.is_test(),
        executable: executable.into(),
        folder,
    })
}

/// A package's identity ends with `#helm-oracle@0.1.0`, or with `#0.1.0` where its folder has its name.
fn package_name(identity: &str, folder: &Path) -> String {
    let named = identity.rsplit_once('#').and_then(|(_, end)| end.split_once('@'));
    match named {
        Some((name, _)) => name.to_owned(),
        None => folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(package: &str, target: &str) -> Program {
        Program {
            package: package.to_owned(),
            target: target.to_owned(),
            source: PathBuf::from("tests/main.rs"),
            is_unit: !target.starts_with("--test"),
            executable: PathBuf::new(),
            folder: PathBuf::new(),
        }
    }

    #[test]
    fn long_programs_begin_before_the_others_whatever_was_ready_first() {
        let mut programs = [
            program("helm", "--lib"),
            program("cli", "--test release_create"),
            program("planning", "--test decisions"),
            program("cli", "--bin kubectl-stacks"),
            program("e2e", "--test crashes"),
        ];
        programs.sort_by_cached_key(Program::turn);
        let names: Vec<String> = programs.iter().map(Program::name).collect();
        assert_eq!(
            names,
            [
                "e2e --test crashes",
                "planning --test decisions",
                "cli --bin kubectl-stacks",
                "cli --test release_create",
                "helm --lib"
            ]
        );
    }

    #[test]
    fn package_has_the_name_in_its_identity_or_that_of_its_folder() {
        let folder = Path::new("/checkout/helm/oracle");
        assert_eq!(
            package_name("path+file:///checkout/helm/oracle#helm-oracle@0.1.0", folder),
            "helm-oracle"
        );
        assert_eq!(
            package_name("path+file:///checkout/helm#0.1.0", Path::new("/checkout/helm")),
            "helm"
        );
    }
}
