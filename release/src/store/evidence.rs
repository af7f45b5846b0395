//! What origins had to show for the releases that are here, so that they can be verified without them: kept, counted, and bounded. Blocks;
//! believes nothing.

use std::{io::ErrorKind, time::SystemTime};

use crds::names::ReleaseTag;

use super::{
    contents::{Contents, lock},
    disk::Written,
    error::StoreError,
    inspection::{Place, place, size},
    space::{Entry, Shown, Space, Spare},
};
use crate::{Digest, Evidence, trust::MAX_WRITTEN};

/// Of how many origins from which nobody has a release now it is still kept what they had to show for it: somebody may have it from one of
/// them again, or has it already and that is not known yet. What somebody needs is not among them, so that nobody who names one source after
/// the other takes anything from others.
const SPARE: usize = 4;

impl Contents {
    /// What is written down. What cannot be read, or is none, is not there: it can be asked for again.
    pub(super) fn evidence(&self, release: Digest, origin: Digest) -> Option<Evidence> {
        // One byte more than there may be is one too many.
        let written = self.disk.evidence(release, origin, MAX_WRITTEN as u64 + 1).ok()?;
        Evidence::read(&written)
    }

    /// Writes down what an origin has to show for a release that is here.
    pub(super) fn vouch(
        &self,
        tag: &ReleaseTag,
        release: Digest,
        origin: Digest,
        evidence: &Evidence,
    ) -> Result<(), StoreError> {
        self.is_here(tag, release)?;
        let written = serde_json::to_vec(evidence).map_err(|error| self.write_error(error.into()))?;
        let not_kept = || StoreError::NotKept {
            tag: tag.clone().into(),
            path: self.disk.directory().to_owned(),
        };
        // It would take the place of what can be read.
        Evidence::read(&written).ok_or_else(not_kept)?;
        let bytes = written.len() as u64;
        let more = bytes.saturating_sub(self.disk.evidence_bytes(release, origin));
        let shown = Shown { release, origin };
        let reservation = self.room_for(tag, shown, more)?;
        let put = self.disk.vouch(release, origin, &written);
        {
            let _one = lock(&self.making_room);
            self.count_evidence(Some(shown));
            reservation.end(&mut self.state().space);
        }
        let put = put.map_err(|error| self.write_error(error));
        self.tried(put.as_ref().err());
        if let Err(error) = put {
            if matches!(error, StoreError::DiskFull { .. }) {
                self.relieve(bytes, Some(shown));
            }
            return Err(error);
        }
        // What went meanwhile leaves nothing behind but what somebody needs when it comes again.
        self.is_here(tag, release)?;
        // Whoever looks for it next asks the source again if it is not there.
        self.evidence(release, origin).map(drop).ok_or_else(not_kept)
    }

    /// Makes sure that the files of a release are here, whatever is remembered of them: somebody may have tidied up, or another process brought
    /// them.
    fn is_here(&self, tag: &ReleaseTag, release: Digest) -> Result<(), StoreError> {
        match place(&self.disk.content(release)) {
            Place::Files(stamps) => {
                let found = || Entry::new(size(&stamps), SystemTime::now());
                self.state().space.entries.entry(release).or_insert_with(found);
                Ok(())
            }
            Place::Unreadable(error) => Err(self.unreadable(error)),
            Place::Nothing | Place::Foreign => {
                self.forget(release);
                Err(StoreError::Gone {
                    tag: tag.clone().into(),
                    path: self.disk.directory().to_owned(),
                })
            }
        }
    }

    /// Whether what there is to show is for a release that is not there, whoever brings and takes away, and nobody needs it when that comes again.
    pub(super) fn is_of_nothing(&self, shown: Shown) -> bool {
        let state = self.state();
        let is_of_use = state.space.entries.contains_key(&shown.release) || state.space.is_shown_to_somebody(shown);
        drop(state);
        !is_of_use && matches!(place(&self.disk.content(shown.release)), Place::Nothing)
    }

    /// Whether somebody needs what there is to show, or nobody has said so far what is needed.
    pub(super) fn may_be_needed(&self, shown: Shown) -> bool {
        let state = self.state();
        state.space.needed.is_none() || state.space.is_shown_to_somebody(shown)
    }

    /// Takes away what nobody needs of what there is to show. Whoever calls this makes room.
    pub(super) fn withdraw(&self, shown: Shown) -> Result<(), StoreError> {
        // Another process may have been faster.
        if let Err(error) = self.disk.withdraw(shown)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(self.write_error(error));
        }
        self.state().space.spare.retain(|spare| spare.shown != shown);
        Ok(())
    }

    /// Counts what there is to show, and removes what of it is too much, but not what was just written. One at a time, so that what is counted is
    /// what there is: whoever calls this makes room.
    pub(super) fn count_evidence(&self, new: Option<Shown>) {
        let mut written = self.disk.all_evidence();
        for (release, files) in &mut written {
            self.remove_surplus(*release, files, new);
        }
        let mut state = self.state();
        let Space {
            entries, spare, needed, ..
        } = &mut state.space;
        spare.clear();
        for (release, entry) in entries {
            let origins = needed.as_ref().and_then(|needed| needed.get(release));
            entry.evidence = 0;
            for file in written.remove(release).into_iter().flatten() {
                let Written { origin, bytes, since } = file;
                // Of a release that nobody needs all goes together.
                if origins.is_some_and(|origins| !origins.contains(&origin)) {
                    let shown = Shown {
                        release: *release,
                        origin,
                    };
                    spare.push(Spare { shown, bytes, since });
                } else {
                    entry.evidence += bytes;
                }
            }
        }
        spare.sort_unstable_by_key(|spare| (spare.since, spare.shown));
    }

    /// Removes the oldest of what nobody needs. Until it is known what is needed, all of it may be.
    fn remove_surplus(&self, release: Digest, written: &mut Vec<Written>, new: Option<Shown>) {
        if written.len() <= SPARE {
            return;
        }
        let needs = self
            .state()
            .space
            .needed
            .as_ref()
            .map(|needs| needs.get(&release).cloned());
        let Some(origins) = needs.map(Option::unwrap_or_default) else {
            return;
        };
        let spare = written.iter().filter(|file| !origins.contains(&file.origin));
        let in_order = |file: &Written| {
            let origin = file.origin;
            let shown = Shown { release, origin };
            // Whatever the clock says, which may have been put back, or be a coarse one.
            (new == Some(shown), file.since, shown)
        };
        let mut spare: Vec<_> = spare.map(in_order).collect();
        spare.sort_unstable();
        let surplus = spare.len().saturating_sub(SPARE);
        for (_, _, shown) in spare.into_iter().take(surplus) {
            // What cannot be removed is there, and counts.
            if self.disk.withdraw(shown).is_ok() {
                written.retain(|file| file.origin != shown.origin);
            }
        }
    }
}
