//! ClusterAddons and objects as the Go operator leaves them: what is written here follows what it wrote to a real API server.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use crds::{cluster_addon::name_for, labels};
use e2e::{
    Journey,
    predecessor::{APPLIER, MANAGER, manager},
    releases::StackSource,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::API;
use crate::by_hand::stack_of;

/// An annotation that a later release does not have.
pub(super) const DROPPED: &str = "example.com/dropped";
/// A label that somebody else sets.
pub(super) const TEAM: &str = "example.com/team";
pub(super) const SOMEBODY: &str = "somebody";

/// How far the Go operator was with a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// One chart, complete.
    Single,
    /// The same, and the Cluster has just been given the next class.
    SingleBeforeItsUpgrade,
    /// Several stages, complete.
    Staged,
    /// In the middle of an upgrade.
    HalfWay,
    /// Made, and nothing applied.
    Fresh,
}

impl State {
    /// What the annotation says when ours has gone on to the end.
    pub(super) fn stage_afterwards(self) -> &'static str {
        match self {
            Self::Single | Self::Staged | Self::Fresh => labels::STAGE_CREATED,
            Self::SingleBeforeItsUpgrade | Self::HalfWay => labels::STAGE_UPGRADED,
        }
    }
}

const VALUES: (&str, &str) = (
    "cluster-addon-values.yaml",
    "values: |\n  cluster: {{ .Cluster.metadata.name }}\n",
);
const SINGLE_CHART: (&str, &str) = (
    "cluster-addon/Chart.yaml",
    "apiVersion: v2\nname: docker-harbor-1-34-cluster-addon\ndescription: Everything\ntype: application\nversion: v0\n",
);
const STAGES: (&str, &str) = (
    "clusteraddon.yaml",
    "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\n\
     clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1\n\
     addonStages:\n  AfterControlPlaneInitialized:\n  - {name: network, action: apply}\n  - {name: note, action: apply}\n  \
     BeforeClusterUpgrade:\n  - {name: network, action: apply}\n  - {name: note, action: apply}\n",
);

/// A ConfigMap in a chart; without a namespace it is in that of the release.
fn manifest(kind: &str, suffix: &str, namespace: &str) -> String {
    let namespace = if namespace.is_empty() {
        String::new()
    } else {
        format!("  namespace: {namespace}\n")
    };
    let data = if kind == "ConfigMap" {
        "data:\n  addons: << .ClusterAddonVersion >>\n"
    } else {
        ""
    };
    format!(
        "---\napiVersion: v1\nkind: {kind}\nmetadata:\n  name: {{{{ .Values.cluster }}}}-{suffix}\n{namespace}{data}"
    )
}

fn single(manifests: &[String]) -> Result<StackSource> {
    let templates = manifests.concat();
    stack_of(&[VALUES, SINGLE_CHART, ("cluster-addon/templates/all.yaml", &templates)])
}

fn staged() -> Result<StackSource> {
    let source = stack_of(&[STAGES])?;
    let of_network = manifest("ServiceAccount", "network", "") + &manifest("ConfigMap", "network", "");
    for (chart, templates) in [
        ("network", of_network),
        ("note", manifest("ConfigMap", "note", "default")),
    ] {
        let folder = format!("cluster-addon/{chart}");
        let about = format!("apiVersion: v2\nname: {chart}\ndescription: A stage\ntype: application\nversion: 0.1.0\n");
        source.write(&format!("{folder}/Chart.yaml"), &about)?;
        source.write(
            &format!("{folder}/overwrite.yaml"),
            "cluster: {{ .Cluster.metadata.name }}\n",
        )?;
        source.write(&format!("{folder}/templates/all.yaml"), &templates)?;
    }
    Ok(source)
}

/// The releases: one chart and the next, several stages and the next.
pub(super) struct Versions {
    /// Tags of `v1` to `v4`.
    tags: [String; 4],
}

impl Versions {
    pub(super) const ALL: [&'static str; 4] = ["v1", "v2", "v3", "v4"];

    pub(super) fn publish(journey: &Journey) -> Result<Self> {
        let note = || manifest("ConfigMap", "note", "");
        let agent = || manifest("ServiceAccount", "agent", "default");
        let old = manifest("ConfigMap", "old", "");
        let publish = |source: StackSource, version| journey.releases.publish_stack(&source.path(), version);
        Ok(Self {
            tags: [
                publish(single(&[note(), agent(), old])?, "v1")?,
                publish(single(&[note(), agent()])?, "v2")?,
                publish(staged()?, "v3")?,
                publish(staged()?, "v4")?,
            ],
        })
    }

    /// What the Cluster names.
    pub(super) fn class_of(&self, state: State) -> &str {
        let [single, next_single, staged, next_staged] = &self.tags;
        match state {
            State::Single => single,
            State::SingleBeforeItsUpgrade => next_single,
            State::Staged | State::Fresh => staged,
            State::HalfWay => next_staged,
        }
    }

    /// Class and version of the add-ons as the spec of the ClusterAddon has them.
    fn recorded(&self, state: State) -> Option<(&str, &str)> {
        let [single, _, staged, _] = &self.tags;
        match state {
            State::Single | State::SingleBeforeItsUpgrade => Some((single.as_str(), "v1")),
            State::Staged => Some((staged.as_str(), "v3")),
            // The version that was begun, and the class that was complete.
            State::HalfWay => Some((staged.as_str(), "v4")),
            State::Fresh => None,
        }
    }
}

pub(super) fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": namespace }, "data": data })
}

fn account(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": namespace } })
}

/// Kind, namespace and name.
pub(super) fn place(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!(
        "{} {}/{}",
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", text("/kind")));
    Api::namespaced_with(client.clone(), text("/metadata/namespace"), &kind)
}

fn name_of(object: &Value) -> &str {
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// An object as it is there.
pub(super) async fn find(client: &Client, object: &Value) -> Result<Option<DynamicObject>> {
    let found = api(client, object).get_opt(name_of(object)).await;
    found.with_context(|| format!("failed to read {}", place(object)))
}

/// The objects of add-ons in a version.
fn objects(cluster: &str, state: State, version: &str) -> Vec<Value> {
    let data = json!({ "addons": version });
    let named = |suffix: &str| format!("{cluster}-{suffix}");
    match state {
        State::Single | State::SingleBeforeItsUpgrade => {
            let mut objects = vec![
                config_map("kube-system", &named("note"), &data),
                account("default", &named("agent")),
            ];
            if version == "v1" {
                objects.push(config_map("kube-system", &named("old"), &data));
            }
            objects
        }
        State::Staged | State::HalfWay | State::Fresh => vec![
            account("kube-system", &named("network")),
            config_map("kube-system", &named("network"), &data),
            config_map("default", &named("note"), &data),
        ],
    }
}

/// What the Go operator left of one cluster.
pub(super) struct Left {
    /// As it is stored.
    pub(super) addon: DynamicObject,
    /// What it applied, by place, as it is there.
    pub(super) applied: BTreeMap<String, DynamicObject>,
    /// What the cluster is to have of ours.
    pub(super) wanted: Vec<Value>,
}

impl Left {
    pub(super) async fn by_the_predecessor(
        journey: &Journey,
        client: &Client,
        (cluster, state): (&DynamicObject, State),
        versions: &Versions,
    ) -> Result<Self> {
        let name = cluster.name_any();
        let (there, wanted) = match state {
            State::Single => (objects(&name, state, "v1"), objects(&name, state, "v1")),
            State::SingleBeforeItsUpgrade => (objects(&name, state, "v1"), objects(&name, state, "v2")),
            State::Staged => (objects(&name, state, "v3"), objects(&name, state, "v3")),
            // The first stage has the next version, the second not yet.
            State::HalfWay => {
                let (mut there, before) = (objects(&name, state, "v4"), objects(&name, state, "v3"));
                there.truncate(2);
                there.extend(before.into_iter().skip(2));
                (there, objects(&name, state, "v4"))
            }
            State::Fresh => (Vec::new(), objects(&name, state, "v3")),
        };
        let mut applied = BTreeMap::new();
        for object in &there {
            applied.insert(place(object), apply(client, object).await?);
        }
        let addon = addon(journey, cluster, &spec(versions, state), &reported(state, &there)).await?;
        Ok(Self { addon, applied, wanted })
    }

    /// How many objects carry its name as that of their manager.
    pub(super) fn to_be_renamed(&self) -> usize {
        let wanted: Vec<String> = self.wanted.iter().map(place).collect();
        let is_wanted = |applied: &&String| wanted.contains(applied);
        self.applied.keys().filter(is_wanted).count()
    }

    /// It is back, and applies what the cluster is to have.
    pub(super) async fn apply_again(&self, client: &Client) -> Result<()> {
        for object in &self.wanted {
            let before = find(client, object).await?.context("it is gone")?;
            let after = apply(client, object).await?;
            anyhow::ensure!(after.uid() == before.uid(), "{} was made anew", place(object));
        }
        Ok(())
    }
}

/// Applies an object as the Go operator does, with a field that goes later; and somebody sets another.
async fn apply(client: &Client, object: &Value) -> Result<DynamicObject> {
    let mut body = object.clone();
    body["metadata"]["labels"] = json!({ labels::INSTANCE: labels::INSTANCE_OWNED });
    body["metadata"]["annotations"] = json!({ DROPPED: "by a later release" });
    let (api, name) = (api(client, object), name_of(object));
    api.patch(name, &PatchParams::apply(APPLIER).force(), &Patch::Apply(body))
        .await
        .with_context(|| format!("failed to apply {}", place(object)))?;
    let team = json!({ "metadata": { "labels": { TEAM: "infrastructure" } } });
    let labelled = api.patch(name, &manager(SOMEBODY), &Patch::Merge(team)).await;
    labelled.with_context(|| format!("failed to label {}", place(object)))
}

/// What it keeps in the spec.
fn spec(versions: &Versions, state: State) -> Value {
    let mut spec = json!({});
    if let Some((class, version)) = versions.recorded(state) {
        spec["clusterStack"] = class.into();
        spec["version"] = version.into();
    }
    if state == State::HalfWay {
        spec["hook"] = "BeforeClusterUpgrade".into();
    }
    spec
}

/// What it reports. Of several stages it keeps no inventory; of a manifest without a namespace it names none.
fn reported(state: State, there: &[Value]) -> Value {
    let row = |object: &Value| {
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        let namespace = namespace
            .filter(|namespace| *namespace != "kube-system")
            .unwrap_or_default();
        json!({
            "version": "v1", "kind": object["kind"], "namespace": namespace, "name": name_of(object), "status": "synced",
        })
    };
    let is_true =
        |condition: &str| json!({ "type": condition, "status": "True", "lastTransitionTime": "2026-11-21T10:45:51Z" });
    let complete = json!({ "ready": true, "conditions": [is_true("Ready"), is_true("ClusterReady"), is_true("HelmChartApplied")] });
    match state {
        State::Single | State::SingleBeforeItsUpgrade => {
            let mut status = complete;
            status["resources"] = there.iter().map(row).collect();
            status
        }
        State::Staged => complete,
        State::HalfWay => json!({
            "ready": false, "conditions": [is_true("ClusterReady")],
            "stages": [
                { "name": "network", "action": "apply", "phase": "done" },
                { "name": "note", "action": "apply", "phase": "applyingOrDeleting" },
            ],
        }),
        State::Fresh => json!({
            "ready": false,
            "conditions": [{
                "type": "ClusterReady", "status": "False", "severity": "Warning", "reason": "ControlPlaneNotReady",
                "message": "kubeconfig not there (yet)", "lastTransitionTime": "2026-11-21T10:45:51Z",
            }],
        }),
    }
}

/// The ClusterAddon that it makes for a Cluster, whatever its class.
pub(super) async fn addon(
    journey: &Journey,
    cluster: &DynamicObject,
    recorded: &Value,
    reported: &Value,
) -> Result<DynamicObject> {
    let (name, uid) = (cluster.name_any(), cluster.uid());
    let mut spec = json!({ "clusterRef": {
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": name, "namespace": journey.namespace, "uid": uid,
    } });
    for (field, value) in recorded.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let is_complete = recorded.get("clusterStack").is_some();
    let annotations = if is_complete {
        json!({ labels::CLUSTER_ADDON_STAGE: labels::STAGE_CREATED })
    } else {
        json!({})
    };
    let addon = json!({
        "apiVersion": API, "kind": "ClusterAddon",
        "metadata": {
            "name": name_for(&name), "namespace": journey.namespace, "finalizers": [labels::ADDON_FINALIZER],
            "annotations": annotations,
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": name, "uid": uid }],
        },
        "spec": spec,
    });
    let addons = journey.objects(API, "ClusterAddon");
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    addons
        .create(&params, &serde_json::from_value(addon)?)
        .await
        .with_context(|| format!("failed to make the ClusterAddon of {name}"))?;
    let status = json!({ "status": reported });
    let reported = addons
        .patch_status(&name_for(&name), &manager(MANAGER), &Patch::Merge(status))
        .await;
    reported.with_context(|| format!("failed to report of {name}"))
}
