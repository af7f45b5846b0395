//! What each version of the stack `shim-quay` brings to a workload cluster, written down by hand.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddonStatus, cluster_addon::name_for, labels, resource::SyncStatus};
use e2e::traces::{self, Trace};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::ground::CLUSTER;

/// Made by Kubernetes of a Service, whose labels it takes along.
const OF_KUBERNETES: &str = "EndpointSlice";

/// An object of a version. Of one that stands in a list twice, all holds that both say.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    api_version: &'static str,
    kind: &'static str,
    /// Empty for what is in none.
    namespace: &'static str,
    name: &'static str,
    chart: &'static str,
    /// What it holds besides whatever else; `null` is what it must not have.
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
pub(crate) fn settings(version: &str) -> (&'static str, &'static str) {
    let name = if version == "v1" { NETWORK } else { ROUTES };
    ("kube-system", name)
}

/// The objects of an add-on version; those from 1 to 3 are of sources of the same name, and later ones of `v2`.
pub(crate) fn expected(version: &str) -> Vec<Expected> {
    [network(version), lighthouse(version)].concat()
}

/// These objects, those of one kind in another version of its API.
pub(crate) fn in_version(objects: Vec<Expected>, kind: &str, api_version: &'static str) -> Vec<Expected> {
    let other = |object: Expected| {
        if object.kind == kind {
            Expected { api_version, ..object }
        } else {
            object
        }
    };
    objects.into_iter().map(other).collect()
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
    let (_, settings) = settings(version);
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
    /// One of a kind of this API, in this namespace under this name, which a chart brings.
    pub(crate) fn new(
        (api_version, kind): (&'static str, &'static str),
        (namespace, name): (&'static str, &'static str),
        chart: &'static str,
        holds: Value,
    ) -> Self {
        Self {
            api_version,
            kind,
            namespace,
            name,
            chart,
            holds,
        }
    }

    /// As [`ours`] has it.
    pub(crate) fn place(&self) -> String {
        place(self.kind, self.namespace, self.name)
    }

    /// Whether this chart brings it.
    pub(crate) fn is_of(&self, chart: &str) -> bool {
        self.chart == chart
    }

    /// Group and version of its API, as the rows of a status have them.
    fn group_version(&self) -> (&'static str, &'static str) {
        self.api_version.split_once('/').unwrap_or(("", self.api_version))
    }

    async fn find(&self, client: &Client) -> Result<DynamicObject> {
        let (group, version) = self.group_version();
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

fn place(kind: &str, namespace: &str, name: &str) -> String {
    format!("{kind} {namespace}/{name}")
}

/// Kind, namespace and name of everything in the workload cluster that has the mark of the ClusterAddon, or fields that the operator has written.
pub(crate) async fn ours(client: &Client, namespace: &str) -> Result<BTreeSet<String>> {
    let mark = labels::part_of("ClusterAddon", namespace, &name_for(CLUSTER));
    let is_ours = |(kind, object): &Trace| {
        let is_written = object
            .managed_fields()
            .iter()
            .any(|entry| entry.manager.as_deref() == Some(labels::FIELD_MANAGER));
        let is_marked = object.labels().get(labels::PART_OF) == Some(&mark);
        is_written || (is_marked && kind != OF_KUBERNETES)
    };
    let all = traces::all(client, "").await?;
    let found = all.iter().filter(|trace| is_ours(trace));
    Ok(found
        .map(|(kind, object)| place(kind, &object.namespace().unwrap_or_default(), &object.name_any()))
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
    let wanted: BTreeSet<String> = wanted.iter().map(Expected::place).collect();
    let found = ours(client, namespace).await?;
    ensure!(found == wanted, "{found:#?} instead of {wanted:#?}");
    Ok(())
}

/// Fails unless the rows of the status name exactly these objects, each in this version of its API, as wanted and with its chart.
pub(crate) fn is_told(status: &ClusterAddonStatus, wanted: &[Expected]) -> Result<()> {
    let told = |group: &str, version: &str, chart: &str, is_synced: bool| {
        (group.to_owned(), version.to_owned(), chart.to_owned(), is_synced)
    };
    let rows = status.resources.iter().map(|row| {
        let is_synced = row.status == Some(SyncStatus::Synced);
        (
            place(&row.kind, &row.namespace, &row.name),
            told(&row.group, &row.version, &row.stage, is_synced),
        )
    });
    let rows: BTreeMap<_, _> = rows.collect();
    let wanted = wanted.iter().map(|object| {
        let (group, version) = object.group_version();
        (object.place(), told(group, version, object.chart, true))
    });
    let wanted: BTreeMap<_, _> = wanted.collect();
    ensure!(rows == wanted, "the rows are {rows:#?} instead of {wanted:#?}");
    Ok(())
}

/// Which object it is, and in which form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    uid: String,
    resource_version: String,
}

/// The forms of these objects, which are there.
pub(crate) async fn forms(client: &Client, wanted: &[Expected]) -> Result<BTreeMap<String, Form>> {
    let mut forms = BTreeMap::new();
    for object in wanted {
        let (found, place) = (object.find(client).await?, object.place());
        let form = Form {
            uid: found.uid().with_context(|| format!("{place} has no uid"))?,
            resource_version: found
                .resource_version()
                .with_context(|| format!("{place} has no version"))?,
        };
        forms.insert(place, form);
    }
    Ok(forms)
}

/// Uids of the objects of a version, which are there.
pub(crate) async fn uids(client: &Client, version: &str) -> Result<BTreeMap<String, String>> {
    Ok(uids_of(forms(client, &expected(version)).await?))
}

/// The uids alone.
pub(crate) fn uids_of(forms: BTreeMap<String, Form>) -> BTreeMap<String, String> {
    forms.into_iter().map(|(place, form)| (place, form.uid)).collect()
}

/// Fails when an object that both have was made anew between these, and when they have none.
pub(crate) fn are_the_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Result<()> {
    let both = after
        .iter()
        .filter_map(|(place, uid)| Some((place, before.get(place)?, uid)));
    let both: Vec<_> = both.collect();
    ensure!(!both.is_empty(), "nothing is in both of {before:#?} and {after:#?}");
    for (place, first, uid) in both {
        ensure!(first == uid, "{place} was made anew: {uid} instead of {first}");
    }
    Ok(())
}

/// Whether a value has all that another one has: every member, of lists every item at its place, and no member that is `null` there.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(value), Value::Object(part)) => part.iter().all(|(name, part)| match (value.get(name), part) {
            (found, Value::Null) => found.is_none(),
            (found, part) => found.is_some_and(|found| contains(found, part)),
        }),
        (Value::Array(value), Value::Array(part)) => {
            value.len() >= part.len() && value.iter().zip(part).all(|(value, part)| contains(value, part))
        }
        _ => value == part,
    }
}
