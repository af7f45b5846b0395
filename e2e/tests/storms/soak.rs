//! A moment of what `cargo xtask soak` does for hours.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::{
    journey::journey,
    soak::{Plan, Until, soak},
};

#[test]
fn stacks_whose_releases_come_and_go_in_storms_end_true_and_leave_nothing() -> Result<()> {
    let plan = Plan {
        stacks: 5,
        seed: 1,
        until: Until::Deeds(60),
        interval: Duration::from_secs(5),
    };
    let mut samples = Vec::new();
    journey(async |journey| soak(journey, plan, |sample| samples.push(*sample)).await)?;
    let last = samples.last().copied();
    let last = last.ok_or_else(|| anyhow::anyhow!("nothing was looked at"))?;
    ensure!(last.deeds == 60 && last.faults > 0 && last.tasks > 0.0, "{last:?}");
    Ok(())
}
