//! kill -9 of the operator at every write by which it takes over what the Go operator left: everything becomes ours, and nothing is made again.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::{ClusterStackRelease, labels};
use e2e::{
    Journey, Operator, Point,
    journey::status,
    predecessor::{left_by_the_predecessor, owners},
    storm::Voyage,
};
use kube::{ResourceExt, api::DynamicObject};

use crate::{JOURNEY_DEADLINE, crash_at_some};

/// Objects of the release.
const OBJECTS: usize = 7;
/// The release becomes one of this operator, with its status; of each object the owner is renamed, and it is applied. More follow, as many as come
/// together.
const WRITES: usize = 6 + 2 * OBJECTS;

#[test]
fn a_crash_at_any_write_of_a_takeover_leads_to_its_end() -> Result<()> {
    crash_at_some("takeover", WRITES, disturbed)
}

async fn disturbed(journey: &mut Journey, n: usize, point: Point) -> Result<()> {
    let tag = journey.releases.publish_harbor("v1", "v1")?;
    left_by_the_predecessor(journey, &tag).await?;
    let left = journey.inventory(&tag).await?;
    ensure!(left.len() == OBJECTS, "{:?}", left.keys());
    let voyage = Voyage::begin(journey).await?;
    let strike = voyage.proxy.strike_at(n, point);
    // It may write before it has read all that it watches, and from then on it is kept from reading: it need not get ready.
    let first = Operator::start(journey.lab(), &journey.options)?;
    let stopped = strike.wait(JOURNEY_DEADLINE).await?;
    first.kill().await?;
    drop(stopped);
    journey.operate().await?;
    let ours = |release: &ClusterStackRelease| {
        status(release).ready && status(release).resources.iter().all(|row| !row.digest.is_empty())
    };
    journey.until_release(&tag, "taken over", ours).await?;
    all_are_ours(&left, &journey.inventory(&tag).await?)?;
    voyage.judge(journey).await?;
    journey.operator()?.check()
}

type Inventory = BTreeMap<String, Option<DynamicObject>>;

/// The objects are those that were left, whoever applied them is nobody's name any more, and what the release lacks has gone from them.
fn all_are_ours(left: &Inventory, now: &Inventory) -> Result<()> {
    ensure!(left.keys().eq(now.keys()), "{:?} {:?}", left.keys(), now.keys());
    for (name, before) in left {
        let before = before.as_ref().with_context(|| format!("{name} was not there"))?;
        let now = now[name].as_ref().with_context(|| format!("{name} is gone"))?;
        ensure!(now.uid() == before.uid(), "{name} is another object");
        ensure!(
            owners(now) == [(labels::FIELD_MANAGER, "Apply")],
            "{name} is owned by {:?}",
            owners(now)
        );
        ensure!(
            !now.annotations().contains_key("example.com/dropped"),
            "{name} still has what the release lacks"
        );
    }
    Ok(())
}
