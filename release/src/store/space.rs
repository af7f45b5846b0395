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
    /// What there was to show for releases that somebody needs, and that nobody needs itself, when that was counted last; the oldest first.
    pub(super) spare: Vec<Spare>,
    /// What releases need now; `None` until somebody has said so.
    pub(super) needed: Option<Needs>,
}

/// One release that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Bytes of its files.
    pub(super) files: u64,
    /// Bytes of what there is to show for it, when that was counted last, without what is spare.
    pub(super) evidence: u64,
    pub(super) last_used: SystemTime,
}

/// What one origin had to show for a release that somebody has from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spare {
    pub(super) shown: Shown,
    pub(super) bytes: u64,
    pub(super) since: SystemTime,
}

/// What one origin has to show for a release, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shown {
    pub(super) release: Digest,
    pub(super) origin: Digest,
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
    /// They fit when these signatures and perhaps others are gone, or releases.
    Withdraw(Shown),
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
            spare: Vec::new(),
            needed: None,
        }
    }

    /// Bytes of the releases that are there, and of all that there is to show for them.
    pub(super) fn bytes(&self) -> u64 {
        let entries = self.entries.values().map(Entry::bytes).sum::<u64>();
        entries + self.spare.iter().map(|spare| spare.bytes).sum::<u64>()
    }

    /// What has to happen for `more` bytes, which may be for what there is to show: then that stays, and what it is of. Nothing goes for what does
    /// not fit anyway.
    pub(super) fn room(&self, more: u64, stays: Option<Shown>) -> Room {
        self.room_beside(self.reserved, more, stays)
    }

    /// The same for a release that is not there, if all downloads had ended.
    pub(super) fn room_in_the_end(&self, more: u64) -> Room {
        self.room_beside(0, more, None)
    }

    fn room_beside(&self, reserved: u64, more: u64, stays: Option<Shown>) -> Room {
        if self.bytes() + reserved + more <= self.limit {
            return Room::Enough;
        }
        let is_needed = |digest: &Digest| self.is_needed(digest) || is_of(stays, digest);
        let needed = self.entries.iter().filter(|(digest, _)| is_needed(digest));
        let needed = needed.map(|(_, entry)| entry.bytes()).sum::<u64>();
        let shown = self.spare.iter().filter(|spare| !self.may_go(spare, stays));
        let needed = needed + shown.map(|spare| spare.bytes).sum::<u64>();
        if needed + reserved + more > self.limit {
            return Room::None { needed };
        }
        if let Some(spare) = self.oldest_spare(stays) {
            return Room::Withdraw(spare.shown);
        }
        match self.oldest_unneeded(stays) {
            Some((digest, _)) => Room::Evict(digest),
            None => Room::NeedsUnknown,
        }
    }

    /// What goes before any release: it can be asked for again, and is of use to nobody now.
    pub(super) fn oldest_spare(&self, stays: Option<Shown>) -> Option<Spare> {
        self.spare.iter().find(|spare| self.may_go(spare, stays)).copied()
    }

    /// Whether nobody needs it, also since it was counted.
    fn may_go(&self, spare: &Spare, stays: Option<Shown>) -> bool {
        !self.is_shown_to_somebody(spare.shown) && stays != Some(spare.shown)
    }

    /// Whether what an origin has to show for a release counts for somebody.
    pub(super) fn is_shown_to_somebody(&self, shown: Shown) -> bool {
        let origins = self.needed.as_ref().and_then(|needed| needed.get(&shown.release));
        origins.is_some_and(|origins| origins.contains(&shown.origin))
    }

    /// The release that goes first, unless it is what stays.
    pub(super) fn oldest_unneeded(&self, stays: Option<Shown>) -> Option<(Digest, Entry)> {
        self.needed.as_ref()?;
        let is_unneeded = |digest: &Digest| !self.is_needed(digest) && !is_of(stays, digest);
        let unneeded = self.entries.iter().filter(|(digest, _)| is_unneeded(digest));
        let oldest = unneeded.min_by_key(|(digest, entry)| (entry.last_used, **digest));
        oldest.map(|(digest, entry)| (*digest, *entry))
    }

    fn is_needed(&self, digest: &Digest) -> bool {
        self.needed.as_ref().is_some_and(|needed| needed.contains_key(digest))
    }
}

fn is_of(shown: Option<Shown>, release: &Digest) -> bool {
    shown.is_some_and(|shown| shown.release == *release)
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

    fn origin(number: u8) -> Digest {
        Digest::of(&[number, number])
    }

    fn shown(release: Digest, number: u8) -> Shown {
        Shown {
            release,
            origin: origin(number),
        }
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
        let stays = Some(shown(digest(0), 0));
        assert_eq!(space.room(5, stays), Room::Evict(digest(1)));
        space.entries.remove(&digest(1));
        assert_eq!(space.room(11, stays), Room::None { needed: 20 });
        assert_eq!(space.oldest_unneeded(stays), None);
    }

    #[test]
    fn what_nobody_needs_of_what_there_is_to_show_goes_before_releases_and_what_somebody_needs_never() {
        let mut space = space(40, 2);
        space.needed = Some(Needs::from([(digest(0), BTreeSet::from([origin(1)]))]));
        let unneeded = |number| Spare {
            shown: shown(digest(0), number),
            bytes: 10,
            since: SystemTime::UNIX_EPOCH,
        };
        // The first is needed since they were counted.
        space.spare = vec![unneeded(1), unneeded(2)];
        assert_eq!(space.bytes(), 40);
        assert_eq!(space.room(1, None), Room::Withdraw(shown(digest(0), 2)));
        assert_eq!(space.room(1, Some(shown(digest(0), 2))), Room::Evict(digest(1)));
        assert_eq!(space.room(20, None), Room::Withdraw(shown(digest(0), 2)));
        assert_eq!(space.room(21, None), Room::None { needed: 20 });
        space.spare.pop();
        assert_eq!(space.room(11, None), Room::Evict(digest(1)));
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
