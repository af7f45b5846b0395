//! API servers of clusters whose answers have no more bytes than others, and would take all memory: trees of empty maps, lists and names without end. All at once before
//! an operator of their own, so that what it holds at most is what they made of it; and then others that [publish](super::published) as much (F36).

use std::{fs, sync::Arc};

use anyhow::{Context, Result, ensure};
use crds::{cluster_addon::name_for, conditions::ConditionType, labels};
use e2e::{
    ControlPlane, Journey, Options,
    hostile_server::{Question, Reply},
    journey::journey,
    releases::StackSource,
    shim::Workload,
    usage::Usage,
};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{
    Attack, STACK,
    honest::Honest,
    operate, published,
    releases::{STAGES, TEMPLATE, honest_source, stages_that_wait},
    servers::{self, Attacker, JSON, VERSION, are_asked, ok},
};

/// The most that the operator may ever have resident, in MiB: what a build for debugging has without any of this (50), and four answers of the worst sort
/// (95 MiB each) under way at once: two of conditions and two of lookups. All others are stopped before anything is made of them.
const MOST_MEMORY: f64 = 430.0;

/// A map of one field: eight bytes with a comma, five of the parts that are counted, and seven hundred bytes in memory.
pub(super) const MAP: &str = r#"{"a":0}"#;
/// So many of them have fewer bytes than an object may have, and take 700 MB.
pub(super) const BEYOND: usize = 1_000_000;
/// So many have almost as many parts as an answer may have (500,000).
const ALMOST: usize = 95_000;
/// Beyond what is remembered.
const KINDS: usize = 30_000;
const DEFINITIONS: usize = 11_000;
const OBJECTS: usize = 5_001;

/// How a lookup is written that finds more than there is memory for.
const LOOKUP: &str = "{{- $found := lookup \"v1\" \"ConfigMap\" \"kube-system\" \"much\" }}\n";

/// What is there of the releases: the honest one, and those that read what the servers have ready for them.
struct Classes {
    honest: String,
    waiting: String,
    looking: String,
    /// What its stage waits for is checked against what the API server publishes.
    checked: String,
}

fn publish(journey: &Journey) -> Result<Classes> {
    let [waiting, looking, checked] = [honest_source()?, honest_source()?, honest_source()?];
    let objects = ["a", "b", "c"].map(|key| {
        (
            key,
            format!("kind: ConfigMap, name: much-{key}, namespace: kube-system"),
        )
    });
    let objects = objects.each_ref().map(|(key, object)| (*key, object.as_str()));
    let expression = "a.metadata.name != \"\" && b.metadata.name != \"\" && c.metadata.name != \"\"";
    waiting.write(STAGES, &stages_that_wait(&objects, expression))?;
    let template = fs::read_to_string(looking.path().join(TEMPLATE)).context("failed to read a template")?;
    looking.write(TEMPLATE, &format!("{LOOKUP}{template}"))?;
    checked.write(STAGES, &stages_that_wait(&published::AWAITED, published::CONDITION))?;
    let publish = |source: &StackSource, version| journey.releases.publish_stack(&source.path(), version);
    Ok(Classes {
        honest: publish(&honest_source()?, "v1")?,
        waiting: publish(&waiting, "v2")?,
        looking: publish(&looking, "v3")?,
        checked: publish(&checked, "v4")?,
    })
}

/// A list of so many of these.
pub(super) fn list_of(part: &str, count: usize) -> String {
    format!("[{}]", vec![part; count].join(","))
}

fn says(body: &str) -> Reply {
    Reply::answer("200 OK", &[JSON], body.as_bytes())
}

/// A list of Kubernetes.
fn items(items: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"List","metadata":{{"resourceVersion":"1"}},"items":{items}}}"#)
}

/// What is served of a group: the names of kinds, whose plurals are not looked at.
fn group_of(name: &str, kinds: impl Iterator<Item = String>) -> String {
    let kinds = kinds.map(|kind| {
        let plural = format!("{}s", kind.to_lowercase());
        format!(r#"{{"resource":"{plural}","responseKind":{{"kind":"{kind}"}},"scope":"Namespaced"}}"#)
    });
    let kinds = kinds.collect::<Vec<_>>().join(",");
    format!(r#"{{"metadata":{{"name":"{name}"}},"versions":[{{"version":"v1","resources":[{kinds}]}}]}}"#)
}

/// An object of this name whose data are so many maps.
fn object(name: &str, maps: usize) -> String {
    let metadata = json!({ "name": name, "namespace": "kube-system", "uid": name, "resourceVersion": "1" });
    let maps = list_of(MAP, maps);
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{metadata},"maps":{maps}}}"#)
}

/// An object that has nothing but owners, of which nothing is known: metadata is all that is read of what is watched.
fn owned(owners: usize) -> String {
    let owners = list_of("{}", owners);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"owned","resourceVersion":"2","ownerReferences":{owners}}}}}"#
    )
}

/// What is asked for, as far as these servers tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Core,
    Groups,
    Definitions,
    ConfigMaps,
    WatchOfConfigMaps,
    ConfigMap,
    Change,
    Other,
}

impl Asked {
    fn of(question: &Question) -> Self {
        let (path, query) = question.target.split_once('?').unwrap_or((&question.target, ""));
        let is_watch = query.contains("watch=");
        match path {
            _ if question.head.starts_with("PATCH ") => Self::Change,
            "/api" => Self::Core,
            "/apis" => Self::Groups,
            _ if path.contains("/namespaces/kube-system/configmaps/") => Self::ConfigMap,
            "/api/v1/configmaps" if is_watch => Self::WatchOfConfigMaps,
            "/api/v1/configmaps" => Self::ConfigMaps,
            _ if path.ends_with("/customresourcedefinitions") && !is_watch => Self::Definitions,
            _ => Self::Other,
        }
    }
}

/// What an API server says that has ConfigMaps and CRDs, and none of either.
fn usual(asked: Asked, question: &Question) -> Reply {
    match asked {
        Asked::Core => says(&items(&list_of(&group_of("", ["ConfigMap".to_owned()].into_iter()), 1))),
        Asked::Groups => {
            let definitions = ["CustomResourceDefinition".to_owned()].into_iter();
            says(&items(&list_of(&group_of("apiextensions.k8s.io", definitions), 1)))
        }
        Asked::Definitions | Asked::ConfigMaps => says(&items("[]")),
        Asked::WatchOfConfigMaps => Reply::Holds(ok()),
        Asked::Other if question.target == "/version" => says(VERSION),
        Asked::Other if question.target.contains("watch=") => Reply::Holds(ok()),
        Asked::ConfigMap | Asked::Change | Asked::Other => {
            let status =
                json!({ "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "no" });
            Reply::answer("404 Not Found", &[JSON], status.to_string().as_bytes())
        }
    }
}

/// A server that is as others are but for these answers.
async fn server(name: &'static str, words: &str, otherwise: Vec<(Asked, String)>) -> Result<Attacker> {
    let otherwise = Arc::new(otherwise);
    let mut attacker = servers::attacker(name, &[words], move |question| {
        let asked = Asked::of(question);
        match otherwise.iter().find(|(other, _)| *other == asked) {
            Some((Asked::WatchOfConfigMaps, event)) => Reply::Holds([ok(), event.clone().into_bytes()].concat()),
            Some((_, body)) => says(body),
            None => usual(asked, question),
        }
    })
    .await?;
    attacker.attack.condition = ConditionType::HelmChartApplied;
    Ok(attacker)
}

/// Servers that say too much of what they serve.
async fn of_kinds() -> Result<Vec<Attacker>> {
    let kinds = |count| (0..count).map(|kind| format!("Kind{kind}"));
    let excess = "says that it serves more than 10000 kinds, or one with too long a name";
    let versions = list_of("\"v1\"", 10 * KINDS);
    Ok(vec![
        server(
            "kinds-of-nothing",
            "the API server's answer to discover /apis has more lists, maps and fields than the 500000",
            vec![(Asked::Groups, items(&list_of("[]", 2 * BEYOND)))],
        )
        .await?,
        server(
            "kinds-without-end",
            excess,
            vec![(
                Asked::Groups,
                items(&list_of(&group_of("more.example.org", kinds(KINDS)), 1)),
            )],
        )
        .await?,
        // Its name would be remembered with each of its kinds, three times over.
        server(
            "group-without-end",
            excess,
            vec![(
                Asked::Groups,
                items(&list_of(&group_of(&"x".repeat(1 << 16), kinds(9000)), 1)),
            )],
        )
        .await?,
        // An older one, which is asked for each version of each group.
        server(
            "versions-without-end",
            excess,
            vec![
                (
                    Asked::Core,
                    format!(r#"{{"kind":"APIVersions","versions":{versions}}}"#),
                ),
                (Asked::Groups, r#"{"kind":"APIGroupList","groups":[]}"#.to_owned()),
            ],
        )
        .await?,
    ])
}

/// What is said of an object whose kind is not served, whatever is known of CRDs.
const UNKNOWN: &str = "the API server does not serve ConfigMap.v1 (1 object)";

/// Servers that show too many CRDs, or too much of one, and serve no ConfigMaps: so it matters what CRDs there are.
async fn of_definitions() -> Result<Vec<Attacker>> {
    let served = || (Asked::Core, items("[]"));
    let definition = |number| format!(r#"{{"metadata":{{"name":"a{number}.example.org","resourceVersion":"1"}}}}"#);
    let definitions: Vec<String> = (0..DEFINITIONS).map(definition).collect();
    let large = format!(
        r#"[{{"metadata":{{"name":"a.example.org"}},"spec":{}}}]"#,
        list_of(MAP, BEYOND)
    );
    Ok(vec![
        server(
            "definition-of-nothing",
            UNKNOWN,
            vec![served(), (Asked::Definitions, items(&large))],
        )
        .await?,
        server(
            "definitions-without-end",
            UNKNOWN,
            vec![
                served(),
                (Asked::Definitions, items(&format!("[{}]", definitions.join(",")))),
            ],
        )
        .await?,
    ])
}

/// Servers that show too many objects, or too much of one.
async fn of_objects(namespace: &str) -> Result<Vec<Attacker>> {
    let crowd = "objects-without-end";
    let mark = labels::part_of("ClusterAddon", namespace, &name_for(crowd));
    let marked = |number| {
        let metadata =
            json!({ "name": format!("a{number}"), "namespace": "default", "labels": { labels::PART_OF: mark } });
        json!({ "metadata": metadata })
    };
    let objects: Vec<Value> = (0..OBJECTS).map(marked).collect();
    let event = format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", owned(ALMOST));
    Ok(vec![
        server(
            crowd,
            " objects, whose inventory needs",
            vec![(Asked::ConfigMaps, items(&json!(objects).to_string()))],
        )
        .await?,
        server(
            "object-of-nothing",
            "the API server's answer to list /api/v1/configmaps has more lists, maps and fields than the 500000",
            vec![(Asked::ConfigMaps, items(&list_of(&object("a", BEYOND), 1)))],
        )
        .await?,
        // What its watch tells is just not too much.
        server(
            "answer-of-nothing",
            "has more lists, maps and fields than the 500000",
            vec![
                (Asked::ConfigMaps, items(&list_of(&owned(ALMOST), 1))),
                (Asked::WatchOfConfigMaps, event),
                (Asked::Change, object("answer-of-nothing-note", BEYOND)),
            ],
        )
        .await?,
    ])
}

/// Servers whose objects are each just not too much, and are asked for several of them, or for less.
async fn of_much(classes: &Classes) -> Result<Vec<Attacker>> {
    let mut attackers = Vec::new();
    for name in ["condition-of-much", "condition-of-as-much"] {
        let mut attacker = server(
            name,
            "the condition reads objects with more than 500000 lists, maps and fields, up to the ConfigMap kube-system/much-c",
            vec![(Asked::ConfigMap, object("much", ALMOST / 2))],
        )
        .await?;
        attacker.attack.class = Some(classes.waiting.clone());
        attacker.attack.condition = ConditionType::EvaluatedCEL;
        attackers.push(attacker);
    }
    for name in ["lookup-of-much", "lookup-of-as-much"] {
        let mut attacker = server(
            name,
            "the chart looks up objects with more than 100000 lists, maps and fields",
            vec![(Asked::ConfigMap, object("much", ALMOST))],
        )
        .await?;
        attacker.attack.class = Some(classes.looking.clone());
        attacker.attack.condition = ConditionType::HelmChartTemplated;
        attackers.push(attacker);
    }
    Ok(attackers)
}

async fn few_bytes_take_little_memory(journey: &mut Journey) -> Result<()> {
    let journey: &Journey = journey;
    let workload = ControlPlane::start(Options::default()).await?;
    let served = Workload::at(workload.access()).await?;
    let classes = publish(journey)?;
    let honest = Honest::at(workload, &classes.honest, &served);
    let mut attackers = of_kinds().await?;
    attackers.extend(of_definitions().await?);
    attackers.extend(of_objects(&journey.namespace).await?);
    attackers.extend(of_much(&classes).await?);

    let mut operator = operate(journey, &["--allow-workload-loopback"]).await?;
    let versions = ["v1", "v2", "v3", "v4"];
    journey.stack(STACK, json!({ "versions": versions })).await?;
    for class in [&classes.honest, &classes.waiting, &classes.looking, &classes.checked] {
        journey.release_ready(class).await?;
    }
    let attacks = || attackers.iter().map(|attacker| &attacker.attack);
    let process = operator.process_id().context("it runs")?;
    eprintln!("before: {:?}", Usage::of(process)?);
    try_join_all(attacks().map(|attack: &Attack| attack.bring(journey, &honest.cluster))).await?;
    are_asked(&attackers).await?;
    honest.is_complete(journey).await?;
    honest.is_served_until_told(journey, attacks()).await?;
    published::all_are_served(journey, &honest, &classes.checked).await?;
    let usage = Usage::of(process)?;
    eprintln!("{usage:?}");
    ensure!(usage.peak_mib < MOST_MEMORY, "{usage:?}");
    operator.check()?;
    operator.kill().await
}

#[test]
fn f36_api_servers_whose_few_bytes_would_take_all_memory_are_told_and_the_honest_cluster_beside_them_is_served()
-> Result<()> {
    journey(few_bytes_take_little_memory)
}
