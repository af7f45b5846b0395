//! How much of lists the sources of one process keep together. Each list is bounded by itself; their number is not, because whoever may write a
//! ClusterStack may name another source in it.
//!
//! The beginning of each list takes no room: nobody can take that from anybody, and most lists are no longer. Of the rest, who names the sources of a
//! namespace may have half of what all others leave: so the last one who comes finds room too.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Listing, SourceError};

/// Most bytes of all lists, as servers gave them. What is made of them takes up to twice as much.
const MOST: usize = 64 * 1024 * 1024;
/// Bytes of each list that are always kept: some hundred releases. With the ClusterStack that names it, its source takes no less.
const ALWAYS: usize = 64 * 1024;
/// What an entry takes besides its words: digests, a time, and its place.
const ENTRY: usize = 160;

/// The room of one process.
#[derive(Debug)]
pub(crate) struct Room {
    most: usize,
    always: usize,
    taken: Mutex<BTreeMap<String, usize>>,
}

impl Default for Room {
    fn default() -> Self {
        Self::of(MOST, ALWAYS)
    }
}

impl Room {
    fn of(most: usize, always: usize) -> Self {
        Self {
            most,
            always,
            taken: Mutex::default(),
        }
    }

    /// A part of it for one source, empty at first.
    pub(crate) fn share(self: &Arc<Self>, holder: &str) -> Share {
        Share {
            room: Arc::clone(self),
            holder: holder.to_owned(),
            bytes: Mutex::default(),
        }
    }
}

/// What one source has of it. Dropped, it is given back.
#[derive(Debug)]
pub(crate) struct Share {
    room: Arc<Room>,
    /// Of all its shares together there is a bound.
    holder: String,
    bytes: Mutex<usize>,
}

impl Share {
    /// Makes it as large as what is to be kept; when that does not fit, it stays as it was. `place` is where the list is from.
    pub(crate) fn resize(&self, bytes: usize, place: &str) -> Result<(), SourceError> {
        let bytes = bytes.saturating_sub(self.room.always);
        let mut held = lock(&self.bytes);
        let mut taken = lock(&self.room.taken);
        let of_holder = taken.get(&self.holder).copied().unwrap_or_default();
        let of_others = taken.values().sum::<usize>() - of_holder;
        let limit = self.room.most.saturating_sub(of_others) / 2;
        let wanted = of_holder - *held + bytes;
        // What is smaller than before is never refused.
        if bytes > *held && wanted > limit {
            return Err(SourceError::NoRoom {
                place: place.to_owned(),
                wanted,
                limit,
                always: self.room.always,
            });
        }
        *held = bytes;
        if wanted == 0 {
            taken.remove(&self.holder);
        } else {
            taken.insert(self.holder.clone(), wanted);
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // Nothing is smaller than nothing.
        let _ = self.resize(0, "");
    }
}

impl Listing {
    /// The bytes that it takes, nearly.
    pub(crate) fn weight(&self) -> usize {
        let tags = self.releases.iter().map(|listed| listed.tag.to_string().len());
        let foreign = self.foreign.iter().map(String::len);
        tags.chain(foreign).map(|words| words + ENTRY).sum()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_one_namespace_have_half_of_the_room_together_and_others_half_of_what_is_left() {
        let room = Arc::new(Room::of(100, 0));
        let hostile: Vec<Share> = (0..10).map(|_| room.share("hostile")).collect();
        let fits = hostile.iter().filter(|share| share.resize(20, "a list").is_ok());
        assert_eq!(fits.count(), 2);
        let harmless = room.share("harmless");
        harmless.resize(30, "a list").expect("half of 60");
        let refused = harmless
            .resize(31, "https://example.com")
            .expect_err("more than half of 60");
        assert_eq!(
            refused.to_string(),
            "the list of releases at https://example.com is not kept: beyond the first 0 of each, the sources of its namespace would have 31 bytes of \
             lists with it, and may have 30, half of what those of other namespaces leave; name fewer sources, or smaller ones"
        );
    }

    #[test]
    fn room_is_given_back_by_smaller_lists_and_by_sources_that_nobody_names_any_more() {
        let room = Arc::new(Room::of(100, 0));
        let (first, second) = (room.share("fleet"), room.share("fleet"));
        first.resize(50, "a list").expect("half");
        assert!(second.resize(1, "a list").is_err());
        first.resize(40, "a list").expect("less");
        second.resize(10, "a list").expect("half together");
        drop(first);
        second.resize(50, "a list").expect("half alone");
        drop(second);
        assert!(lock(&room.taken).is_empty());
    }

    #[test]
    fn usual_list_is_kept_and_grows_however_many_hosts_fill_the_room() {
        let room = Arc::new(Room::default());
        let kept = room.share("harmless");
        kept.resize(40 * 1024, "a list").expect("an empty room");
        let hosts = (0..30).map(|number| room.share(&format!("a{number}.example.com")));
        let hostile: Vec<Share> = hosts
            .inspect(|share| {
                let mut bytes = MOST;
                while share.resize(bytes, "a list").is_err() {
                    bytes /= 2;
                }
            })
            .collect();
        kept.resize(41 * 1024, "a list").expect("one release more");
        let new = room.share("new");
        new.resize(ALWAYS, "a list").expect("after a restart too");
        let long = room.share("long");
        assert!(long.resize(2 * ALWAYS, "a list").is_err());
        drop(hostile);
        long.resize(2 * ALWAYS, "a list").expect("an empty room again");
    }
}
