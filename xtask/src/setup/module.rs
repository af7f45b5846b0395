//! Programs built from a Go module of this repository, kept by the hash of all that they are made from.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::{
    cache::{Cache, Key},
    go::Go,
};
use crate::{step::read_log, workspace::Workspace};

/// A Go module and the programs that are built with its versions.
pub(super) struct Module {
    /// Seen from the root of the workspace.
    pub(super) folder: &'static str,
    /// What is built, as the steps call it.
    pub(super) title: &'static str,
    /// The folder of the cache that has one entry for each content.
    pub(super) kind: &'static str,
    /// Which programs: `.` is the module's own, `./...` all that it has, `tool` those that its `go.mod` names as tools. A program is called as the last part of the
    /// path of its package.
    pub(super) programs: &'static str,
}

/// A file of a module: its name and its text.
pub(super) type Source = (String, String);

impl Module {
    /// The folder with the programs.
    pub(super) fn build(
        &self,
        workspace: &Workspace,
        cache: &Cache,
        go: &Go,
        linker_flags: &str,
    ) -> anyhow::Result<PathBuf> {
        let Self {
            title, kind, programs, ..
        } = *self;
        let folder = self.folder(workspace);
        let sources = self.sources(workspace)?;
        let parts = sources.iter().flat_map(|(name, text)| [name.as_str(), text.as_str()]);
        let key = Key::of(parts.chain([go.version.as_str(), linker_flags]));
        cache.entry(kind, &key, |partial| {
            let packages = self.count_packages(workspace, go)?;
            go.step(workspace, &format!("build {title}"), |command| {
                // With -v every package that is compiled makes a line.
                command.current_dir(&folder).args([
                    "build",
                    "-v",
                    "-trimpath",
                    "-buildvcs=false",
                    "-mod=readonly",
                    "-ldflags",
                ]);
                // No C compiler is needed, and the binary runs everywhere.
                command
                    .env("CGO_ENABLED", "0")
                    .arg(linker_flags)
                    .arg("-o")
                    .arg(partial)
                    .arg(programs);
            })
            .expecting_lines(packages)
            .run()
            .map(drop)
        })
    }

    /// How many packages a build from nothing compiles; fetches their modules on the way.
    fn count_packages(&self, workspace: &Workspace, go: &Go) -> anyhow::Result<usize> {
        let folder = self.folder(workspace);
        let title = format!("fetch the modules of {}", self.title);
        let step = go.step(workspace, &title, |command| {
            command
                .current_dir(folder)
                .env("CGO_ENABLED", "0")
                .args(["list", "-mod=readonly", "-deps", self.programs]);
        });
        let log = step.run()?.log;
        // Beside the packages the log has a line for each module fetched.
        Ok(read_log(&log)?.lines().filter(|line| !line.starts_with("go: ")).count())
    }

    /// What the programs are made from, by their path in the module.
    pub(super) fn sources(&self, workspace: &Workspace) -> anyhow::Result<Vec<Source>> {
        let root = self.folder(workspace);
        let (mut sources, mut folders) = (Vec::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))? {
                let path = entry
                    .with_context(|| format!("failed to list {}", folder.display()))?
                    .path();
                let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned();
                let is_go = path.extension().is_some_and(|extension| extension == "go");
                if path.is_dir() {
                    folders.push(path);
                } else if is_go || matches!(name.as_str(), "go.mod" | "go.sum") {
                    let text =
                        fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
                    sources.push((name, text));
                }
            }
        }
        sources.sort();
        Ok(sources)
    }

    fn folder(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join(Path::new(self.folder))
    }
}
