//! The files that arguments name: the chart and the values. What is in them is for the library.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use helm::Chart;
use helm::chart::ArchiveLimits;

use crate::{Failure, directory};

/// Where a chart is, by the rules and the words of Helm without repositories.
pub(crate) fn locate(name: &str) -> Result<PathBuf, Failure> {
    let name = name.trim();
    let path = Path::new(name);
    if fs::metadata(path).is_ok() {
        return Ok(path.to_owned());
    }
    if path.is_absolute() || name.starts_with('.') {
        return Err(Failure(format!("path {name:?} not found")));
    }
    Err(Failure(match name.split_once('/') {
        Some((repository, _)) => format!("repo {repository} not found"),
        None => format!("non-absolute URLs should be in form of repo_name/path_to_chart, got: {name}"),
    }))
}

/// Loads the chart of a folder or an archive.
pub(crate) fn load(path: &Path) -> Result<Chart, Failure> {
    let limits = ArchiveLimits::default();
    if path.is_dir() {
        return Ok(Chart::from_files(directory::read(path)?, &limits)?);
    }
    let archive = fs::read(path).map_err(|error| Failure(opened(path, &error)))?;
    Ok(Chart::from_archive(&archive, &limits)?)
}

/// A file of values by its name, or the standard input as `-`. The error is Go's text.
pub(crate) fn read_values(name: &str) -> Result<Vec<u8>, String> {
    if name.trim() == "-" {
        let mut text = Vec::new();
        let read = io::stdin().read_to_end(&mut text);
        return read.map(|_| text).map_err(|error| format!("read /dev/stdin: {}", reason(&error)));
    }
    fs::read(name).map_err(|error| opened(Path::new(name), &error))
}

/// What Go says of a file that cannot be opened.
pub(crate) fn opened(path: &Path, error: &io::Error) -> String {
    format!("open {}: {}", path.display(), reason(error))
}

/// The system's words for an error, as Go writes them.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}
