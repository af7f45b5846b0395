//! The files of a chart's folder. Links are followed, and what `.helmignore` names is not even read.

use std::path::{Path, PathBuf};
use std::{fs, io};

use helm::Profile;
use helm::chart::{ArchiveLimits, IgnoreError, IgnoreRules, LoadError};

use crate::inputs::{opened, reason};
use crate::{Failure, inputs, table};

/// Names in the chart with contents.
type Files = Vec<(String, Vec<u8>)>;

/// Reads the folder of a chart, which is an absolute path.
pub(crate) fn read(folder: &Path, profile: &Profile) -> Result<Files, Failure> {
    let rules = inputs::read_up_to(&folder.join(".helmignore"), IgnoreRules::MAX_READ).unwrap_or_default();
    let limits = table::chart_limits(profile);
    let mut walk = Walk {
        rules: IgnoreRules::parse(&rules).map_err(refused)?,
        bytes: limits.total_bytes,
        limits,
        entries: 0,
        is_helm_3: table::is_helm_3(profile),
        files: Vec::new(),
    };
    walk.enter(folder, "")?;
    Ok(walk.files)
}

#[expect(clippy::needless_pass_by_value, reason = "used as a function in map_err")]
fn refused(error: IgnoreError) -> Failure {
    Failure::of(error.to_string(), error.is_limit())
}

struct Walk {
    rules: IgnoreRules,
    limits: ArchiveLimits,
    /// How many more may be read. Helm 3 and 4.1 would read on until memory ends.
    bytes: u64,
    /// How many were visited: links can make a folder endless.
    entries: usize,
    is_helm_3: bool,
    files: Files,
}

impl Walk {
    fn enter(&mut self, folder: &Path, name: &str) -> Result<(), Failure> {
        let failed = |error| Failure(opened(folder, &error));
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            entries.push((entry.file_name(), entry.file_type().map_err(failed)?.is_symlink()));
        }
        entries.sort();
        for (entry, is_link) in entries {
            let path = folder.join(&entry);
            let entry = entry.to_string_lossy();
            let name = if name.is_empty() {
                entry.into_owned()
            } else {
                format!("{name}/{entry}")
            };
            if is_link {
                self.note_link(&path)?;
            }
            self.visit(&path, name)?;
        }
        Ok(())
    }

    fn visit(&mut self, path: &Path, name: String) -> Result<(), Failure> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            let limit = self.limits.entries;
            return Err(Failure::of(LoadError::TooManyEntries { limit }.to_string(), true));
        }
        let about = fs::metadata(path).map_err(|error| {
            Failure(if is_loop(&error) {
                opened(path, &error)
            } else {
                format!("lstat {}: {}", path.display(), reason(&error))
            })
        })?;
        if self.rules.ignores(&name, about.is_dir()).map_err(refused)? {
            return Ok(());
        }
        if about.is_dir() {
            return self.enter(path, &name);
        }
        if !about.is_file() {
            return Err(Failure(format!(
                "cannot load irregular file {} as it has file mode type bits set",
                path.display()
            )));
        }
        let text = self.read(path, &name, about.len())?;
        self.files.push((name, text));
        Ok(())
    }

    fn read(&mut self, path: &Path, name: &str, size: u64) -> Result<Vec<u8>, Failure> {
        let limit = self.limits.file_bytes;
        if size > limit {
            let resolved = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            let base = resolved.file_name().unwrap_or_default().to_string_lossy();
            return Err(Failure(format!(
                "chart file {base:?} is larger than the maximum file size {limit}"
            )));
        }
        let limit = self.limits.total_bytes;
        self.bytes = self
            .bytes
            .checked_sub(size)
            .ok_or_else(|| Failure(format!("chart exceeds maximum decompressed size of {limit} bytes")))?;
        fs::read(path).map_err(|error| Failure(format!("error reading {name}: {}", opened(path, &error))))
    }

    /// Says where a link leads, as Helm does.
    fn note_link(&self, path: &Path) -> Result<(), Failure> {
        let resolved = resolve(path).map_err(|error| {
            let target = fs::read_link(path).unwrap_or_default();
            let target = path
                .parent()
                .map_or_else(|| target.clone(), |parent| parent.join(&target));
            let problem = if is_loop(&error) {
                "EvalSymlinks: too many links".to_owned()
            } else {
                format!("lstat {}: {}", target.display(), reason(&error))
            };
            Failure(format!("error evaluating symlink {}: {problem}", path.display()))
        })?;
        let (path, resolved) = (path.display(), resolved.display());
        if self.is_helm_3 {
            eprintln!(
                "walk.go:75: found symbolic link in path: {path} resolves to {resolved}. Contents of linked file included and used"
            );
        } else {
            eprintln!(
                "level=INFO msg=\"found symbolic link in path. Contents of linked file included and used\" path={path} resolved={resolved}"
            );
        }
        Ok(())
    }
}

/// Where a link leads. The system gives up where a path has many links, although none of them is a loop; Helm goes on.
fn resolve(link: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(link).or_else(|error| match (link.parent(), link.file_name()) {
        (Some(parent), Some(name)) if is_loop(&error) => fs::canonicalize(fs::canonicalize(parent)?.join(name)),
        _ => Err(error),
    })
}

/// Whether the system says that there are too many links.
fn is_loop(error: &io::Error) -> bool {
    const ELOOP: i32 = 40;
    error.raw_os_error() == Some(ELOOP)
}
