//! A Cluster goes to another management cluster by the real `clusterctl move`, with its add-ons: in the workload cluster nothing is made anew for it, and
//! from then on the operator there looks after it, and no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddon, cluster_addon::name_for, labels};
use e2e::{
    Journey,
    audit::Mark,
    cluster_api::{Clusterctl, Release},
    control_plane::ClientAuthority,
    eventually,
    journey::SOON,
    releases::StackSource,
    shim::{Hold, cluster},
    storm::rules,
};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::{Value, json};

use crate::{
    changed::{change_the_agent, delete_the_note},
    ground::{CLUSTER, CLUSTER_API, Ground, OPERATOR, course, operate, release_of, until_cluster},
    management::Management,
    paused::says_that_it_is_paused,
    rotated::told,
    stack::{self, Expected, Form},
    upgraded::CONTROL_PLANE,
    values::change_cluster,
};

const VERSION: &str = "v4";
const KUBERNETES: &str = "v1.35.0";
/// In whose name the workload cluster is asked for what by the kubeconfig of the one place, and of the other.
const HERE: &str = "here";
const THERE: &str = "there";

/// A password and a certificate that a chart draws at random. Secrets would be one kind more than the operator watches in a cluster.
const KEEPER: &str = r#"{{- $key := genPrivateKey "ecdsa" }}
{{- $certificate := genSelfSignedCertWithKey "lighthouse" (list) (list) 365 $key }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-keeper
  namespace: quay
data:
  password: {{ randAlphaNum 20 | b64enc | quote }}
  key: {{ $key | b64enc | quote }}
  certificate: {{ $certificate.Cert | b64enc | quote }}
"#;

/// The stack with that; the answer is its class.
async fn class(journey: &Journey) -> Result<String> {
    let source = StackSource::quay("v2")?;
    source.write("cluster-addon/lighthouse/templates/keeper.yaml", KEEPER)?;
    let tag = journey.releases.publish_stack(&source.path(), VERSION)?;
    release_of(journey, &tag, "v2", VERSION).await?;
    Ok(tag)
}

/// What it brings.
fn wanted() -> Vec<Expected> {
    let keeper = Expected::new(
        ("v1", "ConfigMap"),
        ("quay", "cluster-addon-keeper"),
        "lighthouse",
        json!({}),
    );
    let mut wanted = stack::expected(VERSION);
    wanted.push(keeper);
    wanted
}

/// What a workload cluster has that must not feel the move: all objects of the add-ons but the note, in their very forms, and the Pods of the agent.
#[derive(Debug, PartialEq, Eq)]
struct Untouched {
    forms: BTreeMap<String, Form>,
    pods: BTreeSet<String>,
}

impl Untouched {
    async fn of(client: &Client) -> Result<Self> {
        let mut forms = stack::forms(client, &wanted()).await?;
        forms.remove(&format!("ConfigMap {}/{}", stack::NOTE.0, stack::NOTE.1));
        let pods: Api<Pod> = Api::namespaced(client.clone(), stack::AGENT.0);
        let pods = pods.list(&ListParams::default()).await?;
        let pods: BTreeSet<String> = pods.iter().filter_map(ResourceExt::uid).collect();
        ensure!(!pods.is_empty(), "the agent has no Pods");
        Ok(Self { forms, pods })
    }
}

/// What charts drew at random for the Cluster, as it is kept.
async fn memo(journey: &Journey) -> Result<Value> {
    let secret = journey.objects("v1", "Secret").get(&name_of_the_memo()).await;
    Ok(secret.context("no memo")?.data["data"].clone())
}

fn name_of_the_memo() -> String {
    format!("{}-memo", name_for(CLUSTER))
}

/// Waits until clusterctl would move the Cluster: all of it is up.
async fn can_be_moved(journey: &Journey) -> Result<()> {
    until_cluster(journey, "the Cluster to be up", |cluster| {
        let is = |what: &str| cluster["status"][what] == true;
        is("infrastructureReady") && is("controlPlaneReady")
    })
    .await?;
    let machines = journey.objects(CLUSTER_API, "Machine");
    eventually(SOON, "the Machines to know their Nodes", async || {
        let all = machines.list(&ListParams::default()).await?.items;
        let waiting = all
            .iter()
            .filter(|machine| machine.data["status"]["nodeRef"].is_null())
            .count();
        ensure!(!all.is_empty() && waiting == 0, "{waiting} of {} do not", all.len());
        Ok(())
    })
    .await?;
    // Cluster API begins with a Secret that is to own the parts of the Cluster while there is none. clusterctl moves nothing of which such an owner is gone.
    eventually(
        SOON,
        "the garbage collector to forget owners that are gone",
        async || {
            for (api_version, kind) in [
                ("infrastructure.cluster.x-k8s.io/v1beta1", "ShimCluster"),
                ("controlplane.cluster.x-k8s.io/v1beta1", CONTROL_PLANE),
            ] {
                for part in journey.objects(api_version, kind).list(&ListParams::default()).await? {
                    let is_cluster = |owner: &OwnerReference| owner.kind == "Cluster";
                    ensure!(part.owner_references().iter().all(is_cluster), "{:#?}", part.metadata);
                }
            }
            Ok(())
        },
    )
    .await
}

/// When clusterctl ended the pause of the Cluster in its new place, which is the last that it does.
async fn resumed(to: &Journey, begun: Mark) -> Result<Timestamp> {
    let asked = to.control_plane().audit_log().since(begun).await?;
    let by_the_mover = asked.of_agent(labels::MOVER_FIELD_MANAGER).writes();
    let of_clusters = by_the_mover.iter().filter(|event| {
        let about = event.object.as_ref();
        event.verb == "patch" && about.is_some_and(|object| object.resource == "clusters")
    });
    let last = of_clusters.map(|event| event.received).max();
    last.context("nobody ended the pause")
}

/// The Cluster is paused, as clusterctl pauses it, and somebody deletes the note: nobody brings it back before the pause is over in the new place. All else is as
/// it was, to the byte.
async fn goes_untouched(from: &Journey, to: &Journey, ground: &Ground, class: &str) -> Result<()> {
    let client = ground.workload.client();
    let before = Untouched::of(&client).await?;
    let drawn = memo(from).await?;
    change_cluster(from, json!({ "spec": { "paused": true } })).await?;
    says_that_it_is_paused(from, "spec.paused").await?;
    let (left, begun) = (ground.workload.audit_log().mark().await?, to.mark().await?);
    delete_the_note(&client).await?;

    // Its watches tell one after the other: what goes here with its Cluster is not to take its Node along.
    ground.web().hold(Hold::Deletion);
    Clusterctl::of(from)?.transfer(from, to)?;
    ground.complete_with(to, class, VERSION, &wanted()).await?;
    let after = Untouched::of(&client).await?;
    ensure!(after == before, "{after:#?} instead of {before:#?}");
    ensure!(memo(to).await? == drawn, "what was drawn at random is another");

    let resumed = resumed(to, begun).await?;
    let writes = ground.workload.audit_log().since(left).await?;
    let writes = writes.of_agent(OPERATOR).writes();
    ensure!(!writes.is_empty(), "who brought the note back?");
    let notes = format!("/namespaces/{}/configmaps", stack::NOTE.0);
    for write in writes.iter() {
        ensure!(write.request_uri.contains(&notes), "{write:#?}");
        ensure!(!write.verb.starts_with("delete"), "{write:#?}");
        ensure!(write.received >= resumed, "before {resumed}: {write:#?}");
    }
    is_moved_and_not_made(from, to, begun).await
}

/// The ClusterAddon and the memo were made by clusterctl there, and are gone here.
async fn is_moved_and_not_made(from: &Journey, to: &Journey, begun: Mark) -> Result<()> {
    let asked = to.requests_since(begun).await?;
    let made = asked.filter(|event| {
        let about = event.object.as_ref();
        let is_moved = |resource: &str| ["clusteraddons", "secrets"].contains(&resource);
        event.verb == "create" && about.is_some_and(|object| is_moved(&object.resource))
    });
    ensure!(made.is_empty(), "{made:#?}");
    from.gone::<ClusterAddon>(&name_for(CLUSTER)).await?;
    let memo = from.objects("v1", "Secret").get_opt(&name_of_the_memo()).await?;
    ensure!(memo.is_none(), "the memo is left behind");
    Ok(())
}

/// From now on the workload cluster is asked in the name of the new place alone, and what somebody does there is put right. The operator of the old place, which
/// still runs, writes nothing there either.
async fn is_looked_after_from_there(from: &Journey, to: &Journey, ground: &Ground, class: &str) -> Result<()> {
    let (client, log) = (ground.workload.client(), ground.workload.audit_log());
    eventually(SOON, "the operator to take the kubeconfig of its place", async || {
        let asked = log.all().await?.of_agent(OPERATOR);
        ensure!(
            asked.iter().any(|event| event.user == THERE),
            "it has asked in no such name"
        );
        Ok(())
    })
    .await?;
    ground.looks_write_nothing(to, "arrived").await?;
    let (quiet, mark) = (from.mark().await?, log.mark().await?);
    change_the_agent(&client).await?;
    delete_the_note(&client).await?;
    ground.complete_with(to, class, VERSION, &wanted()).await?;
    let asked = log.since(mark).await?.of_agent(OPERATOR);
    let names: BTreeSet<&str> = asked.iter().map(|event| event.user.as_str()).collect();
    ensure!(names == BTreeSet::from([THERE]), "{names:?} asked");
    let written = from.requests_since(quiet).await?.writes();
    ensure!(written.is_empty(), "{written:#?}");
    Ok(())
}

/// On the minor of the clusterctl that the lab has: others refuse the storage version of each other's Clusters.
#[test]
fn a_cluster_that_clusterctl_moves_keeps_its_add_ons_as_they_are_and_is_looked_after_from_there_alone() -> Result<()> {
    course(Release::V1_10, async |from, ground| {
        let [here, there] = [ClientAuthority::new()?, ClientAuthority::new()?];
        ground.workload.know_clients_of(&[&here, &there])?;
        ground.web().serve(&told(ground, &here, HERE).await?);
        let class = class(from).await?;
        from.apply(cluster(CLUSTER, &class, KUBERNETES, 1)).await?;
        ground.complete_with(from, &class, VERSION, &wanted()).await?;
        ground.looks_write_nothing(from, "before").await?;
        can_be_moved(from).await?;
        let management = Management::start(ground.release).await?;
        management
            .shim
            .serve(&from.namespace, &told(ground, &there, THERE).await?);
        from.on(Arc::clone(&management.control_plane), async |to| {
            let begun = to.mark().await?;
            Box::pin(operate(to)).await?;
            let troubles = || format!("there: {:#?}", management.shim.troubles());
            let gone = Box::pin(goes_untouched(from, to, ground, &class)).await;
            gone.with_context(troubles)?;
            let settled = Box::pin(is_looked_after_from_there(from, to, ground, &class)).await;
            settled.with_context(troubles)?;
            rules::conditions(&to.requests_since(begun).await?)
        })
        .await
    })
}
