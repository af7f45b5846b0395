//! The table of what the targets tried and found, as it stands in a page.

use std::{fs, process::Command};

use anyhow::Context;

use crate::workspace::Workspace;

const PAGE: &str = "docs/track-record.md";
const BEGIN: &str = "<!-- fuzz coverage -->\n";
const END: &str = "<!-- end of fuzz coverage -->";

/// What one target did.
pub(super) struct Searched {
    pub(super) target: &'static str,
    pub(super) seconds: u64,
    /// What libFuzzer says at its end, with all before it.
    pub(super) log: String,
    /// Inputs for which something did not hold.
    pub(super) found: usize,
}

impl Searched {
    fn row(&self) -> String {
        let stat = |name: &str| number_behind(&self.log, &format!("stat::{name}:")).unwrap_or("?");
        format!(
            "| `{}` | {} | {} | {} | {} | {} |\n",
            self.target,
            self.seconds,
            stat("number_of_executed_units"),
            stat("new_units_added"),
            stat("peak_rss_mb"),
            self.found,
        )
    }
}

/// The last word behind this one that is a number.
fn number_behind<'a>(log: &'a str, word: &str) -> Option<&'a str> {
    let number = log.rsplit_once(word)?.1.split_whitespace().next()?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(number)
}

/// Puts the table into the page, in the place of the one that is there.
pub(super) fn write(workspace: &Workspace, minutes: u32, searched: &[Searched]) -> anyhow::Result<()> {
    let path = workspace.root.join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let page = with_table(&page, &table(minutes, &commit(workspace)?, searched))
        .with_context(|| format!("{PAGE} has no place for the table: {BEGIN}{END}"))?;
    fs::write(&path, page).with_context(|| format!("failed to write {}", path.display()))
}

fn table(minutes: u32, commit: &str, searched: &[Searched]) -> String {
    let head =
        "| target | seconds | inputs tried | of them new ground | peak MiB | found |\n|---|---:|---:|---:|---:|---:|\n";
    let rows: String = searched.iter().map(Searched::row).collect();
    format!("\n`cargo xtask fuzz coverage --minutes {minutes} --record` at commit {commit}:\n\n{head}{rows}\n")
}

fn with_table(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{table}{END}{after}"))
}

/// What is checked out, and whether it is changed.
fn commit(workspace: &Workspace) -> anyhow::Result<String> {
    let described = Command::new("git")
        .current_dir(&workspace.root)
        .args(["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .output()
        .context("failed to ask git for the commit")?;
    Ok(String::from_utf8_lossy(&described.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(log: &str) -> Searched {
        Searched {
            target: "index",
            seconds: 181,
            log: log.to_owned(),
            found: 1,
        }
    }

    #[test]
    fn row_has_what_libfuzzer_says_at_its_end() {
        let log = "#2 INITED\nstat::number_of_executed_units: 2048\nstat::average_exec_per_sec:     11\nstat::new_units_added:          7\n\
                   stat::slowest_unit_time_sec:    0\nstat::peak_rss_mb:              33\n";
        assert_eq!(searched(log).row(), "| `index` | 181 | 2048 | 7 | 33 | 1 |\n");
        assert_eq!(searched("it was killed").row(), "| `index` | 181 | ? | ? | ? | 1 |\n");
    }

    #[test]
    fn table_takes_the_place_of_the_last_one_and_nothing_else_changes() {
        let page = format!("a\n{BEGIN}old\n{END}\nb\n");
        assert_eq!(
            with_table(&page, "new\n").unwrap(),
            format!("a\n{BEGIN}new\n{END}\nb\n")
        );
        assert_eq!(with_table("no place", "new"), None);
    }

    #[test]
    fn page_has_a_place_for_the_table() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(with_table(&fs::read_to_string(root.join(PAGE)).unwrap(), "").is_some());
    }
}
