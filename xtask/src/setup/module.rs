//! A binary built from a Go module of this repository, kept by the hash of all that it is made from.

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

/// A Go module whose `main` picks one of several programs by its first argument.
pub(super) struct Module {
    /// Seen from the root of the workspace.
    pub(super) folder: &'static str,
    /// What is built, as the steps call it.
    pub(super) title: &'static str,
    /// The folder of the cache that has one entry for each content.
    pub(super) kind: &'static str,
    /// The name of the binary.
    pub(super) binary: &'static str,
}

/// A file of a module: its name and its text.
pub(super) type Source = (String, String);

impl Module {
    /// The path of the binary.
    pub(super) fn build(
        &self,
        workspace: &Workspace,
        cache: &Cache,
        go: &Go,
        linker_flags: &str,
    ) -> anyhow::Result<PathBuf> {
        let Self {
            title, kind, binary, ..
        } = *self;
        let folder = self.folder(workspace);
        let sources = self.sources(workspace)?;
        let parts = sources.iter().flat_map(|(name, text)| [name.as_str(), text.as_str()]);
        let key = Key::of(parts.chain([go.version.as_str(), linker_flags]));
        let entry = cache.entry(kind, &key, |partial| {
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
                    .arg(partial.join(binary))
                    .arg(".");
            })
            .expecting_lines(packages)
            .run()
            .map(drop)
        })?;
        Ok(entry.join(binary))
    }

    /// How many packages a build from nothing compiles; fetches their modules on the way.
    fn count_packages(&self, workspace: &Workspace, go: &Go) -> anyhow::Result<usize> {
        let folder = self.folder(workspace);
        let title = format!("fetch the modules of {}", self.title);
        let step = go.step(workspace, &title, |command| {
            command
                .current_dir(folder)
                .env("CGO_ENABLED", "0")
                .args(["list", "-mod=readonly", "-deps", "."]);
        });
        let log = step.run()?.log;
        // Beside the packages the log has a line for each module fetched.
        Ok(read_log(&log)?.lines().filter(|line| !line.starts_with("go: ")).count())
    }

    /// What the binary is made from, by name.
    pub(super) fn sources(&self, workspace: &Workspace) -> anyhow::Result<Vec<Source>> {
        let folder = self.folder(workspace);
        let mut sources = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))? {
            let path = entry
                .with_context(|| format!("failed to list {}", folder.display()))?
                .path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if matches!(name, "go.mod" | "go.sum") || path.extension().is_some_and(|extension| extension == "go") {
                let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
                sources.push((name.to_owned(), text));
            }
        }
        sources.sort();
        Ok(sources)
    }

    fn folder(&self, workspace: &Workspace) -> PathBuf {
        workspace.root.join(Path::new(self.folder))
    }
}
