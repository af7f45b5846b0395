//! Add-ons bring CRDs, and there are objects of their kinds in the cluster, of the add-ons and of users.

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::{StagePhase, name_for},
    conditions::{ConditionStatus, ConditionType, Reason, find},
    labels,
};
use e2e::{Journey, releases::StackSource, shim::cluster};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    ground::{CLUSTER, Ground, on_the_newest, phases, release_of, set_topology, status, until_addon},
    stack,
};

const DEFINITION: &str = "moorings.quay.example.com";
const GROUP: &str = "quay.example.com";
const KIND: &str = "Mooring";
/// Of somebody who uses the cluster.
const THEIRS: &str = "ferry";

/// The CRD with these versions, the last of which objects are stored in, and with these fields of texts.
fn definition(versions: &[&str], fields: &[&str]) -> String {
    let texts = fields
        .iter()
        .map(|field| ((*field).to_owned(), json!({ "type": "string" })));
    let spec = json!({ "type": "object", "properties": texts.collect::<serde_json::Map<_, _>>() });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": versions.last() == Some(name),
            "schema": { "openAPIV3Schema": schema },
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": DEFINITION },
        "spec": {
            "group": GROUP, "scope": "Namespaced", "versions": versions.iter().map(version).collect::<Vec<_>>(),
            "names": { "kind": KIND, "listKind": "MooringList", "plural": "moorings", "singular": "mooring" },
        },
    })
    .to_string()
}

/// A version of the stack whose add-ons bring the CRD so, and another agent where that says so. The answer is its class.
async fn class(journey: &Journey, version: &str, (versions, fields): (&[&str], &[&str])) -> Result<String> {
    let source = StackSource::quay("v2")?;
    source.write(
        "cluster-addon/network/crds/moorings.yaml",
        &definition(versions, fields),
    )?;
    let newest = versions.last().context("no version")?;
    source.replace(
        "cluster-addon/lighthouse/templates/note.yaml",
        "quay.example.com/v1",
        &format!("{GROUP}/{newest}"),
    )?;
    let agent = "cluster-addon/network/templates/agent.yaml";
    source.replace(agent, stack::image("v2"), stack::image(version))?;
    let tag = journey.releases.publish_stack(&source.path(), version)?;
    release_of(journey, &tag, "v2", version).await?;
    Ok(tag)
}

fn moorings(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, version, KIND));
    Api::namespaced_with(client.clone(), stack::NOTE.0, &kind)
}

/// Somebody in the cluster uses the kind, with a field that the add-ons do not.
async fn moor(client: &Client) -> Result<()> {
    let theirs = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": KIND, "metadata": { "name": THEIRS },
        "spec": { "berth": "south", "depth": "9m" },
    });
    let theirs = serde_json::from_value(theirs)?;
    let made = moorings(client, "v1").create(&PostParams::default(), &theirs).await;
    made.map(drop).context("failed to make a mooring")
}

/// What somebody has written is there, as it is read in this version.
async fn is_moored(client: &Client, version: &str, spec: Value) -> Result<()> {
    let theirs = moorings(client, version).get(THEIRS).await?;
    ensure!(theirs.data["spec"] == spec, "{:#}", theirs.data);
    Ok(())
}

/// Waits until the CRD is refused in these words; the answer is all that is said of it.
async fn refused(journey: &Journey, words: &str) -> Result<String> {
    let addon = until_addon(journey, "the CRD to be refused", |status| {
        let stalled = find(&status.conditions, ConditionType::Stalled);
        let reason = Some(Reason::FailedToApplyObjects.as_str());
        stalled.is_some_and(|stalled| stalled.reason.as_deref() == reason) && error(status).contains(words)
    })
    .await?;
    let told = status(&addon);
    let applied = find(&told.conditions, ConditionType::HelmChartApplied).context("a condition")?;
    let message = applied.message.clone().unwrap_or_default();
    ensure!(
        applied.status == ConditionStatus::False && message.contains(DEFINITION) && message.contains(words),
        "{applied:#?}"
    );
    let expected = [
        ("network", StagePhase::ApplyingOrDeleting),
        ("lighthouse", StagePhase::Pending),
    ];
    ensure!(phases(&told) == expected, "{:#?}", told.stages);
    ensure!(!told.ready && told.applied != told.target, "{told:#?}");
    Ok(error(&told))
}

/// What the row of the CRD says.
fn error(status: &ClusterAddonStatus) -> String {
    let row = status.resources.iter().find(|row| row.name == DEFINITION);
    row.map(|row| row.error.clone()).unwrap_or_default()
}

/// What the status says that `approve-data-loss` of the ClusterAddon has to be.
fn approval(said: &str) -> Result<String> {
    let advice = format!("annotate the ClusterAddon with {}=", labels::APPROVE_DATA_LOSS);
    let (_, digest) = said.split_once(&advice).with_context(|| said.to_owned())?;
    let is_part = |letter: &char| letter.is_ascii_alphanumeric() || *letter == ':';
    Ok(digest.chars().take_while(is_part).collect())
}

/// Everything is as the first version has it: what comes after a CRD waits for it, as in a release.
async fn stays(ground: &Ground, before: &std::collections::BTreeMap<String, String>) -> Result<()> {
    let client = ground.workload.client();
    stack::stands(&client, &ground.home, &stack::expected("v2")).await?;
    let after = stack::uids(&client, "v2").await?;
    ensure!(before == &after, "{before:#?} {after:#?}");
    is_moored(&client, "v1", json!({ "berth": "south", "depth": "9m" })).await
}

#[test]
fn a_crd_of_add_ons_that_would_lose_a_stored_version_is_refused_and_the_next_release_that_keeps_it_goes_through()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let fields = ["berth", "depth"];
        let first = class(journey, "v2", (&["v1"], &fields)).await?;
        let dropped = class(journey, "v3", (&["v2"], &fields)).await?;
        let kept = class(journey, "v4", (&["v1", "v2"], &fields)).await?;
        journey.apply(cluster(CLUSTER, &first, "v1.35.0", 1)).await?;
        ground.complete(journey, &first, "v2").await?;
        let client = ground.workload.client();
        moor(&client).await?;
        let before = stack::uids(&client, "v2").await?;

        set_topology(journey, &dropped, "v1.35.0").await?;
        refused(
            journey,
            "v1 was previously a storage version, and must remain in spec.versions",
        )
        .await?;
        stays(ground, &before).await?;

        set_topology(journey, &kept, "v1.35.0").await?;
        let wanted = stack::in_version(stack::expected("v4"), KIND, "quay.example.com/v2");
        ground.complete_with(journey, &kept, "v4", &wanted).await?;
        stack::are_the_same(&before, &stack::uids(&client, "v4").await?)?;
        for version in ["v1", "v2"] {
            is_moored(&client, version, json!({ "berth": "south", "depth": "9m" })).await?;
        }
        ground.looks_write_nothing(journey, "kept").await
    })
}

#[test]
fn a_crd_of_add_ons_that_would_lose_a_field_is_refused_until_a_person_approves_it_at_the_cluster_addon() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let first = class(journey, "v2", (&["v1"], &["berth", "depth"])).await?;
        let narrow = class(journey, "v3", (&["v1"], &["berth"])).await?;
        journey.apply(cluster(CLUSTER, &first, "v1.35.0", 1)).await?;
        ground.complete(journey, &first, "v2").await?;
        let client = ground.workload.client();
        moor(&client).await?;
        let before = stack::uids(&client, "v2").await?;

        set_topology(journey, &narrow, "v1.35.0").await?;
        let said = refused(journey, "would lose stored data: v1.spec.depth would be dropped").await?;
        stays(ground, &before).await?;

        let digest = approval(&said)?;
        journey
            .annotate::<ClusterAddon>(&name_for(CLUSTER), labels::APPROVE_DATA_LOSS, Some(&digest))
            .await?;
        ground.complete(journey, &narrow, "v3").await?;
        stack::are_the_same(&before, &stack::uids(&client, "v3").await?)?;
        is_moored(&client, "v1", json!({ "berth": "south" })).await?;
        ground.looks_write_nothing(journey, "approved").await
    })
}
