//! A release whose add-ons cannot be rendered or had, of which the cluster refuses something, or that waits for what can never be: it is explained, takes nothing
//! away, and is mended without edits by hand (A10, F6, F9, F10, F43, F44, F46).

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus, ClusterStack,
    cluster_addon::{StagePhase, name_for},
    conditions::{ConditionStatus, ConditionType, Reason, Severity, find},
    labels,
    resource::{Resource, SyncStatus},
};
use e2e::{Journey, eventually, journey::SOON, releases::StackSource, shim::cluster};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    ground::{
        CLUSTER, Ground, OPERATOR, ask, class, on_the_newest, phases, release_of, set_topology, status, until_addon,
    },
    reshaped::STAGES,
    stack,
};

/// A10, F6, F43: the words are helm's. F9 and F10: neither a release that cannot be used or had nor a ClusterAddon that names no release before it ends the
/// operator.
#[test]
fn a10_f6_f9_f10_f43_a_faulty_release_says_what_is_wrong_and_is_mended_by_going_back_and_by_the_next_though_files_are_away()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let good = class(journey, "v2", "v2").await?;
        let faulty = class(journey, "v3", "v3").await?;
        let next = class(journey, "v2", "v4").await?;
        let last = class(journey, "v2", "v5").await?;
        journey.apply(cluster(CLUSTER, &good, "v1.35.0", 1)).await?;
        ground.complete(journey, &good, "v2").await?;
        let client = ground.workload.client();
        let first = stack::uids(&client, "v2").await?;

        for mended in [(good.as_str(), "v2"), (next.as_str(), "v4")] {
            is_mended(journey, ground, &faulty, mended).await?;
        }
        comes_without_the_files_of_the_one_before(journey, ground, [(&next, "v4"), (&last, "v5")]).await?;
        let now = stack::uids(&client, "v5").await?;
        stack::are_the_same(&first, &now)?;
        ground.looks_write_nothing(journey, "mended").await
    })
}

/// F9: nobody has the files of the release that the Cluster has, and for a while nobody those of the next: what is there stays, nobody ends, and with its own
/// files the next comes.
async fn comes_without_the_files_of_the_one_before(
    journey: &mut Journey,
    ground: &Ground,
    [(before, version_before), (next, version)]: [(&str, &str); 2],
) -> Result<()> {
    let (root, away) = (journey.releases.root().to_owned(), journey.folder().join("away"));
    journey.releases.unpublish(before)?;
    fs::rename(&root, &away).context("failed to take the releases away")?;
    journey.restart_operator().await?;
    set_topology(journey, next, "v1.35.0").await?;
    until_addon(journey, "the files to be missed", |status| {
        let downloaded = find(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
        downloaded.is_some_and(|downloaded| {
            let message = downloaded.message.as_deref().unwrap_or_default();
            downloaded.status == ConditionStatus::False && message.contains(next)
        })
    })
    .await?;
    let wanted = stack::expected(version_before);
    stack::stands(&ground.workload.client(), &ground.home, &wanted).await?;

    fs::rename(&away, &root).context("failed to bring the releases back")?;
    let name = format!("quay-{version}");
    journey
        .annotate::<ClusterStack>(&name, labels::REQUESTED_AT, Some("now"))
        .await?;
    ground.complete(journey, next, version).await.map(drop)
}

/// The Cluster is given a class made of `v3`, whose add-ons cannot be rendered, and then one of this version.
pub(crate) async fn is_mended(
    journey: &Journey,
    ground: &Ground,
    faulty: &str,
    (mended, version): (&str, &str),
) -> Result<()> {
    let client = ground.workload.client();
    let notes: Api<ConfigMap> = Api::namespaced(client.clone(), stack::NOTE.0);
    let before = notes.get(stack::NOTE.1).await?;
    set_topology(journey, faulty, "v1.35.0").await?;
    let told = cannot_be_rendered(journey).await?;
    ensure!(!told.ready, "{told:#?}");
    assert_eq!(phases(&told)[0], ("network", StagePhase::Done), "what works is done");
    let there = stack::uids(&client, "v3").await?;
    let note = notes.get(stack::NOTE.1).await?;
    assert_eq!(note.data, before.data, "what does not stays as it was");

    set_topology(journey, mended, "v1.35.0").await?;
    ground.complete(journey, mended, version).await?;
    stack::are_the_same(&there, &stack::uids(&client, version).await?)
}

/// An API server takes no such port.
const BEACON: &str = "apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-beacon
spec:
  ports:
  - port: 70000
";
const REFUSED: &str = "Service kube-system/cluster-addon-beacon";
/// That something is refused stops nothing but its stage, and that not for long.
const PASSED_OVER: &str = "  - name: network
    action: apply
    timeout: 5s
    onFailure: continue
";

/// A10: the stage after it is done, and all else of its own, and still it is told of what was refused.
#[test]
fn a10_f44_what_the_cluster_refuses_is_told_in_its_row_until_it_is_mended_though_other_objects_and_stages_are_done()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let good = class(journey, "v2", "v4").await?;
        let source = StackSource::quay("v2")?;
        source.write("cluster-addon/network/templates/beacon.yaml", BEACON)?;
        source.replace(STAGES, "  - name: network\n    action: apply\n", PASSED_OVER)?;
        let faulty = journey.releases.publish_stack(&source.path(), "v5")?;
        release_of(journey, &faulty, "v2", "v5").await?;
        journey.apply(cluster(CLUSTER, &good, "v1.35.0", 1)).await?;
        ground.complete(journey, &good, "v4").await?;
        let client = ground.workload.client();
        let first = stack::uids(&client, "v4").await?;

        set_topology(journey, &faulty, "v1.35.0").await?;
        let phases_then = [
            ("network", StagePhase::ApplyingOrDeleting),
            ("lighthouse", StagePhase::Done),
        ];
        until_addon(journey, "the second stage to be done", |status| {
            phases(status) == phases_then
        })
        .await?;
        tells_of_the_refusal(journey, ground).await?;
        ask(journey, "again").await?;
        tells_of_the_refusal(journey, ground).await?;
        journey.restart_operator().await?;
        ask(journey, "after-a-restart").await?;
        // An answer may come before all kinds were listed again, and says so.
        eventually(SOON, "the refusal to be told again", async || {
            tells_of_the_refusal(journey, ground).await
        })
        .await?;

        set_topology(journey, &good, "v1.35.0").await?;
        ground.complete(journey, &good, "v4").await?;
        stack::are_the_same(&first, &stack::uids(&client, "v4").await?)
    })
}

/// In the row, in the stage and in the condition, beside the rows of all else, which is as it is to be.
async fn tells_of_the_refusal(journey: &Journey, ground: &Ground) -> Result<()> {
    let mut told = status(&journey.api::<ClusterAddon>().get(&name_for(CLUSTER)).await?);
    let is_refused = |row: &Resource| format!("{} {}/{}", row.kind, row.namespace, row.name) == REFUSED;
    let refused = told.resources.iter().position(is_refused).context("no row")?;
    let row = told.resources.remove(refused);
    ensure!(
        row.status == Some(SyncStatus::NotSynced) && row.error.contains("70000"),
        "{row:#?}"
    );
    let wanted = stack::expected("v5");
    stack::is_told(&told, &wanted)?;
    stack::stands(&ground.workload.client(), &ground.home, &wanted).await?;
    ensure!(!told.ready && told.applied != told.target, "{told:#?}");
    let stage = told.stages[0].message.as_deref().unwrap_or_default();
    let applied = find(&told.conditions, ConditionType::HelmChartApplied).context("a condition")?;
    let applied = applied.message.as_deref().unwrap_or_default();
    for message in [stage, applied] {
        ensure!(
            message.contains("Service cluster-addon-beacon") && message.contains("70000"),
            "{message}"
        );
    }
    Ok(())
}

/// What the network is to be, in [`STAGES`].
const READY: &str = "network.status.readyReplicas == network.spec.replicas";
/// The first of its objects there.
const NETWORK: &str = "      - key: network\n";
/// Of a kind of which the release knows nothing: the cluster has it of somebody else.
const CRANE: &str = "      - key: crane
        apiVersion: yard.example.com/v1
        kind: Crane
        name: one
        namespace: default
";

/// A version of the stack whose first stage waits until a crane lifts three, by a field of this name; the answer is its class.
async fn lifting(journey: &Journey, field: &str, version: &str) -> Result<String> {
    let source = StackSource::quay("v2")?;
    source.replace(STAGES, NETWORK, &format!("{CRANE}{NETWORK}"))?;
    source.replace(STAGES, READY, &format!("{READY} && crane.spec.{field} == 3"))?;
    let tag = journey.releases.publish_stack(&source.path(), version)?;
    release_of(journey, &tag, "v2", version).await?;
    Ok(tag)
}

/// From now on the cluster serves cranes with these fields, and there is one that has three of each.
async fn serve_cranes(client: &Client, fields: &[&str]) -> Result<()> {
    let with = |value: Value| {
        let fields = fields.iter().map(|field| ((*field).to_owned(), value.clone()));
        fields.collect::<serde_json::Map<_, _>>()
    };
    let spec = json!({ "type": "object", "properties": with(json!({ "type": "integer" })) });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "cranes.yard.example.com" },
        "spec": {
            "group": "yard.example.com", "scope": "Namespaced",
            "names": { "kind": "Crane", "listKind": "CraneList", "plural": "cranes", "singular": "crane" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    let crane = json!({
        "apiVersion": "yard.example.com/v1", "kind": "Crane", "metadata": { "name": "one", "namespace": "default" },
        "spec": with(json!(3)),
    });
    let api = |group: &str, kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let definitions: Api<DynamicObject> =
        Api::all_with(client.clone(), &api("apiextensions.k8s.io", "CustomResourceDefinition"));
    let cranes: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &api("yard.example.com", "Crane"));
    let params = PatchParams::apply("somebody").force();
    definitions
        .patch("cranes.yard.example.com", &params, &Patch::Apply(definition))
        .await?;
    eventually(SOON, "a crane with all fields", async || {
        let made = cranes.patch("one", &params, &Patch::Apply(&crane)).await?;
        ensure!(made.data["spec"] == crane["spec"], "{:#}", made.data);
        Ok(())
    })
    .await
}

/// The stage is told at once what is wrong with what it waits for, and its deadline is far away.
async fn waits_for_nothing(journey: &Journey) -> Result<()> {
    let addon = until_addon(journey, "the condition to be told as invalid", |status| {
        let stalled = find(&status.conditions, ConditionType::Stalled);
        stalled.is_some_and(|stalled| stalled.reason.as_deref() == Some(Reason::ConditionInvalid.as_str()))
    })
    .await?;
    let told = status(&addon);
    let expected = [
        ("network", StagePhase::WaitingForPostCondition),
        ("lighthouse", StagePhase::Pending),
    ];
    ensure!(phases(&told) == expected, "{:#?}", told.stages);
    let stage = &told.stages[0];
    let words = format!(
        "`{READY} && crane.spec.laod == 3` does not fit what the API server of the cluster serves: crane.spec.laod: there is no field laod: \
         did you mean load?"
    );
    ensure!(
        stage.reason.as_deref() == Some(Reason::ConditionInvalid.as_str()),
        "{stage:#?}"
    );
    ensure!(stage.message.as_deref() == Some(words.as_str()), "{stage:#?}");
    let deadline = stage.deadline.as_ref().context("no deadline")?.0;
    ensure!(deadline.duration_since(Timestamp::now()).as_mins() > 20, "{stage:#?}");
    let evaluated = find(&told.conditions, ConditionType::EvaluatedCEL).context("a condition")?;
    ensure!(
        evaluated.status == ConditionStatus::False && evaluated.severity == Some(Severity::Error),
        "{evaluated:#?}"
    );
    ensure!(!told.ready && told.applied != told.target, "{told:#?}");
    Ok(())
}

/// The documents that the operator asked the API server of the cluster for while it looked at the add-ons once more.
async fn documents_of_a_look(journey: &Journey, ground: &Ground, word: &str) -> Result<Vec<String>> {
    let mark = ground.workload.audit_log().mark().await?;
    ask(journey, word).await?;
    let asked = ground.workload.audit_log().since(mark).await?.of_agent(OPERATOR);
    let documents = asked.iter().filter(|event| event.request_uri.starts_with("/openapi"));
    Ok(documents.map(|event| event.request_uri.clone()).collect())
}

/// What a release waits for may be of a kind that only the cluster knows: its API server is asked what such objects have.
/// F43: the words say where the condition is wrong, and what there is instead. F46: it can never hold.
#[test]
fn f43_f46_what_no_object_of_the_cluster_can_have_is_told_and_not_waited_for_until_the_next_release_or_another_definition()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let client = ground.workload.client();
        serve_cranes(&client, &["load"]).await?;
        let faulty = lifting(journey, "laod", "v4").await?;
        let mended = lifting(journey, "load", "v5").await?;
        journey.apply(cluster(CLUSTER, &faulty, "v1.35.0", 1)).await?;
        waits_for_nothing(journey).await?;
        let asked = documents_of_a_look(journey, ground, "at-rest").await?;
        ensure!(asked.len() <= 1, "what is known is not read again: {asked:?}");

        set_topology(journey, &mended, "v1.35.0").await?;
        ground.complete(journey, &mended, "v5").await?;
        let before = stack::uids(&client, "v5").await?;

        set_topology(journey, &faulty, "v1.35.0").await?;
        waits_for_nothing(journey).await?;
        stack::are_the_same(&before, &stack::uids(&client, "v5").await?)?;
        serve_cranes(&client, &["load", "laod"]).await?;
        ground.complete(journey, &faulty, "v4").await?;
        stack::are_the_same(&before, &stack::uids(&client, "v4").await?)?;
        ground.looks_write_nothing(journey, "served").await
    })
}

/// The chart whose lamp nobody has set is told of, in the words of the chart; the answer is the status that does so.
pub(crate) async fn cannot_be_rendered(journey: &Journey) -> Result<ClusterAddonStatus> {
    let addon = until_addon(journey, "what is wrong to be said", |status| {
        let stalled = find(&status.conditions, ConditionType::Stalled);
        stalled.is_some_and(|stalled| stalled.reason.as_deref() == Some(Reason::RenderFailed.as_str()))
    })
    .await?;
    let told = status(&addon);
    let templated = find(&told.conditions, ConditionType::HelmChartTemplated).context("a condition")?;
    let message = templated.message.as_deref().unwrap_or_default();
    ensure!(
        templated.status == ConditionStatus::False && message.contains("lighthouse: set lamp"),
        "{templated:#?}"
    );
    Ok(told)
}
