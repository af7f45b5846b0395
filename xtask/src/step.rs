//! Running one command as a step of a chore: its output goes to a log file, its progress to the screen, its end becomes a value.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, BufRead, BufReader, PipeReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;

use crate::{process::command_line, screen::Progress, workspace::Workspace};

/// How many lines of a failed step are worth a screen.
const LAST_LINES: usize = 30;
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

/// Where the output of a step goes besides its log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// Nobody: the screen shows one line of progress.
    Log,
    /// Our standard output, line by line, as it comes.
    Reader,
}

/// A command with a title and a log.
pub(crate) struct Step<'a> {
    title: &'a str,
    command: Command,
    log: PathBuf,
    audience: Audience,
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
            log: workspace.lab().join("logs").join(format!("{name}.log")),
            audience: Audience::Log,
        }
    }

    /// Passes the output on as it comes, for those who read it: people, and CI that counts test results.
    pub(crate) fn shown(mut self) -> Self {
        self.audience = Audience::Reader;
        self
    }

    /// Runs the command to its end and returns how long it took; a bad end is a [`StepFailed`].
    pub(crate) fn run(self) -> anyhow::Result<Duration> {
        let title = self.title.to_owned();
        let Finished {
            status,
            elapsed,
            log,
            repeat,
        } = self.finish()?;
        if status.success() {
            return Ok(elapsed);
        }
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
        let progress = Progress::start(self.title, &self.log);
        let begin = Instant::now();
        self.command.stdin(Stdio::null()).stdout(writer).stderr(second);
        let child = self
            .command
            .spawn()
            .with_context(|| format!("failed to start {repeat}"))?;
        // The command holds our ends of the pipe: as long as they are open, the reader sees no end.
        drop(self.command);
        let status = follow(child, reader, file, self.audience, progress, begin)
            .with_context(|| format!("failed to follow the step {:?}", self.title))?;
        Ok(Finished {
            status,
            elapsed: begin.elapsed(),
            log: self.log,
            repeat,
        })
    }
}

fn follow(
    mut child: Child,
    reader: PipeReader,
    log: File,
    audience: Audience,
    mut progress: Progress<'_>,
    begin: Instant,
) -> io::Result<ExitStatus> {
    let last_line = Mutex::new(String::new());
    let status = thread::scope(|scope| {
        let copying = scope.spawn(|| copy_lines(reader, log, audience, &last_line));
        while !copying.is_finished() {
            if audience == Audience::Log {
                progress.tick(
                    begin.elapsed(),
                    &last_line.lock().map(|line| line.clone()).unwrap_or_default(),
                );
            }
            thread::sleep(POLL);
        }
        copying
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that reads the output is gone")))?;
        child.wait()
    })?;
    progress.finish(begin.elapsed(), if status.success() { "done" } else { "FAILED" });
    Ok(status)
}

fn create_log(path: &Path) -> anyhow::Result<File> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    File::create(path).with_context(|| format!("failed to create {}", path.display()))
}

fn copy_lines(reader: PipeReader, mut log: File, audience: Audience, last_line: &Mutex<String>) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        log.write_all(&line)?;
        if audience == Audience::Reader {
            io::stdout().lock().write_all(&line)?;
        }
        if let Ok(mut last) = last_line.lock() {
            String::from_utf8_lossy(&line).trim().clone_into(&mut last);
        }
        line.clear();
    }
    Ok(())
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
