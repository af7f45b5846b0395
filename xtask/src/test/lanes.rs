//! Runs test programs two at a time. Decides which runs when and collects what it prints; what the output means is decided in [`super::results`].

use std::{
    collections::VecDeque,
    io,
    path::Path,
    process::{Command, ExitStatus},
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;

use super::{
    cost::Cost,
    listen::{self, Heard},
    programs::Program,
};

/// How often somebody who watches may see something new.
const POLL: Duration = Duration::from_millis(250);

/// A test program that ran to its end, or was stopped.
pub(super) struct Ended {
    pub(super) program: Program,
    pub(super) status: ExitStatus,
    pub(super) heard: Heard,
    pub(super) cost: Cost,
}

impl Ended {
    pub(super) fn is_good(&self) -> bool {
        self.status.success() && !self.heard.is_stuck
    }
}

/// What there is to tell while programs run.
pub(super) enum News<'a> {
    Ended(Ended),
    /// A line that says which programs run.
    Running(&'a str),
}

/// What the lanes share.
struct Lanes<'a> {
    waiting: Mutex<VecDeque<Program>>,
    running: [Mutex<Option<Running>>; 2],
    words: &'a [String],
    surroundings: Surroundings<'a>,
}

/// What programs are told beside their arguments, by variables.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    /// The folder for what operators asked the API server for.
    pub(super) calls: Option<&'a Path>,
    /// Whether tests run on everything that they can run on.
    pub(super) matrix: bool,
    /// Whether they try every position at which something can be stopped.
    pub(super) positions: bool,
    /// A program that prints nothing for so long is stuck, and stopped: the others are still to have their turn.
    pub(super) patience: Duration,
}

struct Running {
    name: String,
    begin: Instant,
}

const CALLS: &str = "STACKWRIGHT_CALLS";
const MATRIX: &str = "STACKWRIGHT_MATRIX";
pub(super) const POSITIONS: &str = "STACKWRIGHT_POSITIONS";
/// What is said for the summary alone is gathered.
const SUMMARY: &str = "STACKWRIGHT_SUMMARY";

impl Surroundings<'_> {
    /// Says it to a program that is to be started. What somebody has set by hand stays.
    fn tell(self, command: &mut Command) {
        match self.calls {
            Some(folder) => command.env(CALLS, folder),
            None => command.env_remove(CALLS),
        };
        command.env(SUMMARY, "1");
        if self.matrix {
            command.env(MATRIX, "1");
        }
        if self.positions {
            command.env(POSITIONS, "all");
        }
    }
}

/// Runs every program in its turn with `words` as its arguments, and says what happens.
pub(super) fn run(
    programs: Vec<Program>,
    words: &[String],
    surroundings: Surroundings<'_>,
    mut tell: impl FnMut(News<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let lanes = Lanes {
        waiting: Mutex::new(programs.into()),
        running: [const { Mutex::new(None) }; 2],
        words,
        surroundings,
    };
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for lane in 0..lanes.running.len() {
            let (lanes, sender) = (&lanes, sender.clone());
            scope.spawn(move || lanes.follow(lane, &sender));
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(ended) => tell(News::Ended(ended?))?,
                Err(RecvTimeoutError::Timeout) => tell(News::Running(&lanes.sight()))?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    })
}

impl Lanes<'_> {
    /// Ends when nothing waits, or when nobody listens any more.
    fn follow(&self, lane: usize, sender: &Sender<anyhow::Result<Ended>>) {
        while let Some(program) = self.next() {
            *locked(&self.running[lane]) = Some(Running {
                name: program.name(),
                begin: Instant::now(),
            });
            if sender.send(run_one(program, self.words, self.surroundings)).is_err() {
                return;
            }
        }
        *locked(&self.running[lane]) = None;
    }

    fn next(&self) -> Option<Program> {
        locked(&self.waiting).pop_front()
    }

    /// `e2e --test journeys (120 s), helm --lib (2 s), 31 wait`
    fn sight(&self) -> String {
        let running = self.running.iter().filter_map(|lane| {
            let lane = locked(lane);
            lane.as_ref()
                .map(|running| format!("{} ({} s)", running.name, running.begin.elapsed().as_secs()))
        });
        let waiting = locked(&self.waiting).len();
        let waiting = (waiting > 0).then(|| format!("{waiting} wait"));
        running.chain(waiting).collect::<Vec<_>>().join(", ")
    }
}

fn run_one(program: Program, words: &[String], surroundings: Surroundings<'_>) -> anyhow::Result<Ended> {
    // One pipe for both streams keeps their order.
    let (reader, writer) = io::pipe().context("failed to create a pipe")?;
    let second = writer.try_clone().context("failed to share a pipe")?;
    let mut command = program.command();
    command
        .args(words)
        .stdin(std::process::Stdio::null())
        .stdout(writer)
        .stderr(second);
    surroundings.tell(&mut command);
    let begin = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("failed to start {}", program.name()))?;
    // The command holds our ends of the pipe: as long as they are open, the reader sees no end.
    drop(command);
    let heard = listen::to_the_end(&mut child, reader, surroundings.patience)
        .with_context(|| format!("failed to follow {}", program.name()))?;
    let cost = Cost::of(&child, begin);
    let status = child
        .wait()
        .with_context(|| format!("failed to wait for {}", program.name()))?;
    Ok(Ended {
        program,
        status,
        heard,
        cost,
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_to_run_on_everything_and_at_every_position_where_each_is_asked_for() {
        let told = |matrix, positions| {
            let mut command = Command::new("program");
            let surroundings = Surroundings {
                calls: None,
                matrix,
                positions,
                patience: POLL,
            };
            surroundings.tell(&mut command);
            let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
            set.map(|(name, value)| format!("{}={}", name.display(), value.display()))
                .collect::<Vec<_>>()
        };
        let summary = "STACKWRIGHT_SUMMARY=1";
        assert_eq!(told(false, false), [summary]);
        assert_eq!(told(true, false), ["STACKWRIGHT_MATRIX=1", summary]);
        assert_eq!(told(false, true), ["STACKWRIGHT_POSITIONS=all", summary]);
    }
}
