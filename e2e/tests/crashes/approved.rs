//! kill -9 of the operator at every write of a large deletion that was approved once: all of it goes, nothing else, and nobody is asked again.

use anyhow::{Result, ensure};
use e2e::{
    Journey, Point,
    journey::status,
    prune::{asks_to_prune, extras_left},
    storm::Voyage,
    world::quiet,
};

use crate::{crash_and_start_again, crash_at_some};

/// Objects of each of two kinds: more than may go without an approval, also when those of the other kind are gone.
const EXTRAS: usize = 12;
/// The status says that they are approved, and each of them is deleted.
const WRITES: usize = 1 + 2 * EXTRAS;
/// What is left of the release.
const OWN_OBJECTS: usize = 7;

#[test]
fn a_crash_at_any_write_of_an_approved_prune_leads_to_its_end_without_another_approval() -> Result<()> {
    crash_at_some("prune", WRITES, disturbed)
}

async fn disturbed(journey: &mut Journey, n: usize, point: Point) -> Result<()> {
    let voyage = Voyage::begin(journey).await?;
    let asking = asks_to_prune(journey, EXTRAS, 0).await?;
    quiet(&voyage.proxy).await?;
    voyage.proxy.forget_writes();
    let strike = voyage.proxy.strike_at(n, point);
    asking.approve(journey).await?;
    crash_and_start_again(journey, strike).await?;
    let release = asking.pruned(journey, OWN_OBJECTS).await?;
    ensure!(status(&release).approved_prune.is_none(), "it is done");
    ensure!(extras_left(journey).await? == [0; 2], "something is left");
    voyage.judge(journey).await?;
    journey.operator()?.check()
}
