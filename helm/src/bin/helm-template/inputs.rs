//! The files that arguments name: the chart and the values. What is in them is for the library.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use helm::chart::LoadError;
use helm::{Chart, Profile};

use crate::{Failure, directory, table};

/// Beginnings of names that Helm would download from.
const REMOTE: [&str; 3] = ["http://", "https://", "oci://"];

/// Where a chart is, by the rules and the words of Helm without repositories.
pub(crate) fn locate(name: &str) -> Result<PathBuf, Failure> {
    let name = name.trim();
    let path = Path::new(name);
    if fs::metadata(path).is_ok() {
        return std::path::absolute(path).map_err(|error| Failure(opened(path, &error)));
    }
    if path.is_absolute() || name.starts_with('.') {
        return Err(Failure(format!("path {name:?} not found")));
    }
    if REMOTE.iter().any(|start| name.starts_with(start)) {
        return Err(Failure(format!(
            "{name} is not downloaded here: fetch the chart first, with helm pull"
        )));
    }
    Err(Failure(match name.split_once('/') {
        Some((repository, _)) => format!("repo {repository} not found"),
        None => format!("non-absolute URLs should be in form of repo_name/path_to_chart, got: {name}"),
    }))
}

/// Loads the chart of a folder or an archive.
pub(crate) fn load(path: &Path, profile: &Profile) -> Result<Chart, Failure> {
    let is_helm_3 = table::is_helm_3(profile);
    let chart = if path.is_dir() {
        if !is_helm_3 {
            let file = path.join("Chart.yaml");
            read_up_to(&file, 0).map_err(|error| {
                Failure(format!(
                    "unable to detect chart at {}: {}",
                    file.display(),
                    opened(&file, &error)
                ))
            })?;
        }
        Chart::from_files(directory::read(path, profile)?, &table::chart_limits(profile))
            .map_err(|error| Failure::of(error.helm_text(profile), error.is_limit()))?
    } else {
        let limits = table::chart_limits(profile);
        let archive = read_up_to(path, limits.total_bytes + 1).map_err(|error| Failure(opened(path, &error)))?;
        check_archive(path, &archive)?;
        if archive.len() as u64 > limits.total_bytes {
            let problem = format!("the chart archive is larger than {} bytes", limits.total_bytes);
            return Err(Failure::of(problem, true));
        }
        Chart::from_archive(&archive, &table::chart_limits(profile)).map_err(|error| match error {
            LoadError::NoMetadata if !is_helm_3 => {
                Failure("unable to detect chart version, no Chart.yaml found".to_owned())
            }
            LoadError::ReadArchive(_)
            | LoadError::Empty
            | LoadError::TooLarge { .. }
            | LoadError::FileTooLarge { .. }
            | LoadError::AbsolutePath
            | LoadError::ParentDirectory
            | LoadError::OutsideBaseDirectory { .. }
            | LoadError::DriveLetter
            | LoadError::NoBaseDirectory
                if !is_helm_3 =>
            {
                Failure("unable to load chart archive".to_owned())
            }
            error if is_helm_3 => Failure::of(error.helm_text(profile), error.is_limit()),
            // It looks at the version before anything else.
            error => Failure::of(
                error
                    .helm_text(profile)
                    .replace("field Metadata.apiVersion", "field chartBase.apiVersion"),
                error.is_limit(),
            ),
        })?
    };
    match chart.metadata().api_version.as_str() {
        // The last of them is an experiment, which is refused later.
        "v1" | "v2" | "v3" => Ok(chart),
        _ if is_helm_3 => Ok(chart),
        _ => Err(Failure("unsupported chart version".to_owned())),
    }
}

/// How many bytes Helm looks at to know an archive.
const SNIFFED: usize = 512;

/// Says what a file is that is no archive, as Helm does before it unpacks anything.
fn check_archive(path: &Path, archive: &[u8]) -> Result<(), Failure> {
    if archive.starts_with(b"\x1f\x8b\x08") {
        return Ok(());
    }
    let file = path.display();
    if path
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml")
    {
        return Err(Failure(format!(
            "file '{file}' seems to be a YAML file, but expected a gzipped archive"
        )));
    }
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    // Behind a shorter file Helm sees zeros.
    let is_text = archive.len() >= SNIFFED && !archive[..SNIFFED].iter().any(is_binary);
    let found = if is_text {
        "text/plain; charset=utf-8"
    } else {
        "application/octet-stream"
    };
    Err(Failure(format!(
        "file '{file}' does not appear to be a gzipped archive; got '{found}'"
    )))
}

/// Helm reads the certificates of registries before it looks at the chart. Whether they are any is not known here.
pub(crate) fn check_certificates(file: &str, profile: &Profile) -> Result<(), Failure> {
    let path = Path::new(file);
    let Err(problem) = read(path) else {
        return Ok(());
    };
    let problem = if table::is_helm_3(profile) {
        file.to_owned()
    } else {
        format!("{file:?}: {problem}")
    };
    Err(Failure(format!(
        "missing registry client: can't create TLS config for client: can't read CA file: {problem}"
    )))
}

/// The largest file that an argument may name, in bytes, and how many they may have together.
const MAX_ARGUMENT: u64 = 16 << 20;
const MAX_ARGUMENTS: u64 = 64 << 20;

/// A file that an argument names was not read.
pub(crate) struct Unread {
    /// Why, in Go's words where it has any.
    pub(crate) problem: String,
    /// Whether that is a limit that Helm does not have.
    pub(crate) is_limit: bool,
}

impl From<String> for Unread {
    fn from(problem: String) -> Self {
        Self {
            problem,
            is_limit: false,
        }
    }
}

/// What arguments name, read within the limit for all of it.
pub(crate) struct ArgumentFiles {
    left: u64,
}

impl ArgumentFiles {
    pub(crate) const fn new() -> Self {
        Self { left: MAX_ARGUMENTS }
    }

    /// A file of values by its name, or the standard input as `-`.
    pub(crate) fn read(&mut self, name: &str) -> Result<Vec<u8>, Unread> {
        let text = read_values(name)?;
        let left = self.left.checked_sub(text.len() as u64);
        self.left = left.ok_or_else(|| Unread {
            problem: format!("read {name}: files are larger than {MAX_ARGUMENTS} bytes together"),
            is_limit: true,
        })?;
        Ok(text)
    }
}

fn read_values(name: &str) -> Result<Vec<u8>, Unread> {
    let text = if name.trim() == "-" {
        let mut text = Vec::new();
        let read = io::stdin().take(MAX_ARGUMENT + 1).read_to_end(&mut text);
        read.map(|_| text)
            .map_err(|error| format!("read /dev/stdin: {}", reason(&error)))?
    } else if REMOTE.iter().any(|start| name.starts_with(start)) {
        return Err(format!("{name} is not downloaded here: fetch the file first").into());
    } else {
        read(Path::new(name))?
    };
    if text.len() as u64 > MAX_ARGUMENT {
        return Err(Unread {
            problem: format!("read {name}: file is larger than {MAX_ARGUMENT} bytes"),
            is_limit: true,
        });
    }
    Ok(text)
}

/// What a file begins with: so many bytes, or all of it.
pub(crate) fn read_up_to(path: &Path, bytes: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(bytes).read_to_end(&mut text)?;
    Ok(text)
}

/// What an argument names, as far as need be to know that it is too large. The error is Go's text.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    if path.is_dir() {
        return Err(format!("read {}: is a directory", path.display()));
    }
    read_up_to(path, MAX_ARGUMENT + 1).map_err(|error| opened(path, &error))
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
