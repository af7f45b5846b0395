//! From the bytes of an archive to the files of a chart, within limits and without anything that could point elsewhere.

use std::cell::Cell;
use std::io::{self, Read};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::File;
use super::load::LoadError;
use crate::bounds::{self, MAX_HELD};

/// Bounds on what an archive may unpack to, and on what it costs to read the files of a chart that mean something before a render. An
/// archive inside an archive counts towards the same sums.
#[derive(Clone, Debug)]
pub struct ArchiveLimits {
    /// Bytes of all files and their names together.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Number of entries, directories included.
    pub entries: usize,
    /// Steps, as [`Limits::steps`](crate::Limits::steps) counts them, of reading values and metadata.
    pub steps: u64,
    /// Ends the loading when it is raised, at the next file or within one ([`LoadError::Cancelled`]).
    pub cancelled: Arc<AtomicBool>,
}

impl Default for ArchiveLimits {
    /// Helm's own bounds in bytes; 10,000 entries and 10,000,000 steps, which Helm does not bound.
    fn default() -> Self {
        Self {
            total_bytes: 100 << 20,
            file_bytes: 5 << 20,
            entries: 10_000,
            steps: 10_000_000,
            cancelled: Arc::default(),
        }
    }
}

/// What is left of the limits while a chart and the archives inside it are read.
pub(super) struct Budget<'a> {
    limits: &'a ArchiveLimits,
    bytes: u64,
    entries: usize,
    memory: usize,
}

impl<'a> Budget<'a> {
    pub(super) fn new(limits: &'a ArchiveLimits) -> Self {
        Self {
            limits,
            bytes: limits.total_bytes,
            entries: limits.entries,
            memory: MAX_HELD,
        }
    }

    /// Takes what a chart keeps in memory besides its files.
    pub(super) fn keep(&mut self, memory: usize) -> Result<(), LoadError> {
        self.memory = self
            .memory
            .checked_sub(memory)
            .ok_or(LoadError::TooMuchMemory { limit: MAX_HELD })?;
        Ok(())
    }

    /// Whether loading may go on.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        if self.limits.cancelled.load(Ordering::Relaxed) {
            return Err(LoadError::Cancelled);
        }
        if bounds::work() > self.limits.steps {
            return Err(LoadError::TooManySteps {
                limit: self.limits.steps,
            });
        }
        Ok(())
    }

    /// What was kept so far.
    pub(super) fn kept(&self) -> usize {
        MAX_HELD - self.memory
    }

    /// Takes one entry of that size, which the entry may only claim to have.
    pub(super) fn take(&mut self, name: &str, size: u64) -> Result<(), LoadError> {
        self.check()?;
        self.entries = self.entries.checked_sub(1).ok_or(LoadError::TooManyEntries {
            limit: self.limits.entries,
        })?;
        let with_name = size.saturating_add(name.len() as u64);
        self.bytes = self.bytes.checked_sub(with_name).ok_or(LoadError::TooLarge {
            limit: self.limits.total_bytes,
        })?;
        if size > self.limits.file_bytes {
            return Err(LoadError::FileTooLarge {
                name: name.to_owned(),
                limit: self.limits.file_bytes,
            });
        }
        Ok(())
    }
}

/// How many bytes of headers may stand before an entry: long names and attributes, which are read into memory. Go has the same bound for
/// each of them.
const MAX_HEADERS: u64 = 1 << 20;

/// Gives so many bytes until somebody allows more.
struct Paced<'l, R> {
    inner: R,
    left: &'l Cell<u64>,
}

impl<R: Read> Read for Paced<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowed = buffer.len().min(usize::try_from(self.left.get()).unwrap_or(usize::MAX));
        if allowed == 0 && !buffer.is_empty() {
            return Err(io::Error::other("header field too long"));
        }
        let read = self.inner.read(&mut buffer[..allowed])?;
        self.left.set(self.left.get() - read as u64);
        Ok(read)
    }
}

/// What is said of an archive without a single byte.
pub(super) const NO_BYTES: &str = "the archive is empty";

/// The files of a `.tgz`, named relative to the folder of the chart.
pub(super) fn unpack(archive: &[u8], budget: &mut Budget<'_>) -> Result<Vec<File>, LoadError> {
    if archive.is_empty() {
        return Err(LoadError::ReadArchive(io::Error::other(NO_BYTES)));
    }
    // The tar format stores up to a block of zeros per file; padding beyond that is no honest archive.
    let bound = budget
        .bytes
        .saturating_add(budget.entries as u64 * 4096)
        .saturating_add(1 << 20);
    let left = Cell::new(MAX_HEADERS);
    let mut archive = Archive::new(Paced {
        inner: MultiGzDecoder::new(archive).take(bound),
        left: &left,
    });
    let mut files = Vec::new();
    for entry in archive.entries().map_err(LoadError::ReadArchive)? {
        let entry = entry.map_err(LoadError::ReadArchive)?;
        left.set(MAX_HEADERS.saturating_add(entry.size()));
        if let Some(file) = read_entry(entry, budget)? {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(LoadError::Empty);
    }
    Ok(files)
}

fn read_entry(mut entry: Entry<'_, impl Read>, budget: &mut Budget<'_>) -> Result<Option<File>, LoadError> {
    let written = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let entry_type = entry.header().entry_type();
    // Nothing is followed: what points elsewhere is a file with nothing in it, as for Helm.
    let points_elsewhere = matches!(
        entry_type,
        EntryType::Symlink | EntryType::Link | EntryType::Fifo | EntryType::Char | EntryType::Block
    );
    let size = if points_elsewhere { 0 } else { entry.size() };
    match entry_type {
        EntryType::Directory => {
            budget.take(&written, 0)?;
            return Ok(None);
        }
        EntryType::XGlobalHeader => return Ok(None),
        // What is unknown is a file.
        _ => budget.take(&written, size)?,
    }
    // How directories were written before they had a type.
    if written.ends_with('/') && entry.header().as_old().linkflag == [0] {
        return Ok(None);
    }
    let name = relative_name(&written)?;
    let data = read(&mut entry, size).map_err(LoadError::ReadArchive)?;
    Ok(Some(File { name, data }))
}

/// So many bytes, in the memory where they stay.
fn read(entry: &mut impl Read, size: u64) -> io::Result<Arc<[u8]>> {
    // The budget allows the size, so that a claim to it is believed.
    let size = usize::try_from(size).map_err(io::Error::other)?;
    let mut data: Arc<[u8]> = iter::repeat_n(0, size).collect();
    if let Some(data) = Arc::get_mut(&mut data) {
        entry.read_exact(data)?;
    }
    Ok(data)
}

/// The name within the chart: without the first folder, which archives put around everything.
fn relative_name(written: &str) -> Result<String, LoadError> {
    // Archives made on Windows.
    let separator = if written.contains('\\') { '\\' } else { '/' };
    let (first, rest) = written.split_once(separator).unwrap_or((written, ""));
    let rest = rest.replace(separator, "/");
    if rest.starts_with('/') {
        return Err(LoadError::AbsolutePath);
    }
    let name = clean(&rest);
    if name == "." {
        return Err(LoadError::OutsideBaseDirectory {
            name: written.to_owned(),
        });
    }
    if name.starts_with("..") {
        return Err(LoadError::ParentDirectory);
    }
    if matches!(name.as_bytes(), [drive, b':', b'/', ..] if drive.is_ascii_alphabetic()) {
        return Err(LoadError::DriveLetter);
    }
    if first == "Chart.yaml" {
        return Err(LoadError::NoBaseDirectory);
    }
    Ok(name)
}

/// Go's `path.Clean` of a relative path.
pub(super) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}
