//! Who has to go so that something else fits: numbers only, no files.

use std::{collections::BTreeMap, time::SystemTime};

use super::Needs;
use crate::Digest;

/// The bytes of a store and what they are for.
#[derive(Debug)]
pub(super) struct Space {
    /// Most bytes of releases and of what is being downloaded.
    pub(super) limit: u64,
    /// Bytes that downloads have taken, or take in their next step.
    pub(super) reserved: u64,
    /// The releases that are there.
    pub(super) entries: BTreeMap<Digest, Entry>,
    /// What releases need now; `None` until somebody has said so.
    pub(super) needed: Option<Needs>,
}

/// One release that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Bytes of its files.
    pub(super) files: u64,
    /// Bytes of what there is to show for it, when that was counted last.
    pub(super) evidence: u64,
    pub(super) last_used: SystemTime,
}

impl Entry {
    /// A release for which nothing is shown so far.
    pub(super) fn new(files: u64, last_used: SystemTime) -> Self {
        Self {
            files,
            evidence: 0,
            last_used,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files + self.evidence
    }
}

/// Whether so many bytes more have room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// They fit.
    Enough,
    /// They fit when this one and perhaps others are gone.
    Evict(Digest),
    /// They do not fit beside so many bytes of releases that are needed, and what is being downloaded.
    None { needed: u64 },
    /// They might fit, if somebody said what is needed.
    NeedsUnknown,
}

impl Space {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            reserved: 0,
            entries: BTreeMap::new(),
            needed: None,
        }
    }

    /// Bytes of the releases that are there.
    pub(super) fn bytes(&self) -> u64 {
        self.entries.values().map(Entry::bytes).sum()
    }

    /// What has to happen for `more` bytes, which may be for a release that is there and stays. Nothing is evicted for what does not fit anyway.
    pub(super) fn room(&self, more: u64, stays: Option<Digest>) -> Room {
        self.room_beside(self.reserved, more, stays)
    }

    /// The same for a release that is not there, if all downloads had ended.
    pub(super) fn room_in_the_end(&self, more: u64) -> Room {
        self.room_beside(0, more, None)
    }

    fn room_beside(&self, reserved: u64, more: u64, stays: Option<Digest>) -> Room {
        if self.bytes() + reserved + more <= self.limit {
            return Room::Enough;
        }
        let is_needed = |digest: &Digest| self.is_needed(digest) || stays == Some(*digest);
        let needed = self.entries.iter().filter(|(digest, _)| is_needed(digest));
        let needed = needed.map(|(_, entry)| entry.bytes()).sum::<u64>();
        if needed + reserved + more > self.limit {
            return Room::None { needed };
        }
        match self.oldest_unneeded(stays) {
            Some((digest, _)) => Room::Evict(digest),
            None => Room::NeedsUnknown,
        }
    }

    /// What goes first, unless it is what stays.
    pub(super) fn oldest_unneeded(&self, stays: Option<Digest>) -> Option<(Digest, Entry)> {
        self.needed.as_ref()?;
        let is_unneeded = |digest: &Digest| !self.is_needed(digest) && stays != Some(*digest);
        let unneeded = self.entries.iter().filter(|(digest, _)| is_unneeded(digest));
        let oldest = unneeded.min_by_key(|(digest, entry)| (entry.last_used, **digest));
        oldest.map(|(digest, entry)| (*digest, *entry))
    }

    fn is_needed(&self, digest: &Digest) -> bool {
        self.needed.as_ref().is_some_and(|needed| needed.contains_key(digest))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;

    fn digest(number: u8) -> Digest {
        Digest::of(&[number])
    }

    /// Releases of ten bytes each, the first used longest ago.
    fn space(limit: u64, releases: u8) -> Space {
        let mut space = Space::new(limit);
        for number in 0..releases {
            let last_used = SystemTime::UNIX_EPOCH + Duration::from_secs(number.into());
            space.entries.insert(digest(number), Entry::new(10, last_used));
        }
        space
    }

    fn needs(release: Digest) -> Needs {
        Needs::from([(release, BTreeSet::new())])
    }

    #[test]
    fn least_recently_used_goes_first_and_what_is_needed_never() {
        let mut space = space(30, 3);
        space.needed = Some(needs(digest(0)));
        assert_eq!(space.room(0, None), Room::Enough);
        assert_eq!(space.room(5, None), Room::Evict(digest(1)));
        space.entries.remove(&digest(1));
        assert_eq!(space.room(5, None), Room::Enough);
        assert_eq!(space.room(20, None), Room::Evict(digest(2)));
        space.entries.remove(&digest(2));
        assert_eq!(space.room(20, None), Room::Enough);
        assert_eq!(space.room(21, None), Room::None { needed: 10 });
    }

    #[test]
    fn release_does_not_go_to_make_room_for_what_is_to_show_for_it() {
        let mut space = space(30, 3);
        space.needed = Some(needs(digest(2)));
        assert_eq!(space.room(5, Some(digest(0))), Room::Evict(digest(1)));
        space.entries.remove(&digest(1));
        assert_eq!(space.room(11, Some(digest(0))), Room::None { needed: 20 });
        assert_eq!(space.oldest_unneeded(Some(digest(0))), None);
    }

    #[test]
    fn nothing_is_evicted_for_what_does_not_fit_anyway() {
        let mut space = space(30, 3);
        space.needed = Some(needs(digest(2)));
        space.reserved = 10;
        assert_eq!(space.room(11, None), Room::None { needed: 10 });
        assert_eq!(space.room_in_the_end(11), Room::Evict(digest(0)));
        assert_eq!(space.room_in_the_end(21), Room::None { needed: 10 });
    }

    #[test]
    fn nothing_is_evicted_before_somebody_said_what_is_needed() {
        let space = space(30, 3);
        assert_eq!(space.room(1, None), Room::NeedsUnknown);
        assert_eq!(space.room(31, None), Room::None { needed: 0 });
    }
}
