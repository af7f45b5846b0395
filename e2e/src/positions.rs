//! Which of many positions of a journey a test tries: some, which the summary of the run is told, or all where the environment asks for it.

use std::{env, ops::RangeInclusive, sync::Once};

use anyhow::{Result, bail};

use crate::summary;

/// Set to `all` by `cargo xtask test --positions`.
const POSITIONS_VARIABLE: &str = "STACKWRIGHT_POSITIONS";

/// Of so many positions that follow each other one is tried. What an operator does in one step, it does to many objects, so neighbours are alike.
const STRIDE: usize = 3;

/// What a run proves less.
const LEFT_OUT: &str = "in many journeys operators are killed, events lost and calls failed at some positions; at all with --positions alone";

/// The positions to be tried of these. `first` differs between tests, so that they do not leave out the same.
pub fn positions(all: RangeInclusive<usize>, first: usize) -> Result<Vec<usize>> {
    let stride = if every_position()? { 1 } else { STRIDE };
    Ok(all.filter(|n| n % stride == first % stride).collect())
}

/// Whether the environment asks for every position, with `STACKWRIGHT_POSITIONS=all`. Where it does not, whoever asks leaves some of them out: that is said
/// for the summary of the run.
pub fn every_position() -> Result<bool> {
    static TOLD: Once = Once::new();
    match env::var(POSITIONS_VARIABLE) {
        Err(env::VarError::NotPresent) => {
            TOLD.call_once(|| summary::reduced(LEFT_OUT));
            Ok(false)
        }
        Ok(all) if all == "all" => Ok(true),
        other => bail!("{POSITIONS_VARIABLE} is {other:?}: set it to \"all\", or not at all"),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What a program tries that is started with this in its environment, and what it says for the summary.
    fn tried_and_said(asked: Option<&str>) -> (String, Vec<String>) {
        let mut program = Command::new(env::current_exe().unwrap());
        program.args([
            "--exact",
            "positions::tests::tries_what_the_environment_asks_for",
            "--ignored",
            "--nocapture",
        ]);
        match asked {
            Some(asked) => program.env(POSITIONS_VARIABLE, asked),
            None => program.env_remove(POSITIONS_VARIABLE),
        };
        let ended = program.output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        let said = String::from_utf8(ended.stderr).unwrap();
        let lines = |begin: &str| {
            said.lines()
                .filter_map(|line| Some(line.split_once(begin)?.1.to_owned()))
                .collect::<Vec<_>>()
        };
        (lines("TRIED: ").concat(), lines("REDUCED: "))
    }

    #[test]
    #[ignore = "only as the child of another test"]
    fn tries_what_the_environment_asks_for() {
        for _ in 0..2 {
            eprintln!("TRIED: {:?}", positions(1..=7, 1).unwrap());
        }
    }

    #[test]
    fn who_leaves_positions_out_says_so_once_and_who_tries_all_says_nothing() {
        let (tried, said) = tried_and_said(None);
        assert_eq!(tried, "[1, 4, 7]".repeat(2));
        assert!(
            matches!(said.as_slice(), [only] if only.contains("--positions")),
            "{said:?}"
        );
        let (tried, said) = tried_and_said(Some("all"));
        assert_eq!((tried, said), ("[1, 2, 3, 4, 5, 6, 7]".repeat(2), Vec::new()));
    }
}
