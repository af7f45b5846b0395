//! The end of a download at the disk: bytes are bounded, digested, written and understood as they come, and nothing counts before all of them have.
//!
//! All of it blocks, on one thread for each download that runs. It asks for one file after the other, in the order in which they are
//! understood, so that of a release that cannot be used no more comes than shows it. Whatever ends the other side ends this one too, and
//! removes what was written.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Cursor, Read},
    mem,
    sync::Arc,
};

use crds::names::ReleaseTag;
use tokio::sync::mpsc;

use super::{
    StoreError,
    contents::Contents,
    disk::{self, Partial},
    reservation::Reservation,
};
use crate::{
    FileRef, Release, ReleaseError,
    digest::HashingWriter,
    files::{Files, Stamps, bounded_together, limit, stamps, understand},
    source::{RemoteFile, Resolved},
};

/// What comes from a source of the file that was asked for last, in this order.
pub(super) enum Piece {
    /// Its next bytes.
    Bytes(Vec<u8>),
    /// All of it has come.
    End,
}

/// The other side of a download.
pub(super) struct Sender {
    /// Takes the file that is to come next. The first is asked for when there is room.
    pub(super) wanted: mpsc::Sender<RemoteFile>,
    /// Gives its bytes. Ends early when the download is given up.
    pub(super) pieces: mpsc::Receiver<Piece>,
}

/// Takes a release in and gives it when it is in its place.
pub(super) fn receive(contents: &Contents, resolved: &Resolved, sender: Sender) -> Result<Arc<Release>, StoreError> {
    let received = Incoming::begin(contents, resolved, sender).and_then(Incoming::take);
    contents.tried(received.as_ref().err());
    if matches!(received, Err(StoreError::DiskFull { .. })) {
        contents.relieve(promised(resolved).unwrap_or_default(), None);
    }
    received
}

/// Bytes of all files, if the source tells.
pub(super) fn promised(resolved: &Resolved) -> Option<u64> {
    resolved.files().iter().map(|file| file.size).sum()
}

/// A release that is being taken in.
struct Incoming<'a> {
    contents: &'a Contents,
    resolved: &'a Resolved,
    /// None when all has come: from then on it is the disk that takes its time, and nobody calls the source slow for that.
    sender: Option<Sender>,
    reservation: Reservation<'a>,
    partial: Partial,
    /// What has come.
    files: BTreeMap<String, FileRef>,
    /// The same on the disk.
    stamps: Stamps,
    total: u64,
}

impl<'a> Incoming<'a> {
    fn begin(contents: &'a Contents, resolved: &'a Resolved, sender: Sender) -> Result<Self, StoreError> {
        contents.prepare()?;
        let reservation = contents.reserve(resolved.tag(), promised(resolved))?;
        let partial = contents.disk.partial().map_err(|error| contents.write_error(error))?;
        Ok(Self {
            contents,
            resolved,
            sender: Some(sender),
            reservation,
            partial,
            files: BTreeMap::new(),
            stamps: Stamps::new(),
            total: 0,
        })
    }

    fn take(mut self) -> Result<Arc<Release>, StoreError> {
        let (tag, path) = (self.resolved.tag(), self.partial.path.clone());
        let purpose = self.contents.purpose;
        let release = understand(&mut self, purpose, tag, &path).map_err(|failure| match failure {
            Failure::Refused(source) => refused(tag, source),
            Failure::Ended(error) => error,
        })?;
        let stamps = self.kept(&release)?;
        self.contents.land(&self.partial, stamps, release, self.reservation)
    }

    /// What lies on the disk, which is what came. Where nobody can have written since it was written, it is not read again: whoever uses it
    /// holds it against its digest.
    fn kept(&self, release: &Release) -> Result<Stamps, StoreError> {
        let path = &self.partial.path;
        let read_again = || Release::open_for(self.contents.purpose, path, &release.tag);
        match stamps(path) {
            Ok(now) if now == self.stamps => Ok(now),
            // Also a disk that notes its times late: the bytes can tell.
            Ok(now) if read_again().is_ok_and(|read| read.digest == release.digest) => Ok(now),
            _ => Err(StoreError::WrittenOtherwise {
                tag: release.tag.clone().into(),
                path: self.contents.disk.directory().to_owned(),
            }),
        }
    }

    /// Bytes of a file that may be this large, as far as it has come.
    fn bound(&mut self, file: &RemoteFile, size: u64, more: u64) -> Result<(), StoreError> {
        let (tag, limit) = (self.resolved.tag(), limit(&file.name));
        if let Some(promised) = file.size.filter(|promised| size > *promised) {
            return Err(other_size(tag, file, promised, "more"));
        }
        if size > limit {
            return Err(StoreError::TooLarge {
                tag: tag.clone().into(),
                file: file.name.clone(),
                limit,
            });
        }
        self.total += more;
        bounded_together(self.total).map_err(|source| refused(tag, source))?;
        self.reservation.cover(self.total)
    }
}

/// Why a release was not taken in.
enum Failure {
    /// It cannot be used.
    Refused(ReleaseError),
    /// It did not come, or could not be written.
    Ended(StoreError),
}

impl From<ReleaseError> for Failure {
    fn from(error: ReleaseError) -> Self {
        Self::Refused(error)
    }
}

impl Files for Incoming<'_> {
    type Error = Failure;

    fn has(&self, name: &str) -> bool {
        self.resolved.files().iter().any(|file| file.name == name)
    }

    /// What was found counts only when the whole file has come and is what was promised.
    fn read<T>(
        &mut self,
        name: &str,
        advice: &'static str,
        look: impl FnOnce(&mut dyn Read) -> Result<T, ReleaseError>,
    ) -> Result<(FileRef, T), Failure> {
        let mut files = self.resolved.files().iter();
        let file = files.find(|file| file.name == name);
        let file = file.ok_or_else(|| ReleaseError::MissingFile {
            file: name.to_owned(),
            advice,
        })?;
        let mut coming = Coming::begin(self, file).map_err(Failure::Ended)?;
        let looked = look(&mut coming);
        let whole = coming.finish().map_err(Failure::Ended)?;
        Ok((whole, looked?))
    }

    fn finish(&mut self) -> Result<Vec<FileRef>, Failure> {
        for file in self.resolved.files() {
            if !self.files.contains_key(&file.name) {
                self.read(&file.name, "", |_| Ok(()))?;
            }
        }
        Ok(mem::take(&mut self.files).into_values().collect())
    }
}

/// A file that is coming. Whoever reads from it reads what was written.
struct Coming<'a, 'b> {
    release: &'a mut Incoming<'b>,
    file: &'b RemoteFile,
    writer: HashingWriter<File>,
    /// Written, and not yet read by whoever looks into it.
    unread: Cursor<Vec<u8>>,
    is_whole: bool,
    /// Why no more comes.
    ended: Option<StoreError>,
}

impl<'a, 'b> Coming<'a, 'b> {
    fn begin(release: &'a mut Incoming<'b>, file: &'b RemoteFile) -> Result<Self, StoreError> {
        let created = release.partial.create(&file.name);
        let writer = created.map_err(|error| release.contents.write_error(error))?;
        let sender = release.sender.as_ref().ok_or(StoreError::Stopped)?;
        let asked = sender.wanted.blocking_send(file.clone());
        asked.map_err(|_| StoreError::Stopped)?;
        Ok(Self {
            release,
            file,
            writer,
            unread: Cursor::default(),
            is_whole: false,
            ended: None,
        })
    }

    /// Takes the next piece in.
    fn advance(&mut self) -> Result<(), StoreError> {
        let sender = self.release.sender.as_mut();
        match sender.and_then(|sender| sender.pieces.blocking_recv()) {
            Some(Piece::Bytes(bytes)) => {
                let more = bytes.len() as u64;
                self.release.bound(self.file, self.writer.count() + more, more)?;
                disk::write(&mut self.writer, &bytes).map_err(|error| self.release.contents.write_error(error))?;
                self.unread = Cursor::new(bytes);
            }
            Some(Piece::End) => self.is_whole = true,
            None => return Err(StoreError::Stopped),
        }
        Ok(())
    }

    /// Takes in what nobody read, and holds the whole against what was promised.
    fn finish(mut self) -> Result<FileRef, StoreError> {
        while self.ended.is_none() && !self.is_whole {
            self.ended = self.advance().err();
        }
        if let Some(error) = self.ended {
            return Err(error);
        }
        let Self {
            release, file, writer, ..
        } = self;
        if release.files.len() + 1 == release.resolved.files().len() {
            release.sender = None;
        }
        let finished = disk::finish(writer);
        let (sha256, size, stamp) = finished.map_err(|error| release.contents.write_error(error))?;
        if let Some(promised) = file.size.filter(|promised| *promised != size) {
            return Err(other_size(release.resolved.tag(), file, promised, "less"));
        }
        if let Some(promised) = file.sha256.filter(|promised| *promised != sha256) {
            return Err(StoreError::OtherContent {
                tag: release.resolved.tag().clone().into(),
                file: file.name.clone(),
                promised,
                given: sha256,
            });
        }
        let name = file.name.clone();
        let whole = FileRef { name, size, sha256 };
        release.stamps.insert(whole.name.clone(), stamp);
        release.files.insert(whole.name.clone(), whole.clone());
        Ok(whole)
    }
}

impl Read for Coming<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.unread.read(buffer)?;
            if count > 0 || self.is_whole || buffer.is_empty() {
                return Ok(count);
            }
            if self.ended.is_none() {
                self.ended = self.advance().err();
            }
            if self.ended.is_some() {
                return Err(io::Error::other("no more comes"));
            }
        }
    }
}

fn refused(tag: &ReleaseTag, source: ReleaseError) -> StoreError {
    StoreError::Refused {
        tag: tag.clone().into(),
        source: Arc::new(source),
    }
}

fn other_size(tag: &ReleaseTag, file: &RemoteFile, promised: u64, more_or_less: &'static str) -> StoreError {
    StoreError::OtherSize {
        tag: tag.clone().into(),
        file: file.name.clone(),
        promised,
        more_or_less,
    }
}
