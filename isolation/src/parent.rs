//! The process that asks: starts the other one, feeds it, listens to it, and ends it in every case.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use thiserror::Error;

use crate::child::{ARGUMENT, is_served};
use crate::death::Death;

/// The running program, whatever its file is called by now, and though it may have been replaced.
#[cfg(target_os = "linux")]
const ITSELF: &str = "/proc/self/exe";

/// The whole environment of the process. Without it mimalloc, the allocator of our programs that render and end, takes hold of a gigabyte at
/// once, which is more than the process may have; for other allocators it means nothing.
const ENVIRONMENT: [(&str, &str); 1] = [("MIMALLOC_DISALLOW_ARENA_ALLOC", "1")];

/// How often it is looked whether anybody still wants the answer.
const LOOK: Duration = Duration::from_millis(25);

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// A program that does work of one name when it is started for it.
#[derive(Clone, Debug)]
pub struct Program {
    /// The running program when absent.
    file: Option<PathBuf>,
    name: &'static str,
}

/// How long an answer may take, and how long it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// From the start of the process to the end of its answer.
    pub deadline: Duration,
    /// In bytes.
    pub answer: usize,
}

/// Why there is no answer. The process is gone in every case.
#[derive(Debug, Error)]
pub enum AskError {
    /// Nobody has called [`serve`](crate::serve) for this work in this program: started again, it would do something else.
    #[error("this program does no work of the name {name:?}")]
    NotServed {
        /// The name of the work.
        name: &'static str,
    },
    /// The system starts no process.
    #[error("unable to start a process")]
    Start(#[source] io::Error),
    /// The pipes to the process fail.
    #[error("unable to talk to the process")]
    Talk(#[source] io::Error),
    /// It took too long.
    #[error("the process did not end within {limit:?}, so it was stopped")]
    Deadline {
        /// How long it had.
        limit: Duration,
        /// What it had answered by then.
        said: Vec<u8>,
    },
    /// Its answer is too long.
    #[error("the process answers more than {limit} bytes, so it was stopped")]
    TooLong {
        /// How many bytes it had.
        limit: usize,
        /// As many bytes of it.
        said: Vec<u8>,
    },
    /// Nobody wants the answer any more.
    #[error("the process was stopped, because nobody waits for it any more")]
    Stopped,
    /// It ended in the middle.
    #[error("the process ended before its answer, because {death}")]
    Died {
        /// How it ended.
        death: Death,
        /// What it had answered by then.
        said: Vec<u8>,
    },
}

impl Program {
    /// The running program, which must have called [`serve`](crate::serve) with this name.
    pub fn itself(name: &'static str) -> Self {
        Self { file: None, name }
    }

    /// Another program, which calls [`serve`](crate::serve) with this name.
    pub fn at(file: impl Into<PathBuf>, name: &'static str) -> Self {
        Self {
            file: Some(file.into()),
            name,
        }
    }

    /// Starts the program, gives it the request and returns its answer. Blocks until then, but not beyond the deadline by more than the
    /// system takes to end a process, and not after `stop` is raised.
    pub fn ask(&self, request: &[u8], bounds: Bounds, stop: &AtomicBool) -> Result<Vec<u8>, AskError> {
        let end = Instant::now() + bounds.deadline;
        let mut running = Running(self.start()?);
        let (Some(input), Some(output)) = (running.0.stdin.take(), running.0.stdout.take()) else {
            return Err(AskError::Talk(io::ErrorKind::BrokenPipe.into()));
        };
        let mut talk = Talk::new(input, output, request).map_err(AskError::Talk)?;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(AskError::Stopped);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let (limit, said) = (bounds.deadline, talk.said);
                return Err(AskError::Deadline { limit, said });
            }
            let ended = talk.go_on(left.min(LOOK)).map_err(AskError::Talk)?;
            if talk.said.len() > bounds.answer {
                let limit = bounds.answer;
                talk.said.truncate(limit);
                let said = talk.said;
                return Err(AskError::TooLong { limit, said });
            }
            if ended {
                let (status, said) = (running.end().map_err(AskError::Talk)?, talk.said);
                return if status.success() {
                    Ok(said)
                } else {
                    let death = Death::of(status);
                    Err(AskError::Died { death, said })
                };
            }
        }
    }

    fn start(&self) -> Result<Child, AskError> {
        let name = self.name;
        let file = match &self.file {
            Some(file) => file.clone(),
            None if is_served(name) => itself().map_err(AskError::Start)?,
            None => return Err(AskError::NotServed { name }),
        };
        let mut command = Command::new(file);
        command
            .arg0(name)
            .arg(format!("{ARGUMENT}{name}"))
            .env_clear()
            .envs(ENVIRONMENT)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn().map_err(AskError::Start)
    }
}

#[cfg(target_os = "linux")]
#[expect(clippy::unnecessary_wraps, reason = "other systems have to look for it")]
fn itself() -> io::Result<PathBuf> {
    Ok(PathBuf::from(ITSELF))
}

#[cfg(not(target_os = "linux"))]
fn itself() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// A process that does not outlive its owner.
struct Running(Child);

impl Running {
    /// How it ended. What has closed its output is ending already, and a signal changes nothing any more.
    fn end(&mut self) -> io::Result<ExitStatus> {
        self.0.kill()?;
        self.0.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already, and a process that cannot be killed cannot be waited for either.
        let _ = self.end();
    }
}

/// Both directions at once: a process that answers before it has read everything must not wait for us, nor we for it.
struct Talk<'a> {
    /// None when all is said.
    input: Option<ChildStdin>,
    output: ChildStdout,
    unsaid: &'a [u8],
    said: Vec<u8>,
    chunk: Vec<u8>,
}

impl<'a> Talk<'a> {
    fn new(input: ChildStdin, output: ChildStdout, request: &'a [u8]) -> io::Result<Self> {
        never_wait(&input)?;
        never_wait(&output)?;
        Ok(Self {
            input: Some(input),
            output,
            unsaid: request,
            said: Vec::new(),
            chunk: vec![0; CHUNK],
        })
    }

    /// Waits until there is something to read or room to write, but not for long; says whether the answer is at its end.
    fn go_on(&mut self, wait: Duration) -> io::Result<bool> {
        let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
        let mut ends = vec![PollFd::new(&self.output, PollFlags::IN)];
        ends.extend(self.input.as_ref().map(|input| PollFd::new(input, PollFlags::OUT)));
        match poll(&mut ends, Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = ends.iter().map(|end| !end.revents().is_empty()).collect();
        if ready.get(1).copied().unwrap_or_default() {
            self.write()?;
        }
        if ready[0] { self.read() } else { Ok(false) }
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        match input.write(self.unsaid) {
            Ok(written) => self.unsaid = &self.unsaid[written..],
            Err(error) if is_not_yet(&error) => {}
            // It does not want to hear the rest; how it ends tells why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.unsaid = &[],
            Err(error) => return Err(error),
        }
        if self.unsaid.is_empty() {
            self.input = None;
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<bool> {
        match self.output.read(&mut self.chunk) {
            Ok(0) => Ok(true),
            Ok(read) => {
                self.said.extend_from_slice(&self.chunk[..read]);
                Ok(false)
            }
            Err(error) if is_not_yet(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn never_wait(end: &impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?)
}
