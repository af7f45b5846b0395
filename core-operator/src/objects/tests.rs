//! Objects of owners that are no releases, in an API server that two of them use: what an add-on of a cluster needs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crds::policy::{DriftPolicy, PruneLimit};
use crds::resource::Resource;
use crds::{ClusterAddon, labels};
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::events::Events;
use operator_kit::in_memory::{Server, WORKLOAD};
use operator_kit::object::{GroupKind, ObjectKey};
use operator_kit::objects::{Marked, Notice, ObjectWatches};
use operator_kit::telemetry::{Readiness, registry};
use planning::objects::{Decisions, ObjectSet, OwnAction, OwnerKind, Prune, Step};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// The marks of the add-ons that are there.
const HERE: [&str; 2] = ["mark-of-one", "mark-of-two"];

/// Nothing is written to these owners.
#[derive(Clone, Debug, PartialEq)]
enum Nothing {}

impl OwnAction for Nothing {
    fn name(&self) -> &'static str {
        match *self {}
    }
}

/// An add-on and its connection to the cluster.
struct Addon {
    part_of: &'static str,
    place: Place,
    notices: mpsc::Receiver<Notice>,
    memory: Memory<()>,
    rows: Vec<Resource>,
    wanted: Vec<Value>,
    clock: Clock,
    metrics: Metrics,
    events: Events,
}

/// What it knows of what it wants, in one pass.
struct Bundle(Arc<Intents>);

impl Owner for Bundle {
    type Object = ClusterAddon;
    type Action = Nothing;

    fn kind(&self) -> OwnerKind {
        OwnerKind::Addon
    }

    fn namespace_of<'k>(&'k self, key: &'k ObjectKey) -> &'k str {
        &key.namespace
    }

    async fn still_wanted(&self, _: &ClusterAddon) -> Result<(), Failed> {
        Ok(())
    }

    async fn perform(&self, _: &ClusterAddon, action: &Nothing) -> Result<Option<ClusterAddon>, Failed> {
        match *action {}
    }

    fn note(&self, _: &ClusterAddon) {}

    async fn bodies(&self, _: &ClusterAddon) -> Result<Option<Bodies>, Unprepared> {
        Ok(Some(Ok(Arc::clone(&self.0))))
    }

    async fn is_elsewhere(&self, _: &ObjectKey, part_of: &str) -> Result<bool, String> {
        Ok(HERE.contains(&part_of))
    }

    async fn take_over_status(&self, _: &ClusterAddon) -> Result<(), String> {
        Ok(())
    }
}

impl Addon {
    fn of(server: &Server, part_of: &'static str, wanted: Vec<Value>) -> Self {
        let (client, stop) = (server.client(), CancellationToken::new());
        let discovery = Discovery::new(client.clone());
        let crds = CrdWatch::start(client.clone(), discovery.clone(), &Readiness::default(), stop.clone());
        let marked = Marked::by(labels::PART_OF, part_of);
        let (objects, notices) = ObjectWatches::new(client.clone(), discovery.clone(), marked, stop);
        Self {
            part_of,
            notices,
            memory: Memory::default(),
            rows: Vec::new(),
            wanted,
            clock: Clock::start(),
            metrics: Metrics::register(&mut registry()),
            events: Events::start(client.clone(), "tests", "tests"),
            place: Place {
                client,
                discovery,
                crds,
                objects,
            },
        }
    }

    /// Works until nothing is left to do by what it knows; gives what was decided last.
    async fn work(&mut self) -> Decisions {
        let spec = json!({ "clusterRef": { "kind": "Cluster", "name": "one" } });
        let addon = ClusterAddon::new("cluster-addon-one", serde_json::from_value(spec).expect("a spec"));
        loop {
            self.hear();
            let intents = Arc::new(self.intents().await);
            let none = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
            let kinds: BTreeSet<GroupKind> = intents.planned.keys().map(ObjectKey::group_kind).collect();
            let asked = Asked {
                part_of: self.part_of,
                namespace: None,
                rows: &self.rows,
                kinds: &kinds,
                intents: Some(&intents.planned),
                brought: &intents.brought,
                memory: &self.memory.objects,
            };
            let objects = self.place.observe(&asked).await;
            if !kinds.iter().all(|kind| self.place.objects.synced(kind)) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            }
            let set = ObjectSet {
                owner: OwnerKind::Addon,
                intents: Some(&intents.planned),
                rows: &self.rows,
                objects: &objects,
                shows_others: self.place.objects.shows_others(),
                unlisted: &none.0,
                unwatched: &none.1,
                forbidden: &none.0,
                held: &none.2,
                drift: DriftPolicy::Correct,
                prune: Prune {
                    limit: PruneLimit::default(),
                    annotation: None,
                    approved: None,
                },
                deleting: false,
            };
            let decisions = set.installation(self.clock.now());
            let (steps, rows): (Vec<Step<Nothing>>, _) = (decisions.steps(&set), set.inventory(&decisions).resources);
            let bundle = Bundle(Arc::clone(&intents));
            let pass = Pass {
                clock: &self.clock,
                metrics: &self.metrics,
                events: &self.events,
                place: &self.place,
                part_of: self.part_of,
                memory: &self.memory.objects,
                intents: Some(&intents.planned),
                owner: &bundle,
            };
            pass.run(Arc::new(addon.clone()), &steps).await;
            self.rows = rows;
            if steps.is_empty() {
                return decisions;
            }
        }
    }

    async fn intents(&self) -> Intents {
        let marks = Marks {
            namespace: "kube-system",
            part_of: self.part_of,
            stage: None,
        };
        self.place.intents(self.wanted.iter(), marks, &self.rows).await
    }

    /// What the watches told makes reads old.
    fn hear(&mut self) {
        while let Ok(notice) = self.notices.try_recv() {
            if let Notice::Object(changed) | Notice::Noted { changed, .. } = notice {
                lock(&self.memory.objects).changed(&changed.key);
            }
        }
    }
}

/// The API server of a cluster with two namespaces.
fn cluster() -> Server {
    let server = Server::new(&WORKLOAD, None);
    for name in ["kube-system", "monitoring"] {
        server.apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    }
    server
}

fn map(namespace: &str, name: &str, data: &str) -> Value {
    let mut map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": data } });
    if !namespace.is_empty() {
        map["metadata"]["namespace"] = namespace.into();
    }
    map
}

/// The ConfigMaps that there are, with their marks and contents.
fn maps(server: &Server) -> BTreeMap<(String, String), (String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let maps = server
        .objects()
        .into_iter()
        .filter(|((kind, ..), _)| *kind == "ConfigMap");
    maps.map(|((_, namespace, name), map)| {
        let mark = text(&map["metadata"]["labels"][labels::PART_OF]);
        ((namespace, name), (mark, text(&map["data"]["a"])))
    })
    .collect()
}

fn found(namespace: &str, name: &str, mark: &str, data: &str) -> ((String, String), (String, String)) {
    let owned = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    (owned(namespace, name), owned(mark, data))
}

#[tokio::test(start_paused = true)]
async fn f29_objects_of_any_namespace_are_made_put_back_and_removed_in_a_place_of_their_own() {
    let server = cluster();
    let wanted = vec![map("", "settings", "1"), map("monitoring", "rules", "1")];
    let mut addon = Addon::of(&server, HERE[0], wanted);
    addon.work().await;
    let made = [
        found("kube-system", "settings", HERE[0], "1"),
        found("monitoring", "rules", HERE[0], "1"),
    ];
    assert_eq!(maps(&server), BTreeMap::from(made.clone()));

    server.apply(&map("monitoring", "rules", "2"));
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    addon.work().await;
    assert_eq!(maps(&server), BTreeMap::from(made.clone()), "somebody changed it");

    addon.wanted.pop();
    addon.work().await;
    let [settings, _] = made;
    assert_eq!(maps(&server), BTreeMap::from([settings]));
    assert_eq!(addon.rows.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_another_owner_has_in_a_shared_api_server_is_left_to_it_and_not_even_seen() {
    let server = cluster();
    let mut one = Addon::of(&server, HERE[0], vec![map("", "shared", "1"), map("", "one", "1")]);
    one.work().await;
    let mut two = Addon::of(&server, HERE[1], vec![map("", "shared", "1"), map("", "two", "1")]);
    let decisions = two.work().await;
    let refused: Vec<String> = two.rows.iter().map(|row| row.error.clone()).collect();
    assert_eq!(refused, ["the object belongs to another add-on", ""]);
    assert!(!decisions.is_settled());
    let expected = [
        found("kube-system", "one", HERE[0], "1"),
        found("kube-system", "shared", HERE[0], "1"),
        found("kube-system", "two", HERE[1], "1"),
    ];
    assert_eq!(maps(&server), BTreeMap::from(expected));
    let seen = |addon: &Addon| -> HashSet<String> {
        let parts = HERE.iter().flat_map(|mark| addon.place.objects.by_part_of(mark, None));
        parts.map(|(key, _)| key.name).collect()
    };
    assert_eq!(seen(&one), HashSet::from(["shared", "one"].map(str::to_owned)));
    assert_eq!(seen(&two), HashSet::from(["two".to_owned()]));
}

/// An add-on whose inventory has announced this object of `kube-system`, and whose process has just begun.
fn announcing(server: &Server, name: &str, data: &str) -> Addon {
    let mut addon = Addon::of(server, HERE[0], vec![map("", name, data)]);
    addon.rows = vec![Resource {
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: "kube-system".to_owned(),
        name: name.to_owned(),
        ..Resource::default()
    }];
    addon
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_announced_is_made_by_one_request() {
    let server = cluster();
    let mut addon = announcing(&server, "settings", "1");
    assert!(addon.work().await.is_settled());
    let made = found("kube-system", "settings", HERE[0], "1");
    assert_eq!(maps(&server), BTreeMap::from([made]));
    assert_eq!(server.calls_about("ConfigMap", "settings"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_announced_and_made_before_the_process_died_is_ours_whatever_became_of_it() {
    let server = cluster();
    // Somebody has taken the mark away since, so that no watch shows it, and changed it.
    let mut made = map("kube-system", "settings", "1");
    made["data"]["b"] = json!("1");
    server.apply_as(labels::FIELD_MANAGER, &made);
    server.apply(&map("kube-system", "settings", "2"));
    let mut addon = announcing(&server, "settings", "1");
    assert!(addon.work().await.is_settled());
    let taken = found("kube-system", "settings", HERE[0], "1");
    assert_eq!(maps(&server), BTreeMap::from([taken]));
    assert_eq!(kept(&server, "settings"), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_was_announced_and_is_there_already_stays_when_the_owner_goes() {
    let server = cluster();
    server.apply(&map("kube-system", "settings", "1"));
    let mut addon = announcing(&server, "settings", "1");
    assert!(addon.work().await.is_settled());
    let shared = found("kube-system", "settings", HERE[0], "1");
    assert_eq!(maps(&server), BTreeMap::from([shared]));
    assert_eq!(kept(&server, "settings"), labels::RESOURCE_POLICY_KEEP);
}

/// What a ConfigMap of `kube-system` says of whether it is to stay.
fn kept(server: &Server, name: &str) -> Value {
    let maps = server.objects().into_iter();
    let mut found = maps.filter(|((kind, _, of), _)| *kind == "ConfigMap" && of == name);
    let (_, map) = found.next().expect("the ConfigMap");
    map["metadata"]["annotations"][labels::RESOURCE_POLICY].clone()
}

#[tokio::test(start_paused = true)]
async fn what_the_mark_of_an_owner_that_is_gone_is_on_is_taken_over() {
    let server = cluster();
    let gone = labels::part_of("ClusterAddon", "fleet", "gone");
    let mut left = map("kube-system", "settings", "1");
    left["metadata"]["labels"] = json!({ labels::PART_OF: gone });
    server.apply_as(labels::FIELD_MANAGER, &left);
    let mut addon = Addon::of(&server, HERE[0], vec![map("", "settings", "1")]);
    addon.work().await;
    assert_eq!(
        maps(&server),
        BTreeMap::from([found("kube-system", "settings", HERE[0], "1")])
    );
}
