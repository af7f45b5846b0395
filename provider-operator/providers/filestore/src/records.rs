//! The records of a directory: made, looked at, published and taken away. Blocks; each of these may be ended at any call, and what is then
//! there is told rightly and can be gone on with.
//!
//! A record is there as long as its marks are: they come first, by one call that only one of many can win, and go last.

use std::{
    fs::{File, TryLockError},
    io::{self, ErrorKind},
    path::Path,
};

use jiff::Timestamp;
use provider_plugin::{
    Attempt, Created, Discarded, Foreign, ImageId, ImageSpec, Marked, Observed, Owned, OwnerId, Record, RecordState,
    Subject,
};
use serde::Serialize;

use crate::{
    disk::{self, Disk, Inode},
    error::RecordError,
    layout::{self, Layout, Stem},
    sidecar::{Marks, State},
};

/// The records below one directory.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    pub(crate) layout: Layout,
    pub(crate) disk: Disk,
}

/// One of them, with what is written beside it.
struct Sight {
    stem: Stem,
    marks: Marks,
    state: State,
    holder: OwnerId,
    part: Option<Inode>,
    /// Whether its bytes have the name of the image.
    is_shown: bool,
}

/// The bytes of one record, while they are being written.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) stem: Stem,
    pub(crate) marks: Marks,
    /// Locked for as long as it is open.
    pub(crate) file: File,
    /// What was known when it was opened.
    pub(crate) state: State,
    /// Bytes that it had then.
    pub(crate) length: u64,
}

impl Records {
    pub(crate) fn create(&self, image: &ImageSpec, attempt: Attempt) -> Result<Created, RecordError> {
        let stem = Stem::new(&image.subject.key, attempt);
        let marks = Marks::new(image, attempt, Timestamp::now(), disk::word());
        self.disk.make_folder(&self.layout.parts())?;
        if let Some(there) = self.there(&stem, &marks)? {
            return Ok(there);
        }
        let coming = self.layout.coming(&stem, &disk::word());
        let made = self
            .write(&coming, &marks)
            .and_then(|()| self.disk.link(&coming, &self.layout.marks(&stem)));
        // Whatever became of it; what is left goes with the record.
        let _ = self.disk.remove(&coming);
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Ok(self.there(&stem, &marks)?.unwrap_or(Created::Taken))
            }
            made => {
                made?;
                self.disk.sync_folder(&self.layout.parts())?;
                Ok(Created::New(stem.id()))
            }
        }
    }

    /// What a creation answers when something is there.
    fn there(&self, stem: &Stem, wanted: &Marks) -> Result<Option<Created>, RecordError> {
        match self.marks(stem) {
            Ok(None) => Ok(None),
            Ok(Some(marks)) if marks.is_same(wanted) => Ok(Some(Created::Ours(stem.id()))),
            Ok(Some(_)) | Err(RecordError::Understand { .. }) => Ok(Some(Created::Taken)),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn observe(&self, subject: &Subject) -> Result<Observed, RecordError> {
        let all = self.all()?;
        let is_ours = |sight: &&Sight| sight.marks.owner == subject.owner && sight.marks.object == subject.object;
        let mut records = Vec::new();
        for sight in all.iter().filter(is_ours) {
            records.push(self.record(sight)?);
        }
        records.sort_by(|left, right| (&left.key, left.attempt).cmp(&(&right.key, right.attempt)));
        let mut names: Vec<&str> = subject.adopt.iter().map(|id| id.0.as_str()).collect();
        names.extend(subject.look_for_others.then_some(subject.name.as_str()));
        names.sort_unstable();
        names.dedup();
        let mut others = Vec::new();
        for name in names.into_iter().filter(|name| layout::refusal(name).is_none()) {
            let holder = |sight: &&Sight| sight.is_shown && sight.marks.name == name;
            match all.iter().find(holder) {
                Some(sight) if is_ours(&sight) => {}
                holder => others.extend(self.foreign(name, holder)?),
            }
        }
        Ok(Observed { records, others })
    }

    fn foreign(&self, name: &str, holder: Option<&Sight>) -> Result<Option<Foreign>, RecordError> {
        let path = self.layout.published(name);
        let Some(inode) = disk::inode(&path)? else {
            return Ok(None);
        };
        let whose = holder.map_or("put there by somebody".to_owned(), |sight| {
            format!("made for {}", sight.marks.object)
        });
        Ok(Some(Foreign {
            id: ImageId(name.to_owned()),
            is_of_our_project: true,
            is_usable: path.is_file(),
            is_of_community: false,
            size: Some(inode.size),
            sha512: holder.and_then(|sight| Some(sight.state.whole.as_ref()?.sha512.clone())),
            digest: None,
            description: format!("{name}, {} bytes, {whose}", inode.size),
        }))
    }

    pub(crate) fn owned(&self, owner: &OwnerId) -> Result<Vec<Owned>, RecordError> {
        let all = self.all()?.into_iter();
        let ours = all.filter(|sight| sight.marks.owner == *owner || sight.holder == *owner);
        let mut listed: Vec<Owned> = ours
            .map(|sight| Owned {
                id: sight.stem.id(),
                verified: sight.verified().is_some(),
                size: sight.size(),
                owner: sight.marks.owner,
                holder: sight.holder,
                key: sight.marks.key,
                object: sight.marks.object,
                attempt: sight.marks.attempt,
                created: sight.marks.created,
            })
            .collect();
        listed.sort_by(|left, right| {
            (&left.object, &left.key, left.attempt).cmp(&(&right.object, &right.key, right.attempt))
        });
        Ok(listed)
    }

    pub(crate) fn publish(&self, id: &ImageId, owner: &OwnerId, verified: &str) -> Result<(), RecordError> {
        let sight = self.ours(id, owner)?;
        let (stem, name) = (&sight.stem, &sight.marks.name);
        let whole = sight.state.whole.clone().filter(|_| sight.is_whole());
        let whole = whole.ok_or(RecordError::Proceed {
            why: "the image does not have all its bytes yet; they are sent first",
        })?;
        if !sight.is_shown && disk::inode(&self.layout.published(name))?.is_some() && !self.is_an_older_one(&sight)? {
            return Err(RecordError::Proceed {
                why: "something else has the name of the image in the directory; remove it, or choose another name",
            });
        }
        let state = State {
            verified: Some(verified.to_owned()),
            ..sight.state.clone()
        };
        if sight.verified() != Some(verified) {
            self.put_state(stem, &state)?;
        }
        // The digest comes first: who reads in between finds that it does not fit, and not an image without one.
        let sums = format!("{}  {name}\n", whole.sha256);
        self.put(stem, &self.layout.sums(name), sums.as_bytes())?;
        if !sight.is_shown {
            let coming = self.layout.coming(stem, &disk::word());
            self.disk.link(&self.layout.part(stem), &coming)?;
            self.disk.rename(&coming, &self.layout.published(name))?;
        }
        Ok(self.disk.sync_folder(self.layout.directory())?)
    }

    /// Whether what has the name of a record now is another record of the same object.
    fn is_an_older_one(&self, record: &Sight) -> Result<bool, RecordError> {
        let of = |sight: &Sight| {
            (
                sight.marks.owner.clone(),
                sight.marks.object.clone(),
                sight.marks.name.clone(),
            )
        };
        Ok(self
            .all()?
            .iter()
            .any(|sight| sight.is_shown && of(sight) == of(record)))
    }

    pub(crate) fn discard(&self, id: &ImageId, marked: &Marked) -> Result<Discarded, RecordError> {
        let sight = match self.ours(id, &marked.owner) {
            Err(RecordError::Find { .. }) => return Ok(Discarded::WasGone),
            sight => sight?,
        };
        let is_held_elsewhere = marked.holder.as_ref().is_some_and(|holder| *holder != sight.holder);
        if is_held_elsewhere || (&sight.marks.object, sight.marks.attempt) != (&marked.object, marked.attempt) {
            return Err(RecordError::Own { id: id.0.clone() });
        }
        self.hide(&sight)?;
        self.take_away(&sight.stem)?;
        Ok(Discarded::Gone)
    }

    /// Takes the name from the bytes of a record, if they have it.
    fn hide(&self, sight: &Sight) -> Result<(), RecordError> {
        if sight.is_shown {
            let name = &sight.marks.name;
            // The digest first: as long as the image has its name, it is known whose the digest is.
            self.disk.remove(&self.layout.sums(name))?;
            self.disk.remove(&self.layout.published(name))?;
            self.disk.sync_folder(self.layout.directory())?;
        }
        Ok(())
    }

    /// The bytes of a record, to be written by the caller alone as long as the file is open. `Ok(None)`: somebody else does at the moment.
    pub(crate) fn open_part(&self, id: &ImageId, owner: &OwnerId) -> Result<Option<Part>, RecordError> {
        let sight = self.ours(id, owner)?;
        if sight.state.whole.is_some() {
            return Err(RecordError::Proceed {
                why: "the image has had all its bytes already, and no others come in their place",
            });
        }
        let path = self.layout.part(&sight.stem);
        // What is known of these bytes was lost, so they are made anew; and never those that others read under the name of the image.
        self.hide(&sight)?;
        if sight.part.is_some_and(|part| part.names > 1) {
            self.disk.remove(&path)?;
        }
        let file = self.disk.open_part(&path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Ok(()) => {}
        }
        let length = disk::inode_of(&file)?.size;
        // Read again, because who had it locked before may have finished it, and another one may have taken it away.
        let (stem, marks) = self.find(id, owner)?;
        let state = self.state(&stem, &marks)?;
        let is_there = disk::inode(&path)?.zip(Some(disk::inode_of(&file)?));
        if state.whole.is_some() || !is_there.is_some_and(|(named, opened)| named.is(&opened)) {
            return Ok(None);
        }
        Ok(Some(Part {
            stem,
            marks,
            file,
            state,
            length,
        }))
    }

    /// The bytes of a record that has them all, whoever owns it.
    pub(crate) fn open_whole(&self, id: &ImageId) -> Result<File, RecordError> {
        let absent = || RecordError::Find { id: id.0.clone() };
        let stem = Stem::parse(&id.0).ok_or_else(absent)?;
        let marks = self.marks(&stem)?.ok_or_else(absent)?;
        let sight = self.sight(stem, marks)?;
        if !sight.is_whole() {
            return Err(RecordError::Proceed {
                why: "the image does not have all its bytes yet; they are sent first",
            });
        }
        Ok(File::open(self.layout.part(&sight.stem))?)
    }

    /// Everything that was written to a part is on the disk, and what is known of it too.
    pub(crate) fn keep(&self, part: &Part, state: &State) -> Result<(), RecordError> {
        self.disk.sync(&part.file)?;
        self.put_state(&part.stem, state)?;
        // Who deleted the record meanwhile did not see this state.
        let marks = self.marks(&part.stem)?;
        if marks.is_some_and(|marks| marks.token == part.marks.token) {
            return Ok(());
        }
        self.disk.remove(&self.layout.state(&part.stem))?;
        Err(RecordError::Find { id: part.stem.id().0 })
    }

    /// The name, if the image has it, is all that is left.
    pub(crate) fn relinquish(
        &self,
        id: &ImageId,
        owner: &OwnerId,
        holder: Option<&OwnerId>,
    ) -> Result<(), RecordError> {
        let sight = self.ours(id, owner)?;
        if holder.is_some_and(|holder| *holder != sight.holder) {
            return Err(RecordError::Own { id: id.0.clone() });
        }
        self.take_away(&sight.stem)
    }

    /// Everything of a record but the name of its image. Its bytes go before what is known of them, so that nobody takes them for something
    /// to go on with, and its marks last.
    fn take_away(&self, stem: &Stem) -> Result<(), RecordError> {
        let parts = self.layout.parts();
        let (part, marks) = (self.layout.part(stem), self.layout.marks(stem));
        self.disk.remove(&part)?;
        let others = disk::names(&parts)?.into_iter().filter(|name| stem.has(name));
        for path in others.map(|name| parts.join(name)).filter(|path| *path != marks) {
            self.disk.remove(&path)?;
        }
        self.disk.sync_folder(&parts)?;
        self.disk.remove(&marks)?;
        Ok(self.disk.sync_folder(&parts)?)
    }

    /// The record of this id, if it carries this owner.
    fn ours(&self, id: &ImageId, owner: &OwnerId) -> Result<Sight, RecordError> {
        let (stem, marks) = self.find(id, owner)?;
        self.sight(stem, marks)
    }

    pub(crate) fn find(&self, id: &ImageId, owner: &OwnerId) -> Result<(Stem, Marks), RecordError> {
        let absent = || RecordError::Find { id: id.0.clone() };
        let stem = Stem::parse(&id.0).ok_or_else(absent)?;
        let marks = self.marks(&stem)?.ok_or_else(absent)?;
        if marks.owner == *owner {
            Ok((stem, marks))
        } else {
            Err(RecordError::Own { id: id.0.clone() })
        }
    }

    pub(crate) fn marks(&self, stem: &Stem) -> Result<Option<Marks>, RecordError> {
        let Some(json) = disk::read(&self.layout.marks(stem))? else {
            return Ok(None);
        };
        let marks = serde_json::from_slice(&json);
        marks.map(Some).map_err(|_| RecordError::Understand { id: stem.id().0 })
    }

    /// What is known of the bytes of a record; nothing, where what is written is not for this record or cannot be understood.
    pub(crate) fn state(&self, stem: &Stem, marks: &Marks) -> io::Result<State> {
        let json = disk::read(&self.layout.state(stem))?;
        let state: Option<State> = json.and_then(|json| serde_json::from_slice(&json).ok());
        Ok(state
            .filter(|state| state.token == marks.token)
            .unwrap_or_else(|| State {
                token: marks.token.clone(),
                ..State::default()
            }))
    }

    pub(crate) fn put_state(&self, stem: &Stem, state: &State) -> Result<(), RecordError> {
        let json = serde_json::to_vec(state).map_err(io::Error::from)?;
        self.put(stem, &self.layout.state(stem), &json)?;
        Ok(self.disk.sync_folder(&self.layout.parts())?)
    }

    /// A file with this content, in place of what is there.
    pub(crate) fn put(&self, stem: &Stem, path: &Path, content: &[u8]) -> io::Result<()> {
        let coming = self.layout.coming(stem, &disk::word());
        let put = self
            .disk
            .write_new(&coming, content)
            .and_then(|()| self.disk.rename(&coming, path));
        if put.is_err() {
            // What is left goes with the record.
            let _ = self.disk.remove(&coming);
        }
        put
    }

    fn write(&self, path: &Path, content: &impl Serialize) -> io::Result<()> {
        self.disk.write_new(path, &serde_json::to_vec(content)?)
    }

    /// Every record whose marks can be understood.
    fn all(&self) -> Result<Vec<Sight>, RecordError> {
        let mut all = Vec::new();
        for stem in disk::names(&self.layout.parts())?
            .iter()
            .filter_map(|name| Stem::of_marks(name))
        {
            match self.marks(&stem) {
                Ok(Some(marks)) => all.push(self.sight(stem, marks)?),
                Ok(None) | Err(RecordError::Understand { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// The files that are bytes of a record, each with its digest by sha256 if it was published.
    pub(crate) fn held(&self) -> Result<Vec<(Inode, Option<String>)>, RecordError> {
        let held = self.all()?.into_iter().filter_map(|sight| {
            let whole = sight.state.whole.as_ref().filter(|_| sight.is_whole());
            let digest = whole.filter(|_| sight.verified().is_some());
            Some((sight.part?, digest.map(|whole| whole.sha256.clone())))
        });
        Ok(held.collect())
    }

    fn sight(&self, stem: Stem, marks: Marks) -> Result<Sight, RecordError> {
        let state = self.state(&stem, &marks)?;
        let holder = self.holder(&stem, &marks)?;
        let part = disk::inode(&self.layout.part(&stem))?;
        let named = disk::inode(&self.layout.published(&marks.name))?;
        let is_shown = part.zip(named).is_some_and(|(part, named)| part.is(&named));
        Ok(Sight {
            stem,
            marks,
            state,
            holder,
            part,
            is_shown,
        })
    }

    fn record(&self, sight: &Sight) -> Result<Record, RecordError> {
        let state = match (&sight.state.whole, &sight.part) {
            (Some(_), _) if sight.is_whole() => RecordState::Whole,
            (Some(_), _) => RecordState::Dead,
            (None, Some(_)) if is_locked(&self.layout.part(&sight.stem))? => RecordState::Receiving,
            (None, _) => RecordState::Empty,
        };
        let whole = sight.state.whole.as_ref();
        Ok(Record {
            id: sight.stem.id(),
            key: sight.marks.key.clone(),
            attempt: sight.marks.attempt,
            holder: sight.holder.clone(),
            size: sight.size(),
            sha512: whole.map(|whole| whole.sha512.clone()),
            format: None,
            verified: sight.verified().map(str::to_owned),
            shown: sight.is_shown,
            drift: Vec::new(),
            marker: format!("{:?} {state:?} {}", sight.size(), sight.is_shown),
            state,
        })
    }
}

impl Sight {
    /// Whether all bytes are there that were there once.
    fn is_whole(&self) -> bool {
        let length = self.part.map(|part| part.size);
        self.state
            .whole
            .as_ref()
            .is_some_and(|whole| length == Some(whole.bytes))
    }

    fn size(&self) -> Option<u64> {
        self.part.map(|part| part.size).filter(|size| *size > 0)
    }

    /// Only what is seen is verified: both become so by giving the image its name.
    fn verified(&self) -> Option<&str> {
        self.state.verified.as_deref().filter(|_| self.is_shown)
    }
}

/// Whether somebody writes to a file. Whoever wants to begin at this moment waits a little.
fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
