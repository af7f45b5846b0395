//! What the Go operator leaves of add-ons, in every state that it has: ours goes on where it stood, in the cluster nothing flickers, and what is nobody's
//! business of ours stays as it is. And back (F14, F48).

mod left;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon,
    cluster_addon::{StagePhase, name_for},
    labels,
    resource::SyncStatus,
};
use e2e::{
    AuditEvent, ControlPlane, Journey, Options, audit::Mark, cluster_api::seen_by_the_predecessor, journey::journey,
    predecessor::owners, shim::Workload,
};
use kube::{Client, ResourceExt, api::DynamicObject};
use serde_json::{Value, json};

use self::left::{Left, State, Versions};
use crate::{
    by_hand::{ByHand, until_status},
    ground::status,
};

const STACK: &str = "harbor";
const API: &str = "clusterstack.x-k8s.io/v1alpha1";
/// How the operator calls itself at every API server.
const OPERATOR: &str = "stackwright-core-operator";

/// The clusters of ours, in the states that the Go operator leaves them in.
const OURS: [(&str, State); 5] = [
    ("single", State::Single),
    ("moved", State::SingleBeforeItsUpgrade),
    ("staged", State::Staged),
    ("halfway", State::HalfWay),
    ("fresh", State::Fresh),
];
/// The Go operator makes ClusterAddons for these too.
const OTHERS: [(&str, &str); 2] = [("classic", ""), ("foreign", "somebody-elses")];

/// What the Go operator left before ours began.
struct Before {
    left: BTreeMap<&'static str, Left>,
    others: BTreeMap<&'static str, DynamicObject>,
    /// In the logs of both API servers.
    here: Mark,
    there: Mark,
}

async fn leave(journey: &Journey, workload: &ControlPlane, versions: &Versions) -> Result<Before> {
    let served = Workload::at(workload.access()).await?;
    let kubeconfig = served.kubeconfig().as_bytes();
    let (mut left, mut others) = (BTreeMap::new(), BTreeMap::new());
    for (name, state) in OURS {
        let cluster = ByHand::new(name, versions.class_of(state), kubeconfig)
            .bring(journey)
            .await?;
        left.insert(
            name,
            Left::by_the_predecessor(journey, &workload.client(), (&cluster, state), versions).await?,
        );
    }
    for (name, class) in OTHERS {
        let cluster = ByHand::new(name, class, kubeconfig).bring(journey).await?;
        others.insert(
            name,
            left::addon(journey, &cluster, &json!({}), &json!({ "ready": false })).await?,
        );
    }
    Ok(Before {
        left,
        others,
        here: journey.mark().await?,
        there: workload.audit_log().mark().await?,
    })
}

/// The ClusterAddon of a cluster once its add-ons are those of its class, told object by object.
async fn taken_over(journey: &Journey, name: &str, left: &Left, class: &str) -> Result<ClusterAddon> {
    let addon = until_status(journey, name, "taken over", |status| {
        let applied = status.applied.as_ref().map(|applied| applied.cluster_stack.as_str());
        let is_synced = status
            .resources
            .iter()
            .all(|row| row.status == Some(SyncStatus::Synced));
        status.ready && applied == Some(class) && is_synced && status.target == status.applied
    })
    .await?;
    let told = status(&addon);
    let rows = told.resources.iter();
    let rows: BTreeSet<String> = rows
        .map(|row| format!("{} {}/{}", row.kind, row.namespace, row.name))
        .collect();
    let wanted: BTreeSet<String> = left.wanted.iter().map(left::place).collect();
    ensure!(rows == wanted, "{name}: {rows:#?} instead of {wanted:#?}");
    let open = told.stages.iter().filter(|stage| stage.phase != StagePhase::Done);
    ensure!(
        open.count() == 0 && !told.stages.is_empty(),
        "{name}: {:#?}",
        told.stages
    );
    Ok(addon)
}

/// What the Go operator wrote stands where it was, and what it holds on to is as it was.
fn keeps_its_words(now: &ClusterAddon, before: &DynamicObject) -> Result<()> {
    let name = now.name_any();
    let spec = serde_json::to_value(&now.spec)?;
    ensure!(
        spec == before.data["spec"],
        "{name}: {spec:#} instead of {:#}",
        before.data["spec"]
    );
    ensure!(now.uid() == before.uid(), "{name} was made anew");
    ensure!(
        now.finalizers() == [labels::ADDON_FINALIZER],
        "{name}: {:?}",
        now.finalizers()
    );
    let owners = now.owner_references();
    ensure!(owners == before.owner_references(), "{name}: {owners:?}");
    Ok(())
}

/// Each object is the one that was there, as the release wants it, ours alone beside what somebody else set.
async fn is_ours(client: &Client, left: &Left) -> Result<()> {
    for wanted in &left.wanted {
        let place = left::place(wanted);
        let now = left::find(client, wanted)
            .await?
            .with_context(|| format!("{place} is gone"))?;
        ensure!(now.data.get("data") == wanted.get("data"), "{place}: {:#}", now.data);
        let Some(before) = left.applied.get(&place) else {
            continue;
        };
        ensure!(now.uid() == before.uid(), "{place} was made anew");
        let expected = [(labels::FIELD_MANAGER, "Apply"), (left::SOMEBODY, "Update")];
        ensure!(owners(&now) == expected, "{place}: {:?}", owners(&now));
        ensure!(
            !now.annotations().contains_key(left::DROPPED),
            "{place} keeps what was dropped"
        );
        ensure!(
            now.labels().contains_key(left::TEAM),
            "{place} lost what is somebody else's"
        );
    }
    Ok(())
}

fn is_rename(event: &AuditEvent) -> bool {
    let body = event.body.as_deref().unwrap_or_default();
    event.is_write() && event.code == 200 && body.contains(r#""path":"/metadata/managedFields""#)
}

/// What was done in the workload cluster: every owner was renamed once, and nothing went but what the release of the cluster has no more and its inventory
/// names.
async fn nothing_flickered(workload: &ControlPlane, before: &Before) -> Result<()> {
    let events = workload.audit_log().since(before.there).await?.of_agent(OPERATOR);
    let deleted = events.iter().filter(|event| event.verb.starts_with("delete"));
    let deleted: Vec<&str> = deleted
        .filter_map(|event| Some(event.object.as_ref()?.name.as_str()))
        .collect();
    ensure!(deleted == ["moved-old"], "{deleted:?} went");
    let mut renamed: Vec<String> = events
        .filter(is_rename)
        .iter()
        .map(|event| event.request_uri.clone())
        .collect();
    renamed.sort();
    let all = renamed.len();
    renamed.dedup();
    let left: usize = before.left.values().map(Left::to_be_renamed).sum();
    ensure!(
        (all, renamed.len()) == (left, left),
        "not once each of {left}: {renamed:#?}"
    );
    Ok(())
}

/// Of Clusters that are nobody's business nothing is read, and nothing written to what the Go operator made for them.
async fn others_are_as_they_were(journey: &Journey, before: &Before) -> Result<()> {
    let asked = journey.requests_since(before.here).await?;
    for (name, addon) in &before.others {
        let now = journey.objects(API, "ClusterAddon").get(&addon.name_any()).await?;
        ensure!(
            now.resource_version() == addon.resource_version(),
            "{name} was touched: {now:#?}"
        );
        let about = asked.iter().find(|event| {
            let object = event.object.as_ref();
            object.is_some_and(|object| object.name == format!("{name}-kubeconfig") || object.name == *name)
        });
        ensure!(about.is_none(), "{about:?}");
    }
    Ok(())
}

/// Nothing is left to do for one that begins again: it writes that it has looked.
async fn a_second_start_writes_nothing(journey: &mut Journey, workload: &ControlPlane) -> Result<()> {
    journey.usable(STACK, "v1, v2, v3, v4").await?;
    let (here, there) = (journey.mark().await?, workload.audit_log().mark().await?);
    journey.restart_operator().await?;
    for (name, _) in OURS {
        let addon = name_for(name);
        journey
            .annotate::<ClusterAddon>(&addon, labels::REQUESTED_AT, Some("again"))
            .await?;
        until_status(journey, name, "looked at again", |status| {
            status.last_handled_reconcile_at.as_deref() == Some("again")
        })
        .await?;
    }
    let written = workload.audit_log().since(there).await?.of_agent(OPERATOR).writes();
    ensure!(written.is_empty(), "{written:#?}");
    let written = journey.requests_since(here).await?.writes();
    let is_answer = |event: &AuditEvent| {
        let object = event.object.clone().unwrap_or_default();
        (object.resource.as_str(), object.subresource.as_str()) == ("clusteraddons", "status")
    };
    let others = written.filter(|event| !is_answer(event));
    ensure!(others.is_empty(), "{others:#?}");
    Ok(())
}

/// The Go operator comes back: its types read what we wrote, it writes its condition, applies by force, lets a cluster go. And ours comes once more.
async fn and_back(journey: &mut Journey, workload: &ControlPlane, before: &Before) -> Result<()> {
    journey.kill_operator().await?;
    for (name, _) in OURS {
        let addons = journey.objects(API, "ClusterAddon");
        let addon = addons.get(&name_for(name)).await?;
        let seen = seen_by_the_predecessor(journey, "ClusterAddon", &name_for(name)).await;
        let seen = seen.with_context(|| format!("the Go operator cannot read or write that of {name}"))?;
        for field in ["/spec", "/status/ready"] {
            ensure!(
                seen.pointer(field) == serde_json::to_value(&addon)?.pointer(field),
                "{name}: {seen:#}"
            );
        }
        let (ours, theirs) = (addon.data.pointer("/status/stages"), seen.pointer("/status/stages"));
        let phases = |stages: Option<&Value>| {
            let stages = stages.and_then(Value::as_array).into_iter().flatten();
            stages
                .map(|stage| (stage["name"].clone(), stage["phase"].clone()))
                .collect::<Vec<_>>()
        };
        ensure!(phases(ours) == phases(theirs), "{name}: {seen:#}");
    }
    for left in before.left.values() {
        left.apply_again(&workload.client()).await?;
    }
    let there = workload.audit_log().mark().await?;
    journey.operate().await?;
    for (name, _) in OURS {
        let addon = name_for(name);
        journey
            .annotate::<ClusterAddon>(&addon, labels::REQUESTED_AT, Some("back"))
            .await?;
        until_status(journey, name, "ready once more", |status| {
            status.ready && status.last_handled_reconcile_at.as_deref() == Some("back")
        })
        .await?;
    }
    let gone = workload.audit_log().since(there).await?.of_agent(OPERATOR);
    let gone = gone.filter(|event| event.verb.starts_with("delete"));
    ensure!(gone.is_empty(), "{gone:#?}");
    journey.kill_operator().await
}

/// Somebody deletes what nobody needs: there is no other operator any more that would let it go.
async fn others_may_go(journey: &Journey) -> Result<()> {
    for (name, _) in OTHERS {
        let addon = name_for(name);
        journey.delete::<ClusterAddon>(&addon).await?;
        journey.gone::<ClusterAddon>(&addon).await?;
    }
    Ok(())
}

#[test]
fn f14_f48_add_ons_of_the_go_operator_are_taken_over_in_every_state_and_given_back_while_nothing_flickers() -> Result<()>
{
    journey(async |journey| {
        let options = Options {
            audit_bodies: true,
            ..Options::default()
        };
        let workload = ControlPlane::start(options).await?;
        let versions = Versions::publish(journey)?;
        let before = leave(journey, &workload, &versions).await?;
        journey.options.flags.push("--allow-workload-loopback".into());
        journey.operate().await?;
        journey.stack(STACK, json!({ "versions": Versions::ALL })).await?;
        for (name, state) in OURS {
            let left = &before.left[name];
            let addon = taken_over(journey, name, left, versions.class_of(state)).await?;
            keeps_its_words(&addon, &left.addon)?;
            is_ours(&workload.client(), left).await?;
            let stage = addon.annotations().get(labels::CLUSTER_ADDON_STAGE).map(String::as_str);
            ensure!(stage == Some(state.stage_afterwards()), "{name}: {stage:?}");
        }
        let old = left::config_map("kube-system", "moved-old", &json!({}));
        ensure!(
            left::find(&workload.client(), &old).await?.is_none(),
            "the release has it no more"
        );
        nothing_flickered(&workload, &before).await?;
        others_are_as_they_were(journey, &before).await?;
        a_second_start_writes_nothing(journey, &workload).await?;
        others_may_go(journey).await?;
        and_back(journey, &workload, &before).await
    })
}
