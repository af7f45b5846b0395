//! What we answer otherwise than Helm, recorded beside its answers in `differences.txt`: the rows of `docs/reference/helm-differences.md`.
//! The name of a case is what its row says first, perhaps with more behind a colon; our answers stand behind `ours` and the profiles.

use std::collections::BTreeSet;

use helm::Profile;

use crate::cases::{self, Recorded};

const DOCUMENT: &str = include_str!("../../../docs/reference/helm-differences.md");

/// Rows of the document that no chart in a text file can show: the program for hostile charts has archives that do, what Helm says of the
/// pattern is chance, and what it says of the zones is another thing on another machine.
const ELSEWHERE: [&str; 4] = [
    "asks for a time in a zone that databases know differently (`EST` before 1908, `MET`)",
    "has names of files that are no UTF-8",
    "is an archive with a broken PAX header",
    "gives `.Files.Glob` a pattern on which Go panics for several names in different words",
];

/// A known difference that has gone leaves the document.
#[test]
fn known_differences_are_still_there() {
    let mut recorded = Recorded::read(&cases::differences());
    if std::env::var_os("STACKWRIGHT_REGENERATE").is_some_and(|wanted| wanted == "1" || wanted == "differences.txt") {
        recorded.record();
    }
    for case in &recorded.cases {
        let mut differs = false;
        for profile in Profile::all() {
            assert_eq!(
                case.ours(profile),
                case.own_answer(profile.name),
                "{} ({})",
                case.name,
                profile.name
            );
            differs |= case.own_answer(profile.name) != case.answer(profile.name);
        }
        assert!(
            differs,
            "we answer as Helm does, so no document need speak of it: {}",
            case.name
        );
    }
}

#[test]
fn the_document_of_differences_has_exactly_those_that_are_recorded() {
    let rows = DOCUMENT
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let told: BTreeSet<&str> = rows.map(|(row, _)| row).filter(|row| *row != "a chart that").collect();
    let recorded = Recorded::read(&cases::differences());
    let names = recorded
        .cases
        .iter()
        .map(|case| case.name.split(": ").next().unwrap_or_default());
    let held: BTreeSet<&str> = names.chain(ELSEWHERE).collect();
    assert_eq!(told, held);
}
