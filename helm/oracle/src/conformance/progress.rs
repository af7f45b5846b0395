//! Says on a terminal how far the work is; elsewhere nothing, the report says it all.

use std::{
    io::{IsTerminal as _, Write as _, stderr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

const INTERVAL: Duration = Duration::from_millis(200);

pub(super) struct Progress {
    total: usize,
    begin: Instant,
    live: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: usize,
    different: usize,
    shown: Duration,
}

impl Progress {
    pub(super) fn start(total: usize) -> Self {
        Self {
            total,
            begin: Instant::now(),
            live: stderr().is_terminal(),
            state: Mutex::default(),
        }
    }

    pub(super) fn tick(&self, different: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += 1;
        state.different += usize::from(different);
        let elapsed = self.begin.elapsed();
        if self.live && elapsed >= state.shown + INTERVAL {
            state.shown = elapsed;
            let (done, total, different) = (state.done, self.total, state.different);
            let seconds = elapsed.as_secs();
            // Nothing useful can be done when the terminal is gone.
            let _ = write!(
                stderr(),
                "\r\x1b[K{done} of {total} renders, {different} different ({seconds} s)"
            );
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.live {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
