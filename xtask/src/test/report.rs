//! What the test programs print, one after the other: for those who read it (people, and CI that counts test results), and into the log.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use anyhow::Context;

use super::{
    cost::Cost,
    lanes::Ended,
    programs::Program,
    results::{Results, of_stuck},
};
use crate::{
    step::{Finished, create_log, read_log},
    workspace::Workspace,
};

pub(super) struct Report {
    pub(super) log: PathBuf,
    /// Whether what is no test program, the examples in the documentation, passed.
    are_examples_good: bool,
    /// By program, in the order in which they ended.
    costs: Vec<(String, Cost)>,
    failed: Vec<Failed>,
    file: File,
    text: String,
}

/// A test program that did not pass.
#[derive(Clone)]
pub(super) struct Failed {
    pub(super) program: Program,
    /// Of its tests; empty where it did not say which.
    pub(super) tests: Vec<String>,
    /// As they are told at the end.
    told: Vec<String>,
    passed_alone: bool,
}

/// So many tests can fail by an accident of the machine; more have a reason.
const ACCIDENTS: usize = 8;
/// A program that takes less is not worth a line of its own.
const LONG: Duration = Duration::from_secs(30);

impl Report {
    pub(super) fn begin(workspace: &Workspace) -> anyhow::Result<Self> {
        let log = workspace.log("test");
        Ok(Self {
            file: create_log(&log)?,
            log,
            are_examples_good: true,
            costs: Vec::new(),
            failed: Vec::new(),
            text: String::new(),
        })
    }

    /// In the words of cargo, so that what reads the output of `cargo test` reads this.
    pub(super) fn add(&mut self, workspace: &Workspace, ended: &Ended) -> anyhow::Result<()> {
        let mut text = ended.program.announcement(workspace) + &printed(ended);
        self.costs.push((ended.program.name(), ended.cost));
        if !ended.is_good() {
            let results = Results::read(&text);
            self.failed.push(Failed {
                program: ended.program.clone(),
                tests: results.failures_of_one_program().unwrap_or_default(),
                told: results.failed_tests().to_vec(),
                passed_alone: false,
            });
            let (status, selection) = (ended.status, ended.program.name());
            text = format!("{text}error: test failed ({status}), to rerun pass `-p {selection}`\n\n");
        }
        // Whoever closed the pipe does not want to read on, but the tests still count.
        let _ = io::stdout().lock().write_all(text.as_bytes());
        self.keep(&text)
    }

    /// What is worth a second look: all that failed, where it is little and each test has a name.
    pub(super) fn to_look_at_again(&self) -> Vec<Failed> {
        let are_named = self.failed.iter().all(|failed| !failed.tests.is_empty());
        let count: usize = self.failed.iter().map(|failed| failed.tests.len()).sum();
        if are_named && count <= ACCIDENTS {
            self.failed.clone()
        } else {
            Vec::new()
        }
    }

    /// What came of the second look at the failed tests of one program.
    pub(super) fn add_second_look(&mut self, ended: &Ended) -> anyhow::Result<()> {
        let text = format!("     Again, alone: {}\n{}", ended.program.name(), printed(ended));
        let again = Results::read(&text);
        let _ = io::stdout().lock().write_all(text.as_bytes());
        for failed in self.failed.iter_mut().filter(|failed| failed.program == ended.program) {
            failed.passed_alone = ended.is_good() && again.passed() == failed.tests.len() as u64;
        }
        self.write(&text)
    }

    /// What a step has shown already.
    pub(super) fn add_step(&mut self, step: &Finished) -> anyhow::Result<()> {
        self.are_examples_good &= step.status.success();
        let text = read_log(&step.log)?;
        self.keep(&text)
    }

    pub(super) fn verdict(&self) -> &'static str {
        if self.is_good() { "done" } else { "FAILED" }
    }

    pub(super) fn is_good(&self) -> bool {
        self.are_examples_good && self.failed.iter().all(|failed| failed.passed_alone)
    }

    pub(super) fn results(&self) -> Results {
        let mut results = Results::read(&self.text);
        for failed in self.failed.iter().filter(|failed| failed.passed_alone) {
            results.forgive(&format!("-p {}", failed.program.name()), failed.told.clone());
        }
        results
    }

    /// The programs that took long, the longest first.
    pub(super) fn longest(&self) -> Vec<(&str, Cost)> {
        let long = self.costs.iter().filter(|(_, cost)| cost.elapsed >= LONG);
        let mut long: Vec<_> = long.map(|(program, cost)| (program.as_str(), *cost)).collect();
        long.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.elapsed));
        long
    }

    fn keep(&mut self, text: &str) -> anyhow::Result<()> {
        self.text += text;
        self.write(text)
    }

    /// Into the log, and not among what is counted.
    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.file.write_all(text.as_bytes());
        written.with_context(|| format!("failed to write {}", self.log.display()))
    }
}

/// What a program printed, and what there is to say about its end where it said nothing itself.
fn printed(ended: &Ended) -> String {
    let mut text = String::from_utf8_lossy(&ended.heard.output).into_owned();
    if ended.heard.is_stuck {
        text += &of_stuck(&text);
    }
    text
}
