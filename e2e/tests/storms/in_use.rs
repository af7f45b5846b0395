//! What the storms found of releases in use, each as a journey that needs no luck.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{
    Journey, Operator,
    fault_proxy::{Fault, Verb},
    journey::{journey, status},
    releases::harbor_tag,
    storm::Voyage,
    travel::{build_cluster, remove_cluster},
    world::untouched,
};
use serde_json::json;

/// How long the watch of Clusters does not begin after their list: longer than it takes to install a release and to delete it.
const BEHIND: Duration = Duration::from_secs(25);

/// One release that a Cluster uses, of which the operator has not been told. The answer is what the release consists of.
async fn used_unnoticed(journey: &Journey, voyage: &Voyage) -> Result<BTreeMap<String, String>> {
    voyage.proxy.deal(Verb::Watch, "clusters", Fault::Delay(BEHIND));
    journey.releases.publish_harbor("v1", "v1")?;
    journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
    journey.release_ready(&harbor_tag("v1")).await?;
    build_cluster(journey).await
}

/// Who keeps the release, in the words of its status.
async fn kept_for_the_cluster(journey: &Journey) -> Result<()> {
    let says = |release: &ClusterStackRelease| {
        let conditions = status(release).conditions;
        conditions
            .iter()
            .any(|condition| condition.message.as_deref().is_some_and(|text| text.contains("wharf")))
    };
    journey
        .until_release(&harbor_tag("v1"), "kept for the cluster", says)
        .await
        .map(drop)
}

#[test]
fn a_deleted_release_stays_whole_for_a_cluster_that_no_watch_has_told_of() -> Result<()> {
    journey(async |journey| {
        let voyage = Voyage::begin(journey).await?;
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        let in_use = used_unnoticed(journey, &voyage).await?;
        journey.delete::<ClusterStack>("harbor").await?;
        kept_for_the_cluster(journey).await?;
        untouched(journey, &in_use).await?;
        remove_cluster(journey).await?;
        voyage.end(journey, &mut operator).await
    })
}

#[test]
fn a_release_that_nobody_asks_for_stays_for_a_cluster_that_no_watch_has_told_of() -> Result<()> {
    journey(async |journey| {
        let voyage = Voyage::begin(journey).await?;
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        let in_use = used_unnoticed(journey, &voyage).await?;
        journey.releases.publish_harbor("v2", "v2")?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        journey.release_ready(&harbor_tag("v2")).await?;
        // The answer to a later wish shows that the stack has been looked at with the version out of its list.
        journey.ask_stack("harbor", "later").await?;
        untouched(journey, &in_use).await?;
        let release = journey.api::<ClusterStackRelease>().get(&harbor_tag("v1")).await?;
        assert!(release.metadata.deletion_timestamp.is_none(), "it is in use");
        operator.check()
    })
}
