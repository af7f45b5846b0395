//! Which of many positions of a journey a test tries: some, or all where the environment asks for it.

use std::{env, ops::RangeInclusive};

use anyhow::{Result, bail};

/// Of so many positions that follow each other one is tried. What an operator does in one step, it does to many objects, so neighbours are alike.
const STRIDE: usize = 3;

/// The positions to be tried of these. `first` differs between tests, so that they do not leave out the same.
pub fn positions(all: RangeInclusive<usize>, first: usize) -> Result<Vec<usize>> {
    let stride = if every_position()? { 1 } else { STRIDE };
    Ok(all.filter(|n| n % stride == first % stride).collect())
}

/// Whether the environment asks for every position, with `STACKWRIGHT_POSITIONS=all`.
pub fn every_position() -> Result<bool> {
    match env::var("STACKWRIGHT_POSITIONS") {
        Err(env::VarError::NotPresent) => Ok(false),
        Ok(all) if all == "all" => Ok(true),
        other => bail!("STACKWRIGHT_POSITIONS is {other:?}: set it to \"all\", or not at all"),
    }
}
