//! What the storms found of their own rules: when an operator rests, as a journey that needs no luck.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::{
    Operator,
    fault_proxy::{Fault, Verb},
    journey::{journey, status},
    storm::Voyage,
};
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// How long the operator does not know its releases: longer than the silence that ends a voyage.
const ASLEEP: Duration = Duration::from_secs(4);

#[test]
fn an_operator_that_has_yet_to_look_does_not_rest() -> Result<()> {
    journey(async |journey| {
        let voyage = Voyage::begin(journey).await?;
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let operator = Operator::start(journey.lab(), &journey.options)?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        journey.usable("harbor", "v1").await?;
        operator.kill().await?;
        // As an operator leaves it that was killed after it had written the release and before it wrote the stack.
        let unready = Patch::Merge(json!({ "status": { "ready": false } }));
        let releases = journey.api::<crds::ClusterStackRelease>();
        releases.patch_status(&tag, &PatchParams::default(), &unready).await?;

        voyage
            .proxy
            .deal(Verb::List, "clusterstackreleases", Fault::Delay(ASLEEP));
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        voyage.end(journey, &mut operator).await?;
        let release = releases.get(&tag).await?;
        ensure!(status(&release).ready, "the new operator has looked by now");
        Ok(())
    })
}
