//! Sources that show less than they did before.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionStatus, ConditionType, find},
    labels,
};
use e2e::{Journey, operator::sources_of_this_machine, releases::harbor_tag, web::IndexServer};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::journey;

/// So many releases need an approval: ten never do.
const MANY: usize = 11;

/// Reason and message of a condition of a stack, where it is as `status` says.
fn said(stack: &ClusterStack, type_: ConditionType, status: ConditionStatus) -> Option<(String, String)> {
    let conditions = stack.status.clone()?.conditions;
    let condition = find(&conditions, type_).filter(|condition| condition.status == status)?;
    Some((condition.reason.clone()?, condition.message.clone().unwrap_or_default()))
}

/// The releases with their identities; fails when one of them is to go.
async fn living(journey: &Journey) -> Result<BTreeMap<String, Option<String>>> {
    let releases = journey
        .api::<ClusterStackRelease>()
        .list(&ListParams::default())
        .await?;
    let to_go = releases
        .items
        .iter()
        .find(|release| release.metadata.deletion_timestamp.is_some());
    anyhow::ensure!(to_go.is_none(), "{:?}", to_go.map(ResourceExt::name_any));
    Ok(releases
        .items
        .iter()
        .map(|release| (release.name_any(), release.uid()))
        .collect())
}

/// The digest that a stack wants to have approved, and what it says of how many releases.
fn approval(stack: &ClusterStack) -> Option<String> {
    let (reason, message) = said(stack, ConditionType::ClusterStackReleasesSynced, ConditionStatus::False)?;
    let told = reason == "PruneNotApproved" && message.starts_with(&format!("{MANY} of {} releases", MANY + 1));
    let (_, digest) = message.rsplit_once(": ")?;
    told.then(|| digest.to_owned())
}

#[test]
fn a_source_that_shows_nothing_has_no_release_deleted_without_approval() -> Result<()> {
    journey(async |journey| {
        let versions: Vec<String> = (1..=MANY + 1).map(|number| format!("v{number}")).collect();
        for (number, version) in versions.iter().enumerate() {
            let tag = journey.releases.publish_harbor("v1", version)?;
            let cluster = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": format!("web-{number}") },
                "spec": { "topology": { "class": tag, "version": "v1.34.0" } },
            });
            journey.apply(cluster).await?;
        }
        journey.operate().await?;
        let spec = |versions: &[String]| json!({ "versions": versions, "autoSubscribe": true });
        journey.stack("harbor", spec(&versions)).await?;
        journey.usable("harbor", &versions.join(", ")).await?;
        journey.stack("harbor", spec(&[])).await?;
        let before = living(journey).await?;

        // Nothing is shown any more: what Clusters use stays, and so does the newest.
        for version in &versions {
            journey.releases.unpublish(&harbor_tag(version))?;
        }
        let empty = |stack: &ClusterStack| {
            let said = said(stack, ConditionType::ReleasesSynced, ConditionStatus::True);
            said.is_some_and(|(reason, _)| reason == "ReleaseNotFound")
        };
        journey
            .until_stack("harbor", "told that nothing is listed", empty)
            .await?;
        journey.restart_operator().await?;
        journey.ask_stack("harbor", "look").await?;
        assert_eq!(living(journey).await?, before);

        // All at once nobody uses them, and still none of so many goes before a person has agreed.
        journey.kill_operator().await?;
        let clusters = journey.objects("cluster.x-k8s.io/v1beta1", "Cluster");
        clusters
            .delete_collection(&DeleteParams::default(), &ListParams::default())
            .await?;
        journey.operate().await?;
        let asks = |stack: &ClusterStack| approval(stack).is_some();
        let stack = journey.until_stack("harbor", "asking for an approval", asks).await?;
        journey.ask_stack("harbor", "look again").await?;
        assert_eq!(living(journey).await?, before);
        let digest = approval(&stack).context("a digest")?;
        journey
            .annotate::<ClusterStack>("harbor", labels::APPROVE_PRUNE, Some(&digest))
            .await?;
        for version in &versions[..MANY] {
            journey.gone::<ClusterStackRelease>(&harbor_tag(version)).await?;
        }
        journey.usable("harbor", &versions[MANY]).await?;
        Ok(())
    })
}

#[test]
fn a_source_that_goes_back_to_an_older_version_is_told_once_and_what_is_in_use_stays() -> Result<()> {
    journey(async |journey| {
        let server = IndexServer::start().await?;
        for version in ["v1", "v2"] {
            let tag = journey.releases.publish_harbor(version, version)?;
            server.publish(&journey.releases.folder_of(&tag))?;
        }
        let newest = harbor_tag("v2");
        let cache = journey.folder().join("cache");
        journey.options.flags.extend(sources_of_this_machine(&cache));
        journey.operate().await?;
        let spec = json!({ "autoSubscribe": true, "interval": "10s", "source": server.source() });
        journey.stack("harbor", spec).await?;
        journey.release_ready(&newest).await?;
        journey.usable("harbor", "v2").await?;
        let before = living(journey).await?;

        server.withdraw(&newest);
        let backwards = |stack: &ClusterStack| {
            let said = said(stack, ConditionType::ReleasesSynced, ConditionStatus::True);
            said.is_some_and(|(reason, message)| reason == "VersionWentBackwards" && message.contains(&newest))
        };
        journey
            .until_stack("harbor", "told that it went backwards", backwards)
            .await?;
        for word in ["once", "twice"] {
            journey.ask_stack("harbor", word).await?;
        }
        let stack = journey.until_stack("harbor", "still told", backwards).await?;
        // The older release comes beside it, so that there is something to go back to; nothing goes.
        let after = living(journey).await?;
        assert!(
            before.iter().all(|(tag, uid)| after.get(tag) == Some(uid)),
            "{before:?} {after:?}"
        );
        journey.release_ready(&newest).await?;
        let told = async || {
            let events = journey.events_of(&stack).await?;
            let told = events.iter().filter(|(_, reason, _)| reason == "VersionWentBackwards");
            let told: Vec<_> = told.collect();
            anyhow::ensure!(matches!(told[..], [(kind, ..)] if kind == "Warning"), "{events:#?}");
            Ok::<_, anyhow::Error>(())
        };
        e2e::eventually(e2e::journey::SOON, "one event", told).await?;

        server.publish(&journey.releases.folder_of(&newest))?;
        let mended = |stack: &ClusterStack| !backwards(stack) && stack.status.is_some();
        journey.until_stack("harbor", "forward again", mended).await?;
        Ok(())
    })
}
