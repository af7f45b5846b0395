//! The add-ons of real releases become in a workload cluster what the real Helm makes of them: every object, and none besides.

mod drawn;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddonStatus, cluster_addon::AddonVersion, labels};
use e2e::{
    ControlPlane, Journey, Options,
    helm::{ADD_ON_NAMESPACE, add_ons, manifests_of_add_on},
    journey::journey,
    oracle::{Course, ORACLE, apply, fields_of, plain, same},
    releases::corpus,
    traces,
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde_json::{Value, json};

use self::drawn::Drawn;
use crate::{
    by_hand::{ByHand, until_status},
    ground::{CLUSTER, ask, set_topology},
};

/// Where the Cluster says that its API server is. Nobody looks there.
const HOST: &str = "quay.example.com";
/// Who writes into an API server that nobody uses.
const OF_KUBERNETES: [&str; 6] = [
    "kube-apiserver",
    "kube-controller-manager",
    "clusterrole-aggregation-controller",
    "api-priority-and-fairness-config-producer-v1",
    "api-priority-and-fairness-config-consumer-v1",
    "kubernetes-service-cidr-controller",
];
/// The account that Kubernetes makes in each namespace.
const DEFAULT_ACCOUNT: &str = "default";
/// How often the Pods of a DaemonSet were changed.
const WRITTEN: &str = "deprecated.daemonset.template.generation";
/// Lists under way at once.
const SIDE_BY_SIDE: usize = 8;

/// A real release.
struct Case {
    tag: &'static str,
    /// The stack that it is of.
    stack: Value,
    kubernetes: &'static str,
    /// The release that the cluster has first, and the Kubernetes version of that.
    before: Option<(&'static str, &'static str)>,
    /// Its charts, and what their values templates say for the Cluster.
    charts: Vec<(&'static str, Value)>,
}

/// Objects by kind, namespace and name.
type Objects = BTreeMap<String, DynamicObject>;

/// All that somebody else than Kubernetes itself has written.
async fn objects(client: &Client) -> Result<Objects> {
    let lists = stream::iter(traces::kinds(client).await?)
        .map(|kind| list(client, kind))
        .buffer_unordered(SIDE_BY_SIDE);
    let lists: Vec<Objects> = lists.try_collect().await?;
    Ok(lists.into_iter().flatten().collect())
}

async fn list(client: &Client, kind: ApiResource) -> Result<Objects> {
    let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
    let list = api.list(&ListParams::default()).await;
    let list = list.with_context(|| format!("failed to list {}", kind.plural))?;
    // Of an account of which nothing but the name is stated nobody owns anything; Kubernetes makes one of that sort in each namespace. What has no uid
    // is not stored.
    let is_made = |object: &DynamicObject| match object.managed_fields() {
        [] => object.uid().is_some() && object.name_any() != DEFAULT_ACCOUNT,
        managers => managers
            .iter()
            .any(|entry| !OF_KUBERNETES.contains(&entry.manager.as_deref().unwrap_or_default())),
    };
    let named = |object: DynamicObject| {
        let namespace = object.namespace().unwrap_or_default();
        (format!("{} {namespace}/{}", kind.kind, object.name_any()), object)
    };
    Ok(list.items.into_iter().filter(is_made).map(named).collect())
}

/// The same objects, each the same field by field, and ours are exactly the fields that the charts state.
fn agree(live: &Objects, wanted: &Objects) -> Result<()> {
    ensure!(!wanted.is_empty(), "helm makes nothing of it");
    let (are, should_be): (BTreeSet<_>, BTreeSet<_>) = (live.keys().collect(), wanted.keys().collect());
    let (less, more): (Vec<_>, Vec<_>) = (
        should_be.difference(&are).collect(),
        are.difference(&should_be).collect(),
    );
    ensure!(
        less.is_empty() && more.is_empty(),
        "missing: {less:?}; besides: {more:?}"
    );
    let (mut ours, mut theirs) = (Drawn::default(), Drawn::default());
    for (name, wanted) in wanted {
        let live = live.get(name).context("it is there")?;
        // What was there before the operator is marked by it to stay; what a chart states of that shows in who owns it.
        let marks = [labels::RESOURCE_POLICY, WRITTEN];
        same(
            name,
            &ours.told(&plain(live, &marks)?)?,
            &theirs.told(&plain(wanted, &marks)?)?,
        )?;
        let owned = fields_of(live, labels::FIELD_MANAGER)?;
        let stated = match wanted.managed_fields() {
            [] => json!({}),
            _ => fields_of(wanted, ORACLE)?,
        };
        ensure!(stated.is_object(), "{name} is not helm's");
        same(&format!("ownership of {name}"), &owned, &stated)?;
    }
    Ok(())
}

/// What the real Helm makes of the charts of a release for the Cluster, in an API server of its own.
async fn by_helm(journey: &Journey, release: &Path, case: &Case) -> Result<Objects> {
    let place = tempfile::tempdir().context("failed to make a folder")?;
    let charts = add_ons(release, place.path())?;
    let names = charts.iter().filter_map(|chart| chart.file_name()?.to_str());
    let expected: Vec<_> = case.charts.iter().map(|(chart, _)| *chart).collect();
    ensure!(names.eq(expected.iter().copied()), "{charts:?} are not {expected:?}");
    let server = ControlPlane::start(Options::default()).await?;
    let client = server.client();
    for (chart, (_, values)) in charts.iter().zip(&case.charts) {
        for manifest in manifests_of_add_on(journey.lab(), chart, case.kubernetes, values)? {
            apply(&client, ADD_ON_NAMESPACE, &manifest, Course::Real).await?;
        }
    }
    objects(&client).await
}

/// The same after the operator has begun anew and looked: the very same objects, what was drawn for them included.
async fn stays(journey: &mut Journey, client: &Client, before: &Objects) -> Result<()> {
    journey.restart_operator().await?;
    ask(journey, "again").await?;
    let after = objects(client).await?;
    for (name, object) in before {
        let now = after.get(name).with_context(|| format!("{name} is gone"))?;
        ensure!(now.uid() == object.uid(), "{name} is another one");
        same(name, &plain(now, &[])?, &plain(object, &[])?)?;
    }
    ensure!(after.len() == before.len(), "there is more: {:?}", after.keys());
    Ok(())
}

/// Waits until all add-ons of a release are applied. Nothing runs there, so that none becomes ready.
async fn complete(journey: &Journey, tag: &str) -> Result<()> {
    let of_it = |version: &AddonVersion| version.cluster_stack == tag;
    let what = format!("all add-ons of {tag} to be applied");
    let is_complete =
        |status: &ClusterAddonStatus| status.applied == status.target && status.applied.as_ref().is_some_and(of_it);
    until_status(journey, CLUSTER, &what, is_complete).await.map(drop)
}

/// The same Secrets as before, with what was drawn for them.
fn are_kept(before: &Objects, after: &Objects) -> Result<()> {
    let secrets = || before.iter().filter(|(name, _)| name.starts_with("Secret "));
    ensure!(secrets().count() > 0, "nothing was drawn");
    for (name, secret) in secrets() {
        let now = after.get(name).with_context(|| format!("{name} is gone"))?;
        ensure!(now.data == secret.data, "{name} was drawn anew");
    }
    Ok(())
}

async fn becomes_what_helm_makes(journey: &mut Journey, corpus: &Path, case: Case) -> Result<()> {
    let releases = corpus.join("releases");
    let (tag, kubernetes) = case.before.unwrap_or((case.tag, case.kubernetes));
    for release in BTreeSet::from([tag, case.tag]) {
        journey.releases.publish(&releases.join(release))?;
    }
    journey.options.flags.push("--allow-workload-loopback".into());
    journey.operate().await?;
    journey.stack("real", case.stack.clone()).await?;
    for release in [tag, case.tag] {
        journey.release_ready(release).await?;
    }
    let workload = ControlPlane::start(Options::default()).await?;
    let kubeconfig = workload.access().admin_kubeconfig().await?;
    let cluster = ByHand {
        kubernetes: kubernetes.to_owned(),
        spec: json!({ "controlPlaneEndpoint": { "host": HOST, "port": 6443 } }),
        ..ByHand::new(CLUSTER, tag, kubeconfig.as_bytes())
    };
    cluster.bring(journey).await?;
    complete(journey, tag).await?;
    let client = workload.client();
    let before = objects(&client).await?;
    if tag != case.tag {
        set_topology(journey, case.tag, case.kubernetes).await?;
        complete(journey, case.tag).await?;
    }
    let live = objects(&client).await?;
    are_kept(&before, &live)?;
    agree(&live, &by_helm(journey, &releases.join(case.tag), &case).await?)?;
    stays(journey, &client, &live).await
}

#[test]
fn cilium_and_the_metrics_server_of_the_real_docker_release_become_what_helm_makes_of_them() -> Result<()> {
    let Some(corpus) = corpus() else { return Ok(()) };
    let case = Case {
        tag: "docker-scs-1-30-v1",
        stack: json!({ "name": "scs", "kubernetesVersion": "1.30", "versions": ["v1"] }),
        kubernetes: "v1.30.10",
        before: None,
        charts: vec![("cni", json!({})), ("metrics-server", json!({}))],
    };
    journey(async |journey| becomes_what_helm_makes(journey, &corpus, case).await)
}

#[test]
fn the_real_openstack_release_becomes_what_helm_makes_of_it_after_an_upgrade_that_keeps_the_certificates_of_cilium()
-> Result<()> {
    let Some(corpus) = corpus() else { return Ok(()) };
    let case = Case {
        tag: "openstack-scs-1-32-v4",
        stack: json!({ "provider": "openstack", "name": "scs", "kubernetesVersion": "1.32", "versions": ["v3", "v4"] }),
        kubernetes: "v1.32.5",
        // Both have the same cilium, in a chart that is called otherwise.
        before: Some(("openstack-scs-1-32-v3", "v1.32.1")),
        charts: vec![
            (
                "ccm",
                json!({ "openstack-cloud-controller-manager": { "cluster": { "name": CLUSTER } } }),
            ),
            ("cni", json!({})),
            ("csi", json!({ "openstack-cinder-csi": { "clusterID": CLUSTER } })),
            (
                "metrics-server",
                json!({ "metrics-server": { "commonLabels": { "domain": HOST } } }),
            ),
        ],
    };
    journey(async |journey| becomes_what_helm_makes(journey, &corpus, case).await)
}

/// An object as this manager applied it.
fn applied(manager: &str, object: Value) -> Result<DynamicObject> {
    let mut object = object;
    let fields = json!({ "f:data": { "f:berths": {} } });
    object["metadata"]["managedFields"] = json!([
        { "manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields },
    ]);
    Ok(serde_json::from_value(object)?)
}

#[test]
fn an_object_that_is_missing_or_besides_or_otherwise_or_of_somebody_else_agrees_with_nothing() -> Result<()> {
    let note = |berths: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "quay" }, "data": { "berths": berths } });
    let there = |manager: &str, berths: &str| {
        let object = applied(manager, note(berths))?;
        anyhow::Ok(Objects::from([("ConfigMap kube-system/quay".to_owned(), object)]))
    };
    let (ours, helms) = (there(labels::FIELD_MANAGER, "4")?, there(ORACLE, "4")?);
    agree(&ours, &helms)?;
    let mut besides = ours.clone();
    besides.insert(
        "ConfigMap kube-system/pier".to_owned(),
        applied(labels::FIELD_MANAGER, note("4"))?,
    );
    for (what, live) in [
        ("missing", Objects::new()),
        ("besides", besides),
        ("differs", there(labels::FIELD_MANAGER, "5")?),
        ("ownership", there("somebody", "4")?),
    ] {
        let told = agree(&live, &helms).err().map(|error| format!("{error:#}"));
        ensure!(
            told.as_ref().is_some_and(|told| told.contains(what)),
            "{what}: {told:?}"
        );
    }
    Ok(())
}
