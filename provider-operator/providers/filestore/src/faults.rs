//! A disk that breaks at one of its calls, for tests.

use std::{
    io::{self, ErrorKind},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

/// How it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call fails, and later ones do not.
    Fails,
    /// The call writes half of what it shall, and fails.
    Halves,
    /// Neither this call nor any later one does anything: what a process that is killed here leaves behind.
    Crashes,
    /// The call writes half of what it shall, and nothing happens after it.
    Tears,
}

/// Counts the calls, and breaks at one of them.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    calls: AtomicU64,
    at: Mutex<Option<(u64, Fault)>>,
}

impl Faults {
    /// Breaks at this call from now on, counted from 1.
    pub(crate) fn plan(&self, call: u64, fault: Fault) {
        self.calls.store(0, Ordering::SeqCst);
        *self.at.lock().unwrap() = Some((call, fault));
    }

    /// Calls since it was planned.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn step(&self, count: usize) -> io::Result<usize> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let Some((at, fault)) = *self.at.lock().unwrap() else {
            return Ok(count);
        };
        let broken = || Err(io::Error::from(ErrorKind::Other));
        match fault {
            Fault::Halves | Fault::Tears if call == at && count > 0 => Ok(count / 2),
            Fault::Fails | Fault::Halves if call == at => broken(),
            Fault::Crashes | Fault::Tears if call >= at => broken(),
            _ => Ok(count),
        }
    }
}
