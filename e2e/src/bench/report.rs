//! What a benchmark says at its end: a table in Markdown with the goals, and the same as JSON.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use jiff::{Timestamp, Unit};
use serde::Serialize;

use super::ground::{Machine, commit};

/// One line of a benchmark's table.
pub(super) trait Row: Serialize {
    /// As many as [`Row::cells`] gives.
    const HEADINGS: &'static [&'static str];

    /// In the order of the headings.
    fn cells(&self) -> Vec<String>;

    /// What was promised of this line.
    fn goals(&self) -> Vec<Goal>;
}

/// A number that should be no higher than its limit.
#[derive(Debug, Serialize)]
pub(super) struct Goal {
    pub(super) what: String,
    pub(super) found: f64,
    pub(super) limit: f64,
}

impl Goal {
    fn is_met(&self) -> bool {
        self.found <= self.limit
    }
}

/// Everything that a reader needs to judge the numbers.
#[derive(Debug, Serialize)]
pub(super) struct Report<R> {
    benchmark: &'static str,
    commit: String,
    date: String,
    machine: Machine,
    runs: Vec<R>,
    goals_missed: Vec<Goal>,
}

impl<R: Row> Report<R> {
    /// `machine` was looked at before the runs.
    pub(super) fn of(benchmark: &'static str, machine: Machine, runs: Vec<R>) -> Result<Self> {
        let now = Timestamp::now()
            .round(Unit::Second)
            .context("the clock cannot be read")?;
        let goals = runs.iter().flat_map(Row::goals);
        Ok(Self {
            benchmark,
            commit: commit(),
            date: now.to_string(),
            machine,
            goals_missed: goals.filter(|goal| !goal.is_met()).collect(),
            runs,
        })
    }

    /// Prints the table, and writes the JSON where it is asked for.
    pub(super) fn publish(&self, json: Option<&Path>) -> Result<()> {
        say(&self.table());
        if let Some(path) = json {
            let text = serde_json::to_string_pretty(self).context("failed to express the report as JSON")?;
            fs::write(path, text + "\n").with_context(|| format!("failed to write {}", path.display()))?;
        }
        Ok(())
    }

    fn table(&self) -> String {
        let Machine {
            cpu_model,
            cores,
            memory_gib,
            kernel,
            load_before,
        } = &self.machine;
        let rows: Vec<Vec<String>> = self.runs.iter().map(Row::cells).collect();
        let missed: Vec<String> = self
            .goals_missed
            .iter()
            .map(|goal| format!("- {}: {} instead of at most {}", goal.what, goal.found, goal.limit))
            .collect();
        let goals = if missed.is_empty() {
            "All goals are met.".to_owned()
        } else {
            format!("Goals that are missed:\n\n{}", missed.join("\n"))
        };
        format!(
            "{}\n\nCommit {}, {}; {cpu_model}, {cores} cores, {memory_gib} GiB, Linux {kernel}; load before: {load_before}.\n\n{goals}",
            markdown(R::HEADINGS, &rows),
            self.commit,
            self.date,
        )
    }
}

/// A table with columns as wide as their widest cell, numbers to the right.
fn markdown(headings: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(column, heading)| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(String::len);
            cells.chain([heading.len()]).max().unwrap_or_default()
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells
            .zip(&widths)
            .map(|(cell, &width)| format!(" {cell:>width$} "))
            .collect();
        format!("|{}|", cells.join("|"))
    };
    let ruler: Vec<String> = widths
        .iter()
        .map(|width| format!("{}:", "-".repeat(width + 1)))
        .collect();
    let mut lines = vec![line(&mut headings.iter().copied()), format!("|{}|", ruler.join("|"))];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}

#[expect(clippy::print_stdout, reason = "what this program is asked for")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let table = markdown(
            &["a", "long"],
            &[vec!["1".into(), "2".into()], vec!["100".into(), "20".into()]],
        );
        assert_eq!(table, "|   a | long |\n|----:|-----:|\n|   1 |    2 |\n| 100 |   20 |");
    }
}
