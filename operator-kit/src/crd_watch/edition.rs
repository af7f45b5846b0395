//! How often an API server has told that it serves something else, for those who keep what they read of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// What an API server serves at one time: equal as long as its [`CrdWatch`](super::CrdWatch) has told of no change since.
#[derive(Clone, Debug)]
pub struct Edition {
    watch: Tellings,
    count: u64,
    since: Instant,
}

impl Edition {
    /// When the last change was told, or the watch began.
    pub fn since(&self) -> Instant {
        self.since
    }
}

impl PartialEq for Edition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.watch.0, &other.watch.0) && self.count == other.count
    }
}

impl Eq for Edition {}

/// The changes that one watch has told.
#[derive(Clone, Debug)]
pub(super) struct Tellings(Arc<Mutex<(u64, Instant)>>);

impl Tellings {
    pub(super) fn begin() -> Self {
        Self(Arc::new(Mutex::new((0, Instant::now()))))
    }

    pub(super) fn tell(&self) {
        let mut told = self.lock();
        *told = (told.0 + 1, Instant::now());
    }

    pub(super) fn edition(&self) -> Edition {
        let (count, since) = *self.lock();
        Edition {
            watch: self.clone(),
            count,
            since,
        }
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_edition_stands_until_a_change_is_told_and_is_of_one_watch() {
        let tellings = Tellings::begin();
        let (first, begun) = (tellings.edition(), Instant::now());
        advance(Duration::from_secs(7)).await;
        assert_eq!((&tellings.edition(), first.since()), (&first, begun));
        assert_ne!(Tellings::begin().edition(), first);
        tellings.tell();
        let second = tellings.edition();
        assert_ne!(second, first);
        assert_eq!(second.since(), begun + Duration::from_secs(7));
    }
}
