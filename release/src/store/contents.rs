//! What lies in the store: found, held against its digest, used, and evicted. Blocks.
//!
//! What is remembered is a shortcut only. The directory can change at any time, because another process shares it or somebody tidies up, so
//! that nothing is handed out before a look at the disk.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use crds::names::ReleaseTag;

use super::{
    Needs, StoreError,
    disk::{Disk, Partial},
    identities::Identities,
    inspection::{Inspected, Opened, Place, inspect, place, size},
    reservation::Reservation,
    space::{Entry, Room, Shown, Space},
    usage::{Counters, count},
};
use crate::{Digest, Purpose, Release, files::Stamps};

/// A release that is used all the time costs the disk one small write in this time.
const TOUCHED_EVERY: Duration = Duration::from_mins(1);
/// Files of one digest are a release of one tag. Whoever asks for them under many is refused again each time.
const MAX_TAGS: usize = 16;

/// What lies in a store.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) disk: Disk,
    pub(super) purpose: Purpose,
    pub(super) counters: Counters,
    state: Mutex<State>,
    /// One at a time, so that no two evict more than is necessary.
    pub(super) making_room: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) space: Space,
    verified: BTreeMap<Digest, Verified>,
    /// What cannot be used and could not be removed, such as on a disk that can only be read.
    rotten: BTreeMap<Digest, Option<Stamps>>,
    identities: Identities,
    unwritable: Option<StoreError>,
}

/// What was held against its digest, as long as its files have the same time stamps.
#[derive(Debug)]
struct Verified {
    stamps: Stamps,
    /// By tag. Nearly always there is one, for which a map has room for eleven.
    opened: Vec<(ReleaseTag, Opened)>,
}

impl Verified {
    fn opened(&self, tag: &ReleaseTag) -> Option<&Opened> {
        let found = self.opened.iter().find(|(known, _)| known == tag);
        found.map(|(_, opened)| opened)
    }
}

impl Contents {
    pub(super) fn new(disk: Disk, limit: u64, purpose: Purpose) -> Self {
        Self {
            disk,
            purpose,
            counters: Counters::default(),
            state: Mutex::new(State {
                space: Space::new(limit),
                verified: BTreeMap::new(),
                rotten: BTreeMap::new(),
                identities: Identities::default(),
                unwritable: None,
            }),
            making_room: Mutex::default(),
        }
    }

    /// Makes the directory if it is not there, removes what the dead left, and finds out what there is.
    pub(super) fn open(&self) -> Result<(), StoreError> {
        let path = self.disk.directory();
        fs::create_dir_all(path).map_err(|source| StoreError::CreateDirectory {
            path: path.to_owned(),
            source: Arc::new(source),
        })?;
        fs::read_dir(path).map_err(|error| self.unreadable(error))?;
        let prepared = self.prepare();
        self.tried(prepared.as_ref().err());
        if let Err(error) = prepared {
            tracing::warn!(directory = %path.display(), %error, "nothing can be downloaded; what is there is used");
        } else if let Err(error) = self.disk.clean() {
            tracing::warn!(directory = %path.display(), %error, "unable to remove what another process left");
        }
        self.scan()?;
        let identities = self.disk.identities().map_err(|error| self.unreadable(error))?;
        for (identity, digest) in identities {
            let mut state = self.state();
            let is_there = state.space.entries.contains_key(&digest);
            let outdated = if is_there {
                state.identities.note(identity, digest)
            } else {
                Some(identity)
            };
            drop(state);
            // Where that is not possible, it is read once more after the next start.
            let _ = outdated.map(|outdated| self.disk.forget(outdated));
        }
        Ok(())
    }

    /// Makes sure that downloads have somewhere to go.
    pub(super) fn prepare(&self) -> Result<(), StoreError> {
        self.disk.prepare().map_err(|error| self.write_error(error))
    }

    /// Remembers for [`super::Usage`] whether writing was possible.
    pub(super) fn tried(&self, error: Option<&StoreError>) {
        match error {
            None => self.state().unwritable = None,
            Some(StoreError::ReadOnly { .. } | StoreError::DiskFull { .. } | StoreError::Write { .. }) => {
                self.state().unwritable = error.cloned();
            }
            Some(_) => {}
        }
    }

    /// The release of this digest, if it is there and is what it was. What is not is removed, and counted.
    pub(super) fn find(&self, tag: &ReleaseTag, digest: Digest) -> Result<Option<Arc<Release>>, StoreError> {
        let before = match place(&self.disk.content(digest)) {
            Place::Files(before) => before,
            Place::Nothing => {
                self.forget(digest);
                return Ok(None);
            }
            Place::Unreadable(error) => return Err(self.unreadable(error)),
            Place::Foreign => {
                self.set_aside(digest, None);
                return Ok(None);
            }
        };
        let opened = match self.known(tag, digest, &before) {
            Known::Opened(opened) => opened,
            Known::Rotten => {
                self.set_aside(digest, Some(&before));
                return Ok(None);
            }
            Known::Nothing => match self.verify(tag, digest, &before)? {
                Some(opened) => opened,
                None => return Ok(None),
            },
        };
        self.used(digest, &before);
        opened.map(Some).map_err(|source| StoreError::Refused {
            tag: tag.clone().into(),
            source,
        })
    }

    /// Reads all of a release and holds it against its digest.
    fn verify(&self, tag: &ReleaseTag, digest: Digest, before: &Stamps) -> Result<Option<Opened>, StoreError> {
        count(&self.counters.rehashes);
        let opened = match inspect(self.purpose, &self.disk.content(digest), before, tag, digest) {
            Inspected::Release(release) => Ok(release),
            Inspected::Refused(error) => Err(error),
            Inspected::Nothing => return Ok(None),
            Inspected::Unreadable(error) => return Err(self.unreadable(error)),
            Inspected::Rotten => {
                self.set_aside(digest, Some(before));
                return Ok(None);
            }
        };
        self.remember_opened(tag, digest, before.clone(), opened.clone());
        Ok(Some(opened))
    }

    fn known(&self, tag: &ReleaseTag, digest: Digest, now: &Stamps) -> Known {
        let state = self.state();
        if state
            .rotten
            .get(&digest)
            .is_some_and(|before| before.as_ref() == Some(now))
        {
            return Known::Rotten;
        }
        let verified = state.verified.get(&digest).filter(|verified| verified.stamps == *now);
        match verified.and_then(|verified| verified.opened(tag)) {
            Some(opened) => Known::Opened(opened.clone()),
            None => Known::Nothing,
        }
    }

    fn remember_opened(&self, tag: &ReleaseTag, digest: Digest, stamps: Stamps, opened: Opened) {
        let mut state = self.state();
        state.rotten.remove(&digest);
        let verified = state.verified.entry(digest).or_insert_with(|| Verified {
            stamps: stamps.clone(),
            opened: Vec::with_capacity(1),
        });
        if verified.stamps != stamps || verified.opened.len() == MAX_TAGS {
            verified.opened.clear();
            verified.stamps = stamps;
        }
        verified.opened.retain(|(known, _)| known != tag);
        verified.opened.push((tag.clone(), opened));
    }

    /// Notes that a release is used, in memory always and on disk from time to time.
    fn used(&self, digest: Digest, stamps: &Stamps) {
        let now = SystemTime::now();
        let mut state = self.state();
        let found = || Entry::new(size(stamps), SystemTime::UNIX_EPOCH);
        let entry = state.space.entries.entry(digest).or_insert_with(found);
        // A clock that was put back makes the note old, not young for ever.
        let is_noted = now.duration_since(entry.last_used).is_ok_and(|age| age < TOUCHED_EVERY);
        if !is_noted {
            entry.last_used = now;
            drop(state);
            // A disk that can only be read forgets the order of use, and nothing can be evicted from it either.
            let _ = self.disk.touch(digest);
        }
    }

    /// The digest of what a source gave under this identity, if it is still there.
    pub(super) fn identified(&self, identity: Digest) -> Option<Digest> {
        self.state().identities.get(identity)
    }

    /// Notes what an identity stands for. Where it cannot be written down, a restart downloads once more.
    pub(super) fn identify(&self, identity: Digest, digest: Digest) {
        let outdated = self.state().identities.note(identity, digest);
        let _ = outdated.map(|outdated| self.disk.forget(outdated));
        if let Err(error) = self.disk.remember(identity, digest) {
            tracing::warn!(%digest, %error, "unable to note where a release came from; a restart downloads it again");
        }
    }

    /// Reads a release from the disk before it is given to anybody again.
    pub(super) fn doubt(&self, digest: Digest) {
        self.state().verified.remove(&digest);
    }

    /// What releases need from now on. Makes room if there is more than the bound allows.
    pub(super) fn keep(&self, needs: Needs) -> Result<(), StoreError> {
        self.state().space.needed = Some(needs);
        let _one = lock(&self.making_room);
        self.scan()?;
        // What was kept for releases that were to come again and are not needed any more, or what somebody left who was killed.
        self.disk.forget_evidence(|shown| self.is_of_nothing(shown));
        loop {
            let room = self.state().space.room(0, None);
            if !matches!(room, Room::Withdraw(_) | Room::Evict(_)) {
                return Ok(());
            }
            self.take_away(room)?;
        }
    }

    /// Takes away as much as somebody needs who met a full disk, so that the next one can end; but not what it was for.
    pub(super) fn relieve(&self, bytes: u64, stays: Option<Shown>) {
        let _one = lock(&self.making_room);
        let mut relieved = 0;
        while relieved < bytes {
            let spare = self.state().space.oldest_spare(stays);
            if let Some(spare) = spare {
                if self.withdraw(spare.shown).is_err() {
                    return;
                }
                relieved += spare.bytes;
                continue;
            }
            let Some((digest, entry)) = self.state().space.oldest_unneeded(stays) else {
                return;
            };
            if self.evict(digest).is_err() {
                return;
            }
            relieved += entry.bytes();
        }
    }

    /// Puts a release in its place that was written and understood.
    pub(super) fn land(
        &self,
        partial: &Partial,
        stamps: Stamps,
        release: Release,
        reservation: Reservation<'_>,
    ) -> Result<Arc<Release>, StoreError> {
        let (tag, digest) = (release.tag.clone(), release.digest);
        let bytes = size(&stamps);
        // Once more if what was there before was no release.
        for _ in 0..2 {
            match self.disk.publish(partial, digest) {
                Ok(()) => {
                    let release = Arc::new(release.moved_to(self.disk.content(digest)));
                    self.remember_opened(&tag, digest, stamps, Ok(Arc::clone(&release)));
                    let entry = Entry::new(bytes, SystemTime::now());
                    let mut state = self.state();
                    state.space.entries.insert(digest, entry);
                    reservation.end(&mut state.space);
                    return Ok(release);
                }
                // Another download of the same files was faster, perhaps of another process.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory
                    ) =>
                {
                    if let Some(release) = self.find(&tag, digest)? {
                        return Ok(release);
                    }
                }
                Err(error) => return Err(self.write_error(error)),
            }
        }
        Err(StoreError::WrittenOtherwise {
            tag: tag.into(),
            path: self.disk.directory().to_owned(),
        })
    }

    /// What is there, in numbers: bytes, bound, releases; and why nothing can be written.
    pub(super) fn totals(&self) -> (u64, u64, usize, Option<StoreError>) {
        let state = self.state();
        let space = &state.space;
        (
            space.bytes(),
            space.limit,
            space.entries.len(),
            state.unwritable.clone(),
        )
    }

    /// Takes away what is in the way.
    pub(super) fn take_away(&self, room: Room) -> Result<(), StoreError> {
        match room {
            Room::Withdraw(shown) => self.withdraw(shown),
            Room::Evict(digest) => self.evict(digest),
            Room::Enough | Room::None { .. } | Room::NeedsUnknown => Ok(()),
        }
    }

    fn evict(&self, digest: Digest) -> Result<(), StoreError> {
        self.disk.discard(digest).map_err(|error| self.write_error(error))?;
        count(&self.counters.evictions);
        self.forget(digest);
        Ok(())
    }

    /// Removes what is not what its name says. Where that is not possible it is remembered and told once, and tried again each time.
    fn set_aside(&self, digest: Digest, stamps: Option<&Stamps>) {
        let is_news = self.state().rotten.get(&digest).map(Option::as_ref) != Some(stamps);
        if is_news {
            count(&self.counters.corrupt);
            tracing::warn!(%digest, "a downloaded release is not any more what was downloaded; it is not used");
        }
        let discarded = self.disk.discard(digest);
        self.forget(digest);
        if let Err(error) = discarded {
            if is_news {
                tracing::warn!(%digest, %error, "unable to remove a downloaded release that is not used any more");
            }
            self.state().rotten.insert(digest, stamps.cloned());
        }
    }

    /// Drops what is remembered of a release that is not there. What somebody needs of what there is to show for it stays: the files come again,
    /// and their origin may have lost it by then.
    pub(super) fn forget(&self, digest: Digest) {
        let mut state = self.state();
        state.space.entries.remove(&digest);
        state.space.spare.retain(|spare| spare.shown.release != digest);
        state.verified.remove(&digest);
        state.rotten.remove(&digest);
        let outdated = state.identities.forget(digest);
        drop(state);
        for identity in outdated {
            let _ = self.disk.forget(identity);
        }
        self.disk
            .forget_evidence(|shown| shown.release == digest && !self.may_be_needed(shown));
    }

    /// Looks again at what is there: another process may have brought, used or evicted something. One at a time, because what is found is
    /// counted: whoever calls this makes room.
    pub(super) fn scan(&self) -> Result<(), StoreError> {
        // What lands from now on is not among the known, and may be missing in what the disk says.
        let known = self.state().space.entries.clone();
        let mut there = self.disk.contents().map_err(|error| self.unreadable(error))?;
        for (digest, before) in known {
            match there.remove(&digest) {
                None => {
                    // Or it went, came again, and was seen since.
                    let is_as_before = self.state().space.entries.get(&digest) == Some(&before);
                    if is_as_before {
                        self.forget(digest);
                    }
                }
                Some(used) => {
                    if let Some(entry) = self.state().space.entries.get_mut(&digest) {
                        entry.last_used = entry.last_used.max(used);
                    }
                }
            }
        }
        for (digest, last_used) in there {
            match place(&self.disk.content(digest)) {
                Place::Files(stamps) => {
                    let entry = Entry::new(size(&stamps), last_used);
                    self.state().space.entries.entry(digest).or_insert(entry);
                }
                Place::Nothing => {}
                Place::Unreadable(error) => return Err(self.unreadable(error)),
                Place::Foreign => self.set_aside(digest, None),
            }
        }
        self.count_evidence(None);
        Ok(())
    }

    pub(super) fn write_error(&self, error: io::Error) -> StoreError {
        StoreError::write(self.disk.directory(), error)
    }

    pub(super) fn unreadable(&self, error: io::Error) -> StoreError {
        StoreError::read(self.disk.directory(), error)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

enum Known {
    Opened(Opened),
    Rotten,
    Nothing,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
