//! kill -9 of the operator at every write of the end of what the Go operator leaked, which was allowed once: all of it goes, and nothing else.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, cluster_stack::OrphanedClass, labels};
use e2e::{
    Journey, Point, eventually, journey::SOON, predecessor::applied_by_the_predecessor, storm::Voyage, world::quiet,
};
use kube::{ResourceExt, api::DynamicObject};
use serde_json::json;

use crate::{crash_and_start_again, crash_at_some};

/// Each object of the release that was leaked is deleted.
const WRITES: usize = 6;

#[test]
fn a_crash_at_any_write_of_an_approved_end_of_orphans_leads_to_it() -> Result<()> {
    crash_at_some("orphans", WRITES, disturbed)
}

async fn disturbed(journey: &mut Journey, n: usize, point: Point) -> Result<()> {
    let voyage = Voyage::begin(journey).await?;
    let kept = journey.releases.publish_harbor("v1", "v1")?;
    let leaked = journey.releases.publish_harbor("v2", "v2")?;
    let (left, _) = applied_by_the_predecessor(journey, &leaked).await?;
    ensure!(left.len() == WRITES, "{:?}", left.keys());
    journey.operate().await?;
    journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
    journey.release_ready(&kept).await?;
    let told = |stack: &ClusterStack| digest(stack).is_some();
    let stack = journey.until_stack("harbor", "tells of what is left", told).await?;
    let before = journey.inventory(&kept).await?;
    quiet(&voyage.proxy).await?;
    voyage.proxy.forget_writes();
    let strike = voyage.proxy.strike_at(n, point);
    journey
        .annotate::<ClusterStack>("harbor", labels::APPROVE_ORPHANS, digest(&stack).as_deref())
        .await?;
    crash_and_start_again(journey, strike).await?;
    let told_nothing = |stack: &ClusterStack| classes(stack).is_empty();
    journey.until_stack("harbor", "tells of nothing", told_nothing).await?;
    all_gone(journey, &left).await?;
    journey.release_ready(&kept).await?;
    ensure!(
        uids(&journey.inventory(&kept).await?) == uids(&before),
        "more than that went"
    );
    voyage.judge(journey).await?;
    journey.operator()?.check()
}

fn classes(stack: &ClusterStack) -> &[OrphanedClass] {
    let orphans = stack.status.as_ref().and_then(|status| status.orphans.as_ref());
    orphans.map_or(&[], |orphans| &orphans.classes)
}

/// What has to be said so that what is left goes.
fn digest(stack: &ClusterStack) -> Option<String> {
    classes(stack).first()?.digest.clone()
}

async fn all_gone(journey: &Journey, left: &BTreeMap<String, DynamicObject>) -> Result<()> {
    for (name, before) in left {
        let types = before.types.as_ref().context("no kind")?;
        let objects = journey.objects(&types.api_version, &types.kind);
        eventually(SOON, format!("{name} to be gone"), async || {
            let found = objects.get_opt(&before.name_any()).await?;
            ensure!(found.is_none(), "{found:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
    }
    Ok(())
}

fn uids(inventory: &BTreeMap<String, Option<DynamicObject>>) -> BTreeMap<&str, Option<String>> {
    let uid = |object: &Option<DynamicObject>| object.as_ref().and_then(ResourceExt::uid);
    inventory
        .iter()
        .map(|(name, object)| (name.as_str(), uid(object)))
        .collect()
}
