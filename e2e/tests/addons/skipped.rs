//! A Cluster goes from one release to the next but one and back and there once more, while objects go from stage to stage, from kind to kind and from namespace
//! to namespace (F5, F11 to F13).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use crds::events::Happening;
use e2e::{Journey, releases::StackSource, shim::cluster};
use serde_json::{Value, json};

use crate::{
    ground::{CLUSTER, class, is_told_of, on_the_newest, release_of, set_topology},
    reshaped::{AGENT, NOTE, add_chart, add_object, add_stage},
    stack::{self, Expected, Form},
};

/// The first release and the last one; the faulty one between them is nobody's.
const FIRST: &str = "v4";
const SKIPPED: &str = "v5";
const LAST: &str = "v6";
const KUBERNETES: &str = "v1.35.0";

const CONFIG_MAP: (&str, &str) = ("v1", "ConfigMap");
const SECRET: (&str, &str) = ("v1", "Secret");
const SYSTEM: &str = "kube-system";
const QUAY: &str = "quay";

/// What both have, the same.
const EQUAL: [&str; 6] = [
    "CustomResourceDefinition /moorings.quay.example.com",
    "Namespace /quay",
    "ServiceAccount kube-system/cluster-addon-network",
    "ConfigMap kube-system/cluster-addon-routes",
    "ConfigMap kube-system/cluster-addon-ropes",
    "Service quay/cluster-addon-lighthouse",
];
/// What both have, otherwise: in another version of its API, with other contents, of another stage.
const OTHERWISE: [&str; 5] = [
    "Mooring quay/cluster-addon-lighthouse",
    "Deployment kube-system/cluster-addon-network",
    "ConfigMap quay/cluster-addon-lighthouse",
    "ConfigMap kube-system/cluster-addon-tide",
    "ConfigMap kube-system/cluster-addon-lamps",
];

/// Of a chart without a template of values, whose stage comes after that of the network, which has one (F12, F13).
const ROPES: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-ropes
data:
  podCIDR: {{ .Values.podCIDR | default "none" | quote }}
"#;

fn ropes() -> Expected {
    let holds = json!({ "data": { "podCIDR": "none" } });
    Expected::new(CONFIG_MAP, (SYSTEM, "cluster-addon-ropes"), "ropes", holds)
}

/// What both releases have: Moorings in two versions of their API, and ropes.
fn source() -> Result<StackSource> {
    let source = StackSource::quay("v2")?;
    let path = "cluster-addon/network/crds/moorings.yaml";
    let text = std::fs::read_to_string(source.path().join(path)).context("failed to read the definition")?;
    let (_, version) = text.split_once("  versions:\n").context("it has versions")?;
    let second = version
        .replace("name: v1", "name: v2")
        .replace("storage: true", "storage: false");
    source.write(path, &format!("{text}{second}"))?;
    add_chart(&source, "ropes")?;
    add_stage(&source, "ropes", "lighthouse")?;
    source.write("cluster-addon/ropes/templates/ropes.yaml", ROPES)?;
    Ok(source)
}

/// Between the network and the lighthouse there are signals.
fn first() -> Result<StackSource> {
    let source = source()?;
    add_chart(&source, "signals")?;
    add_stage(&source, "signals", "lighthouse")?;
    add_object(&source, "signals", "ConfigMap", "", "signals")?;
    add_object(&source, "signals", "ConfigMap", "", "lamps")?;
    add_object(&source, "network", "ConfigMap", "", "tide")?;
    add_object(&source, "ropes", "ConfigMap", "", "hawser")?;
    add_object(&source, "lighthouse", "ConfigMap", QUAY, "berth")?;
    add_object(&source, "lighthouse", "ConfigMap", QUAY, "pilot")?;
    add_object(&source, "lighthouse", "ConfigMap", QUAY, "log")?;
    source.replace(NOTE, "  addons:", "  lamp: oil\n  addons:")?;
    Ok(source)
}

fn of_first() -> Vec<Expected> {
    let mut wanted = stack::expected(FIRST);
    wanted.extend([
        map((SYSTEM, "cluster-addon-signals"), "signals"),
        map((SYSTEM, "cluster-addon-lamps"), "signals"),
        map((SYSTEM, "cluster-addon-tide"), "network"),
        ropes(),
        map((SYSTEM, "cluster-addon-hawser"), "ropes"),
        map((QUAY, "cluster-addon-berth"), "lighthouse"),
        map((QUAY, "cluster-addon-pilot"), "lighthouse"),
        map((QUAY, "cluster-addon-log"), "lighthouse"),
        note(json!({ "data": { "lamp": "oil", "horn": null } })),
        agent(1),
    ]);
    wanted
}

/// Before the network there is a foghorn, and no signals are left.
fn last() -> Result<StackSource> {
    let source = source()?;
    add_chart(&source, "foghorn")?;
    add_stage(&source, "foghorn", "network")?;
    add_object(&source, "foghorn", "ConfigMap", "", "foghorn")?;
    add_object(&source, "foghorn", "ConfigMap", "", "lamps")?;
    add_object(&source, "lighthouse", "ConfigMap", SYSTEM, "tide")?;
    add_object(&source, "lighthouse", "Secret", QUAY, "berth")?;
    add_object(&source, "lighthouse", "ConfigMap", SYSTEM, "pilot")?;
    add_object(&source, "lighthouse", "ConfigMap", QUAY, "chronicle")?;
    source.replace(NOTE, "  addons:", "  horn: low\n  addons:")?;
    source.replace(NOTE, "quay.example.com/v1\n", "quay.example.com/v2\n")?;
    source.replace(AGENT, "replicas: {{ .Values.replicas }}", "replicas: 2")?;
    Ok(source)
}

fn of_last() -> Vec<Expected> {
    let moorings = "Mooring quay/cluster-addon-lighthouse";
    let mut wanted = stack::expected(LAST);
    wanted.retain(|object| object.place() != moorings);
    wanted.extend([
        map((SYSTEM, "cluster-addon-foghorn"), "foghorn"),
        map((SYSTEM, "cluster-addon-lamps"), "foghorn"),
        map((SYSTEM, "cluster-addon-tide"), "lighthouse"),
        ropes(),
        Expected::new(
            SECRET,
            (QUAY, "cluster-addon-berth"),
            "lighthouse",
            json!({ "data": { "name": "YmVydGg=" } }),
        ),
        map((SYSTEM, "cluster-addon-pilot"), "lighthouse"),
        map((QUAY, "cluster-addon-chronicle"), "lighthouse"),
        note(json!({ "data": { "lamp": null, "horn": "low" } })),
        agent(2),
        Expected::new(
            ("quay.example.com/v2", "Mooring"),
            (QUAY, "cluster-addon-lighthouse"),
            "lighthouse",
            json!({ "spec": { "berth": "north" } }),
        ),
    ]);
    wanted
}

/// A ConfigMap that says its own name.
fn map(place: (&'static str, &'static str), chart: &'static str) -> Expected {
    let name = place.1.trim_start_matches("cluster-addon-");
    Expected::new(CONFIG_MAP, place, chart, json!({ "data": { "name": name } }))
}

fn note(holds: Value) -> Expected {
    Expected::new(CONFIG_MAP, stack::NOTE, "lighthouse", holds)
}

fn agent(replicas: u8) -> Expected {
    let holds = json!({ "spec": { "replicas": replicas } });
    Expected::new(("apps/v1", "Deployment"), stack::AGENT, "network", holds)
}

async fn publish(journey: &Journey, source: &StackSource, version: &str) -> Result<String> {
    let tag = journey.releases.publish_stack(&source.path(), version)?;
    release_of(journey, &tag, "v2", version).await?;
    Ok(tag)
}

type Forms = BTreeMap<String, Form>;

/// What both releases have was made once, and what is equal in them was not even written.
fn is_carried_over(before: &Forms, after: &Forms, written: &[String]) -> Result<()> {
    let both: BTreeSet<&str> = after
        .keys()
        .filter(|place| before.contains_key(*place))
        .map(String::as_str)
        .collect();
    let named: BTreeSet<&str> = EQUAL.into_iter().chain(OTHERWISE).collect();
    ensure!(both == named, "both have {both:#?} instead of {named:#?}");
    stack::are_the_same(&stack::uids_of(before.clone()), &stack::uids_of(after.clone()))?;
    for place in EQUAL {
        let (first, then) = (&before[place], &after[place]);
        ensure!(first == then, "{place} was written: {then:?} instead of {first:?}");
        let (_, name) = place.split_once('/').context("a place has a name")?;
        let (kind, _) = place.split_once(' ').context("a place has a kind")?;
        let path = format!("/{}s/{name}", kind.to_lowercase());
        let of_it = |write: &&String| write.split(['?', ' ']).any(|part| part.ends_with(&path));
        let of_it: Vec<&String> = written.iter().filter(of_it).collect();
        ensure!(of_it.is_empty(), "{place} was written: {of_it:#?}");
    }
    Ok(())
}

#[test]
fn f5_f11_f12_f13_a_release_is_skipped_and_gone_back_from_and_the_cluster_has_what_each_says_and_nothing_of_the_other()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let (of_first, of_last) = (of_first(), of_last());
        let first = publish(journey, &first()?, FIRST).await?;
        class(journey, "v3", SKIPPED).await?;
        let last = publish(journey, &last()?, LAST).await?;
        journey.apply(cluster(CLUSTER, &first, KUBERNETES, 1)).await?;
        ground.complete_with(journey, &first, FIRST, &of_first).await?;
        ground.looks_write_nothing(journey, "begun").await?;

        let client = ground.workload.client();
        let mut before = stack::forms(&client, &of_first).await?;
        let steps = [
            (&last, LAST, &of_last),
            (&first, FIRST, &of_first),
            (&last, LAST, &of_last),
        ];
        for (class, version, wanted) in steps {
            let mark = ground.workload.audit_log().mark().await?;
            set_topology(journey, class, KUBERNETES).await?;
            let addon = ground.complete_with(journey, class, version, wanted).await?;
            is_told_of(journey, &addon, &[Happening::UpgradeDone]).await?;
            ground.looks_write_nothing(journey, version).await?;
            let after = stack::forms(&client, wanted).await?;
            is_carried_over(&before, &after, &ground.written_since(mark).await?)?;
            before = after;
        }
        Ok(())
    })
}
