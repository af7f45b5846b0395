//! Bugs can be planted in an operator that was built for it, and in no other; the storms find each of them. With other seeds and courses:
//! `cargo xtask storm --mutant NAME`.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use e2e::{
    built::Program,
    lanes::side_by_side,
    storm::{Run, Subject, run},
    travel::Course,
};

use crate::surveys;

/// What is waited for most of the time is that something becomes true that never does.
const LANES: usize = 8;
/// A seed does not decide how tasks and clocks interleave: one of so many runs of it meets the bug.
const TIMES: usize = 8;

/// A bug, the run that finds it, and some of the words in which it does.
#[derive(Clone, Copy, Debug)]
struct Hunt {
    mutant: &'static str,
    course: Course,
    seed: u64,
    words: &'static str,
}

/// The longest first. Seeds that found their bug in six of six runs, the first one in every other.
const HUNTS: [Hunt; 4] = [
    Hunt {
        mutant: "unread-is-gone",
        course: Course::Upgrade,
        seed: 2,
        words: " is too many",
    },
    Hunt {
        mutant: "unlisted-is-unused",
        course: Course::Remove,
        seed: 43,
        words: "ClusterClass docker-harbor-1-34-v1 is missing",
    },
    Hunt {
        mutant: "status-without-version",
        course: Course::Install,
        seed: 1,
        words: "a status without the version that was read",
    },
    Hunt {
        mutant: "late-inventory",
        course: Course::Install,
        seed: 1,
        words: "made before any status listed it",
    },
];

impl Hunt {
    /// Goes the run with this operator; fails as the run does.
    fn go(self, subject: &Subject) -> Result<()> {
        let Self { course, seed, .. } = self;
        run(surveys()?, Run { course, seed }, subject).result
    }

    /// Fails when no run finds the bug. A program that does not even start is not found: the words are those of a rule.
    fn find(self) -> Result<()> {
        let subject = Subject::mutant(self.mutant);
        let mut outcomes = Vec::new();
        for _ in 0..TIMES {
            let said = match self.go(&subject) {
                Ok(()) => "the run held".to_owned(),
                Err(error) => format!("{error:#}"),
            };
            if said.contains(self.words) {
                return Ok(());
            }
            outcomes.push(said);
        }
        bail!("{self:?} was not found: {outcomes:#?}")
    }
}

#[test]
fn the_storm_finds_the_bugs_that_are_planted_and_nothing_in_the_same_operator_without_them() -> Result<()> {
    let without = Subject {
        program: Program::CoreOperatorWithMutants,
        ..Subject::default()
    };
    let hunts = HUNTS
        .into_iter()
        .flat_map(|hunt| [(hunt, true), (hunt, false)])
        .collect();
    let name =
        |(hunt, planted): &(Hunt, bool)| format!("{}_{}", if *planted { "with" } else { "without" }, hunt.mutant);
    let outcomes = side_by_side(LANES, hunts, name, |(hunt, planted)| {
        let outcome = if planted { hunt.find() } else { hunt.go(&without) };
        outcome.with_context(|| format!("{hunt:?}, planted: {planted}"))
    })?;
    let failed: Vec<String> = outcomes
        .into_iter()
        .filter_map(Result::err)
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(failed.is_empty(), "{failed:#?}");
    Ok(())
}

#[test]
fn the_operator_that_ships_takes_no_bugs() -> Result<()> {
    let answer = Command::new(Program::CoreOperator.path()?)
        .arg("--mutant=late-inventory")
        .output()?;
    let said = String::from_utf8_lossy(&answer.stderr);
    assert_eq!(answer.status.code(), Some(2), "{said}");
    assert!(said.contains("unexpected argument '--mutant'"), "{said}");
    Ok(())
}
