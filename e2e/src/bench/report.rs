//! What a benchmark says at its end: a table in Markdown with the goals, and the same as JSON.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use e2e::{lab::workspace, usage::rounded};
use jiff::{Timestamp, Unit};
use serde::Serialize;

use super::ground::{Machine, commit};
use crate::arguments::Output;

/// The page with the tables, and the folder with the JSON, in a checkout.
const PAGE: &str = "docs/benchmarks.md";
const FOLDER: &str = "docs/benchmarks";

/// One line of a benchmark's table.
pub(super) trait Row: Serialize + Sized {
    /// As many as [`Row::cells`] gives.
    const HEADINGS: &'static [&'static str];

    /// In the order of the headings.
    fn cells(&self) -> Vec<String>;

    /// What was promised of this line.
    fn goals(&self) -> Vec<Goal>;

    /// What was promised of lines beside each other.
    fn goals_of_all(_runs: &[Self]) -> Vec<Goal> {
        Vec::new()
    }
}

/// A number that should be no higher than its limit.
#[derive(Debug, Serialize)]
pub(super) struct Goal {
    what: &'static str,
    /// Which line.
    of: String,
    found: f64,
    limit: f64,
    met: bool,
}

impl Goal {
    /// `what` was found in the line `of`, and should be at most `limit`.
    pub(super) fn at_most(limit: f64, what: &'static str, of: &str, found: f64) -> Self {
        Self {
            what,
            of: of.to_owned(),
            found,
            limit,
            met: found <= limit,
        }
    }

    pub(super) fn is_met(&self) -> bool {
        self.met
    }

    /// There should be none of it.
    pub(super) fn none(what: &'static str, of: &str, found: usize) -> Self {
        Self::at_most(0.0, what, of, count(found))
    }
}

/// A count as the tables calculate with it.
pub(super) fn count(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The one in the middle, of whatever order.
pub(super) fn median(numbers: &[f64]) -> f64 {
    quantile(numbers, 50)
}

/// What so many of a hundred are not above.
pub(super) fn quantile(numbers: &[f64], percent: usize) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    rounded(sorted.get(place).copied().unwrap_or_default(), 3)
}

/// Everything that a reader needs to judge the numbers.
#[derive(Debug, Serialize)]
pub(super) struct Report<R> {
    benchmark: &'static str,
    commit: String,
    date: String,
    machine: Machine,
    runs: Vec<R>,
    goals: Vec<Goal>,
}

impl<R: Row> Report<R> {
    /// `machine` was looked at before the runs.
    pub(super) fn of(benchmark: &'static str, machine: Machine, runs: Vec<R>) -> Result<Self> {
        let now = Timestamp::now()
            .round(Unit::Second)
            .context("the clock cannot be read")?;
        let goals = runs.iter().flat_map(Row::goals).chain(R::goals_of_all(&runs));
        Ok(Self {
            benchmark,
            commit: commit(),
            date: now.to_string(),
            machine,
            goals: goals.collect(),
            runs,
        })
    }

    /// Prints the table, and writes it and the JSON where they are asked for.
    pub(super) fn publish(&self, output: &Output) -> Result<()> {
        let told = self.told();
        say(&told);
        let text = serde_json::to_string_pretty(self).context("failed to express the report as JSON")? + "\n";
        if let Some(path) = &output.json {
            write(path, &text)?;
        }
        if output.record {
            let page = workspace().join(PAGE);
            let was = fs::read_to_string(&page).with_context(|| format!("failed to read {}", page.display()))?;
            write(&page, &in_place(&was, self.benchmark, &told)?)?;
            let file = format!("{FOLDER}/{}.json", self.benchmark);
            write(&workspace().join(file), &text)?;
        }
        Ok(())
    }

    fn told(&self) -> String {
        let Machine {
            cpu_model,
            cores,
            memory_gib,
            kernel,
            load_before,
        } = &self.machine;
        let rows: Vec<Vec<String>> = self.runs.iter().map(Row::cells).collect();
        format!(
            "{}\n\nCommit {}, {}; {cpu_model}, {cores} cores, {memory_gib} GiB, Linux {kernel}; load average before: {load_before}.\n\n{}",
            markdown(R::HEADINGS, &rows),
            self.commit,
            self.date,
            markdown(&["goal: at most", "limit", "found", "met"], &summed_up(&self.goals)),
        )
    }
}

/// One line for each goal, over all that it was promised of.
fn summed_up(goals: &[Goal]) -> Vec<Vec<String>> {
    let mut lines: BTreeMap<usize, (&Goal, f64, f64, Vec<&str>)> = BTreeMap::new();
    for goal in goals {
        let first = goals
            .iter()
            .position(|other| other.what == goal.what && other.limit.total_cmp(&goal.limit).is_eq());
        let line = lines
            .entry(first.unwrap_or_default())
            .or_insert((goal, goal.found, goal.found, Vec::new()));
        line.1 = line.1.min(goal.found);
        line.2 = line.2.max(goal.found);
        if !goal.is_met() {
            line.3.push(&goal.of);
        }
    }
    let told = lines.into_values().map(|(goal, least, most, missed)| {
        let range = match rounded(least, 3).total_cmp(&rounded(most, 3)) {
            std::cmp::Ordering::Equal => most.to_string(),
            _ => format!("{least} to {most}"),
        };
        let met = if missed.is_empty() {
            "yes".to_owned()
        } else {
            format!("**no**: {}", missed.join(", "))
        };
        vec![goal.what.to_owned(), goal.limit.to_string(), range, met]
    });
    told.collect()
}

/// The page with this text between the marks of a benchmark, in place of what was there.
fn in_place(page: &str, benchmark: &str, told: &str) -> Result<String> {
    let (begin, end) = (
        format!("<!-- {benchmark} -->\n"),
        format!("<!-- end of {benchmark} -->"),
    );
    let missing = || format!("{PAGE} has no place for it between {} and {end}", begin.trim_end());
    let (before, rest) = page.split_once(&begin).with_context(missing)?;
    let (_, after) = rest.split_once(&end).with_context(missing)?;
    Ok(format!("{before}{begin}\n{told}\n\n{end}{after}"))
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

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
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

    #[test]
    fn goal_of_several_lines_is_one_line_that_names_those_that_miss_it() {
        let goals = [
            Goal::at_most(2.0, "ratio", "100 releases", 1.5),
            Goal::none("writes", "100 releases", 0),
            Goal::at_most(2.0, "ratio", "1000 releases", 2.5),
        ];
        assert_eq!(
            summed_up(&goals),
            [
                ["ratio", "2", "1.5 to 2.5", "**no**: 1000 releases"],
                ["writes", "0", "0", "yes"]
            ]
        );
    }

    #[test]
    fn table_takes_the_place_of_the_one_before_and_nothing_else() -> Result<()> {
        let page = "a\n<!-- idle -->\nold\n<!-- end of idle -->\nb\n";
        let new = in_place(page, "idle", "new")?;
        assert_eq!(new, "a\n<!-- idle -->\n\nnew\n\n<!-- end of idle -->\nb\n");
        assert_eq!(in_place(&new, "idle", "new")?, new);
        assert!(in_place(page, "converge", "new").is_err());
        Ok(())
    }

    #[test]
    fn every_benchmark_has_its_place_on_the_page() -> Result<()> {
        let page = fs::read_to_string(workspace().join(PAGE))?;
        for benchmark in super::super::NAMES {
            in_place(&page, benchmark, "")?;
        }
        Ok(())
    }

    #[test]
    fn of_two_hundred_the_p99_is_the_third_from_the_end() {
        let numbers: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let all = [quantile(&numbers, 99), median(&numbers), median(&[7.0]), median(&[])];
        assert_eq!(all.map(|number| number.to_string()), ["198", "100", "7", "0"]);
    }
}
