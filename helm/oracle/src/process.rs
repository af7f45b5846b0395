//! A program that is run with limits of time, memory and output, and can do no worse than to be ended.

use std::{
    io::{self, Read},
    os::fd::AsFd,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, prlimit},
};

/// What a program may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    /// Bytes of memory that it writes to, code excluded.
    pub(crate) memory: u64,
    /// Bytes of standard output, and of standard error.
    pub(crate) output: u64,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) enum Ending {
    Exited {
        status: ExitStatus,
        stdout: Vec<u8>,
        stderr: Vec<u8>,
    },
    TooSlow,
    TooMuchOutput,
}

/// Runs a program that reads nothing.
pub(crate) fn run(command: &mut Command, limits: &Limits) -> io::Result<Ending> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let ended = supervised(&mut child, limits);
    // It is gone already unless something failed here.
    let _ = child.kill();
    let status = child.wait()?;
    let (in_time, stdout, stderr) = ended?;
    let too_long = |bytes: &Vec<u8>| bytes.len() as u64 > limits.output;
    Ok(if !in_time {
        Ending::TooSlow
    } else if too_long(&stdout) || too_long(&stderr) {
        Ending::TooMuchOutput
    } else {
        Ending::Exited { status, stdout, stderr }
    })
}

/// Whether it ended by itself in time, and what it wrote.
fn supervised(child: &mut Child, limits: &Limits) -> io::Result<(bool, Vec<u8>, Vec<u8>)> {
    let memory = Rlimit {
        current: Some(limits.memory),
        maximum: Some(limits.memory),
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let stdout = scope.spawn(|| read(stdout, limits.output));
        let stderr = scope.spawn(|| read(stderr, limits.output));
        // Set from outside, a moment after the start: to set it inside would take unsafe code.
        let limited = prlimit(Some(Pid::from_child(child)), Resource::Data, memory).map(|_| ());
        let in_time = limited
            .map_err(io::Error::from)
            .and_then(|()| ends_in(child, limits.time));
        if !matches!(in_time, Ok(true)) {
            // The readers end with it.
            child.kill()?;
        }
        let text = |reader: thread::ScopedJoinHandle<'_, io::Result<Vec<u8>>>| {
            reader.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        };
        let (stdout, stderr) = (text(stdout)?, text(stderr)?);
        Ok((in_time?, stdout, stderr))
    })
}

/// One byte more than is allowed tells that there is more; a program that goes on then finds nobody who reads.
fn read(pipe: Option<impl Read>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(limit + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn ends_in(child: &Child, time: Duration) -> io::Result<bool> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let begin = Instant::now();
    loop {
        let left = time.saturating_sub(begin.elapsed());
        let left = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(
            &mut [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)],
            Some(&left),
        ) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(script: &str, time: Duration) -> Ending {
        let limits = Limits {
            time,
            memory: 64 << 20,
            output: 1000,
        };
        run(Command::new("sh").args(["-c", script]), &limits).unwrap()
    }

    const LONG: Duration = Duration::from_mins(5);

    #[test]
    fn what_a_program_writes_is_kept_to_the_byte() {
        let ending = ending("printf out; printf err >&2; exit 3", LONG);
        let Ending::Exited { status, stdout, stderr } = ending else {
            panic!("{ending:?}");
        };
        assert_eq!(
            (status.code(), stdout, stderr),
            (Some(3), b"out".to_vec(), b"err".to_vec())
        );
    }

    #[test]
    fn a_program_that_never_ends_or_never_stops_writing_is_ended() {
        let ending_in_time = ending("exec tail -f /dev/null", Duration::from_millis(20));
        assert!(matches!(ending_in_time, Ending::TooSlow), "{ending_in_time:?}");
        let ending_by_size = ending("exec yes", LONG);
        assert!(matches!(ending_by_size, Ending::TooMuchOutput), "{ending_by_size:?}");
    }

    #[test]
    fn a_program_that_takes_more_memory_than_it_may_fails() {
        // What it starts before it is limited itself would have no limit.
        let ending = ending(
            "until [ \"$(ulimit -d)\" = 65536 ]; do :; done
            printf started; head -c 500000000 /dev/zero | tail -c 400000000 | wc -c",
            LONG,
        );
        let Ending::Exited { stdout, .. } = ending else {
            panic!("{ending:?}");
        };
        assert_eq!(stdout.trim_ascii_end(), b"started0");
    }
}
