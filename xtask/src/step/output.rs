//! What a running command writes: into its log, to a reader if there is one, and the newest of it for the screen.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    sync::{Mutex, PoisonError},
};

/// Where the output goes besides the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// Nobody: the screen shows one line of progress.
    Log,
    /// Our standard output, line by line, as it comes.
    Reader,
}

/// How far a command is, as far as its output tells.
#[derive(Clone, Default)]
pub(crate) struct Newest {
    /// The newest line; once the command draws a bar, the bar.
    pub(crate) text: String,
    /// Whole lines so far.
    pub(crate) lines: usize,
    draws_bar: bool,
}

impl Newest {
    /// One line, of a command whose lines are not counted.
    pub(crate) fn of(line: &str) -> Self {
        Self {
            text: line.to_owned(),
            ..Self::default()
        }
    }
}

/// Shared between the thread that reads and the one that draws.
pub(super) struct Output {
    audience: Audience,
    newest: Mutex<Newest>,
}

impl Output {
    pub(super) fn for_audience(audience: Audience) -> Self {
        Self {
            audience,
            newest: Mutex::default(),
        }
    }

    pub(super) fn newest(&self) -> Newest {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads to the end of `from`. What ends with a carriage return is a bar that the next one is drawn over: for the screen and not for the log.
    /// A reader gets every byte.
    pub(super) fn copy(&self, from: impl Read, mut log: impl Write) -> io::Result<()> {
        let mut from = BufReader::new(from);
        loop {
            let line = read_line_or_bar(&mut from)?;
            if line.is_empty() {
                return Ok(());
            }
            let is_bar = line.ends_with(b"\r");
            if self.audience == Audience::Reader {
                io::stdout().lock().write_all(&line)?;
            }
            if self.audience == Audience::Reader || !is_bar {
                log.write_all(&line)?;
            }
            self.note(String::from_utf8_lossy(&line).trim(), is_bar);
        }
    }

    fn note(&self, text: &str, is_bar: bool) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.draws_bar |= is_bar;
        newest.lines += usize::from(!is_bar);
        if is_bar || !newest.draws_bar {
            text.clone_into(&mut newest.text);
        }
    }
}

/// Up to and with the next line feed or carriage return; empty at the end.
fn read_line_or_bar(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let available = from.fill_buf()?;
        let end = available.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let used = end.map_or(available.len(), |index| index + 1);
        line.extend_from_slice(&available[..used]);
        from.consume(used);
        if used == 0 || end.is_some() {
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text: &str) -> (String, Newest) {
        let output = Output::for_audience(Audience::Log);
        let mut log = Vec::new();
        output.copy(text.as_bytes(), &mut log).unwrap();
        (String::from_utf8(log).unwrap(), output.newest())
    }

    #[test]
    fn bar_is_for_the_screen_and_not_for_the_log() {
        let (log, newest) = copied("Compiling a\n[> ] 1/2\r[=>] 2/2\rCompiling b\n");
        assert_eq!(log, "Compiling a\nCompiling b\n");
        assert_eq!((newest.text.as_str(), newest.lines), ("[=>] 2/2", 2));
    }

    #[test]
    fn last_line_counts_without_a_line_feed() {
        let (log, newest) = copied("one\ntwo");
        assert_eq!(log, "one\ntwo");
        assert_eq!((newest.text.as_str(), newest.lines), ("two", 2));
    }
}
