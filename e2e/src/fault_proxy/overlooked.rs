//! One event that a client never gets: counting events, and the chosen one.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use memchr::memmem;

/// The count of events of one namespace, or of those that name a kind besides, and the one to lose.
#[derive(Debug, Default)]
pub(super) struct Overlooked(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    /// What an event that counts contains, all of it; without any, none counts.
    marks: Vec<Vec<u8>>,
    seen: usize,
    chosen: Option<(usize, Duration)>,
    lost: Option<String>,
}

impl Overlooked {
    /// Counts the events of this namespace from now on, where a kind is given only those that name it, and chooses one of them to be lost, counted from 1.
    pub(super) fn choose(&self, namespace: &str, kind: Option<&str>, chosen: Option<(usize, Duration)>) {
        let namespace = format!("\"namespace\":\"{namespace}\"");
        let kind = kind.map(|kind| format!("\"kind\":\"{kind}\""));
        *self.entries() = Entries {
            marks: kind.into_iter().chain([namespace]).map(String::into_bytes).collect(),
            seen: 0,
            chosen,
            lost: None,
        };
    }

    /// Counts an event; for how long its watch is blind when it is the chosen one.
    pub(super) fn takes(&self, line: &[u8]) -> Option<Duration> {
        let mut entries = self.entries();
        let mut marks = entries.marks.iter();
        if entries.marks.is_empty() || marks.any(|mark| memmem::find(line, mark).is_none()) {
            return None;
        }
        entries.seen += 1;
        let seen = entries.seen;
        let (_, lasting) = entries.chosen.take_if(|(n, _)| *n == seen)?;
        entries.lost = Some(String::from_utf8_lossy(line).chars().take(160).collect());
        Some(lasting)
    }

    pub(super) fn seen(&self) -> usize {
        self.entries().seen
    }

    pub(super) fn lost(&self) -> Option<String> {
        self.entries().lost.clone()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
