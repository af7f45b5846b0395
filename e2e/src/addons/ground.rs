//! Where the Clusters of a journey have their API server, what is there at a station, and what was done on the way.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use crds::{cluster_addon::name_for, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{
    cluster::{Cluster, memo_of, objects},
    stack::{self, DROPPED, KEYS, Version},
};
use crate::{
    AuditEvent, ControlPlane, Journey, Options,
    audit::{AuditEvents, Mark},
    eventually,
    journey::SOON,
    storm::rules,
    world::{World, differences, orphans, plain},
};

/// The API server of all clusters of this program.
static WORKLOAD: OnceCell<ControlPlane> = OnceCell::const_new();

/// What lets an operator look after add-ons here.
const FLAGS: [&str; 1] = ["--allow-workload-loopback"];
/// How the operator calls itself at every API server.
const OPERATOR: &str = "stackwright-core-operator";
/// What worlds call the ClusterAddon of a Cluster.
pub(super) const ADDON: &str = "ClusterAddon";
/// What they call the Secret with what was drawn at random for it.
pub(super) const MEMO: &str = "memo";
/// The kinds of the add-ons.
const KINDS: [(&str, &str); 4] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io/v1", "Role"),
];

/// The API server of the clusters of a journey, which has a namespace for it.
pub struct Ground {
    /// That API server.
    pub workload: &'static ControlPlane,
    /// In the audit logs of both API servers, before there was any Cluster.
    begun: [Mark; 2],
}

impl Ground {
    /// Before there is an operator, which is to be started as the journey has it from then on, and finds both versions of the stack.
    pub async fn prepare(journey: &mut Journey) -> Result<Self> {
        journey.options.flags.extend(FLAGS.map(Into::into));
        let options = Options {
            audit_bodies: true,
            ..Options::default()
        };
        let started = WORKLOAD.get_or_try_init(|| Box::pin(ControlPlane::start(options)));
        let workload = started.await?;
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(journey.namespace.clone());
        let namespaces = Api::<Namespace>::all(workload.client());
        namespaces.create(&PostParams::default(), &namespace).await?;
        stack::publish(journey, &Version::BOTH)?;
        let begun = [journey.mark().await?, workload.audit_log().mark().await?];
        Ok(Self { workload, begun })
    }

    /// The resource version of now in the API server of the clusters.
    pub async fn version(&self) -> Result<u64> {
        let namespaces = Api::<Namespace>::all(self.workload.client());
        let list = namespaces.list_metadata(&ListParams::default()).await?;
        let version = list.metadata.resource_version.context("lists have versions")?;
        version.parse().with_context(|| format!("{version:?} is no number"))
    }

    /// What belongs to a Cluster in both API servers, as it can be compared with that of others.
    pub async fn world(&self, cluster: Cluster<'_>) -> Result<World> {
        let Cluster { journey, name } = cluster;
        let addon = name_for(name);
        let texts = [
            (
                labels::part_of("ClusterAddon", &journey.namespace, &addon),
                "MARK".to_owned(),
            ),
            (journey.namespace.clone(), "NAMESPACE".to_owned()),
            (name.to_owned(), "CLUSTER".to_owned()),
        ];
        let mut world = World::new();
        let addons = journey.objects("clusterstack.x-k8s.io/v1alpha1", "ClusterAddon");
        let memos = journey.objects("v1", "Secret");
        for (key, found) in [
            (ADDON, addons.get_opt(&addon).await?),
            (MEMO, memos.get_opt(&memo_of(&addon)).await?),
        ] {
            if let Some(object) = found {
                world.insert(key.to_owned(), comparable(object, &texts)?);
            }
        }
        for (key, object) in self.brought(cluster).await? {
            world.insert(key, comparable(object, &texts)?);
        }
        Ok(world)
    }

    /// The objects of a Cluster in its API server, by kind and name without that of the Cluster.
    async fn brought(&self, cluster: Cluster<'_>) -> Result<BTreeMap<String, DynamicObject>> {
        let prefix = format!("{}-", cluster.name);
        let mut brought = BTreeMap::new();
        for kind in KINDS {
            let api = objects(&self.workload.client(), kind, &cluster.journey.namespace);
            for object in api.list(&ListParams::default()).await?.items {
                if let Some(name) = object.name_any().strip_prefix(&prefix) {
                    brought.insert(format!("{} {name}", kind.1), object);
                }
            }
        }
        Ok(brought)
    }

    /// Waits until a Cluster is what it was in another journey.
    pub async fn becomes(&self, cluster: Cluster<'_>, wanted: &World) -> Result<()> {
        eventually(
            SOON,
            format!("{} to be as if nothing had happened", cluster.name),
            async || {
                let found = self.world(cluster).await?;
                ensure!(found == *wanted, "{}", differences(wanted, &found));
                Ok::<_, anyhow::Error>(())
            },
        )
        .await
    }

    /// Fails unless a Cluster has what a version brings, and nothing else: equal worlds might be equally wrong.
    pub async fn stands(&self, cluster: Cluster<'_>, version: Option<Version>) -> Result<()> {
        self.has(cluster, &version.map(Version::objects).unwrap_or_default())
            .await
    }

    /// Fails unless a Cluster has just these objects, named as [`Version::objects`] names them.
    pub async fn has(&self, cluster: Cluster<'_>, wanted: &BTreeSet<String>) -> Result<()> {
        let found: BTreeSet<String> = self.brought(cluster).await?.into_keys().collect();
        ensure!(found == *wanted, "{found:#?} instead of {wanted:#?}");
        Ok(())
    }

    /// Takes everything of a Cluster out of its API server, as if it were another one.
    pub async fn empty(&self, cluster: Cluster<'_>) -> Result<()> {
        let mark = labels::part_of("ClusterAddon", &cluster.journey.namespace, &name_for(cluster.name));
        let ours = ListParams::default().labels(&format!("{}={mark}", labels::PART_OF));
        for kind in KINDS {
            let api = objects(&self.workload.client(), kind, &cluster.journey.namespace);
            api.delete_collection(&kube::api::DeleteParams::default(), &ours)
                .await
                .map(drop)?;
        }
        Ok(())
    }

    /// Waits until nothing is left of the journey anywhere, once its stack is gone too.
    pub async fn nothing_is_left(&self, journey: &Journey) -> Result<()> {
        journey.delete::<crds::ClusterStack>("harbor").await?;
        let namespaces = BTreeSet::from([journey.namespace.clone()]);
        for client in [journey.client.clone(), self.workload.client()] {
            eventually(SOON, "nothing to be left", async || {
                let left = orphans(&client, &namespaces).await?;
                ensure!(left.is_empty(), "left over: {left:#?}");
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        Ok(())
    }

    /// Fails when something was done on the way that must not be: see [`rules::history`], which goes through what was asked of both API servers, and
    /// [`Dates`].
    pub async fn judge(&self, journey: &Journey, clusters: &BTreeMap<String, Dates>) -> Result<()> {
        let here = journey.requests_since(self.begun[0]).await?;
        let there = self.written_there(journey).await?;
        rules::conditions(&here)?;
        for (name, dates) in clusters {
            dates.judge(name, &there).with_context(|| name.clone())?;
            drawn_once(name, &there).with_context(|| name.clone())?;
        }
        rules::history(&AuditEvents::from([here.to_vec(), there.to_vec()].concat()))
    }

    /// What the operator of a journey wrote to the API server of the clusters.
    pub async fn written_there(&self, journey: &Journey) -> Result<AuditEvents> {
        let told = self
            .workload
            .audit_log()
            .told(self.begun[1], &journey.namespace)
            .await?;
        let of_journey = |event: &AuditEvent| {
            let object = event.object.as_ref();
            object.is_some_and(|object| object.namespace == journey.namespace)
        };
        let written = told.of_agent(OPERATOR).writes().filter(of_journey);
        ensure!(!written.is_empty(), "the operator goes by another name");
        Ok(written)
    }
}

/// When a Cluster was asked for what, where it was: before, nothing may be taken away for it.
#[derive(Clone, Copy, Debug)]
pub struct Dates {
    /// Of the upgrade.
    pub changed: Timestamp,
    /// Of the end.
    pub deleted: Timestamp,
    /// Whether somebody who read what was so long ago may have done things anew, and undone others for it.
    pub again: bool,
}

impl Dates {
    /// No object flickers: each is made once and deleted once at most, and no sooner than its time has come, unless it may be done again.
    fn judge(&self, cluster: &str, there: &[AuditEvent]) -> Result<()> {
        let prefix = format!("{cluster}-");
        let mut times: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        for event in there {
            let Some(object) = &event.object else { continue };
            let Some(name) = object.name.strip_prefix(&prefix) else {
                continue;
            };
            let deed = match (event.verb.as_str(), event.code) {
                _ if self.again => "",
                ("patch", 201) => "made",
                ("delete", 200) => "deleted",
                _ => "",
            };
            if !deed.is_empty() {
                let time = times.entry((deed, &object.resource, name)).or_default();
                *time += 1;
                ensure!(*time == 1, "{deed} more than once: {} {name}", object.resource);
            }
            let earliest = if name == DROPPED { self.changed } else { self.deleted };
            ensure!(
                deed != "deleted" || event.received >= earliest,
                "{} {name} was deleted too early",
                object.resource
            );
        }
        Ok(())
    }
}

/// Fails unless what was drawn at random for a Cluster was written, and was always the same.
pub fn drawn_once(cluster: &str, there: &[AuditEvent]) -> Result<()> {
    let keys = format!("{cluster}-{KEYS}");
    let mut drawn = BTreeSet::new();
    for event in there.iter().filter(|event| event.verb == "patch") {
        if event.object.as_ref().is_some_and(|object| object.name == keys) {
            let body: Value = serde_json::from_str(event.body.as_deref().unwrap_or_default())?;
            drawn.insert(body["data"].to_string());
        }
    }
    ensure!(drawn.len() == 1, "the keys were written with {} contents", drawn.len());
    Ok(())
}

/// Without what differs between two Clusters: times and identities, what follows from names, and what is drawn at random.
fn comparable(mut object: DynamicObject, texts: &[(String, String)]) -> Result<Value> {
    let is_secret = object.types.as_ref().is_some_and(|types| types.kind == "Secret")
        || object.data.get("type").is_some_and(Value::is_string);
    if let Some(data) = object.data.get_mut("data").and_then(Value::as_object_mut)
        && is_secret
    {
        data.values_mut().for_each(|value| *value = json!("DRAWN"));
    }
    let mut value = plain(object, texts)?;
    without_identities(&mut value);
    Ok(value)
}

fn without_identities(value: &mut Value) {
    const OF_THE_MOMENT: [&str; 3] = ["since", "deadline", "uid"];
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_identities),
        Value::Object(members) => {
            members.retain(|name, _| !OF_THE_MOMENT.contains(&name.as_str()));
            for (name, member) in members {
                if let Some(digest) = member.as_str().filter(|_| name == "digest") {
                    *member = json!(!digest.is_empty());
                }
                without_identities(member);
            }
        }
        _ => {}
    }
}
