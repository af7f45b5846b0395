//! What each version of the stack `shim-quay` brings to a workload cluster, written down by hand.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddonStatus, cluster_addon::name_for, labels, resource::SyncStatus};
use e2e::traces;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::ground::CLUSTER;

/// Made by Kubernetes of a Service, whose labels it takes along.
const OF_KUBERNETES: &str = "EndpointSlice ";

/// An object of a version.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    api_version: &'static str,
    kind: &'static str,
    /// Empty for what is in none.
    namespace: &'static str,
    name: &'static str,
    chart: &'static str,
    /// What it holds besides whatever else.
    holds: Value,
}

const NETWORK: &str = "cluster-addon-network";
const ROUTES: &str = "cluster-addon-routes";
const LIGHTHOUSE: &str = "cluster-addon-lighthouse";
/// How the only chart of a stack is called.
pub(crate) const ONLY: &str = "cluster-addon";
const MOORINGS: &str = "moorings.quay.example.com";

/// The ConfigMap that both versions have, in which the second says another version.
pub(crate) const NOTE: (&str, &str) = ("quay", LIGHTHOUSE);
/// The Deployment that is the network.
pub(crate) const AGENT: (&str, &str) = ("kube-system", NETWORK);
/// The ConfigMap of the network, which has another name from `v2` on.
pub(crate) const SETTINGS: (&str, &str) = ("kube-system", NETWORK);

/// The objects of an add-on version; those from 1 to 3 are of sources of the same name, and later ones of `v2`.
pub(crate) fn expected(version: &str) -> Vec<Expected> {
    [network(version), lighthouse(version)].concat()
}

/// The image of the agent.
pub(crate) fn image(version: &str) -> &'static str {
    match version {
        "v1" => "registry.k8s.io/pause:3.10",
        "v3" => "registry.k8s.io/pause:3.10.2",
        _ => "registry.k8s.io/pause:3.10.1",
    }
}

/// The objects of an add-on version whose charts are parts of one, as a stack without stages has them.
pub(crate) fn of_one_chart(version: &str) -> Vec<Expected> {
    let objects = expected(version).into_iter();
    objects.map(|object| Expected { chart: ONLY, ..object }).collect()
}

fn network(version: &str) -> Vec<Expected> {
    let in_system = |api_version, kind, name, holds| Expected {
        api_version,
        kind,
        namespace: "kube-system",
        name,
        chart: "network",
        holds,
    };
    let settings = if version == "v1" { NETWORK } else { ROUTES };
    let agent = json!({
        "image": image(version), "envFrom": [{ "configMapRef": { "name": settings } }],
    });
    vec![
        Expected {
            api_version: "apiextensions.k8s.io/v1",
            kind: "CustomResourceDefinition",
            namespace: "",
            name: MOORINGS,
            chart: "network",
            holds: json!({ "spec": { "group": "quay.example.com" } }),
        },
        in_system("v1", "ServiceAccount", NETWORK, json!({})),
        in_system(
            "v1",
            "ConfigMap",
            settings,
            json!({ "data": { "podCIDR": "10.244.0.0/16" } }),
        ),
        in_system(
            "apps/v1",
            "Deployment",
            NETWORK,
            json!({ "spec": { "template": { "spec": { "containers": [agent] } } } }),
        ),
    ]
}

fn lighthouse(version: &str) -> Vec<Expected> {
    let in_quay = |api_version, kind, holds| Expected {
        api_version,
        kind,
        namespace: "quay",
        name: LIGHTHOUSE,
        chart: "lighthouse",
        holds,
    };
    let note = json!({ "cluster": CLUSTER, "region": "north", "controlPlane": "hosted", "addons": version });
    let mut objects = vec![
        Expected {
            api_version: "v1",
            kind: "Namespace",
            namespace: "",
            name: "quay",
            chart: "lighthouse",
            holds: json!({}),
        },
        in_quay("v1", "ConfigMap", json!({ "data": note })),
        in_quay(
            "quay.example.com/v1",
            "Mooring",
            json!({ "spec": { "berth": "north" } }),
        ),
    ];
    if version != "v1" {
        objects.push(in_quay("v1", "Service", json!({ "spec": { "clusterIP": "None" } })));
    }
    objects
}

impl Expected {
    /// As [`traces::with_labels`] has it.
    fn trace(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// With the namespace.
    fn place(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    async fn find(&self, client: &Client) -> Result<DynamicObject> {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", self.api_version));
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, self.kind));
        let api: Api<DynamicObject> = if self.namespace.is_empty() {
            Api::all_with(client.clone(), &kind)
        } else {
            Api::namespaced_with(client.clone(), self.namespace, &kind)
        };
        let found = api.get(self.name).await;
        found.with_context(|| format!("failed to read {}", self.place()))
    }
}

/// Kind and name of everything in the workload cluster that has the mark of the ClusterAddon, wherever it is.
pub(crate) async fn marked(client: &Client, namespace: &str) -> Result<BTreeSet<String>> {
    let mark = labels::part_of("ClusterAddon", namespace, &name_for(CLUSTER));
    let found = traces::with_labels(client, &format!("{}={mark}", labels::PART_OF)).await?;
    Ok(found
        .into_iter()
        .filter(|trace| !trace.starts_with(OF_KUBERNETES))
        .collect())
}

/// Fails unless the workload cluster has all these objects, as they are wanted and marked, and no other of ours.
pub(crate) async fn stands(client: &Client, namespace: &str, wanted: &[Expected]) -> Result<()> {
    for object in wanted {
        let found = object.find(client).await?;
        let place = object.place();
        ensure!(
            contains(&found.data, &object.holds),
            "{place} is {:#} and lacks {:#}",
            found.data,
            object.holds
        );
        let owned = found.labels().get(labels::INSTANCE).map(String::as_str);
        ensure!(owned == Some(labels::INSTANCE_OWNED), "{place}: {:?}", found.labels());
        let chart = found.annotations().get(labels::STAGE).map(String::as_str);
        ensure!(chart == Some(object.chart), "{place}: {:?}", found.annotations());
    }
    let wanted: BTreeSet<String> = wanted.iter().map(Expected::trace).collect();
    let found = marked(client, namespace).await?;
    ensure!(found == wanted, "{found:#?} instead of {wanted:#?}");
    Ok(())
}

/// Fails unless the rows of the status name exactly these objects, each as wanted and with its chart.
pub(crate) fn is_told(status: &ClusterAddonStatus, wanted: &[Expected]) -> Result<()> {
    let rows = status.resources.iter().map(|row| {
        let place = format!("{} {}/{}", row.kind, row.namespace, row.name);
        (place, (row.stage.clone(), row.status == Some(SyncStatus::Synced)))
    });
    let rows: BTreeMap<String, (String, bool)> = rows.collect();
    let wanted = wanted
        .iter()
        .map(|object| (object.place(), (object.chart.to_owned(), true)));
    let wanted: BTreeMap<String, (String, bool)> = wanted.collect();
    ensure!(rows == wanted, "the rows are {rows:#?} instead of {wanted:#?}");
    Ok(())
}

/// Uids of the objects of a version that are there.
pub(crate) async fn uids(client: &Client, version: &str) -> Result<BTreeMap<String, String>> {
    let mut uids = BTreeMap::new();
    for object in expected(version) {
        let found = object.find(client).await?;
        uids.insert(object.place(), found.uid().unwrap_or_default());
    }
    Ok(uids)
}

/// Fails when an object that both versions have was made anew between these.
pub(crate) fn are_the_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Result<()> {
    for (place, uid) in after {
        let first = before.get(place);
        ensure!(
            first.is_none_or(|first| first == uid),
            "{place} was made anew: {uid} instead of {first:?}"
        );
    }
    Ok(())
}

/// Whether a value has all that another one has: every member, and of lists every item at its place.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| value.get(name).is_some_and(|value| contains(value, part))),
        (Value::Array(value), Value::Array(part)) => {
            value.len() >= part.len() && value.iter().zip(part).all(|(value, part)| contains(value, part))
        }
        _ => value == part,
    }
}
