//! Room for downloads, made as their bytes come. What a source promises takes none: it may never come, and others would wait for it.

use crds::names::ReleaseTag;

use super::{
    StoreError,
    contents::{Contents, lock},
    space::{Room, Shown, Space},
};
/// Room is made for so many bytes at a time.
const STEP: u64 = 1 << 20;

/// Bytes that a download has taken, or takes in its next step, or what is to be shown for a release. Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Reservation<'contents> {
    contents: &'contents Contents,
    tag: ReleaseTag,
    bytes: u64,
    /// How many there will be, where the source tells.
    promised: Option<u64>,
    /// What is to be shown, if they are for that: neither it nor its release, which is here, makes room for itself.
    stays: Option<Shown>,
}

impl Contents {
    /// The room of a download that begins. Refuses what does not fit whatever becomes of the other downloads.
    pub(super) fn reserve(&self, tag: &ReleaseTag, promised: Option<u64>) -> Result<Reservation<'_>, StoreError> {
        let reservation = Reservation {
            contents: self,
            tag: tag.clone(),
            bytes: 0,
            promised,
            stays: None,
        };
        let _one = lock(&self.making_room);
        self.scan()?;
        let promised = promised.unwrap_or_default();
        let state = self.state();
        match state.space.room_in_the_end(promised) {
            Room::Enough | Room::Withdraw(_) | Room::Evict(_) => {}
            Room::None { needed } => return Err(reservation.refused(&state.space, needed, promised)),
            Room::NeedsUnknown => return Err(reservation.unknown(&state.space)),
        }
        drop(state);
        Ok(reservation)
    }

    /// Room for so many bytes more of what is to be shown for a release that is here.
    pub(super) fn room_for(&self, tag: &ReleaseTag, shown: Shown, bytes: u64) -> Result<Reservation<'_>, StoreError> {
        let mut reservation = Reservation {
            contents: self,
            tag: tag.clone(),
            bytes: 0,
            promised: Some(bytes),
            stays: Some(shown),
        };
        reservation.cover(bytes)?;
        Ok(reservation)
    }
}

impl Reservation<'_> {
    /// Makes sure that so many bytes in all are covered, by taking away what nobody needs.
    pub(super) fn cover(&mut self, bytes: u64) -> Result<(), StoreError> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let step = (bytes + STEP).min(self.promised.unwrap_or(u64::MAX)).max(bytes);
        // Close to the bound every byte counts.
        self.grow(step).or_else(|_| self.grow(bytes))
    }

    fn grow(&mut self, bytes: u64) -> Result<(), StoreError> {
        let more = bytes - self.bytes;
        let _one = lock(&self.contents.making_room);
        self.contents.scan()?;
        loop {
            let room = {
                let mut state = self.contents.state();
                let room = state.space.room(more, self.stays);
                match room {
                    Room::Enough => {
                        state.space.reserved += more;
                        self.bytes = bytes;
                        return Ok(());
                    }
                    Room::Withdraw(_) | Room::Evict(_) => room,
                    Room::None { needed } => return Err(self.refused(&state.space, needed, bytes)),
                    Room::NeedsUnknown => return Err(self.unknown(&state.space)),
                }
            };
            self.contents.take_away(room)?;
        }
    }

    /// Names what has to end or to grow, so that so many bytes in all fit.
    fn refused(&self, space: &Space, needed: u64, bytes: u64) -> StoreError {
        let (tag, limit) = (self.tag.clone().into(), space.limit);
        if needed + bytes > limit {
            return StoreError::NoRoom {
                tag,
                more: bytes,
                needed,
                limit,
            };
        }
        StoreError::Crowded {
            tag,
            others: space.reserved - self.bytes,
            limit,
        }
    }

    fn unknown(&self, space: &Space) -> StoreError {
        StoreError::NeedsUnknown {
            tag: self.tag.clone().into(),
            limit: space.limit,
        }
    }

    /// Gives the bytes to what has landed, in one step.
    pub(super) fn end(mut self, space: &mut Space) {
        space.reserved -= std::mem::take(&mut self.bytes);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        // Nothing is left to give back when it was given to what has landed; whoever did that holds the lock.
        if self.bytes > 0 {
            self.contents.state().space.reserved -= self.bytes;
        }
    }
}
