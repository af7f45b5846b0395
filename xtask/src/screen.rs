//! What a person sees while steps run. On a terminal one line is drawn again and again; elsewhere (CI, a pipe) plain lines, few of them.
//! Everything goes to standard error: standard output belongs to the programs that the steps run.

use std::{
    io::{IsTerminal, Write, stderr},
    path::Path,
    time::Duration,
};

use crate::step::{MissingTool, Newest, StepFailed};

/// Without a terminal a running step says that it lives this often: often enough for a log that somebody watches, rare enough for one
/// that somebody reads.
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);
const LIVE_INTERVAL: Duration = Duration::from_millis(250);
/// Keeps a line on one row of a terminal of usual width. A log, too, is read on one; the whole line is in the step's own.
const WIDTH: usize = 110;

/// The display of one running step.
pub(crate) struct Progress<'a> {
    title: &'a str,
    log: &'a Path,
    expected_lines: Option<usize>,
    appeared: bool,
    live: bool,
    shown: Duration,
}

impl<'a> Progress<'a> {
    /// Of a step that nobody sees yet.
    pub(crate) fn new(title: &'a str, log: &'a Path, expected_lines: Option<usize>) -> Self {
        Self {
            title,
            log,
            expected_lines,
            appeared: false,
            live: stderr().is_terminal(),
            shown: Duration::ZERO,
        }
    }

    /// Says what runs, once.
    pub(crate) fn appear(&mut self) {
        if !self.appeared {
            self.appeared = true;
            eprintln!("== {} (log: {})", self.title, self.log.display());
        }
    }

    /// Shows what is new, at most as often as is good for the eye.
    pub(crate) fn tick(&mut self, elapsed: Duration, newest: &Newest) {
        let interval = if self.live { LIVE_INTERVAL } else { PLAIN_INTERVAL };
        if !self.appeared || elapsed < self.shown + interval {
            return;
        }
        self.shown = elapsed;
        let seconds = elapsed.as_secs();
        let share = self
            .expected_lines
            .map(|expected| format!("{} of {expected} · ", newest.lines))
            .unwrap_or_default();
        let line = row(&format!("{seconds} s · {share}{}", newest.text));
        if self.live {
            eprint!("\r\x1b[K   {line}");
        } else {
            eprintln!("   {line}");
        }
        // Nothing useful can be done when the terminal is gone.
        let _ = stderr().flush();
    }

    /// Makes room for output that stays; the next tick draws the line again.
    pub(crate) fn clear(&self) {
        if self.live {
            eprint!("\r\x1b[K");
        }
    }

    pub(crate) fn finish(self, elapsed: Duration, result: &str) {
        if !self.appeared {
            return;
        }
        let clear = if self.live { "\r\x1b[K" } else { "" };
        eprintln!("{clear}   {}: {result}, {:.1} s", self.title, elapsed.as_secs_f64());
    }
}

/// What there is room for of a line that a program has written.
fn row(line: &str) -> String {
    let shown = line.chars().filter(|character| !character.is_control());
    shown.take(WIDTH).collect()
}

/// One line that stands for itself.
pub(crate) fn say(line: &str) {
    eprintln!("== {line}");
}

/// Something that lessens what the run proves; must not be overlooked among hundreds of lines.
pub(crate) fn warn(line: &str) {
    let bar = "!".repeat(line.chars().count().min(WIDTH));
    eprintln!("{bar}\n{line}\n{bar}");
}

/// Why the program ends, and what to do.
pub(crate) fn failure(error: &anyhow::Error) {
    if let Some(failed) = error.downcast_ref::<StepFailed>() {
        eprintln!("\nfailed: {failed}");
        if !failed.last_lines.is_empty() {
            eprintln!("\n{}", failed.last_lines.join("\n"));
        }
        eprintln!("\nwhole log:  {}\nthis alone: {}", failed.log.display(), failed.repeat);
    } else if let Some(missing) = error.downcast_ref::<MissingTool>() {
        eprintln!("\nmissing: {missing}");
    } else {
        let causes = error.chain().map(ToString::to_string).collect::<Vec<_>>();
        eprintln!("\nfailed: {}", causes.join(": "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_program_takes_one_row_and_steers_no_terminal() {
        assert_eq!(row("30 s · done\x1b[2J\r"), "30 s · done[2J");
        assert_eq!(row(&"ä".repeat(2_000)).chars().count(), WIDTH);
    }
}
