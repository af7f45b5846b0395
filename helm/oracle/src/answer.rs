//! What `helm template` answers, from the real binary or from ours, as a child process.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::process::{self, Ending, Limits};

/// The slowest chart that is known takes the real Helm six seconds alone, with keys of 4096 bits. The largest takes it 140 MiB. Many times
/// that, for machines that are busy and charts that are not known.
const LIMITS: Limits = Limits {
    time: Duration::from_mins(2),
    memory: 2 << 30,
    output: 256 << 20,
};

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success: the bytes of standard output.
    Output(Vec<u8>),
    /// Refused: the first line of the error.
    Error(String),
    /// Neither: a crash, or a limit that was reached. Never right.
    Broken(String),
}

impl Answer {
    /// Stands for the answer in what is remembered.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let (kind, bytes): (_, &[u8]) = match self {
            Self::Output(output) => (b'o', output),
            Self::Error(line) => (b'e', line.as_bytes()),
            Self::Broken(how) => (b'b', how.as_bytes()),
        };
        Sha256::new().chain_update([kind]).chain_update(bytes).finalize().into()
    }

    /// For people.
    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Output(output) => String::from_utf8_lossy(output),
            Self::Error(line) | Self::Broken(line) => line.into(),
        }
    }
}

/// A program that takes the arguments of `helm template`.
#[derive(Clone, Debug)]
pub struct Helm {
    program: PathBuf,
    /// What stands before the arguments, and behind them.
    around: (Vec<String>, Vec<String>),
}

impl Helm {
    /// The real one.
    pub fn real(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            around: (vec!["template".to_owned()], Vec::new()),
        }
    }

    /// Ours, which answers like the real one of a profile.
    pub fn ours(program: &Path, profile: &str) -> Self {
        Self {
            program: program.to_owned(),
            around: (Vec::new(), vec!["--profile".to_owned(), profile.to_owned()]),
        }
    }

    /// Runs the program with an empty home. Fails only where it cannot be run at all.
    pub fn ask(&self, arguments: &[OsString]) -> Result<Answer> {
        let home = tempfile::tempdir().context("failed to make an empty home")?;
        let (before, behind) = &self.around;
        let mut command = Command::new(&self.program);
        command
            .args(before)
            .args(arguments)
            .args(behind)
            .env_clear()
            .env("HOME", home.path())
            .current_dir(home.path());
        let ending =
            process::run(&mut command, &LIMITS).with_context(|| format!("failed to run {}", self.program.display()))?;
        Ok(match ending {
            Ending::TooSlow => Answer::Broken(format!("it took more than {} s", LIMITS.time.as_secs())),
            Ending::TooMuchOutput => Answer::Broken(format!("it wrote more than {} bytes", LIMITS.output)),
            Ending::Exited { status, stdout, stderr } => answer(status, stdout, &stderr),
        })
    }
}

fn answer(status: ExitStatus, stdout: Vec<u8>, stderr: &[u8]) -> Answer {
    if status.success() {
        return Answer::Output(stdout);
    }
    let stderr = String::from_utf8_lossy(stderr);
    // Warnings stand before it.
    match stderr.lines().find(|line| line.starts_with("Error: ")) {
        Some(line) if status.code() == Some(1) => Answer::Error(line.to_owned()),
        _ => Answer::Broken(format!("{status}: {}", stderr.lines().next().unwrap_or_default())),
    }
}
