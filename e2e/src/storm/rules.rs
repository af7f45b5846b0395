//! What must hold of the world at rest, and of everything that an operator asked for on the way there.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon, ClusterStack, ClusterStackRelease, PROVIDER_GROUP,
    conditions::{ConditionType, is_true, lint},
    labels,
    resource::SyncStatus,
};
use jiff::Timestamp;
use kube::{ResourceExt, api::ListParams};
use serde_json::Value;

use crate::{AuditEvent, Journey, audit::AuditEvents, journey::status, world::objects};

/// Our own kinds, by plural.
const OUR_GROUP: &str = "clusterstack.x-k8s.io";

/// Fails with everything that is not true in the namespace of a journey while nothing happens there:
/// - conditions that contradict themselves or the generation;
/// - a release that is ready though one of its objects is not in place;
/// - an inventory that is not exactly what carries the mark of its release, in both directions, and marks of releases that are not there;
/// - a stack that calls a version usable whose release is not ready;
/// - a ClusterAddon of a Cluster that is not there.
pub async fn state(journey: &Journey) -> Result<()> {
    let mut wrong = Vec::new();
    let releases = journey
        .api::<ClusterStackRelease>()
        .list(&ListParams::default())
        .await?
        .items;
    let mut marked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (key, object) in objects(journey).await? {
        if let Some(mark) = object.labels().get(labels::PART_OF) {
            marked.entry(mark.clone()).or_default().insert(key);
        }
    }
    for release in &releases {
        let mark = labels::part_of("ClusterStackRelease", &journey.namespace, &release.name_any());
        wrong.extend(flaws_of_release(release, &marked.remove(&mark).unwrap_or_default()));
    }
    let ready = releases.iter().filter(|release| status(release).ready);
    let ready: BTreeSet<String> = ready.map(ResourceExt::name_any).collect();
    for (mark, keys) in marked {
        wrong.push(format!("{keys:?} are marked as part of {mark}, which is not there"));
    }
    for stack in journey.api::<ClusterStack>().list(&ListParams::default()).await?.items {
        wrong.extend(flaws_of(&stack, &ready));
    }
    let clusters = journey.objects("cluster.x-k8s.io/v1beta1", "Cluster");
    let clusters = clusters.list_metadata(&ListParams::default()).await?.items;
    let clusters: BTreeSet<String> = clusters.iter().filter_map(ResourceExt::uid).collect();
    for addon in journey.api::<ClusterAddon>().list(&ListParams::default()).await?.items {
        wrong.extend(flaws_of_addon(&addon, &clusters));
    }
    ensure!(wrong.is_empty(), "not true: {wrong:#?}");
    Ok(())
}

/// `parts` carry the mark of the release.
fn flaws_of_release(release: &ClusterStackRelease, parts: &BTreeSet<String>) -> Vec<String> {
    let name = release.name_any();
    let status = status(release);
    let generation = release.metadata.generation.unwrap_or_default();
    let observed = status.observed_generation.unwrap_or_default();
    let flaws = lint(&status.conditions, generation, observed);
    let mut wrong: Vec<String> = flaws.iter().map(|flaw| format!("{name}: {flaw}")).collect();
    let missing = status
        .resources
        .iter()
        .filter(|row| status.ready && row.status != Some(SyncStatus::Synced));
    wrong.extend(missing.map(|row| format!("{name} is ready, {} {} is not", row.kind, row.name)));
    if status.ready != is_true(&status.conditions, ConditionType::Ready) {
        wrong.push(format!(
            "{name}: status.ready is {}, its condition is not",
            status.ready
        ));
    }
    let rows = status.resources.iter().map(|row| format!("{} {}", row.kind, row.name));
    let rows: BTreeSet<String> = rows.collect();
    wrong.extend(
        rows.difference(parts)
            .map(|key| format!("{name} lists {key}, which is not there")),
    );
    wrong.extend(
        parts
            .difference(&rows)
            .map(|key| format!("{name} does not list {key}, which is its own")),
    );
    if rows.len() != status.resources.len() {
        wrong.push(format!("{name} lists an object twice"));
    }
    wrong
}

fn flaws_of(stack: &ClusterStack, ready: &BTreeSet<String>) -> Vec<String> {
    let name = stack.name_any();
    let status = stack.status.clone().unwrap_or_default();
    let generation = stack.metadata.generation.unwrap_or_default();
    let observed = status.observed_generation.unwrap_or_default();
    let flaws = lint(&status.conditions, generation, observed);
    let usable = status.usable_versions.unwrap_or_default();
    let unusable = usable
        .split(", ")
        .filter(|version| !version.is_empty())
        .filter(|version| {
            let end = format!("-{}", version.replace('.', "-"));
            !ready.iter().any(|tag| tag.ends_with(&end))
        });
    let flaws = flaws.iter().map(|flaw| format!("{name}: {flaw}"));
    flaws
        .chain(unusable.map(|version| format!("{name} calls {version} usable, which is not ready")))
        .collect()
}

/// `clusters` are the uids of those that are there.
fn flaws_of_addon(addon: &ClusterAddon, clusters: &BTreeSet<String>) -> Vec<String> {
    let name = addon.name_any();
    let status = addon.status.clone().unwrap_or_default();
    let generation = addon.metadata.generation.unwrap_or_default();
    let observed = status.observed_generation.unwrap_or_default();
    let flaws = lint(&status.conditions, generation, observed);
    let mut wrong: Vec<String> = flaws.iter().map(|flaw| format!("{name}: {flaw}")).collect();
    if !addon
        .owner_references()
        .iter()
        .any(|owner| clusters.contains(&owner.uid))
    {
        wrong.push(format!("{name} is left of a Cluster that is gone"));
    }
    wrong
}

/// Fails with everything that an operator did and must not, whatever it knew:
/// - a status written without the resourceVersion that was read: a late writer would win;
/// - a status that calls a release ready though one of its rows is not in place;
/// - an object made that no status had listed before: after a crash nobody would know of it;
/// - an object deleted that no status had ever listed, or without naming its uid.
pub fn history(events: &AuditEvents) -> Result<()> {
    let mut wrong = Vec::new();
    let mut listed: BTreeMap<(String, String), Timestamp> = BTreeMap::new();
    let mut writes: Vec<&AuditEvent> = events
        .iter()
        .filter(|event| event.is_write() && !event.is_lease())
        .collect();
    writes.sort_by_key(|event| event.answered);
    for event in writes {
        let Some(object) = &event.object else { continue };
        let done = (200..300).contains(&event.code);
        // A request whose client went away is logged with 504, and may have been done all the same.
        let unknown = event.code >= 500;
        let body = event
            .body
            .as_deref()
            .and_then(|body| serde_json::from_str::<Value>(body).ok())
            .unwrap_or_default();
        let what = format!("{} {} {} ({})", event.verb, object.resource, object.name, event.code);
        let key = (object.resource.clone(), object.name.clone());
        // The provider's objects belong to a release by their owner, and its deletion takes them along.
        let ours = [OUR_GROUP, PROVIDER_GROUP].contains(&object.api_group.as_str());
        let since = listed.get(&key).copied();
        match event.verb.as_str() {
            "update" | "patch" if object.subresource == "status" => {
                if body["metadata"]["resourceVersion"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty()
                {
                    wrong.push(format!("{what}: a status without the version that was read"));
                }
                wrong.extend(boasts(&body).into_iter().map(|boast| format!("{what}: {boast}")));
                for (kind, name) in named(&body).into_iter().filter(|_| done || unknown) {
                    listed.entry((plural(kind), name.to_owned())).or_insert(event.answered);
                }
            }
            "patch" if !ours && event.code == 201 && since.is_none_or(|since| since > event.received) => {
                wrong.push(format!("{what}: made before any status listed it"));
            }
            "delete" if done => {
                if body
                    .pointer("/preconditions/uid")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .is_empty()
                {
                    wrong.push(format!("{what}: deleted without its uid"));
                }
                if !ours && since.is_none() {
                    wrong.push(format!("{what}: deleted though no status ever listed it"));
                }
            }
            "deletecollection" => wrong.push(what),
            _ => {}
        }
    }
    ensure!(wrong.is_empty(), "must not have happened: {wrong:#?}");
    Ok(())
}

/// Fails with every status of a ClusterAddon that was to be written and whose conditions contradict themselves or the generation, and when there was none.
pub fn conditions(events: &AuditEvents) -> Result<()> {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for event in events.iter().filter(|event| event.is_write()) {
        let about = event.object.clone().unwrap_or_default();
        let is_status = (about.resource.as_str(), about.subresource.as_str()) == ("clusteraddons", "status");
        let Some(body) = event.body.as_deref().filter(|_| is_status) else {
            continue;
        };
        let addon: ClusterAddon = serde_json::from_str(body).with_context(|| format!("unable to read {body}"))?;
        let status = addon.status.unwrap_or_default();
        let generation = addon.metadata.generation.unwrap_or_default();
        let observed = status.observed_generation.unwrap_or_default();
        let flaws = lint(&status.conditions, generation, observed);
        wrong.extend(flaws.iter().map(|flaw| format!("{}: {flaw}", about.name)));
        seen += 1;
    }
    ensure!(wrong.is_empty(), "must not have been written: {wrong:#?}");
    ensure!(seen > 0, "no status of a ClusterAddon was written");
    Ok(())
}

/// What a status calls ready though its own rows say that it is not.
fn boasts(body: &Value) -> Vec<String> {
    let conditions = body.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    let is_ready = body.pointer("/status/ready") == Some(&Value::Bool(true))
        || conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    // What is left otherwise on purpose stands.
    let is_in_place = |row: &Value| row["health"] != "Failed" && (row["status"] == "synced" || !row["left"].is_null());
    let missing = rows(body).filter(|row| is_ready && !is_in_place(row));
    missing
        .map(|row| format!("ready, and {} {} is not in place", row["kind"], row["name"]))
        .collect()
}

fn rows(body: &Value) -> impl Iterator<Item = &Value> {
    let rows = body.pointer("/status/resources").and_then(Value::as_array);
    rows.into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The objects that a status names as those of a release, or as what an operator before this one left; by kind and name.
fn named(body: &Value) -> Vec<(&str, &str)> {
    let classes = body.pointer("/status/orphans/classes").and_then(Value::as_array);
    let mut named: Vec<_> = rows(body).map(|row| (text(row, "kind"), text(row, "name"))).collect();
    for class in classes.into_iter().flatten() {
        named.push(("ClusterClass", text(class, "name")));
        let objects = class["objects"].as_array().into_iter().flatten();
        named.extend(objects.filter_map(|object| object.as_str()?.split_once(' ')));
    }
    named
}

/// As English has it.
fn plural(kind: &str) -> String {
    let end = if kind.ends_with('s') { "es" } else { "s" };
    format!("{}{end}", kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::ObjectReference;

    /// A request of the operator, answered in this second.
    fn asked(verb: &str, (group, resource): (&str, &str), second: i64, code: u16, body: &Value) -> AuditEvent {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let at = Timestamp::from_second(second).expect("a time");
        AuditEvent {
            verb: verb.to_owned(),
            user: "operator".to_owned(),
            user_agent: String::new(),
            object: Some(ObjectReference {
                api_group: group.to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                name: "a".to_owned(),
                ..ObjectReference::default()
            }),
            code,
            request_uri: String::new(),
            dry_run: false,
            received: at,
            answered: at,
            body: Some(body.to_string().into()),
        }
    }

    /// A release writes a status with one row.
    fn listing(second: i64, status: &str, is_ready: bool, row: &Value) -> AuditEvent {
        let conditions = json!([{ "type": "Ready", "status": status }]);
        let body = json!({
            "metadata": { "resourceVersion": "7" },
            "status": { "ready": is_ready, "conditions": conditions, "resources": [row] },
        });
        asked("update", (OUR_GROUP, "clusterstackreleases/status"), second, 200, &body)
    }

    fn written(status: &str, is_ready: bool, row: &Value) -> AuditEvents {
        AuditEvents::from(vec![listing(0, status, is_ready, row)])
    }

    /// What `history` finds after a status of the second second listed the `ConfigMap` `a`.
    fn found(after: AuditEvent) -> String {
        let row = json!({ "kind": "ConfigMap", "name": "a", "status": "not-synced" });
        let events = AuditEvents::from(vec![listing(2, "False", false, &row), after]);
        history(&events)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn nothing_may_be_made_before_a_status_listed_it() {
        let apply = |resource, second, code| asked("patch", ("", resource), second, code, &json!({}));
        assert_eq!(found(apply("configmaps", 3, 201)), "");
        assert_eq!(found(apply("secrets", 3, 200)), "", "it was there");
        for early in [apply("configmaps", 1, 201), apply("secrets", 3, 201)] {
            assert!(found(early).contains("made before any status listed it"));
        }
    }

    #[test]
    fn nothing_may_be_deleted_that_no_status_listed_or_without_its_uid_or_with_others() {
        let delete = |resource, body: Value| found(asked("delete", ("", resource), 3, 200, &body));
        let uid = json!({ "preconditions": { "uid": "u" } });
        assert_eq!(delete("configmaps", uid.clone()), "");
        assert!(delete("configmaps", json!({})).contains("without its uid"));
        assert!(delete("secrets", uid).contains("no status ever listed it"));
        let all = asked("deletecollection", ("", "configmaps"), 3, 200, &json!({}));
        assert!(found(all).contains("deletecollection"));
        let refused = asked("delete", ("", "secrets"), 3, 409, &json!({}));
        assert_eq!(found(refused), "", "nothing was deleted");
    }

    #[test]
    fn no_status_may_be_written_without_the_version_that_was_read() {
        let body = json!({ "metadata": {}, "status": {} });
        let blind = asked("patch", (OUR_GROUP, "clusterstacks/status"), 3, 200, &body);
        assert!(found(blind).contains("without the version"));
    }

    #[test]
    fn every_status_of_a_cluster_addon_that_was_written_is_looked_at() {
        let written = |status: &str| {
            let mut conditions = all_true(&["Ready", "HelmChartApplied"]);
            conditions[0]["status"] = status.into();
            let body = json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterAddon", "metadata": { "name": "a", "generation": 1 },
                "spec": { "clusterRef": {} }, "status": { "observedGeneration": 1, "conditions": conditions },
            });
            asked("update", (OUR_GROUP, "clusteraddons/status"), 3, 200, &body)
        };
        let judged =
            |events: Vec<AuditEvent>| conditions(&AuditEvents::from(events)).map_err(|error| error.to_string());
        assert_eq!(judged(vec![written("True")]), Ok(()));
        let both = judged(vec![written("False"), written("True")]);
        assert!(both.is_err_and(|words| words.contains("Ready has no reason")));
        assert!(judged(Vec::new()).is_err_and(|words| words.contains("no status")));
    }

    fn release(status: &Value) -> ClusterStackRelease {
        let release = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
            "metadata": { "name": "docker-harbor-1-34-v1", "namespace": "fleet", "generation": 1 }, "spec": {}, "status": status,
        });
        serde_json::from_value(release).expect("a release")
    }

    fn all_true(types: &[&str]) -> Value {
        let condition =
            |type_| json!({ "type": type_, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" });
        types.iter().map(condition).collect()
    }

    #[test]
    fn an_inventory_is_what_carries_the_mark_and_who_is_ready_has_all_of_it() {
        let row = |status| json!({ "group": "", "version": "v1", "kind": "ConfigMap", "name": "a", "status": status });
        let ready = |rows: &[Value]| {
            let conditions = all_true(&["Ready", "HelmChartApplied"]);
            json!({ "ready": true, "observedGeneration": 1, "conditions": conditions, "resources": rows })
        };
        let part = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let flaws = |status: &Value, parts: &[&str]| flaws_of_release(&release(status), &part(parts)).join("; ");
        let whole = ready(&[row("synced")]);
        assert_eq!(flaws(&whole, &["ConfigMap a"]), "");
        assert!(flaws(&whole, &[]).contains("lists ConfigMap a, which is not there"));
        assert!(flaws(&whole, &["ConfigMap a", "Secret b"]).contains("does not list Secret b"));
        assert!(flaws(&ready(&[row("not-synced")]), &["ConfigMap a"]).contains("is ready, ConfigMap a is not"));
        assert!(flaws(&ready(&[row("synced"), row("synced")]), &["ConfigMap a"]).contains("twice"));
        let mut torn = whole.clone();
        torn["ready"] = json!(false);
        assert!(flaws(&torn, &["ConfigMap a"]).contains("status.ready is false"));
    }

    #[test]
    fn a_stack_calls_no_version_usable_whose_release_is_not_ready() {
        let stack: ClusterStack = serde_json::from_value(json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": { "name": "harbor", "generation": 1 },
            "spec": { "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "versions": ["v1"] },
            "status": { "usableVersions": "v1, v2", "observedGeneration": 1, "conditions": all_true(&["Ready", "ReleasesSynced"]) },
        }))
        .expect("a stack");
        let ready = |tags: &[&str]| tags.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let both = ready(&["docker-harbor-1-34-v1", "docker-harbor-1-34-v2"]);
        assert_eq!(flaws_of(&stack, &both), Vec::<String>::new());
        let flaws = flaws_of(&stack, &ready(&["docker-harbor-1-34-v1"]));
        assert!(flaws.join("; ").contains("calls v2 usable"), "{flaws:#?}");
    }

    #[test]
    fn no_status_that_was_written_may_be_ready_with_an_object_that_is_not_in_place() {
        let synced = json!({ "kind": "ConfigMap", "name": "a", "status": "synced" });
        let missing = json!({ "kind": "ConfigMap", "name": "a", "status": "not-synced" });
        let failed = json!({ "kind": "Deployment", "name": "a", "status": "synced", "health": "Failed" });
        let left = json!({ "kind": "ConfigMap", "name": "a", "status": "not-synced", "left": "Drifted" });
        for row in [&missing, &failed] {
            assert!(history(&written("True", false, row)).is_err(), "{row}");
            assert!(history(&written("False", true, row)).is_err(), "{row}");
            assert!(history(&written("False", false, row)).is_ok(), "{row}");
        }
        for row in [&synced, &left] {
            assert!(history(&written("True", true, row)).is_ok(), "{row}");
        }
    }
}
