//! Who has to go so that something else fits: numbers only, no files.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

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
    pub(super) needed: Option<BTreeSet<Digest>>,
}

/// One release that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) bytes: u64,
    pub(super) last_used: SystemTime,
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
        self.entries.values().map(|entry| entry.bytes).sum()
    }

    /// What has to happen for `more` bytes. Nothing is evicted for what does not fit anyway.
    pub(super) fn room(&self, more: u64) -> Room {
        self.room_beside(self.reserved, more)
    }

    /// The same, if all downloads had ended.
    pub(super) fn room_in_the_end(&self, more: u64) -> Room {
        self.room_beside(0, more)
    }

    fn room_beside(&self, reserved: u64, more: u64) -> Room {
        if self.bytes() + reserved + more <= self.limit {
            return Room::Enough;
        }
        let needed = self.entries.iter().filter(|(digest, _)| self.is_needed(digest));
        let needed = needed.map(|(_, entry)| entry.bytes).sum::<u64>();
        if needed + reserved + more > self.limit {
            return Room::None { needed };
        }
        match self.oldest_unneeded() {
            Some((digest, _)) => Room::Evict(digest),
            None => Room::NeedsUnknown,
        }
    }

    /// What goes first.
    pub(super) fn oldest_unneeded(&self) -> Option<(Digest, Entry)> {
        self.needed.as_ref()?;
        let unneeded = self.entries.iter().filter(|(digest, _)| !self.is_needed(digest));
        let oldest = unneeded.min_by_key(|(digest, entry)| (entry.last_used, **digest));
        oldest.map(|(digest, entry)| (*digest, *entry))
    }

    fn is_needed(&self, digest: &Digest) -> bool {
        self.needed.as_ref().is_some_and(|needed| needed.contains(digest))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn digest(number: u8) -> Digest {
        Digest::of(&[number])
    }

    /// Releases of ten bytes each, the first used longest ago.
    fn space(limit: u64, releases: u8) -> Space {
        let mut space = Space::new(limit);
        for number in 0..releases {
            let last_used = SystemTime::UNIX_EPOCH + Duration::from_secs(number.into());
            space.entries.insert(digest(number), Entry { bytes: 10, last_used });
        }
        space
    }

    #[test]
    fn least_recently_used_goes_first_and_what_is_needed_never() {
        let mut space = space(30, 3);
        space.needed = Some(BTreeSet::from([digest(0)]));
        assert_eq!(space.room(0), Room::Enough);
        assert_eq!(space.room(5), Room::Evict(digest(1)));
        space.entries.remove(&digest(1));
        assert_eq!(space.room(5), Room::Enough);
        assert_eq!(space.room(20), Room::Evict(digest(2)));
        space.entries.remove(&digest(2));
        assert_eq!(space.room(20), Room::Enough);
        assert_eq!(space.room(21), Room::None { needed: 10 });
    }

    #[test]
    fn nothing_is_evicted_for_what_does_not_fit_anyway() {
        let mut space = space(30, 3);
        space.needed = Some(BTreeSet::from([digest(2)]));
        space.reserved = 10;
        assert_eq!(space.room(11), Room::None { needed: 10 });
        assert_eq!(space.room_in_the_end(11), Room::Evict(digest(0)));
        assert_eq!(space.room_in_the_end(21), Room::None { needed: 10 });
    }

    #[test]
    fn nothing_is_evicted_before_somebody_said_what_is_needed() {
        let space = space(30, 3);
        assert_eq!(space.room(1), Room::NeedsUnknown);
        assert_eq!(space.room(31), Room::None { needed: 0 });
    }
}
