//! Says how far long work is: on a terminal in one line that is drawn again and again, elsewhere (CI, a pipe) in few plain lines.

use std::{
    io::{IsTerminal as _, Write as _, stderr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

const LIVE_INTERVAL: Duration = Duration::from_millis(200);
/// Often enough for a log that somebody watches, rare enough for one that somebody reads.
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);

/// Shared by all who work; what is left on a terminal goes with it.
pub(crate) struct Progress {
    begin: Instant,
    live: bool,
    shown: Mutex<Duration>,
}

impl Progress {
    pub(crate) fn start() -> Self {
        Self {
            begin: Instant::now(),
            live: stderr().is_terminal(),
            shown: Mutex::default(),
        }
    }

    /// Shows what is new, when it is time to.
    pub(crate) fn tick(&self, sight: impl FnOnce() -> String) {
        let elapsed = self.begin.elapsed();
        let interval = if self.live { LIVE_INTERVAL } else { PLAIN_INTERVAL };
        {
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            if elapsed < *shown + interval {
                return;
            }
            *shown = elapsed;
        }
        let (seconds, sight) = (elapsed.as_secs(), sight());
        // Nothing useful can be done when the terminal is gone.
        let _ = if self.live {
            write!(stderr(), "\r\x1b[K{seconds} s · {sight}")
        } else {
            writeln!(stderr(), "   {seconds} s · {sight}")
        };
    }

    /// Makes room on a terminal for what is said for good.
    pub(crate) fn clear(&self) {
        if self.live {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
