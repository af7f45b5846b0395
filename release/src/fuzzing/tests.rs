//! A moment of what the programs in `fuzz` do for long, and the seeds from which both start.

use std::{fs, panic, path::PathBuf};

use super::*;

#[path = "../../../fuzz/src/brief.rs"]
mod brief;

/// How many changes of seeds are tried with each target.
const CHANGES: usize = 600;

fn folder(kind: &str, target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz")
        .join(kind)
        .join(target)
}

#[test]
fn good_seeds_are_accepted_and_bad_ones_refused() {
    for (name, target) in TARGETS {
        let mut seen = Vec::new();
        for (seed, bytes) in brief::seeds(&folder("seeds", name)) {
            let outcome = target(&bytes);
            let expected = if seed.starts_with("good") {
                Outcome::Accepted
            } else {
                Outcome::Refused
            };
            assert_eq!(outcome, expected, "{name}/{seed}");
            seen.push(outcome);
        }
        for outcome in [Outcome::Accepted, Outcome::Refused] {
            assert!(seen.contains(&outcome), "{name} has no seed that is {outcome:?}");
        }
    }
}

#[test]
fn what_must_hold_of_a_parser_holds_for_every_change_of_its_seeds() {
    for (name, target) in TARGETS {
        let seeds = brief::seeds(&folder("seeds", name));
        let mut numbers = brief::Numbers::of(1);
        for turn in 0..CHANGES {
            let input = brief::changed(&seeds, &mut numbers);
            if let Err(failure) = panic::catch_unwind(|| target(&input)) {
                let found = std::env::temp_dir().join(format!("stackwright-{name}-{turn}"));
                fs::write(&found, &input).unwrap();
                eprintln!("{name} does not hold for {}", found.display());
                panic::resume_unwind(failure);
            }
        }
    }
}

#[test]
fn what_was_found_once_is_answered() {
    for (name, target) in TARGETS {
        if folder("found", name).is_dir() {
            for (found, bytes) in brief::seeds(&folder("found", name)) {
                eprintln!("{name}/{found}");
                target(&bytes);
            }
        }
    }
}
