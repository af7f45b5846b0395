//! The programs of this workspace, as built: found beside the program that asks for them, never built from here.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

/// A program and the crate that it is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The core operator.
    CoreOperator,
    /// The core operator with bugs that are planted on purpose, from its feature `mutants`.
    CoreOperatorWithMutants,
    /// The command line for cluster stacks.
    KubectlStacks,
    /// This room's own, which runs in the namespaces of a node.
    Lab,
    /// The provider operator.
    ProviderOperator,
}

impl Program {
    /// Its file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CoreOperator => "core-operator",
            Self::CoreOperatorWithMutants => "core-operator-with-mutants",
            Self::KubectlStacks => "kubectl-stacks",
            Self::Lab => "lab",
            Self::ProviderOperator => "provider-operator",
        }
    }

    /// What builds it; the profile apart.
    fn command(self) -> &'static str {
        match self {
            Self::CoreOperator => "cargo build -p core-operator",
            Self::CoreOperatorWithMutants => "cargo xtask test -p e2e mutants",
            Self::KubectlStacks => "cargo build -p cli",
            Self::Lab => "cargo build -p e2e --bin lab",
            Self::ProviderOperator => "cargo build -p provider-operator",
        }
    }

    /// Its file, of the same profile as the running program.
    ///
    /// When it is not there, the error says what to build. One that is older than its source is not noticed.
    pub fn path(self) -> Result<PathBuf> {
        let running = env::current_exe().context("failed to find the running program")?;
        let folder = running.parent().context("the running program has no folder")?;
        // Tests lie one folder deeper than programs.
        let folder = if folder.ends_with("deps") {
            folder.parent().unwrap_or(folder)
        } else {
            folder
        };
        let path = folder.join(self.name());
        ensure!(
            path.is_file(),
            "{} is not built: run `{}{}`",
            path.display(),
            self.command(),
            release_flag(folder)
        );
        Ok(path)
    }
}

fn release_flag(folder: &Path) -> &'static str {
    if folder.ends_with("release") { " --release" } else { "" }
}
