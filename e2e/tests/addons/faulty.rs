//! A release whose add-ons cannot be rendered: it is explained, takes nothing away, and is mended without edits by hand.

use anyhow::{Context, Result, ensure};
use crds::{
    cluster_addon::StagePhase,
    conditions::{ConditionType, Reason, find},
};
use e2e::shim::cluster;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use crate::{
    ground::{CLUSTER, class, on_the_newest, phases, set_topology, status, until_addon},
    stack,
};

/// A10, F6, F9 to F11: the words are helm's.
#[test]
fn a10_f6_a_faulty_release_says_what_is_wrong_and_is_mended_by_going_back_and_by_the_next() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let good = class(journey, "v2", "v2").await?;
        let faulty = class(journey, "v3", "v3").await?;
        let next = class(journey, "v2", "v4").await?;
        journey.apply(cluster(CLUSTER, &good, "v1.35.0", 1)).await?;
        ground.complete(journey, &good, "v2").await?;
        let client = ground.workload.client();
        let first = stack::uids(&client, "v2").await?;

        for (mended, version) in [(&good, "v2"), (&next, "v4")] {
            let notes: Api<ConfigMap> = Api::namespaced(client.clone(), stack::NOTE.0);
            let before = notes.get(stack::NOTE.1).await?.data;
            set_topology(journey, &faulty, "v1.35.0").await?;
            let addon = until_addon(journey, "what is wrong to be said", |status| {
                let stalled = find(&status.conditions, ConditionType::Stalled);
                stalled.is_some_and(|stalled| stalled.reason.as_deref() == Some(Reason::RenderFailed.as_str()))
            })
            .await?;
            let told = status(&addon);
            let templated = find(&told.conditions, ConditionType::HelmChartTemplated).context("a condition")?;
            let message = templated.message.as_deref().unwrap_or_default();
            ensure!(message.contains("lighthouse: set lamp"), "{message}");
            ensure!(!told.ready, "{told:#?}");
            assert_eq!(phases(&told)[0], ("network", StagePhase::Done), "what works is done");
            assert_eq!(
                notes.get(stack::NOTE.1).await?.data,
                before,
                "what does not stays as it was"
            );

            set_topology(journey, mended, "v1.35.0").await?;
            ground.complete(journey, mended, version).await?;
            stack::are_the_same(&first, &stack::uids(&client, version).await?)?;
        }
        ground.looks_write_nothing(journey, "mended").await
    })
}
