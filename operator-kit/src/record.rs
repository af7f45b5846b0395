//! Writes decisions down for later replay: one numbered file each, whole or not at all.
//!
//! A recording is a debugging aid. Its failures are logged and change nothing.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

/// How much one process records.
#[derive(Clone, Copy, Debug)]
pub struct RecordLimits {
    /// Most files.
    pub files: u32,
    /// Most bytes of all files.
    pub bytes: u64,
}

impl Default for RecordLimits {
    /// 100,000 decisions or 1 GiB: hours of a busy operator.
    fn default() -> Self {
        Self {
            files: 100_000,
            bytes: 1 << 30,
        }
    }
}

/// A directory that takes recordings.
#[derive(Debug)]
pub struct Recorder {
    directory: PathBuf,
    limits: RecordLimits,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    number: u32,
    bytes: u64,
    stopped: bool,
}

#[derive(Serialize)]
struct Decision<'a, O, P> {
    observed: &'a O,
    now: Timestamp,
    plan: &'a P,
}

/// The directory cannot take recordings.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It could not be created or read.
    #[error("unable to record into {directory:?}")]
    Open {
        /// The directory that was named.
        directory: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Recorder {
    /// Creates the directory when it is missing. Numbers continue after those that an earlier process left.
    pub fn open(directory: &Path, limits: RecordLimits) -> Result<Self, RecordError> {
        let wrap = |source| RecordError::Open {
            directory: directory.to_owned(),
            source,
        };
        fs::create_dir_all(directory).map_err(wrap)?;
        let mut written = Written::default();
        for entry in fs::read_dir(directory).map_err(wrap)? {
            let entry = entry.map_err(wrap)?;
            if let Some(number) = number_of(&entry.path()) {
                written.number = written.number.max(number);
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            limits,
            written: Mutex::new(written),
        })
    }

    /// Writes `NUMBER-SUBJECT.json` with `observed`, `now` and `plan`. `subject` says what kind of decision it is, for
    /// example `release`; letters, digits and dashes survive, everything else becomes a dash.
    pub fn record<O: Serialize, P: Serialize>(&self, subject: &str, observed: &O, now: Timestamp, plan: &P) {
        let encoded = serde_json::to_vec_pretty(&Decision { observed, now, plan });
        let result = encoded
            .map_err(io::Error::other)
            .and_then(|bytes| self.write(subject, &bytes));
        if let Err(error) = result {
            tracing::warn!(%error, directory = %self.directory.display(), "failed to record a decision");
        }
    }

    fn write(&self, subject: &str, bytes: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let total = written.bytes + bytes.len() as u64;
        if written.stopped {
            return Ok(());
        }
        if written.number >= self.limits.files || total > self.limits.bytes {
            written.stopped = true;
            tracing::warn!(
                files = written.number,
                bytes = written.bytes,
                "recording stops here: its limit is reached"
            );
            return Ok(());
        }
        written.number += 1;
        written.bytes = total;
        let name = format!("{:06}-{}.json", written.number, file_name_of(subject));
        let partial = self.directory.join(format!(".{name}.part"));
        fs::File::create(&partial)?.write_all(bytes)?;
        fs::rename(&partial, self.directory.join(name))
    }
}

fn file_name_of(subject: &str) -> String {
    subject
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || letter == '-' {
                letter
            } else {
                '-'
            }
        })
        .collect()
}

fn number_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn decisions_are_numbered_across_processes() {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let recorder = Recorder::open(directory.path(), RecordLimits::default()).unwrap();
            recorder.record("stack/../x", &1, Timestamp::UNIX_EPOCH, &"wait");
        }
        assert_eq!(
            names(directory.path()),
            ["000001-stack----x.json", "000002-stack----x.json"]
        );
        let text = fs::read_to_string(directory.path().join("000002-stack----x.json")).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            serde_json::json!({ "observed": 1, "now": "1970-01-01T00:00:00Z", "plan": "wait" })
        );
    }

    #[test]
    fn recording_stops_at_its_limits() {
        let directory = tempfile::tempdir().unwrap();
        let recorder = Recorder::open(
            directory.path(),
            RecordLimits {
                files: 2,
                bytes: 1 << 20,
            },
        )
        .unwrap();
        for _ in 0..5 {
            recorder.record("stack", &1, Timestamp::UNIX_EPOCH, &2);
        }
        assert_eq!(names(directory.path()).len(), 2);
    }
}
