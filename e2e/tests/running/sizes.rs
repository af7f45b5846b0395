//! Objects that are as large as etcd takes them, and many of them: what the operator holds does not depend on it.

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{
    Journey, Operator,
    journey::{journey, status},
    releases::harbor_tag,
    usage::Usage,
};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use crate::STACK;

/// Clusters, and the bytes of each, a little less than etcd takes: a page of fifty would be sixty megabytes.
const CLUSTERS: usize = 80;
const BYTES: usize = 1200 << 10;

/// Requests that make them, at once.
const AT_ONCE: usize = 8;

/// The most that the operator may ever have resident, in MiB: a build for debugging, whose pages are 8 MiB at most. With whole pages it would be 150.
const MOST_MEMORY: f64 = 110.0;

/// Clusters with much to say, of which the last in the list uses the release.
async fn large_clusters(journey: &Journey, tag: &str) -> Result<()> {
    let text = "x".repeat(BYTES);
    let clusters = (0..CLUSTERS).map(|number| {
        let class = if number + 1 == CLUSTERS { tag } else { "quick-start" };
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": format!("cluster-{number:03}") },
            "spec": { "topology": {
                "class": class, "version": "v1.34.0", "variables": [{ "name": "text", "value": text }],
            } },
        })
    });
    let made = stream::iter(clusters).map(|cluster| journey.apply(cluster));
    made.buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await
}

#[test]
fn clusters_of_a_hundred_megabytes_are_all_seen_and_take_no_memory() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        large_clusters(journey, &tag).await?;
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        journey.stack(STACK, json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&harbor_tag("v1")).await?;
        // Of whom it is told both what the watch has seen and what a list shows once more.
        journey.delete::<ClusterStack>(STACK).await?;
        let kept = |release: &ClusterStackRelease| {
            let conditions = status(release).conditions;
            let last = format!("cluster-{:03}", CLUSTERS - 1);
            conditions
                .iter()
                .any(|condition| condition.message.as_deref().is_some_and(|text| text.contains(&last)))
        };
        journey.until_release(&tag, "kept for the last cluster", kept).await?;
        let process = operator.process_id().context("the operator runs")?;
        let usage = Usage::of(process)?;
        eprintln!("{usage:?}");
        ensure!(usage.peak_mib < MOST_MEMORY, "{usage:?}");
        operator.check()
    })
}
