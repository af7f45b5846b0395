//! What is in the namespace of a journey, as data that two journeys can compare: times, identities and the name of the
//! namespace, which differ between any two, are taken out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, labels};
use futures::future::try_join_all;
use kube::{
    Api, Client, Discovery, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    core::Status,
    discovery::{Scope, verbs},
};
use serde_json::{Value, json};

use crate::{
    FaultProxy, Journey, addons, eventually,
    fault_proxy::MEDDLED,
    journey::SOON,
    provider,
    releases::harbor_tag,
    travel::{THE_NEIGHBOUR, neighbour},
};

/// Every version that a journey knows.
pub const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];
/// A group with its version, and a kind.
type Kind = (&'static str, &'static str);
/// The kinds that a person writes and reads.
const OURS: &[Kind] = &[
    ("clusterstack.x-k8s.io/v1alpha1", "ClusterStack"),
    ("clusterstack.x-k8s.io/v1alpha1", "ClusterStackRelease"),
];
/// The kinds that the journey's releases are and consist of, and are prepared by.
const KINDS: [Kind; 8] = [
    OURS[0],
    OURS[1],
    ("cluster.x-k8s.io/v1beta1", "ClusterClass"),
    ("infrastructure.cluster.x-k8s.io/v1beta1", "DockerClusterTemplate"),
    ("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate"),
    ("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate"),
    ("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlaneTemplate"),
    (provider::API_VERSION, provider::KIND),
];
/// An operator that has written nothing for this long has nothing to write.
const QUIET: Duration = Duration::from_secs(1);

/// Normalised objects by kind and name.
pub type World = BTreeMap<String, Value>;

/// The world as it is now.
pub async fn world(journey: &Journey) -> Result<World> {
    let mut world = world_of(journey, &KINDS).await?;
    if let Some(beyond) = &journey.beyond {
        world.extend(beyond.ground.world(addons::cluster(journey)).await?);
    }
    Ok(world)
}

async fn world_of(journey: &Journey, kinds: &[Kind]) -> Result<World> {
    let objects = objects_of(journey, kinds).await?.into_iter();
    objects
        .map(|(key, object)| {
            Ok((
                key.replace(&neighbour(&journey.namespace), THE_NEIGHBOUR),
                normalised(journey, object)?,
            ))
        })
        .collect()
}

/// Waits until the program behind a proxy has written nothing for a while.
pub async fn quiet(proxy: &FaultProxy) -> Result<()> {
    unchanged("writes", || proxy.writes().len()).await
}

/// Waits until it has not even asked for anything: it has begun to work, if it is new, and is done.
pub async fn silent(proxy: &FaultProxy) -> Result<()> {
    unchanged("requests", || proxy.requests()).await
}

async fn unchanged(what: &str, count: impl Fn() -> usize) -> Result<()> {
    let mut seen = (count(), Instant::now());
    eventually(SOON, "the operator to be quiet", || {
        let count = count();
        if count != seen.0 {
            seen = (count, Instant::now());
        }
        let quiet = seen.1.elapsed();
        std::future::ready(if quiet >= QUIET {
            Ok(())
        } else {
            Err(format!("{count} {what}, the last {quiet:?} ago"))
        })
    })
    .await
}

/// Waits until the world is this one.
pub async fn becomes(journey: &Journey, wanted: &World) -> Result<()> {
    becomes_within(SOON, journey, wanted).await
}

/// The same for who has another idea of how long that may take.
pub async fn becomes_within(patience: Duration, journey: &Journey, wanted: &World) -> Result<()> {
    let is_ours = |key: &str| OURS.iter().any(|(_, kind)| key.split(' ').next() == Some(*kind));
    let of_ours = wanted.iter().filter(|(key, _)| is_ours(key));
    let stacks_and_releases: World = of_ours.map(|(key, value)| (key.clone(), value.clone())).collect();
    let outcome = eventually(patience, "the world to be the undisturbed one", async || {
        // What tells of everything else comes last, and is a quarter of what there is to ask for.
        let found = world_of(journey, OURS).await?;
        ensure!(
            found == stacks_and_releases,
            "{}",
            differences(&stacks_and_releases, &found)
        );
        let found = world(journey).await?;
        ensure!(found == *wanted, "{}", differences(wanted, &found));
        Ok::<_, anyhow::Error>(())
    })
    .await;
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => Err(error.context(differences(wanted, &world(journey).await?))),
    }
}

/// The resource version of now.
pub async fn version(journey: &Journey) -> Result<u64> {
    let list = journey
        .api::<ClusterStack>()
        .list_metadata(&ListParams::default())
        .await?;
    let version = list.metadata.resource_version.context("lists have versions")?;
    version.parse().with_context(|| format!("{version:?} is no number"))
}

/// Uids of what a release consists of, by kind and name.
pub async fn uids(journey: &Journey, tag: &str) -> Result<BTreeMap<String, String>> {
    let parts = objects(journey)
        .await?
        .into_iter()
        .filter(|(key, object)| object.name_any().starts_with(tag) && !key.starts_with("ClusterStackRelease "));
    Ok(parts
        .map(|(key, object)| (key, object.uid().unwrap_or_default()))
        .collect())
}

/// Fails when one of these objects is gone, going, or was made anew.
pub async fn untouched(journey: &Journey, uids: &BTreeMap<String, String>) -> Result<()> {
    let there: BTreeMap<String, DynamicObject> = objects(journey).await?.into_iter().collect();
    for (key, uid) in uids {
        let object = there
            .get(key)
            .with_context(|| format!("{key}, which is in use, is gone"))?;
        ensure!(
            object.uid().as_ref() == Some(uid),
            "{key}, which is in use, was made anew"
        );
        ensure!(
            object.metadata.deletion_timestamp.is_none(),
            "{key}, which is in use, is being deleted"
        );
    }
    Ok(())
}

/// Empties the status of the stack and of all releases.
pub async fn wipe(journey: &Journey) -> Result<()> {
    for kind in ["ClusterStack", "ClusterStackRelease"] {
        let api = journey.objects("clusterstack.x-k8s.io/v1alpha1", kind);
        for object in api.list(&ListParams::default()).await?.items {
            let name = object.name_any();
            let nothing = Patch::Merge(json!({ "status": null }));
            // A deletion may have been on its way.
            match api.patch_status(&name, &PatchParams::default(), &nothing).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                wiped => drop(wiped.with_context(|| format!("failed to empty the status of {name}"))?),
            }
        }
    }
    Ok(())
}

/// What is left in these namespaces, of whatever kind the API server has: an orphan says nothing. News (Events) stays,
/// and so do the Leases and what Kubernetes puts into every namespace.
pub async fn orphans(client: &Client, namespaces: &BTreeSet<String>) -> Result<Vec<String>> {
    let discovery = Discovery::new(client.clone())
        .run()
        .await
        .context("failed to discover kinds")?;
    let served = discovery
        .groups()
        .flat_map(kube::discovery::ApiGroup::recommended_resources);
    let listed = served.filter(|(kind, facts)| {
        let expected = ["Event", "Lease", "ServiceAccount"];
        facts.scope == Scope::Namespaced && facts.supports_operation(verbs::LIST) && !expected.contains(&&*kind.kind)
    });
    let mut orphans = Vec::new();
    for (kind, _) in listed {
        let list = Api::<DynamicObject>::all_with(client.clone(), &kind)
            .list_metadata(&ListParams::default())
            .await;
        let list = match list {
            Err(kube::Error::Api(status)) if is_beginning(&status) => continue,
            list => list.with_context(|| format!("failed to list {}", kind.plural))?,
        };
        let left = list.items.iter().filter(|object| {
            object
                .namespace()
                .is_some_and(|namespace| namespaces.contains(&namespace))
                && object.name_any() != "kube-root-ca.crt"
        });
        orphans.extend(left.map(|object| {
            format!(
                "{} {}/{}",
                kind.kind,
                object.namespace().unwrap_or_default(),
                object.name_any()
            )
        }));
    }
    Ok(orphans)
}

/// Whether the API server has not begun to serve the kind: another journey of the same control plane installs it, and whoever has objects of it has
/// waited for that.
fn is_beginning(status: &Status) -> bool {
    status.code == 429 && status.message.contains("initializing")
}

pub(crate) async fn objects(journey: &Journey) -> Result<Vec<(String, DynamicObject)>> {
    objects_of(journey, &KINDS).await
}

async fn objects_of(journey: &Journey, kinds: &[Kind]) -> Result<Vec<(String, DynamicObject)>> {
    let lists = kinds.iter().map(async |&(api_version, kind)| {
        let list = match journey.objects(api_version, kind).list(&ListParams::default()).await {
            // No journey of this control plane has installed the kind, and nobody serves its group.
            Err(kube::Error::Api(status)) if kind == provider::KIND && status.code == 404 => return Ok(Vec::new()),
            Err(kube::Error::Api(status)) if is_beginning(&status) => return Ok(Vec::new()),
            list => list.with_context(|| format!("failed to list {kind}"))?,
        };
        let keyed = list
            .items
            .into_iter()
            .map(|object| (format!("{kind} {}", object.name_any()), object));
        Ok::<_, anyhow::Error>(keyed.collect::<Vec<_>>())
    });
    Ok(try_join_all(lists).await?.into_iter().flatten().collect())
}

/// What the files of the neighbour's releases are like follows from its name, which is inside them.
fn hide_sizes(object: &mut DynamicObject, neighbour: &str) {
    if !object.name_any().contains(neighbour) {
        return;
    }
    let places = [
        "/status/assets/digest",
        "/status/assets/size",
        "/status/available/0/digest",
    ];
    for place in places {
        if let Some(told) = object.data.pointer_mut(place) {
            *told = Value::from("TOLD");
        }
    }
}

fn normalised(journey: &Journey, mut object: DynamicObject) -> Result<Value> {
    let neighbour = neighbour(&journey.namespace);
    hide_sizes(&mut object, &neighbour);
    let tag = format!("docker-{neighbour}-1-34-v1");
    let mut texts = vec![
        (journey.namespace.clone(), "NAMESPACE".to_owned()),
        (
            labels::part_of("ClusterStackRelease", &journey.namespace, &tag),
            "PART-OF-THE-NEIGHBOUR".to_owned(),
        ),
        (neighbour, THE_NEIGHBOUR.to_owned()),
    ];
    let source = journey.source.as_ref();
    texts.extend(source.map(|source| (source.server.url("127.0.0.1"), "SOURCE".to_owned())));
    texts.extend(VERSIONS.map(|version| {
        let tag = harbor_tag(version);
        let mark = labels::part_of("ClusterStackRelease", &journey.namespace, &tag);
        (mark, format!("PART-OF-{tag}"))
    }));
    plain(object, &texts)
}

/// An object without times and identities, and with these texts in the place of those that differ between journeys.
pub fn plain(mut object: DynamicObject, texts: &[(String, String)]) -> Result<Value> {
    // The digest of what is applied covers the mark of its owner, which the namespace is part of.
    let rows = object
        .data
        .pointer_mut("/status/resources")
        .and_then(Value::as_array_mut);
    for digest in rows.into_iter().flatten().filter_map(|row| row.get_mut("digest")) {
        *digest = Value::Bool(digest.as_str().is_some_and(|digest| !digest.is_empty()));
    }
    let metadata = &object.metadata;
    let owners = metadata.owner_references.iter().flatten();
    let owners: Vec<_> = owners.map(|owner| format!("{} {}", owner.kind, owner.name)).collect();
    // Who owns which field of an applied object decides what a later release can take away.
    let ours = |manager: Option<&str>| manager == Some(labels::FIELD_MANAGER);
    let fields = metadata.managed_fields.iter().flatten();
    let fields = fields
        .filter(|entry| ours(entry.manager.as_deref()) && entry.operation.as_deref() == Some("Apply"))
        .map(|entry| serde_json::to_value(&entry.fields_v1))
        .collect::<serde_json::Result<Vec<_>>>()?;
    let fields: Vec<Value> = fields.into_iter().map(comparable).collect();
    let annotations = metadata.annotations.clone().map(|mut annotations| {
        annotations.remove(MEDDLED);
        // Of what a storm changes and the namespace is part of, too.
        if let Some(digest) = annotations.get_mut(labels::APPLIED_DIGEST) {
            "DIGEST".clone_into(digest);
        }
        annotations
    });
    let annotations = annotations.filter(|annotations| !annotations.is_empty());
    let mut value = json!({
        "metadata": {
            "labels": metadata.labels, "annotations": annotations, "finalizers": metadata.finalizers,
            "ownerReferences": owners, "generation": metadata.generation,
            "deleting": metadata.deletion_timestamp.is_some(), "appliedFields": fields,
        },
        "object": object.data,
    });
    timeless(&mut value, texts);
    Ok(value)
}

/// The fields that somebody owns, without what differs between journeys: the identities of owners, by which the API server tells their references
/// apart, and the annotation of a storm, which the provider's objects take over from the stack.
fn comparable(mut fields: Value) -> Value {
    let annotations = fields.pointer_mut("/f:metadata/f:annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(&format!("f:{MEDDLED}"));
    }
    let references = fields.pointer_mut("/f:metadata/f:ownerReferences");
    if let Some(references) = references.and_then(Value::as_object_mut) {
        let anonymous = std::mem::take(references).into_values();
        references.extend(
            (0..)
                .zip(anonymous)
                .map(|(number, fields): (u32, _)| (number.to_string(), fields)),
        );
    }
    fields
}

/// Removes times, and replaces texts that differ between journeys.
fn timeless(value: &mut Value, texts: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (from, to) in texts {
                *text = text.replace(from, to);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| timeless(item, texts)),
        Value::Object(members) => {
            members.remove("lastTransitionTime");
            members.values_mut().for_each(|member| timeless(member, texts));
        }
        _ => {}
    }
}

/// What differs between two worlds, by path.
pub fn differences(wanted: &World, found: &World) -> String {
    let mut text = String::new();
    for key in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        match (wanted.get(key), found.get(key)) {
            (Some(_), None) => drop(write!(text, "{key} is missing; ")),
            (None, Some(_)) => drop(write!(text, "{key} is too many; ")),
            (Some(wanted), Some(found)) => differing(key, wanted, found, &mut text),
            (None, None) => {}
        }
    }
    text
}

/// The innermost differences, by path.
fn differing(path: &str, wanted: &Value, found: &Value, text: &mut String) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            for key in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
                let [wanted, found] = [wanted, found].map(|members| members.get(key).unwrap_or(&Value::Null));
                differing(&format!("{path}/{key}"), wanted, found, text);
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                differing(&format!("{path}/{index}"), wanted, found, text);
            }
        }
        _ if wanted == found => {}
        _ => drop(write!(text, "{path} is {found} instead of {wanted}; ")),
    }
}
