//! What the lines of `cargo test` say: how many, which failed, how to run those alone. Pure.

use std::{fmt::Write as _, path::Path};

/// The sum over all test programs of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Results {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// As `program: test`, in the order of the run.
    failed_tests: Vec<String>,
    /// What cargo says one has to pass to run a failed program again, such as `-p crds --lib`.
    selections: Vec<String>,
    /// What tests say that they do not do on this machine, each once.
    reductions: Vec<String>,
    /// Which releases of others tests say that they ran on, each once, sorted.
    ground: Vec<String>,
    /// What failed among the others and passed alone, as `program: test`.
    unsteady: Vec<String>,
}

/// How a test begins to say that.
const REDUCED: &str = "REDUCED: ";
/// How it begins to say this.
const RAN_ON: &str = "RAN ON: ";

impl Results {
    pub(super) fn read(text: &str) -> Self {
        let mut results = Self::default();
        let mut program = String::new();
        for line in text.lines() {
            if let Some(target) = line
                .strip_prefix("     Running ")
                .or_else(|| line.strip_prefix("   Doc-tests "))
            {
                program = program_of(target);
            } else if let Some(counts) = line.strip_prefix("test result: ") {
                results.add(counts);
            } else if let Some(test) = line
                .strip_prefix("test ")
                .and_then(|rest| rest.strip_suffix(" ... FAILED"))
            {
                results.failed_tests.push(format!("{program}: {test}"));
            } else if let Some(selection) = selection_of(line) {
                results.selections.push(selection.to_owned());
            } else if let Some((_, reduction)) = line.split_once(REDUCED) {
                // Tests that run side by side write to one line.
                let reduction = reduction.to_owned();
                if !results.reductions.contains(&reduction) {
                    results.reductions.push(reduction);
                }
            } else if let Some((_, release)) = line.split_once(RAN_ON)
                && let Err(place) = results.ground.binary_search_by(|known| known.as_str().cmp(release))
            {
                results.ground.insert(place, release.to_owned());
            }
        }
        results
    }

    /// `FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s`
    fn add(&mut self, counts: &str) {
        for count in counts.split(['.', ';']) {
            let mut words = count.split_whitespace();
            let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// The names of the tests of one program that failed, as the program takes them; nothing where it ended without naming each.
    pub(super) fn failures_of_one_program(&self) -> Option<Vec<String>> {
        let names = self.failed_tests.iter().filter_map(|failed| failed.split_once(": "));
        let names: Vec<String> = names.map(|(_, test)| test.to_owned()).collect();
        (!names.is_empty() && names.len() as u64 == self.failed).then_some(names)
    }

    /// As `program: test`, in the order of the run.
    pub(super) fn failed_tests(&self) -> &[String] {
        &self.failed_tests
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// Counts the failures of a program among the passed ones, because they passed alone.
    pub(super) fn forgive(&mut self, selection: &str, mut failed_tests: Vec<String>) {
        self.failed_tests.retain(|failed| !failed_tests.contains(failed));
        self.selections.retain(|failed| failed != selection);
        let count = failed_tests.len() as u64;
        self.failed = self.failed.saturating_sub(count);
        self.passed += count;
        self.unsteady.append(&mut failed_tests);
    }

    /// Tests that pass or fail by what else the machine does: a fault of theirs, or of what they hold, that somebody has to find.
    pub(super) fn unsteady(&self) -> &[String] {
        &self.unsteady
    }

    /// For the summary, such as `12 passed, 0 failed, 1 ignored`.
    pub(super) fn counts(&self) -> String {
        let Self {
            passed,
            failed,
            ignored,
            ..
        } = self;
        format!("{passed} passed, {failed} failed, {ignored} ignored")
    }

    /// A run in which tests did less proves less: that must be seen at its end.
    pub(super) fn reductions(&self) -> &[String] {
        &self.reductions
    }

    /// What a run proves something about, such as `Cluster API 1.14`.
    pub(super) fn ground(&self) -> &[String] {
        &self.ground
    }

    /// With many test programs the failures are far above: their names and the commands that repeat them come once more at the end.
    pub(super) fn show_failures(&self, log: &Path) {
        if !self.failed_tests.is_empty() {
            eprintln!("\nfailed tests:\n  {}", self.failed_tests.join("\n  "));
        }
        if !self.selections.is_empty() {
            eprintln!("\nwhole log:  {}\nthese alone:", log.display());
            for selection in &self.selections {
                eprintln!("  cargo test {selection}");
            }
        } else if self.passed + self.failed + self.ignored == 0 {
            eprintln!("\nno test ran; whole log: {}", log.display());
        }
    }
}

/// The end of the output of a program that printed nothing for long and was stopped, in the words that it would have had itself: which of its tests had
/// not come to an end, as far as it said. It counts its tests only where each has a name: others than these may not have begun.
pub(super) fn of_stuck(output: &str) -> String {
    let ended = |test: &str| {
        let begin = format!("test {test} ... ");
        output.lines().any(|line| line.starts_with(&begin))
    };
    let slow = output.lines().filter_map(|line| {
        let test = line.strip_prefix("test ")?;
        test.strip_suffix(" has been running for over 60 seconds")
    });
    let stuck: Vec<_> = slow.filter(|test| !ended(test)).collect();
    let lines = stuck.iter().map(|test| format!("test {test} ... FAILED\n"));
    let mut text = "\nerror: it printed nothing for too long, and was stopped\n".to_owned();
    text.extend(lines);
    let count = |end: &str| {
        let tests = output.lines().filter(|line| line.starts_with("test "));
        tests.filter(|line| line.ends_with(end)).count()
    };
    let (passed, failed) = (count(" ... ok"), count(" ... FAILED") + stuck.len());
    let ignored = output.lines().filter(|line| line.contains(" ... ignored")).count();
    let all = output
        .lines()
        .find_map(|line| line.strip_prefix("running ")?.split(' ').next()?.parse().ok());
    if all == Some(passed + failed + ignored) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\ntest result: FAILED. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out\n"
        );
    }
    text
}

/// What a line tells to pass, such as `-p crds --lib`. It ends the line that says that a program failed; after examples in the documentation,
/// which are of many crates, it is a line of its own.
fn selection_of(line: &str) -> Option<&str> {
    let quoted = line
        .strip_prefix("    `")
        .or_else(|| line.split_once("to rerun pass `").map(|(_, rest)| rest))?;
    quoted
        .strip_suffix('`')
        .filter(|selection| selection.starts_with("-p "))
}

/// `unittests src/lib.rs (target/debug/deps/crds-0123)` is one of many such: only the file that is run names the crate.
fn program_of(target: &str) -> String {
    let (source, file) = target.split_once(" (").unwrap_or((target, ""));
    let name = file.rsplit('/').next().and_then(|name| name.rsplit_once('-'));
    match name {
        Some((name, _)) if source.starts_with("unittests ") => format!("{name} {source}"),
        _ => source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
     Running unittests src/lib.rs (target/debug/deps/crds-0123)

running 2 tests
test names::dash ... ok
test names::dot ... FAILED

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed (exit status: 101), to rerun pass `-p crds --lib`

     Running tests/contract.rs (target/debug/deps/contract-4567)
test result: ok. 10 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 1.50s

   Doc-tests crds
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s

error: 1 target failed:
    `-p planning --doc`
";

    #[test]
    fn what_tests_do_not_do_is_told_once() {
        let text = "running 2 tests\nREDUCED: no disk can be mounted here\ntest a ... REDUCED: no openssl here\n\
                    test b ... ok\nREDUCED: no disk can be mounted here\n";
        assert_eq!(
            Results::read(text).reductions(),
            ["no disk can be mounted here", "no openssl here"]
        );
        assert!(Results::read(OUTPUT).reductions().is_empty());
    }

    #[test]
    fn what_tests_ran_on_is_told_once_and_in_order() {
        let text = "test a ... RAN ON: Cluster API 1.14\nRAN ON: Cluster API 1.10\nok\nRAN ON: Cluster API 1.14\n";
        assert_eq!(Results::read(text).ground(), ["Cluster API 1.10", "Cluster API 1.14"]);
    }

    #[test]
    fn results_of_all_programs_are_added() {
        assert_eq!(Results::read(OUTPUT).counts(), "14 passed, 1 failed, 2 ignored");
    }

    #[test]
    fn what_passes_alone_is_counted_as_passed_and_named_as_unsteady() {
        let mut results = Results::read(OUTPUT);
        assert_eq!(results.failures_of_one_program(), Some(vec!["names::dot".to_owned()]));
        let failed = "crds unittests src/lib.rs: names::dot".to_owned();
        results.forgive("-p crds --lib", vec![failed.clone()]);
        assert_eq!(results.counts(), "15 passed, 0 failed, 2 ignored");
        assert_eq!(results.selections, ["-p planning --doc"]);
        assert_eq!(
            (results.unsteady(), results.failed_tests.len()),
            ([failed].as_slice(), 0)
        );
    }

    #[test]
    fn a_program_that_ended_without_naming_its_failures_has_nothing_to_try_again() {
        let aborted = "running 2 tests\ntest names::dash ... ok\n";
        assert_eq!(Results::read(aborted).failures_of_one_program(), None);
        let unnamed = "test a ... ok\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(Results::read(unnamed).failures_of_one_program(), None);
    }

    #[test]
    fn tests_of_a_program_that_was_stopped_are_named_and_counted_where_each_is_known() {
        let output = "running 4 tests\ntest quick ... ok\ntest other ... ignored, by hand\ntest slow has been running for over 60 seconds\n\
                      test stuck has been running for over 60 seconds\ntest slow ... ok\n";
        let results = Results::read(&(output.to_owned() + &of_stuck(output)));
        assert_eq!(results.failures_of_one_program(), Some(vec!["stuck".to_owned()]));
        assert_eq!(results.counts(), "2 passed, 1 failed, 1 ignored");
        let not_begun = output.replace("running 4", "running 5");
        let results = Results::read(&(not_begun.clone() + &of_stuck(&not_begun)));
        assert_eq!(results.failures_of_one_program(), None);
        assert_eq!(results.failed_tests().len(), 1);
    }

    #[test]
    fn failed_tests_are_named_with_their_programs_and_commands() {
        let results = Results::read(OUTPUT);
        assert_eq!(results.failed_tests, ["crds unittests src/lib.rs: names::dot"]);
        assert_eq!(results.selections, ["-p crds --lib", "-p planning --doc"]);
    }
}
