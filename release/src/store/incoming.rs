//! The end of a download at the disk: bytes are bounded, digested and written as they come, and the whole is understood before it counts.
//!
//! All of it blocks, on one thread for each download that runs. Whatever ends the other side ends this one too, and removes what was written.

use std::{collections::BTreeMap, fs::File, sync::Arc};

use crds::names::ReleaseTag;
use tokio::sync::{mpsc, oneshot};

use super::{
    StoreError,
    contents::Contents,
    disk::{self, Partial},
    reservation::Reservation,
};
use crate::{
    Digest, Release, ReleaseError,
    digest::HashingWriter,
    files::{bounded_together, limit, stamps},
    source::{RemoteFile, Resolved},
};

/// What comes from a source, in this order.
pub(super) enum Piece {
    /// The next file begins.
    File(RemoteFile),
    /// Its next bytes.
    Bytes(Vec<u8>),
    /// Everything has come.
    Complete,
}

/// Takes a release in and gives it when it is in its place. Says when there is room, before which nothing need be asked for. A channel that ends
/// early is a download that was given up.
pub(super) fn receive(
    contents: &Contents,
    resolved: &Resolved,
    has_room: oneshot::Sender<()>,
    mut pieces: mpsc::Receiver<Piece>,
) -> Result<Arc<Release>, StoreError> {
    let received = Incoming::begin(contents, resolved).and_then(|mut incoming| {
        let _ = has_room.send(());
        loop {
            match pieces.blocking_recv() {
                Some(Piece::File(file)) => incoming.file(file)?,
                Some(Piece::Bytes(bytes)) => incoming.bytes(&bytes)?,
                Some(Piece::Complete) => return incoming.complete(),
                None => return Err(StoreError::Stopped),
            }
        }
    });
    contents.tried(received.as_ref().err());
    if matches!(received, Err(StoreError::DiskFull { .. })) {
        contents.relieve(promised(resolved).unwrap_or_default());
    }
    received
}

/// Bytes of all files, if the source tells.
pub(super) fn promised(resolved: &Resolved) -> Option<u64> {
    resolved.files().iter().map(|file| file.size).sum()
}

/// A release that is being taken in.
struct Incoming<'contents> {
    contents: &'contents Contents,
    tag: ReleaseTag,
    reservation: Reservation<'contents>,
    partial: Partial,
    current: Option<(RemoteFile, HashingWriter<File>)>,
    written: BTreeMap<String, Digest>,
    total: u64,
}

impl<'contents> Incoming<'contents> {
    fn begin(contents: &'contents Contents, resolved: &Resolved) -> Result<Self, StoreError> {
        contents.prepare()?;
        let tag = resolved.tag().clone();
        let reservation = contents.reserve(&tag, promised(resolved))?;
        let partial = contents.disk.partial().map_err(|error| contents.write_error(error))?;
        Ok(Self {
            contents,
            tag,
            reservation,
            partial,
            current: None,
            written: BTreeMap::new(),
            total: 0,
        })
    }

    fn file(&mut self, file: RemoteFile) -> Result<(), StoreError> {
        self.end_file()?;
        let created = self.partial.create(&file.name);
        let writer = created.map_err(|error| self.contents.write_error(error))?;
        self.current = Some((file, writer));
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let Some((file, writer)) = &mut self.current else {
            return Err(StoreError::Stopped);
        };
        let count = writer.count() + bytes.len() as u64;
        let limit = limit(&file.name);
        if let Some(promised) = file.size.filter(|promised| count > *promised) {
            return Err(other_size(&self.tag, file, promised, "more"));
        }
        if count > limit {
            return Err(StoreError::TooLarge {
                tag: self.tag.clone().into(),
                file: file.name.clone(),
                limit,
            });
        }
        self.total += bytes.len() as u64;
        bounded_together(self.total).map_err(|source| refused(&self.tag, source))?;
        self.reservation.cover(self.total)?;
        disk::write(writer, bytes).map_err(|error| self.contents.write_error(error))
    }

    fn end_file(&mut self) -> Result<(), StoreError> {
        let Some((file, writer)) = self.current.take() else {
            return Ok(());
        };
        let (digest, size) = disk::finish(writer).map_err(|error| self.contents.write_error(error))?;
        if let Some(promised) = file.size.filter(|promised| *promised != size) {
            return Err(other_size(&self.tag, &file, promised, "less"));
        }
        if let Some(promised) = file.sha256.filter(|promised| *promised != digest) {
            return Err(StoreError::OtherContent {
                tag: self.tag.clone().into(),
                file: file.name,
                promised,
                given: digest,
            });
        }
        self.written.insert(file.name, digest);
        Ok(())
    }

    /// Reads everything back: what is understood is what lies on the disk, and that is what came.
    fn complete(mut self) -> Result<Arc<Release>, StoreError> {
        self.end_file()?;
        let before = stamps(&self.partial.path).map_err(|source| refused(&self.tag, source))?;
        let release = Release::open(&self.partial.path, &self.tag).map_err(|source| refused(&self.tag, source))?;
        let read = release.files.iter().map(|file| (&file.name, &file.sha256));
        if !read.eq(&self.written) {
            return Err(StoreError::WrittenOtherwise {
                tag: self.tag.into(),
                path: self.contents.disk.directory().to_owned(),
            });
        }
        self.contents.land(&self.partial, before, release, self.reservation)
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
