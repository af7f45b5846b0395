//! What one test program prints, until its end or until it is stuck.

use std::{
    io::{self, Read, Write},
    process::Child,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

/// How long what a stopped program has printed last is waited for. What it started may keep its output open for ever.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What was heard of a program.
pub(super) struct Heard {
    /// All that it printed, in its order.
    pub(super) output: Vec<u8>,
    /// It printed nothing for too long, and was stopped.
    pub(super) is_stuck: bool,
}

/// Hands on what is written.
struct Said(Sender<Vec<u8>>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.send(bytes.to_vec());
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads to the end of `from`, which `child` and what it starts write to. Nothing for as long as `patience`, and the child is killed.
pub(super) fn to_the_end(
    child: &mut Child,
    mut from: impl Read + Send + 'static,
    patience: Duration,
) -> io::Result<Heard> {
    let (sender, receiver) = mpsc::channel();
    let reading = thread::spawn(move || io::copy(&mut from, &mut Said(sender)));
    let mut output = Vec::new();
    loop {
        match receiver.recv_timeout(patience) {
            Ok(bytes) => output.extend(bytes),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                last_words(&receiver, &mut output);
                return Ok(Heard { output, is_stuck: true });
            }
        }
    }
    let read = reading.join();
    read.unwrap_or_else(|_| Err(io::Error::other("the thread that reads the output is gone")))?;
    Ok(Heard {
        output,
        is_stuck: false,
    })
}

fn last_words(receiver: &Receiver<Vec<u8>>, output: &mut Vec<u8>) {
    let end = Instant::now() + LAST_WORDS;
    while let Ok(bytes) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
        output.extend(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn heard(script: &str, patience: Duration) -> (Heard, Child) {
        let (reader, writer) = io::pipe().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(writer)
            .spawn()
            .unwrap();
        (to_the_end(&mut child, reader, patience).unwrap(), child)
    }

    #[test]
    fn a_program_that_ends_is_heard_to_its_end() {
        let (heard, mut child) = heard("echo one; echo two", Duration::from_mins(1));
        assert_eq!(
            (heard.output.as_slice(), heard.is_stuck),
            (b"one\ntwo\n".as_slice(), false)
        );
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_program_that_prints_nothing_for_too_long_is_stopped_and_what_it_said_is_kept() {
        let (heard, mut child) = heard("echo one; exec sleep 600", Duration::from_millis(300));
        assert_eq!((heard.output.as_slice(), heard.is_stuck), (b"one\n".as_slice(), true));
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn what_a_program_leaves_behind_with_its_output_keeps_nobody_waiting() {
        let (heard, mut child) = heard("echo one; sleep 10 & exit 0", Duration::from_millis(300));
        assert_eq!((heard.output.as_slice(), heard.is_stuck), (b"one\n".as_slice(), true));
        assert!(child.wait().unwrap().success());
    }
}
