//! What is inside a gzip-compressed tar of charts, established by streaming through it once.
//!
//! Archives come from outside, so nothing is written to disk and nothing is trusted: entries other than files and directories,
//! names that leave the archive, and more or larger entries than [`MAX_ENTRIES`], [`MAX_ENTRY_BYTES`] and [`MAX_UNPACKED_BYTES`] allow
//! make the whole archive unusable. So do names longer than [`MAX_NAME_BYTES`] and what stands between entries beyond [`MAX_HEADERS_BYTES`],
//! because the tar reader holds both in memory.

mod definitions;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    io::{self, ErrorKind, Read},
    str,
};

use crds::release_files::{ReleaseFileError, bound_aliases, without_mark};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;
use tar::EntryType;
use thiserror::Error;

use self::definitions::Definitions;
use crate::{
    Digest,
    description::{self, MAX_BRACKETS, bracket_too_many},
};

/// Helm bounds size but not count; a chart with more files than this is an attack on memory, not a chart.
pub(crate) const MAX_ENTRIES: usize = 10_000;
/// Helm's own limit for one file of a chart.
pub(crate) const MAX_ENTRY_BYTES: u64 = 5 << 20;
/// Helm's own limit for a whole chart.
pub(crate) const MAX_UNPACKED_BYTES: u64 = 100 << 20;
/// What may stand before an entry: long names, attributes and maps of holes. Go has the same bound for each of them.
pub(crate) const MAX_HEADERS_BYTES: u64 = 1 << 20;
/// Longest name of an entry, as of a path on Linux.
pub(crate) const MAX_NAME_BYTES: usize = 4096;
/// Longest part of such a name, and longest name and version of a chart, as of a file on Linux.
pub(crate) const MAX_PART_BYTES: usize = 255;
/// So much of a name is told.
const TOLD_CHARACTERS: usize = 256;

/// Why an archive cannot be used.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// Not gzip, not tar, or cut off.
    #[error("is not a complete gzip-compressed tar archive; copy or build it again")]
    Unpack {
        /// What the decoder met.
        #[source]
        source: io::Error,
    },
    /// More bytes than may be unpacked.
    #[error("unpacks to more than {MAX_UNPACKED_BYTES} bytes; keep large files out of charts")]
    TooLarge,
    /// More than may stand before an entry.
    #[error("has more than {MAX_HEADERS_BYTES} bytes of names and attributes before one entry; build it again")]
    LongHeaders,
    /// An entry with a name that no file on Linux can have.
    #[error(
        "has the entry {entry:?}, whose name is longer than {MAX_NAME_BYTES} bytes, or a part of it than {MAX_PART_BYTES}; rename it"
    )]
    LongName {
        /// The beginning of the name inside the archive.
        entry: String,
    },
    /// More entries than may be unpacked.
    #[error("has more than {MAX_ENTRIES} entries; keep generated files out of charts")]
    TooManyEntries,
    /// One entry is too large.
    #[error("has the entry {entry:?} of {size} bytes, more than the {limit} allowed; keep large files out of charts")]
    EntryTooLarge {
        /// Name inside the archive.
        entry: String,
        /// Unpacked size in bytes.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// A Chart.yaml that would keep the parser busy.
    #[error(
        "has the entry {entry:?}, whose line {line} opens one bracket more than the {MAX_BRACKETS} allowed; correct it"
    )]
    TooManyBrackets {
        /// Name inside the archive.
        entry: String,
        /// The line with the first bracket too many, from 1.
        line: usize,
    },
    /// A `Chart.yaml` that is large by its aliases.
    #[error(
        "has the entry {entry:?}, whose aliases (`*name`) make more of it than is allowed; name less by them, or fewer times"
    )]
    TooManyAliases {
        /// Name inside the archive.
        entry: String,
    },
    /// A symbolic or hard link, a device or another kind of entry that has no place in a chart.
    #[error(
        "has the entry {entry:?}, which is neither a file nor a directory; replace links by the files they point to"
    )]
    NotAFile {
        /// Name inside the archive.
        entry: String,
    },
    /// An entry whose name is absolute, leaves the archive or is no text.
    #[error("has the entry {entry:?}, whose name leaves the archive; names must be relative and without \"..\"")]
    OutsideName {
        /// Name inside the archive.
        entry: String,
    },
    /// Two entries of one name: readers would disagree about which counts.
    #[error("has the entry {entry:?} twice; build it again")]
    DuplicateEntry {
        /// Name inside the archive.
        entry: String,
    },
    /// The Chart.yaml of a chart does not say what it must.
    #[error("has an invalid {entry:?}: a chart needs a name and a version")]
    ReadChart {
        /// Name inside the archive.
        entry: String,
        /// What the parser met.
        #[source]
        source: serde_yaml::Error,
    },
}

/// What an archive has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The definitions of kinds that were asked for.
    pub(crate) definitions: Definitions,
    /// The directories of its top level, each with its chart if it has a `Chart.yaml`.
    pub(crate) directories: BTreeMap<String, Option<ChartIdentity>>,
}

impl Contents {
    /// The chart of an archive in Helm's layout: one directory, with a chart. Files beside it do not matter, as for Helm.
    pub(crate) fn single_chart(&self) -> Option<&ChartIdentity> {
        let mut charts = self.directories.values();
        match (charts.next(), charts.next()) {
            (Some(chart), None) => chart.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn has_chart(&self, directory: &str) -> bool {
        self.directories.get(directory).is_some_and(Option::is_some)
    }
}

/// What a `Chart.yaml` must say.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ChartIdentity {
    #[serde(deserialize_with = "name")]
    pub(crate) name: String,
    #[serde(deserialize_with = "scalar")]
    pub(crate) version: String,
}

fn name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    short(String::deserialize(deserializer)?)
}

/// YAML reads an unquoted `1.2` as a number; Helm takes it as text.
fn scalar<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match serde_yaml::Value::deserialize(deserializer)? {
        serde_yaml::Value::String(text) if !text.is_empty() => short(text),
        serde_yaml::Value::Number(number) => Ok(number.to_string()),
        _ => Err(serde::de::Error::custom("version must be a text")),
    }
}

/// There may be thousands of charts in an archive.
fn short<E: serde::de::Error>(text: String) -> Result<String, E> {
    if text.len() > MAX_PART_BYTES {
        return Err(E::custom("name and version have at most 255 bytes"));
    }
    Ok(text)
}

/// Reads the whole archive, to the checksum at its end, and says what is in it; keeps the definitions that charts bring for these groups of the API.
pub(crate) fn inspect(compressed: impl Read, groups: &BTreeSet<String>) -> Result<Contents, ArchiveError> {
    let mut contents = Contents::default();
    walk(compressed, |entry, content| {
        if let Some(top) = entry.directory() {
            contents.directories.entry(top.to_owned()).or_default();
        }
        if entry.is_chart() {
            let chart = read_chart(content, &entry.printed)?;
            contents.directories.insert(entry.parts[0].clone(), Some(chart));
        } else if !groups.is_empty() && !entry.is_directory && Definitions::lie_in(&entry.parts) {
            let mut text = Vec::new();
            content.read_to_end(&mut text).map_err(unpack)?;
            contents.definitions.take(&String::from_utf8_lossy(&text), groups);
        }
        Ok(())
    })?;
    Ok(contents)
}

/// The definitions that charts bring for these groups of the API, out of their files with the paths that these will have in an archive.
pub(crate) fn definitions_in<'f>(
    files: impl IntoIterator<Item = (&'f String, &'f Vec<u8>)>,
    groups: &BTreeSet<String>,
) -> Vec<Value> {
    let mut definitions = Definitions::default();
    for (path, content) in files {
        let parts: Vec<_> = path.split('/').map(str::to_owned).collect();
        if !groups.is_empty() && Definitions::lie_in(&parts) {
            definitions.take(&String::from_utf8_lossy(content), groups);
        }
    }
    definitions.found
}

/// Files by their paths in a folder, in the order of the archive.
pub type FolderFiles = Vec<(String, Vec<u8>)>;

/// Takes files out of the folders on the top level of an archive: those that `wanted` says yes to, given the folder and the path in it. Reads the
/// whole archive, under the bounds of [`inspect`], and keeps nothing else. A folder that nothing is wanted of is not there.
pub(crate) fn split(
    compressed: impl Read,
    mut wanted: impl FnMut(&str, &str) -> bool,
) -> Result<BTreeMap<String, FolderFiles>, ArchiveError> {
    let mut folders: BTreeMap<String, FolderFiles> = BTreeMap::new();
    walk(compressed, |entry, content| {
        let Some((folder, path)) = entry.parts.split_first().filter(|_| !entry.is_directory) else {
            return Ok(());
        };
        let path = path.join("/");
        if path.is_empty() || !wanted(folder, &path) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).map_err(unpack)?;
        folders.entry(folder.clone()).or_default().push((path, bytes));
        Ok(())
    })?;
    Ok(folders)
}

/// One entry of an archive that is within the bounds.
struct Entry {
    /// Of its name.
    parts: Vec<String>,
    /// As much of its name as is told.
    printed: String,
    is_directory: bool,
}

impl Entry {
    /// The directory of the top level that it is or lies in.
    fn directory(&self) -> Option<&str> {
        let top = self.parts.first().filter(|_| self.is_directory || self.parts.len() > 1);
        top.map(String::as_str)
    }

    /// Whether it is what makes a directory of the top level a chart.
    fn is_chart(&self) -> bool {
        self.parts.len() == 2 && self.parts[1] == "Chart.yaml" && !self.is_directory
    }
}

/// Reads the whole archive, to the checksum at its end, and shows every entry with what it holds.
fn walk(
    compressed: impl Read,
    mut look: impl FnMut(&Entry, &mut dyn Read) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let allowed = Cell::new(MAX_HEADERS_BYTES);
    let mut archive = tar::Archive::new(BoundedReader {
        inner: MultiGzDecoder::new(compressed),
        left: MAX_UNPACKED_BYTES,
        allowed: &allowed,
    });
    // By digest: ten thousand names are a lot of memory.
    let mut files = BTreeSet::new();
    for (index, entry) in archive.entries().map_err(unpack)?.enumerate() {
        if index == MAX_ENTRIES {
            return Err(ArchiveError::TooManyEntries);
        }
        let mut entry = entry.map_err(unpack)?;
        allowed.set(MAX_HEADERS_BYTES.saturating_add(entry.size()));
        let kind = entry.header().entry_type();
        // Metadata that git and pax add for the whole archive.
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let (parts, printed) = named(&entry.path_bytes())?;
        if !matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::Directory) {
            return Err(ArchiveError::NotAFile { entry: printed });
        }
        let found = Entry {
            parts,
            printed,
            is_directory: kind == EntryType::Directory,
        };
        let limit = if found.is_chart() {
            description::MAX_BYTES
        } else {
            MAX_ENTRY_BYTES
        };
        if entry.size() > limit {
            return Err(ArchiveError::EntryTooLarge {
                size: entry.size(),
                entry: found.printed,
                limit,
            });
        }
        if !found.is_directory && !files.insert(Digest::of(found.parts.join("/").as_bytes())) {
            return Err(ArchiveError::DuplicateEntry { entry: found.printed });
        }
        look(&found, &mut entry)?;
    }
    allowed.set(MAX_UNPACKED_BYTES);
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(unpack)?;
    Ok(())
}

/// The parts of the name of an entry, and as much of it as is told.
fn named(name: &[u8]) -> Result<(Vec<String>, String), ArchiveError> {
    let beginning = &name[..name.len().min(MAX_NAME_BYTES)];
    let told = String::from_utf8_lossy(beginning)
        .chars()
        .take(TOLD_CHARACTERS)
        .collect();
    if name.len() > MAX_NAME_BYTES {
        return Err(ArchiveError::LongName { entry: told });
    }
    match parts_inside(name) {
        None => Err(ArchiveError::OutsideName { entry: told }),
        Some(parts) if parts.iter().any(|part| part.len() > MAX_PART_BYTES) => {
            Err(ArchiveError::LongName { entry: told })
        }
        Some(parts) => Ok((parts, told)),
    }
}

fn read_chart(entry: &mut dyn Read, name: &str) -> Result<ChartIdentity, ArchiveError> {
    let mut text = Vec::new();
    entry.read_to_end(&mut text).map_err(unpack)?;
    if let Some(line) = bracket_too_many(&text) {
        let entry = name.to_owned();
        return Err(ArchiveError::TooManyBrackets { entry, line });
    }
    let unread = |source| ArchiveError::ReadChart {
        entry: name.to_owned(),
        source,
    };
    let text = without_mark(&text);
    bound_aliases(text).map_err(|refused| match refused {
        ReleaseFileError::ReadYaml(source) => unread(source),
        _ => ArchiveError::TooManyAliases { entry: name.to_owned() },
    })?;
    serde_yaml::from_slice(text).map_err(unread)
}

/// The parts of a name, or nothing if it does not stay inside. Backslashes separate too, because Helm on Windows writes and reads them so.
fn parts_inside(name: &[u8]) -> Option<Vec<String>> {
    let name = str::from_utf8(name).ok()?;
    let drive = name.as_bytes().get(1) == Some(&b':');
    if drive || name.starts_with(['/', '\\']) || name.contains('\0') {
        return None;
    }
    let parts = name.split(['/', '\\']).filter(|part| !matches!(*part, "" | "."));
    parts.map(|part| (part != "..").then(|| part.to_owned())).collect()
}

fn unpack(source: io::Error) -> ArchiveError {
    match source.kind() {
        ErrorKind::FileTooLarge => ArchiveError::TooLarge,
        ErrorKind::InvalidFilename => ArchiveError::LongHeaders,
        _ => ArchiveError::Unpack { source },
    }
}

/// Fails, instead of ending, when more comes than may come: the tar reader holds in memory what stands before an entry.
struct BoundedReader<'cell, R> {
    inner: R,
    /// Bytes in all.
    left: u64,
    /// Bytes until somebody allows more.
    allowed: &'cell Cell<u64>,
}

impl<R: Read> Read for BoundedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let spend = |left: u64, why: ErrorKind| left.checked_sub(count as u64).ok_or(why);
        self.left = spend(self.left, ErrorKind::FileTooLarge)?;
        self.allowed.set(spend(self.allowed.get(), ErrorKind::InvalidFilename)?);
        Ok(count)
    }
}
