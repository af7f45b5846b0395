//! What the charts are given is made of the Cluster and of what providers make of it.

use anyhow::{Context, Result, ensure};
use e2e::{eventually, journey::SOON, shim::cluster};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    ground::{CLUSTER, CLUSTER_API, class, on_the_newest},
    stack,
};

/// Cluster API takes the variable to the object of the infrastructure, and the values of the add-ons are made of that.
#[test]
fn a_variable_of_a_cluster_reaches_its_add_ons() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let class = class(journey, "v1", "v1").await?;
        journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        ground.complete(journey, &class, "v1").await?;
        let notes: Api<ConfigMap> = Api::namespaced(ground.workload.client(), stack::NOTE.0);
        let before = notes.get(stack::NOTE.1).await?;
        let variables = json!({ "spec": { "topology": { "variables": [{ "name": "region", "value": "south" }] } } });
        let changed = journey
            .objects(CLUSTER_API, "Cluster")
            .patch(CLUSTER, &PatchParams::default(), &Patch::Merge(variables))
            .await;
        changed.context("failed to change the Cluster")?;
        let after = eventually(SOON, "the note to tell the region", async || {
            let note = notes.get(stack::NOTE.1).await?;
            let region = note.data.as_ref().and_then(|data| data.get("region"));
            ensure!(region.is_some_and(|region| region == "south"), "{note:?}");
            Ok(note)
        })
        .await?;
        assert_eq!(after.uid(), before.uid());
        ground.looks_write_nothing(journey, "moved").await
    })
}
