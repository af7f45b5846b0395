//! A real Keystone and a real Glance, installed from `PyPI` into an environment of their own, with databases that nobody has used yet. What
//! runs them is `e2e/openstack-lab`.
//!
//! The requirements in `e2e/openstack` name every package by the digests of its files; where those come from is for the user's pip to know.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Key};
use crate::{screen, step::Step, workspace::Workspace};

/// What Glance 33 asks for.
const OLDEST_PYTHON: (u32, u32) = (3, 11);
/// The first that installs into an environment that has no pip itself.
const OLDEST_PIP: (u32, u32) = (22, 3);
/// Names under which a Python may be found, the usual one first.
const PYTHONS: [&str; 4] = ["python3", "python3.13", "python3.12", "python3.11"];
/// Says its version, that of its pip, and what makes an environment of it useless when it changes.
const WHO: &str = "import sys, venv, pip; print(sys.version); print(pip.__version__); print(sys.base_prefix)";

/// The password of the one user in the database of Keystone. Whoever takes a copy gives him another one.
const PASSWORD: &str = "of-the-template";

/// Where Keystone and Glance are, or why this machine has none.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OpenStack {
    /// The folder with the environment (`venv`), the databases (`keystone.sqlite`, `glance.sqlite`) and the password of the administrator
    /// (`password`).
    Folder(PathBuf),
    /// What is missing, and what to do.
    Missing(String),
}

/// Installs them, which takes a minute on two cores the first time. A machine without a Python for them is told so, and tests say what they
/// do not do there.
pub(super) fn install(workspace: &Workspace, cache: &Cache) -> anyhow::Result<OpenStack> {
    let Some(python) = Python::find() else {
        let (major, minor) = OLDEST_PYTHON;
        let missing = format!(
            "Keystone and Glance need Python {major}.{minor} with pip: on Debian and Ubuntu `apt-get install python3 python3-venv python3-pip`"
        );
        screen::warn(&missing);
        return Ok(OpenStack::Missing(missing));
    };
    let [wheels, source] = ["requirements.txt", "source.txt"].map(|name| requirements(workspace, name));
    let (wheels, source) = (wheels?, source?);
    let configured = [keystone(Path::new("")), glance(Path::new(""))];
    let key = Key::of(
        [&wheels.text, &source.text, &python.identity, PASSWORD]
            .into_iter()
            .chain(configured.iter().map(String::as_str)),
    );
    let folder = cache.entry("openstack", &key, |partial| {
        let environment = partial.join("venv");
        let mut venv = python.command();
        venv.args(["-m", "venv", "--without-pip"]).arg(&environment);
        Step::new(workspace, "make an environment for OpenStack", venv).run()?;
        let install = |title, list: &Requirements, how: &[&str]| {
            let mut pip = python.pip_into(&environment);
            pip.args(how).arg("--requirement").arg(&list.path);
            Step::new(workspace, title, pip).run().map(drop)
        };
        // Wheels are unpacked and run nothing.
        install("install OpenStack", &wheels, &["--only-binary", ":all:"])?;
        let from_source = ["--no-binary", ":all:", "--no-build-isolation", "--use-pep517"];
        install("install what OpenStack has as source", &source, &from_source)?;
        fill_databases(workspace, partial)
    })?;
    Ok(OpenStack::Folder(folder))
}

/// A file for pip.
struct Requirements {
    path: PathBuf,
    text: String,
}

fn requirements(workspace: &Workspace, name: &str) -> anyhow::Result<Requirements> {
    let path = workspace.root.join("e2e/openstack").join(name);
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(Requirements { path, text })
}

/// The tables of both services, and what Keystone cannot be asked for without a user: the administrator with his roles.
fn fill_databases(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    let configurations = [("keystone", keystone(folder)), ("glance", glance(folder))];
    for (service, text) in &configurations {
        let path = folder.join(format!("{service}.conf"));
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        manage(workspace, folder, service, &["db_sync"])?;
    }
    let administrator = [
        "bootstrap",
        "--bootstrap-password",
        PASSWORD,
        "--bootstrap-region-id",
        "RegionOne",
    ];
    manage(workspace, folder, "keystone", &administrator)?;
    for (service, _) in &configurations {
        let path = folder.join(format!("{service}.conf"));
        fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
    }
    let path = folder.join("password");
    fs::write(&path, PASSWORD).with_context(|| format!("failed to write {}", path.display()))
}

/// Programs of an environment carry the path that it had when they were installed: theirs are begun by name.
fn manage(workspace: &Workspace, folder: &Path, service: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let mut python = Command::new(folder.join("venv/bin/python"));
    python
        .arg("-c")
        .arg(format!("from {service}.cmd.manage import main; main()"))
        .arg("--config-file")
        .arg(folder.join(format!("{service}.conf")))
        .args(arguments);
    let title = format!("prepare {service}: {}", arguments.first().copied().unwrap_or_default());
    Step::new(workspace, &title, python).run().map(drop)
}

/// Passwords are kept in a way that a login in a test need not be slow for. No token is made here, but there has to be a folder for the keys of
/// tokens.
fn keystone(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "[database]\nconnection = sqlite:///{folder}/keystone.sqlite\n\
         [identity]\npassword_hash_rounds = 4\n\
         [fernet_tokens]\nkey_repository = {folder}\n\
         [fernet_receipts]\nkey_repository = {folder}\n"
    )
}

fn glance(folder: &Path) -> String {
    format!(
        "[database]\nconnection = sqlite:///{}/glance.sqlite\n",
        folder.display()
    )
}

/// A Python that they run on.
struct Python {
    program: &'static str,
    /// Changes with its version and its place.
    identity: String,
}

impl Python {
    fn find() -> Option<Self> {
        PYTHONS.into_iter().find_map(|program| {
            let asked = Command::new(program)
                .args(["-c", WHO])
                .stdin(Stdio::null())
                .output()
                .ok()
                .filter(|output| output.status.success())?;
            let identity = String::from_utf8(asked.stdout).ok()?;
            is_new_enough(&identity).then_some(Self { program, identity })
        })
    }

    fn command(&self) -> Command {
        Command::new(self.program)
    }

    /// Takes packages as they are listed and none besides, each with the digest of what is installed.
    fn pip_into(&self, environment: &Path) -> Command {
        let mut pip = self.command();
        pip.args(["-m", "pip", "--disable-pip-version-check", "--no-input", "--python"])
            .arg(environment.join("bin/python"))
            .args(["install", "--no-deps", "--require-hashes"]);
        pip
    }
}

/// Whether what a Python says of itself is enough.
fn is_new_enough(identity: &str) -> bool {
    let mut versions = identity.lines().map(version);
    let (python, pip) = (versions.next().flatten(), versions.next().flatten());
    python.is_some_and(|python| python >= OLDEST_PYTHON) && pip.is_some_and(|pip| pip >= OLDEST_PIP)
}

/// `3.11.7 (main, …` is 3 and 11.
fn version(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line
        .split(|character: char| !character.is_ascii_digit())
        .map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_or_a_pip_that_is_too_old_is_none() {
        assert!(is_new_enough("3.11.2 (main, May  2 2024) [GCC 12.2.0]\n23.0.1\n/usr\n"));
        assert!(is_new_enough("3.13.0rc1\n24.2\n/usr\n"));
        assert!(!is_new_enough("3.10.12 (main)\n23.0.1\n/usr\n"));
        assert!(!is_new_enough("3.11.2 (main)\n22.2.2\n/usr\n"));
        assert!(!is_new_enough(""));
    }
}
