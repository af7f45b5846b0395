//! What the test programs print, one after the other: for those who read it (people, and CI that counts test results), and into the log.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
};

use anyhow::Context;

use super::{lanes::Ended, results::Results};
use crate::{
    step::{Finished, create_log, read_log},
    workspace::Workspace,
};

pub(super) struct Report {
    pub(super) log: PathBuf,
    pub(super) is_good: bool,
    file: File,
    text: String,
}

impl Report {
    pub(super) fn begin(workspace: &Workspace) -> anyhow::Result<Self> {
        let log = workspace.log("test");
        Ok(Self {
            file: create_log(&log)?,
            log,
            is_good: true,
            text: String::new(),
        })
    }

    /// In the words of cargo, so that what reads the output of `cargo test` reads this.
    pub(super) fn add(&mut self, workspace: &Workspace, ended: &Ended) -> anyhow::Result<()> {
        let printed = String::from_utf8_lossy(&ended.output);
        let mut text = ended.program.announcement(workspace) + &printed;
        if !ended.status.success() {
            self.is_good = false;
            let (status, selection) = (ended.status, ended.program.name());
            text = format!("{text}error: test failed ({status}), to rerun pass `-p {selection}`\n\n");
        }
        // Whoever closed the pipe does not want to read on, but the tests still count.
        let _ = io::stdout().lock().write_all(text.as_bytes());
        self.keep(&text)
    }

    /// What a step has shown already.
    pub(super) fn add_step(&mut self, step: &Finished) -> anyhow::Result<()> {
        self.is_good &= step.status.success();
        let text = read_log(&step.log)?;
        self.keep(&text)
    }

    pub(super) fn verdict(&self) -> &'static str {
        if self.is_good { "done" } else { "FAILED" }
    }

    pub(super) fn results(&self) -> Results {
        Results::read(&self.text)
    }

    fn keep(&mut self, text: &str) -> anyhow::Result<()> {
        self.text += text;
        let written = self.file.write_all(text.as_bytes());
        written.with_context(|| format!("failed to write {}", self.log.display()))
    }
}
