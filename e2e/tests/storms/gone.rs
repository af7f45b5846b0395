//! What the storms found of releases that are gone, as a journey that needs no luck.

use std::time::Duration;

use anyhow::{Result, ensure};
use crds::ClusterStackRelease;
use e2e::{
    Operator,
    fault_proxy::{Fault, Verb},
    journey::{journey, status},
    storm::Voyage,
    world::quiet,
};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

/// How long the watch of releases does not begin after their list: longer than it takes to remove one, and to see what becomes of it.
const BEHIND: Duration = Duration::from_secs(15);

/// The objects of a release: API version, kind and name.
fn parts(release: &ClusterStackRelease) -> Vec<(String, String, String)> {
    let rows = status(release).resources.into_iter();
    rows.map(|row| (format!("{}/{}", row.group, row.version), row.kind, row.name))
        .collect()
}

#[test]
fn nothing_is_put_back_for_a_release_whose_end_no_watch_has_told_of() -> Result<()> {
    journey(async |journey| {
        let voyage = Voyage::begin(journey).await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let operator = Operator::start(journey.lab(), &journey.options)?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let before = journey.release_ready(&tag).await?;
        operator.kill().await?;

        voyage
            .proxy
            .deal(Verb::Watch, "clusterstackreleases", Fault::Delay(BEHIND));
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        // The answer shows that it has listed everything.
        journey.ask_stack("harbor", "later").await?;
        // As the operator before it would have ended.
        let releases = journey.api::<ClusterStackRelease>();
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        releases.patch(&tag, &PatchParams::default(), &free).await?;
        releases.delete(&tag, &DeleteParams::default()).await?;
        for (api_version, kind, name) in parts(&before) {
            let objects = journey.objects(&api_version, &kind);
            objects.delete(&name, &DeleteParams::default()).await?;
        }
        quiet(&voyage.proxy).await?;
        let left = journey.marked(&tag).await?;
        ensure!(left.is_empty(), "nobody will ever remove {left:#?}");

        // Once the watch tells, the stack has the release made anew, with all that belongs to it.
        let anew = |release: &ClusterStackRelease| release.uid() != before.uid() && status(release).ready;
        journey.until_release(&tag, "made anew", anew).await?;
        voyage.end(journey, &mut operator).await
    })
}
