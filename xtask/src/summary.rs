//! The table at the end of a chore: what was done, how long it took, what came out.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use crate::{screen, step::Step};

/// What came out of a step.
pub(crate) enum Outcome {
    /// As it should be.
    Good,
    /// Not as it should be; the chore fails.
    Bad,
    /// Worth knowing, fails nothing.
    Notice,
}

struct Row {
    step: String,
    elapsed: Duration,
    outcome: Outcome,
    text: String,
}

/// Collects rows in the order in which the steps ran.
#[derive(Default)]
pub(crate) struct Summary {
    rows: Vec<Row>,
}

impl Summary {
    pub(crate) fn add(
        &mut self,
        step: impl Into<String>,
        elapsed: Duration,
        outcome: Outcome,
        text: impl Into<String>,
    ) {
        self.rows.push(Row {
            step: step.into(),
            elapsed,
            outcome,
            text: text.into(),
        });
    }

    /// Runs a step whose failure does not end the chore, and keeps what came out of it: `otherwise`, when it fails.
    pub(crate) fn attempt(&mut self, name: &str, step: Step<'_>, otherwise: Outcome) {
        let begin = Instant::now();
        match step.run() {
            Ok(finished) => self.add(name, finished.elapsed, Outcome::Good, "ok"),
            Err(error) => {
                screen::failure(&error);
                self.add(name, begin.elapsed(), otherwise, "FAILED, see above");
            }
        }
    }

    /// Prints the table; the exit code is bad when one row is.
    pub(crate) fn print(&self) -> ExitCode {
        let width = self.rows.iter().map(|row| row.step.len()).max().unwrap_or(0);
        eprintln!("\n{:width$}  {:>8}  result", "step", "seconds");
        for Row {
            step,
            elapsed,
            outcome,
            text,
        } in &self.rows
        {
            let mark = match outcome {
                Outcome::Good => "",
                Outcome::Bad => "✗ ",
                Outcome::Notice => "! ",
            };
            eprintln!("{step:width$}  {:>8.1}  {mark}{text}", elapsed.as_secs_f64());
        }
        if self.rows.iter().any(|row| matches!(row.outcome, Outcome::Bad)) {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}
