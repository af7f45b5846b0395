//! Says on standard error what is being done and how far it is, for people who wait.

use std::{
    io::{IsTerminal, Write, stderr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Without a terminal, lines are kept; so they are rare.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);
const LIVE_INTERVAL: Duration = Duration::from_millis(200);

/// One line that is drawn again and again on a terminal, and plain lines elsewhere.
pub(crate) struct Progress {
    heading: String,
    begin: Instant,
    live: bool,
    shown: Mutex<Duration>,
}

impl Progress {
    /// `heading` stands before everything that is told.
    pub(crate) fn start(heading: String) -> Self {
        Self {
            heading,
            begin: Instant::now(),
            live: stderr().is_terminal(),
            shown: Mutex::new(Duration::ZERO),
        }
    }

    /// Something passing, shown at most as often as is good for the eye.
    pub(crate) fn tick(&self, text: &str) {
        let elapsed = self.begin.elapsed();
        let interval = if self.live { LIVE_INTERVAL } else { PLAIN_INTERVAL };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if elapsed >= *shown + interval {
            *shown = elapsed;
            self.show(text, elapsed);
        }
    }

    /// A new part of the work, always shown.
    pub(crate) fn step(&self, text: &str) {
        self.show(text, self.begin.elapsed());
    }

    /// Something that stays to be read: a paragraph of its own.
    pub(crate) fn tell(&self, text: &str) {
        let clear = if self.live { "\r\x1b[K" } else { "" };
        // As below.
        let _ = writeln!(stderr(), "{clear}{}: {text}", self.heading);
    }

    fn show(&self, text: &str, elapsed: Duration) {
        let line = format!("{}: {text} ({} s)", self.heading, elapsed.as_secs());
        // Nothing useful can be done when the terminal is gone.
        let _ = if self.live {
            write!(stderr(), "\r\x1b[K{line}")
        } else {
            writeln!(stderr(), "{line}")
        };
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.live {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
