use std::collections::BTreeMap;
use std::sync::Mutex;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use kube::core::GroupVersionKind;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::{Budget, Marked};
use super::*;
use crate::discovery::Discovery;
use crate::stub::{self, Answer, Asked, page, refusal};

const LABEL: &str = "example.org/part-of";

/// Long enough for whatever is to come.
const LONG: Duration = Duration::from_mins(10);

/// An API server with objects that somebody changes.
#[derive(Clone, Default)]
struct World(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    /// The versions of objects by their names.
    objects: BTreeMap<String, u32>,
    last: u32,
    /// Everything that was asked for but discovery.
    asked: Vec<Asked>,
    discoveries: usize,
    /// Who watches, by path and field selector.
    watches: Vec<(String, String, UnboundedSender<Value>)>,
    /// How whoever watches single objects, or lists them for that, is refused.
    denial: Option<(u16, &'static str)>,
    /// Deployments are not served.
    is_hidden: bool,
}

impl World {
    fn inside(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.0.lock().unwrap()
    }

    /// Writes an object, or takes it away.
    fn put(&self, name: &str, is_there: bool) {
        let mut inside = self.inside();
        inside.last += 1;
        let version = inside.last;
        let known = if is_there {
            inside.objects.insert(name.to_owned(), version)
        } else {
            inside.objects.remove(name)
        };
        let kind = match (known, is_there) {
            (_, false) => "DELETED",
            (None, true) => "ADDED",
            (Some(_), true) => "MODIFIED",
        };
        let event = json!({ "type": kind, "object": object(name, version) });
        let selector = selector(name);
        for (_, fields, shower) in &inside.watches {
            if fields.is_empty() || *fields == selector {
                let _ = shower.unbounded_send(event.clone());
            }
        }
    }

    fn answer(&self, asked: &Asked) -> Answer {
        let mut inside = self.inside();
        if let Some((status, mut answer)) = stub::discovery(asked) {
            inside.discoveries += 1;
            if inside.is_hidden && asked.path == "/apis" {
                answer["items"] = json!([]);
            }
            return (status, answer).into();
        }
        inside.asked.push(asked.clone());
        let (_, last) = asked.path.rsplit_once('/').unwrap();
        let fields = asked.parameter("fieldSelector").to_owned();
        if let Some((code, reason)) = inside.denial
            && !fields.is_empty()
        {
            return refusal(code, reason, "nobody may watch it", &json!({})).into();
        }
        if !["secrets", "namespaces", "deployments"].contains(&last) {
            return match inside.objects.get(last) {
                Some(version) => (200, object(last, *version)).into(),
                None => refusal(404, "NotFound", "there is none", &json!({})).into(),
            };
        }
        if asked.parameter("watch") == "true" {
            let (shower, shows) = unbounded();
            inside.watches.push((asked.path.clone(), fields, shower));
            return Answer::Live(shows.boxed());
        }
        let objects = inside.objects.iter();
        let listed = objects.filter(|(name, _)| fields.is_empty() || fields == selector(name));
        let listed: Vec<Value> = listed.map(|(name, version)| object(name, *version)).collect();
        page(asked, &listed).into()
    }

    /// Whether somebody watches there; by name, unless that is empty.
    fn is_watched(&self, path: &str, name: &str) -> bool {
        let inside = self.inside();
        let fields = if name.is_empty() { String::new() } else { selector(name) };
        let mut open = inside.watches.iter().filter(|(.., shower)| !shower.is_closed());
        open.any(|(of, by, _)| of == path && *by == fields)
    }

    /// Requests so far for what has this in path and query.
    fn asked(&self, path: &str, query: &str) -> usize {
        let inside = self.inside();
        let asked = inside.asked.iter();
        asked
            .filter(|asked| asked.path.ends_with(path) && asked.query.contains(query))
            .count()
    }

    fn follow(&self, budget: Option<Budget>) -> (ObjectWatches, mpsc::Receiver<Notice>) {
        let world = self.clone();
        let client = stub::client(move |asked| world.answer(asked));
        let discovery = Discovery::new(client.clone());
        let marked = Marked::by(LABEL, "owner");
        ObjectWatches::bounded(budget, client, discovery, marked, CancellationToken::new())
    }
}

/// As a query has it.
fn selector(name: &str) -> String {
    format!("metadata.name%3D{name}")
}

/// Only what is called `ours` is.
fn object(name: &str, version: u32) -> Value {
    let labels = if name == "ours" {
        json!({ LABEL: "owner" })
    } else {
        json!({})
    };
    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
        "name": name, "namespace": "fleet", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(), "labels": labels,
    } })
}

fn secret(name: &str) -> ObjectKey {
    ObjectKey::new("", "Secret", "fleet", name)
}

fn deployment(name: &str) -> ObjectKey {
    ObjectKey::new("apps", "Deployment", "fleet", name)
}

const SECRETS: &str = "/api/v1/secrets";
const SECRETS_OF_FLEET: &str = "/api/v1/namespaces/fleet/secrets";

async fn resolved(watches: &ObjectWatches, key: &ObjectKey) -> Resolved {
    let resolved = watches.inner.discovery.resolve_kind(&key.group_kind()).await;
    resolved.unwrap().expect("it is served")
}

async fn follow(watches: &ObjectWatches, key: &ObjectKey) {
    let resolved = resolved(watches, key).await;
    watches.follow_named(key, Some(&resolved));
}

/// The names that are told of within this time, apart from lists that end.
async fn told(notices: &mut mpsc::Receiver<Notice>, within: Duration) -> Vec<String> {
    let mut told = Vec::new();
    let telling = async {
        while let Some(notice) = notices.recv().await {
            if let Notice::Named(key) = notice {
                told.push(key.name);
            }
        }
    };
    let _ = timeout(within, telling).await;
    told
}

const NOTHING: [&str; 0] = [];
const SOON: Duration = Duration::from_millis(10);

#[tokio::test(start_paused = true)]
async fn an_object_of_others_is_told_when_it_was_looked_at_and_when_it_changes_and_asked_for_no_more() {
    let world = World::default();
    let (watches, mut notices) = world.follow(None);
    follow(&watches, &secret("tide")).await;
    assert_eq!(told(&mut notices, SOON).await, ["tide"], "it is not there");
    for is_there in [true, true, false] {
        let before = world.asked("", "");
        follow(&watches, &secret("tide")).await;
        assert_eq!(told(&mut notices, Duration::from_mins(4)).await, NOTHING);
        assert_eq!(world.asked("", ""), before, "it is watched");
        world.put("ebb", true);
        world.put("tide", is_there);
        assert_eq!(told(&mut notices, SOON).await, ["tide"]);
    }
    assert!(world.is_watched(SECRETS_OF_FLEET, "tide"));
    watches.keep_named(|key| key.name != "tide");
    world.put("tide", true);
    assert_eq!(told(&mut notices, LONG).await, NOTHING);
    assert!(!world.is_watched(SECRETS_OF_FLEET, "tide"));
}

#[tokio::test(start_paused = true)]
async fn a_list_anew_tells_only_of_what_has_changed_since() {
    let world = World::default();
    world.put("tide", true);
    let (watches, mut notices) = world.follow(None);
    follow(&watches, &secret("tide")).await;
    assert_eq!(told(&mut notices, SOON).await, ["tide"]);
    let expired = || {
        let (_, status) = refusal(410, "Expired", "too old resource version", &json!({}));
        let event = json!({ "type": "ERROR", "object": status });
        let mut inside = world.inside();
        for (.., shower) in inside.watches.drain(..) {
            let _ = shower.unbounded_send(event.clone());
        }
    };
    expired();
    assert_eq!(told(&mut notices, LONG).await, NOTHING);
    expired();
    world.put("tide", true);
    assert_eq!(told(&mut notices, LONG).await, ["tide"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_takes_the_watch_of_a_kind_that_does_not_matter_and_loses_it_to_one_that_does() {
    let world = World::default();
    let budget = Budget {
        watches: 1,
        objects: 100,
        list_pause: Duration::from_hours(1),
        matters: |kind| kind.kind == "Deployment",
        count: Gauge::default(),
    };
    let count = budget.count.clone();
    let (watches, mut notices) = world.follow(Some(budget));
    let ensure = async |group: &str, kind: &str| {
        let kind = GroupVersionKind::gvk(group, "v1", kind);
        assert!(watches.ensure(&kind).await.unwrap());
    };
    ensure("", "Secret").await;
    sleep(SOON).await;
    assert!(world.is_watched(SECRETS, ""));
    follow(&watches, &secret("tide")).await;
    assert_eq!(told(&mut notices, SOON).await, ["tide"]);
    assert!(world.is_watched(SECRETS_OF_FLEET, "tide") && !world.is_watched(SECRETS, ""));
    assert_eq!(count.get(), 1);
    // The kind does not take it back.
    ensure("", "Secret").await;
    follow(&watches, &secret("ebb")).await;
    assert_eq!(told(&mut notices, LONG).await, ["ebb"], "it is read");
    assert!(world.is_watched(SECRETS_OF_FLEET, "tide") && !world.is_watched(SECRETS_OF_FLEET, "ebb"));
    ensure("apps", "Deployment").await;
    sleep(SOON).await;
    assert!(!world.is_watched(SECRETS_OF_FLEET, "tide") && world.is_watched("/apis/apps/v1/deployments", ""));
    assert_eq!(count.get(), 1);
    assert_eq!(told(&mut notices, LONG).await, NOTHING, "nothing has changed");
    world.put("tide", true);
    assert_eq!(told(&mut notices, READS_PAUSE + 3 * GAP).await, ["tide"]);
    let reads = world.asked("/secrets/tide", "");
    sleep(LONG).await;
    let reads = world.asked("/secrets/tide", "") - reads;
    assert!((30..=40).contains(&reads), "{reads}");
    // With the next call there is a watch for it.
    watches.keep(|_, _| false);
    follow(&watches, &secret("tide")).await;
    assert_eq!(told(&mut notices, SOON).await, NOTHING);
    assert!(world.is_watched(SECRETS_OF_FLEET, "tide"));
    watches.keep_named(|_| false);
    sleep(LONG).await;
    assert_eq!(count.get(), 0);
    let asked = world.asked("", "");
    sleep(LONG).await;
    assert_eq!(world.asked("", ""), asked, "of what nobody waits for nothing is asked");
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_watched_is_read_and_not_tried_again_each_time() {
    // The right is missing, or the kind is none that can be watched.
    for denial in [(403, "Forbidden"), (405, "MethodNotAllowed")] {
        let world = World::default();
        world.inside().denial = Some(denial);
        let (watches, mut notices) = world.follow(None);
        follow(&watches, &secret("tide")).await;
        assert_eq!(told(&mut notices, LONG).await, ["tide"], "{denial:?}");
        let refused = world.asked("/secrets", "fieldSelector");
        for _ in 0..10 {
            follow(&watches, &secret("tide")).await;
        }
        world.put("tide", true);
        assert_eq!(told(&mut notices, READS_PAUSE + 2 * GAP).await, ["tide"], "{denial:?}");
        assert_eq!(world.asked("/secrets", "fieldSelector"), refused, "{denial:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_another_server_brings_is_noticed_though_nobody_tells_of_it() {
    let world = World::default();
    world.put("quay", true);
    world.inside().is_hidden = true;
    let (watches, mut notices) = world.follow(None);
    watches.follow_named(&deployment("quay"), None);
    assert_eq!(told(&mut notices, LONG).await, ["quay"], "it is not there");
    let before = world.inside().discoveries;
    assert_eq!(told(&mut notices, LONG).await, NOTHING);
    let readings = (world.inside().discoveries - before) / 2;
    assert!((8..=10).contains(&readings), "{readings} in ten minutes");
    world.inside().is_hidden = false;
    assert_eq!(told(&mut notices, DISCOVERY_PAUSE + 2 * READS_PAUSE).await, ["quay"]);
    follow(&watches, &deployment("quay")).await;
    sleep(SOON).await;
    assert!(world.is_watched("/apis/apps/v1/namespaces/fleet/deployments", "quay"));
}

#[tokio::test(start_paused = true)]
async fn what_is_ours_and_watched_anyway_costs_no_watch_of_its_own() {
    let world = World::default();
    world.put("ours", true);
    let (watches, mut notices) = world.follow(None);
    assert!(
        watches
            .ensure(&GroupVersionKind::gvk("", "v1", "Secret"))
            .await
            .unwrap()
    );
    sleep(SOON).await;
    follow(&watches, &secret("ours")).await;
    assert_eq!(told(&mut notices, LONG).await, NOTHING);
    assert!(!world.is_watched(SECRETS_OF_FLEET, "ours") && world.is_watched(SECRETS, ""));
    // Once the watch has no such object any more, it is followed like those of others.
    world.put("ours", false);
    sleep(SOON).await;
    follow(&watches, &secret("ours")).await;
    assert_eq!(told(&mut notices, SOON).await, ["ours"]);
    assert!(world.is_watched(SECRETS_OF_FLEET, "ours"));
}

#[tokio::test(start_paused = true)]
async fn a_name_cannot_say_more_than_a_name_in_a_selector() {
    let world = World::default();
    let (watches, mut notices) = world.follow(None);
    follow(&watches, &secret("a,metadata.name!=b")).await;
    assert_eq!(told(&mut notices, SOON).await.len(), 1);
    let fields = world.inside().asked[0].parameter("fieldSelector").to_owned();
    assert_eq!(fields, r"metadata.name%3Da%5C%2Cmetadata.name%21%5C%3Db");
    watches.keep_named(|_| false);
    // Where no object can be nobody looks.
    let before = world.asked("", "");
    for key in [secret("../a"), ObjectKey::new("", "Secret", "", "a")] {
        follow(&watches, &key).await;
    }
    assert_eq!(told(&mut notices, LONG).await, NOTHING);
    assert_eq!(world.asked("secrets", ""), before);
}
