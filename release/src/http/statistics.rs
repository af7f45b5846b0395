//! What was asked of servers and what came of it, counted.

use std::{
    iter::Sum,
    sync::atomic::{AtomicU64, Ordering},
};

use http::StatusCode;

/// What was counted since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests sent, each redirect counted.
    pub requests: u64,
    /// Requests without an answer.
    pub failures: u64,
    /// Answers 304: nothing new.
    pub unchanged: u64,
    /// Answers 2xx.
    pub granted: u64,
    /// Answers that send elsewhere.
    pub redirected: u64,
    /// Answers 4xx.
    pub refused: u64,
    /// Answers 5xx.
    pub broken: u64,
    /// Requests that were not sent, because the server named a time before which it wants none, or because too many wait for their turn.
    pub held_back: u64,
    /// Bytes of bodies received.
    pub bytes: u64,
}

impl Sum for Statistics {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            requests: sum.requests + one.requests,
            failures: sum.failures + one.failures,
            unchanged: sum.unchanged + one.unchanged,
            granted: sum.granted + one.granted,
            redirected: sum.redirected + one.redirected,
            refused: sum.refused + one.refused,
            broken: sum.broken + one.broken,
            held_back: sum.held_back + one.held_back,
            bytes: sum.bytes + one.bytes,
        })
    }
}

/// The same, while it changes.
#[derive(Debug, Default)]
pub(super) struct Counters {
    requests: AtomicU64,
    failures: AtomicU64,
    unchanged: AtomicU64,
    granted: AtomicU64,
    redirected: AtomicU64,
    refused: AtomicU64,
    broken: AtomicU64,
    held_back: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    /// A request goes out.
    pub(super) fn asked(&self) {
        add(&self.requests, 1);
    }

    /// It has no answer.
    pub(super) fn failed(&self) {
        add(&self.failures, 1);
    }

    /// It has an answer of this status.
    pub(super) fn answered(&self, status: StatusCode) {
        let counter = match status.as_u16() {
            304 => &self.unchanged,
            300..400 => &self.redirected,
            400..500 => &self.refused,
            500.. => &self.broken,
            _ => &self.granted,
        };
        add(counter, 1);
    }

    /// A request does not go out.
    pub(super) fn held_back(&self) {
        add(&self.held_back, 1);
    }

    /// Bytes of a body have come.
    pub(super) fn received(&self, bytes: u64) {
        add(&self.bytes, bytes);
    }

    pub(super) fn read(&self) -> Statistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            requests: read(&self.requests),
            failures: read(&self.failures),
            unchanged: read(&self.unchanged),
            granted: read(&self.granted),
            redirected: read(&self.redirected),
            refused: read(&self.refused),
            broken: read(&self.broken),
            held_back: read(&self.held_back),
            bytes: read(&self.bytes),
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
