//! Running one command as a step of a chore: its output goes to a log file, its progress to the screen, its end becomes a value.

mod output;

use std::{
    collections::VecDeque,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;

pub(crate) use self::output::Newest;
use self::output::{Audience, Output};
use crate::{process::command_line, screen::Progress, workspace::Workspace};

/// How many lines of a failed step are worth a screen.
const LAST_LINES: usize = 30;
/// Cargo draws a bar for a terminal only, unless it is told to; the bar is the one place where it says how far it is.
const CARGO_BAR: [(&str, &str); 2] = [
    ("CARGO_TERM_PROGRESS_WHEN", "always"),
    ("CARGO_TERM_PROGRESS_WIDTH", "90"),
];
/// As long as people wait without asking themselves what for.
const QUICK: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);

/// A command of a step ended badly.
#[derive(Debug, thiserror::Error)]
#[error("{title} ({status})")]
pub(crate) struct StepFailed {
    /// What the step was for.
    pub(crate) title: String,
    status: ExitStatus,
    /// The end of its output, shortened to what tells the reason.
    pub(crate) last_lines: Vec<String>,
    /// All of its output.
    pub(crate) log: PathBuf,
    /// The command line that does this step and no other.
    pub(crate) repeat: String,
}

/// A program that we cannot bring ourselves is not on this machine.
#[derive(Debug, thiserror::Error)]
#[error("{tool}: {remedy}")]
pub(crate) struct MissingTool {
    pub(crate) tool: &'static str,
    pub(crate) remedy: String,
}

/// How a command ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) elapsed: Duration,
    /// All of its output.
    pub(crate) log: PathBuf,
    /// The command line that does this step and no other.
    pub(crate) repeat: String,
}

/// A command with a title and a log.
pub(crate) struct Step<'a> {
    title: &'a str,
    command: Command,
    log: PathBuf,
    audience: Audience,
    expected_lines: Option<usize>,
    appears_after: Duration,
}

impl<'a> Step<'a> {
    /// `title` says what the step does, in words that also make the name of the log file.
    pub(crate) fn new(workspace: &Workspace, title: &'a str, command: Command) -> Self {
        let words = title
            .split(|character: char| !character.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("-");
        Self {
            title,
            command,
            log: workspace.log(&name),
            audience: Audience::Log,
            expected_lines: None,
            appears_after: Duration::ZERO,
        }
    }

    /// Nothing is said about the step when it does well and soon: usually it has nothing to do.
    pub(crate) fn silent_when_quick(mut self) -> Self {
        self.appears_after = QUICK;
        self
    }

    /// Passes the output on as it comes, for those who read it: people, and CI that counts test results.
    pub(crate) fn shown(mut self) -> Self {
        self.audience = Audience::Reader;
        self
    }

    /// The command writes about so many lines when nothing is cached: the screen shows how far it is.
    pub(crate) fn expecting_lines(mut self, lines: usize) -> Self {
        self.expected_lines = Some(lines);
        self
    }

    /// Runs the command to its end; a bad end is a [`StepFailed`].
    pub(crate) fn run(self) -> anyhow::Result<Finished> {
        let title = self.title.to_owned();
        let finished = self.finish()?;
        if finished.status.success() {
            return Ok(finished);
        }
        let Finished {
            status,
            elapsed: _,
            log,
            repeat,
        } = finished;
        let last_lines = useful(&read_log(&log)?);
        Err(StepFailed {
            title,
            status,
            last_lines,
            log,
            repeat,
        }
        .into())
    }

    /// Runs the command to its end, which the caller judges.
    pub(crate) fn finish(mut self) -> anyhow::Result<Finished> {
        let repeat = command_line(&self.command);
        let file = create_log(&self.log)?;
        // One pipe for both streams keeps their order.
        let (reader, writer) = io::pipe().context("failed to create a pipe")?;
        let second = writer.try_clone().context("failed to share a pipe")?;
        let mut progress = Progress::new(self.title, &self.log, self.expected_lines);
        if self.appears_after.is_zero() {
            progress.appear();
        }
        let begin = Instant::now();
        if self.audience == Audience::Log {
            self.command.envs(CARGO_BAR);
        }
        self.command.stdin(Stdio::null()).stdout(writer).stderr(second);
        let mut child = self
            .command
            .spawn()
            .with_context(|| format!("failed to start {repeat}"))?;
        // The command holds our ends of the pipe: as long as they are open, the reader sees no end.
        drop(self.command);
        let output = Output::for_audience(self.audience);
        let status = thread::scope(|scope| {
            let copying = scope.spawn(|| output.copy(reader, file));
            while !copying.is_finished() {
                if begin.elapsed() >= self.appears_after {
                    progress.appear();
                }
                if self.audience == Audience::Log {
                    progress.tick(begin.elapsed(), &output.newest());
                }
                thread::sleep(POLL);
            }
            copying
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that reads the output is gone")))?;
            child.wait()
        })
        .with_context(|| format!("failed to follow the step {:?}", self.title))?;
        if !status.success() {
            progress.appear();
        }
        progress.finish(begin.elapsed(), if status.success() { "done" } else { "FAILED" });
        Ok(Finished {
            status,
            elapsed: begin.elapsed(),
            log: self.log,
            repeat,
        })
    }
}

/// An empty log file, and the folders to it.
pub(crate) fn create_log(path: &Path) -> anyhow::Result<File> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    File::create(path).with_context(|| format!("failed to create {}", path.display()))
}

/// The text of a log; bytes that are no text are replaced.
pub(crate) fn read_log(log: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(log).with_context(|| format!("failed to read {}", log.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first error and what follows it, or else the end of the text.
fn useful(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    // Compilers report the first error first; what comes after it is often its echo.
    let from_error: Vec<_> = lines
        .clone()
        .skip_while(|line| !line.starts_with("error"))
        .take(LAST_LINES)
        .map(str::to_owned)
        .collect();
    if !from_error.is_empty() {
        return from_error;
    }
    let mut end = VecDeque::new();
    for line in lines {
        if end.len() == LAST_LINES {
            end.pop_front();
        }
        end.push_back(line.to_owned());
    }
    end.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_error_is_shown_before_its_echoes() {
        let log = "Compiling a\n\nerror[E0308]: mismatched types\n --> src/lib.rs:1\nerror: could not compile";
        assert_eq!(
            useful(log),
            [
                "error[E0308]: mismatched types",
                " --> src/lib.rs:1",
                "error: could not compile"
            ]
        );
    }

    #[test]
    fn end_of_the_log_is_shown_when_nothing_calls_itself_an_error() {
        let log = (0..100).map(|number| format!("line {number}")).collect::<Vec<_>>();
        let lines = useful(&log.join("\n"));
        assert_eq!(
            (lines.len(), lines.first().map(String::as_str)),
            (LAST_LINES, Some("line 70"))
        );
    }
}
