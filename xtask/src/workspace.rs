//! Where things are: the checkout, the cache of this user, the cargo that runs us. Reads the environment; creates nothing.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use crate::step::MissingTool;

/// The places that every chore works with.
pub(crate) struct Workspace {
    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// What set-up has built, for all checkouts of this user; entries are named by their content and never changed.
    pub(crate) cache: PathBuf,
    cargo: OsString,
}

impl Workspace {
    /// Takes the checkout that this program was compiled in.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask lies in no workspace")?
            .to_owned();
        Ok(Self {
            root,
            cache: cache_folder()?.join("stackwright"),
            cargo: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        })
    }

    /// The cargo that started us, in the root of the workspace.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(&self.cargo);
        command.current_dir(&self.root);
        command
    }

    /// The git-ignored folder with the description of the lab and the logs of the steps.
    pub(crate) fn lab(&self) -> PathBuf {
        self.root.join(".lab")
    }

    /// The log file of that name.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.lab().join("logs").join(format!("{name}.log"))
    }

    /// Where cargo puts what it builds, by profile (`debug`, `release`).
    pub(crate) fn built(&self, profile: &str) -> PathBuf {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        self.root.join(target).join(profile)
    }
}

fn cache_folder() -> anyhow::Result<PathBuf> {
    // An empty or relative value counts as unset: XDG Base Directory Specification.
    if let Some(folder) = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
    {
        return Ok(folder);
    }
    let home = env::home_dir()
        .filter(|home| home.is_absolute())
        .ok_or_else(|| MissingTool {
            tool: "a home folder",
            remedy: "set HOME, or XDG_CACHE_HOME to an absolute path, for the cache".into(),
        })?;
    Ok(home.join(".cache"))
}
