//! Programs started for a test: their output in a file, their end certain.
//!
//! Each process holds its standard input as a lifeline: this process keeps the other end, and when it goes, by return,
//! panic or SIGKILL, the kernel closes the lifeline and the program ends. Any command gets that property from the
//! `guard` beside the control plane's binary.

use std::{
    fmt, fs,
    future::ready,
    io::{Read, Seek, SeekFrom},
    ops::RangeInclusive,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::{Lab, eventually};

/// A program is given this long to be gone after the signal that nothing can refuse.
const KILL_DEADLINE: Duration = Duration::from_secs(10);
/// What a failure shows of a log.
const TAIL_LINES: usize = 30;
/// The end of a log is looked for in this many of its last bytes.
const TAIL_BYTES: u64 = 64 * 1024;
/// A status of this and a signal's number means "ended by that signal", as in a shell.
const SIGNALLED: i32 = 128;

/// The numbers that a signal can have.
const SIGNALS: RangeInclusive<i32> = 1..=64;

/// What programs in Go are told of their garbage. Collecting it was a quarter of what an API server computed in a journey; memory is cheaper here than
/// processors.
pub(crate) const SELDOM_COLLECTED: (&str, &str) = ("GOGC", "300");

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It returned this status.
    Status(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Ended {
    /// True for status 0 alone.
    pub fn is_success(self) -> bool {
        self == Self::Status(0)
    }

    fn of(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            // The guard answers like a shell, because it lives on when its command is killed.
            (Some(code), _) if SIGNALS.contains(&(code - SIGNALLED)) => Self::Signal(code - SIGNALLED),
            (Some(code), _) => Self::Status(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exited with status {status}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// A running program. Dropped, it is killed and gone.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    child: Child,
    lifeline: Option<ChildStdin>,
}

impl Process {
    /// Starts any command under the guard; standard output and error are appended to the file `log`.
    ///
    /// Program, arguments, environment and folder are taken from `command`, nothing else: a cleared environment
    /// is not (std does not tell), and its standard input is empty.
    pub fn start(lab: &Lab, name: &str, command: &Command, log: &Path) -> Result<Self> {
        let mut guarded = Command::new(lab.guard());
        guarded.arg("--").arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => guarded.env(key, value),
                None => guarded.env_remove(key),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            guarded.current_dir(folder);
        }
        Self::start_lifelined(name, guarded, log)
    }

    /// Starts a command that ends by itself when its standard input does.
    pub(crate) fn start_lifelined(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let output = fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("failed to open {}", log.display()))?;
        let errors = output
            .try_clone()
            .context("failed to share a log between output and errors")?;
        // A group of its own: Ctrl-C at a terminal asks this process, which decides what ends and in which order.
        let mut child = command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("failed to start {name} ({})", command.get_program().display()))?;
        let lifeline = child.stdin.take();
        Ok(Self {
            name: name.to_owned(),
            log: log.to_owned(),
            child,
            lifeline,
        })
    }

    /// The name it was started under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that receives its output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The process id of the command under the guard, for readers of `/proc`; `None` before the guard has started it
    /// and after its end.
    pub fn command_id(&self) -> Option<u32> {
        children_of(self.child.id()).first().copied()
    }

    /// How it ended, or `None` while it runs.
    pub fn ended(&mut self) -> Result<Option<Ended>> {
        let status = self
            .child
            .try_wait()
            .with_context(|| format!("failed to ask for {}", self.name))?;
        Ok(status.map(Ended::of))
    }

    /// Waits for the program to end by itself; past the deadline the error carries the end of its log.
    pub async fn wait(&mut self, deadline: Duration) -> Result<Ended> {
        let what = format!("the end of {}", self.name);
        let mut ended = || self.ended()?.ok_or_else(|| anyhow!("it runs"));
        let waited = eventually(deadline, what, || ready(ended())).await;
        waited.with_context(|| self.tail())
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    pub async fn terminate(&mut self, deadline: Duration) -> Result<Ended> {
        if self.ended()?.is_none() {
            terminate(self.child.id()).with_context(|| format!("failed to end {}", self.name))?;
        }
        self.wait(deadline).await
    }

    /// Stops the command under the guard by SIGSTOP: not one further instruction of it runs before [`Process::wake`].
    pub fn pause(&self) -> Result<()> {
        self.signal_command(Signal::STOP)
    }

    /// Lets it run on (SIGCONT).
    pub fn wake(&self) -> Result<()> {
        self.signal_command(Signal::CONT)
    }

    /// What Ctrl-C at its terminal would do (SIGINT).
    pub fn interrupt(&self) -> Result<()> {
        self.signal_command(Signal::INT)
    }

    fn signal_command(&self, kind: Signal) -> Result<()> {
        let id = self
            .command_id()
            .with_context(|| format!("{} does not run", self.name))?;
        signal(id, kind)
    }

    /// Ends it by SIGKILL and returns when it is gone: not one further instruction of it runs.
    pub async fn kill9(&mut self) -> Result<Ended> {
        self.lifeline = None;
        self.wait(KILL_DEADLINE).await
    }

    /// Ends it and all that it has started, also what outlives it, by SIGKILL; what left its group excepted.
    pub(crate) fn kill_group(&mut self) {
        self.lifeline = None;
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // An error says that none of them lives.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    /// The last lines of its log, under a heading that names it; for failure reports.
    pub fn tail(&self) -> String {
        format!("last lines of {}:\n{}", self.log.display(), tail_of(&self.log))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.lifeline = None;
        // The lifeline may find the program stopped; this signal is not asked. A guard takes its command along.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that a process has started and that have not ended; none when it is gone itself.
pub fn children_of(process: u32) -> Vec<u32> {
    // A child belongs to the thread that started it.
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    let ids = children.iter().flat_map(|children| children.split_whitespace());
    ids.filter_map(|id| id.parse().ok()).collect()
}

/// Sends SIGTERM to a process that is known to live.
pub fn terminate(process: u32) -> Result<()> {
    signal(process, Signal::TERM)
}

fn signal(process: u32, kind: Signal) -> Result<()> {
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    let id = id.with_context(|| format!("{process} is no process id"))?;
    kill_process(id, kind).with_context(|| format!("failed to signal process {process}"))
}

/// The last lines of a file, or why there are none.
pub fn tail_of(path: &Path) -> String {
    let end = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok(end)
    };
    match end() {
        Ok(end) => {
            let text = String::from_utf8_lossy(&end);
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        }
        Err(error) => format!("(unreadable: {error})"),
    }
}
