//! Calls before an API server of which each answer is known.

use std::convert::Infallible;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use crds::cluster_addon::name_for;
use futures::{StreamExt, stream};
use http::Method;
use kube::Client;
use operator_kit::client::install_crypto;
use operator_kit::https::{Expiries, ServerOptions, follow};
use operator_kit::telemetry::Readiness;
use planning::addon::{ClusterSeen, HookSet, ReleaseListed};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::time;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::{ServiceExt, service_fn};

use super::*;
use crate::clusters::{ClusterSight, Clusters, Keeps, Unmade};
use crate::hooks::apart;

const CLASS: &str = "docker-harbor-1-34-v1";
const VERSION: &str = "v1.34.0";

/// What the API server has, and what it was told.
#[derive(Clone, Default)]
struct World {
    clusters: Vec<Value>,
    addons: Vec<Value>,
    releases: Vec<&'static str>,
    /// Of these there is no list.
    unlisted: Option<&'static str>,
    /// Whether the CRD of ClusterClasses is that of 1.12 or later; `None` when there is no answer to that.
    is_of_1_12: Option<bool>,
    /// Writes are not answered.
    hangs: bool,
    written: Arc<Mutex<Vec<(String, Value)>>>,
}

fn list(items: &[Value]) -> (u16, Value) {
    (
        200,
        json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "5" }, "items": items }),
    )
}

fn served(group: &str, version: &str, kinds: &[(&str, &str)]) -> Value {
    let resources = kinds.iter().map(|(kind, plural)| {
        json!({
            "resource": plural, "scope": "Namespaced", "verbs": [], "responseKind": { "group": "", "version": "", "kind": kind },
        })
    });
    json!({ "metadata": { "name": group }, "versions": [{ "version": version, "resources": resources.collect::<Vec<_>>() }] })
}

impl World {
    async fn answer(self, path: &str, query: &str, body: Body) -> (u16, Value) {
        let last = path.rsplit('/').next().unwrap_or_default();
        let groups = [
            served("cluster.x-k8s.io", "v1beta1", &[("Cluster", "clusters")]),
            served(
                crds::GROUP,
                crds::VERSION,
                &[
                    ("ClusterAddon", "clusteraddons"),
                    ("ClusterStackRelease", "clusterstackreleases"),
                ],
            ),
        ];
        match last {
            _ if query.contains("watch=") || self.unlisted == Some(last) => std::future::pending().await,
            "api" => (200, json!({ "kind": "APIGroupDiscoveryList", "items": [] })),
            "apis" => (200, json!({ "kind": "APIGroupDiscoveryList", "items": groups })),
            "clusters" => list(&self.clusters),
            "clusteraddons" => list(&self.addons),
            "clusterstackreleases" => {
                let releases = self.releases.iter().map(|name| {
                    json!({
                        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
                        "metadata": { "name": name, "namespace": "team", "resourceVersion": "4" },
                    })
                });
                list(&releases.collect::<Vec<_>>())
            }
            "customresourcedefinitions" if query.contains("fieldSelector=metadata.name") => match self.is_of_1_12 {
                Some(is_of_1_12) => list(&[class_definition(is_of_1_12)]),
                None => (
                    500,
                    json!({ "kind": "Status", "status": "Failure", "code": 500, "message": "no leader" }),
                ),
            },
            name if path.contains("/clusteraddons/") => {
                let body = to_bytes(body, BODY_LIMIT).await.expect("a body");
                let change = serde_json::from_slice(&body).expect("a patch");
                self.written.lock().expect("no panic").push((name.to_owned(), change));
                if self.hangs {
                    std::future::pending::<()>().await;
                }
                let metadata = json!({
                    "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": { "name": name },
                });
                (200, metadata)
            }
            _ => std::future::pending().await,
        }
    }

    fn client(&self) -> Client {
        let world = self.clone();
        let service = service_fn(move |request: http::Request<kube::client::Body>| {
            let world = world.clone();
            async move {
                let (head, body) = request.into_parts();
                let query = head.uri.query().unwrap_or_default();
                let (status, body) = world.answer(head.uri.path(), query, Body::new(body)).await;
                let mut response = http::Response::new(kube::client::Body::from(body.to_string().into_bytes()));
                *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                Ok::<_, Infallible>(response)
            }
        });
        Client::new(service, "default")
    }

    fn written(&self) -> Vec<(String, Value)> {
        self.written.lock().expect("no panic").clone()
    }
}

/// As far as the minor is seen in it.
fn class_definition(is_of_1_12: bool) -> Value {
    let mut fields = json!({ "controlPlane": {} });
    if is_of_1_12 {
        fields["upgrade"] = json!({ "type": "object" });
    }
    let schema = json!({ "openAPIV3Schema": { "properties": { "spec": { "properties": fields } } } });
    json!({
        "metadata": { "name": "clusterclasses.cluster.x-k8s.io" },
        "spec": { "versions": [{ "name": "v1beta2", "storage": true, "schema": schema }] },
    })
}

/// In the form in which a minor sends it, see `e2e/tests/cluster_api.rs` and lab of the real managers.
fn cluster(minor: u8, class: &str) -> Value {
    let mut cluster = json!({
        "metadata": {
            "name": "web", "namespace": "team", "uid": "uid-1", "generation": 3, "resourceVersion": "77",
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": { "topology.cluster.x-k8s.io/owned": "" },
        },
        "spec": {
            "clusterNetwork": { "pods": { "cidrBlocks": ["10.244.0.0/16"] } },
            "controlPlaneEndpoint": { "host": "10.0.0.1", "port": 6443 },
        },
    });
    let (version, topology) = match minor {
        10 => (
            Some("v1beta1"),
            json!({ "class": class, "version": VERSION, "controlPlane": { "replicas": 1 } }),
        ),
        11 | 12 => (None, json!({ "class": class, "version": VERSION, "workers": {} })),
        _ => (
            Some("v1beta2"),
            json!({ "classRef": { "name": class }, "version": VERSION }),
        ),
    };
    cluster["spec"]["topology"] = topology;
    if minor == 10 {
        cluster["status"] = json!({ "phase": "Provisioned", "controlPlaneReady": true, "infrastructureReady": true });
    }
    if let Some(version) = version {
        cluster["apiVersion"] = json!(format!("cluster.x-k8s.io/{version}"));
        cluster["kind"] = json!("Cluster");
    }
    cluster
}

/// What a minor asks before an upgrade.
fn upgrade(minor: u8, class: &str) -> Value {
    let mut request = json!({
        "apiVersion": API_VERSION, "kind": "BeforeClusterUpgradeRequest", "cluster": cluster(minor, class),
        "fromKubernetesVersion": "v1.33.5", "toKubernetesVersion": VERSION,
    });
    if minor >= 12 {
        request["controlPlaneUpgrades"] = json!([{ "version": VERSION }]);
        request["workersUpgrades"] = json!([{ "version": VERSION }]);
    }
    request
}

/// An add-on with a stage that waits, led to what [`upgrade`] wants.
fn addon(annotations: &Value) -> Value {
    let mut annotations = annotations.clone();
    annotations["clusterstack.x-k8s.io/contains-group-kinds"] = json!("ConfigMap");
    json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterAddon",
        "metadata": {
            "name": name_for("web"), "namespace": "team", "uid": "uid-7", "resourceVersion": "4", "annotations": annotations,
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "web", "uid": "uid-1" }],
        },
        "spec": { "clusterRef": { "kind": "Cluster", "name": "web" } },
        "status": {
            "clusterGeneration": 3, "ready": false,
            "target": { "clusterStack": CLASS, "version": "v1", "kubernetesVersion": VERSION },
            "stages": [{
                "name": "cni", "action": "apply", "hook": "BeforeClusterUpgrade", "phase": "waitingForPostCondition",
                "since": "2026-01-01T00:00:10Z", "message": "x.status.ready is 0",
            }],
            "resources": [{ "kind": "ConfigMap", "name": "large", "version": "v1", "status": "synced" }],
        },
    })
}

/// The hook server of one replica in this world.
struct Replica {
    router: Router,
    registry: Registry,
    clusters: Arc<Clusters>,
    _stop: DropGuard,
}

impl Replica {
    async fn new(world: &World) -> Self {
        Self::with(world, "", None).await
    }

    async fn with(world: &World, namespace: &str, chosen: Option<HookSet>) -> Self {
        let stop = CancellationToken::new();
        let readiness = Readiness::default();
        let client = world.client();
        let mut seen = ClusterSight::start(&client, Keeps::Facts, &Readiness::default(), &stop);
        let clusters = Arc::clone(&seen.clusters);
        let mut registry = Registry::default();
        let desk = Desk {
            minor: Minor::new(chosen, client.clone()),
            notes: Notes::new(client.clone(), &stop),
            sight: Sight::start(&client, &seen, namespace, &readiness, &stop),
            tally: Tally::register(&mut registry),
        };
        tokio::spawn(async move { seen.stand_by().await });
        while !readiness.missing().is_empty() || !clusters.is_listed() {
            tokio::task::yield_now().await;
        }
        Self {
            router: router(desk),
            registry,
            clusters,
            _stop: stop.drop_guard(),
        }
    }

    async fn post(&self, path: &str, body: impl Into<Body>) -> (StatusCode, Vec<u8>) {
        let path = format!("/{API_VERSION}/{path}");
        let request = http::Request::builder().method(Method::POST).uri(path);
        let request = request.body(body.into()).expect("a request");
        let answer = self.router.clone().oneshot(request).await.expect("an answer");
        let status = answer.status();
        let body = to_bytes(answer.into_body(), BODY_LIMIT).await.expect("a body");
        (status, body.to_vec())
    }

    async fn ask(&self, path: &str, request: &Value) -> Value {
        let (status, body) = self.post(path, request.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        serde_json::from_slice(&body).expect("JSON")
    }

    async fn upgrade(&self, request: &Value) -> Value {
        self.ask("beforeclusterupgrade/before-cluster-upgrade", request).await
    }

    async fn handlers(&self) -> Vec<String> {
        let answer = self.ask("discovery", &json!({})).await;
        assert_eq!(
            (&answer["kind"], &answer["status"]),
            (&json!("DiscoveryResponse"), &json!("Success"))
        );
        let handlers = answer["handlers"].as_array().expect("handlers").iter();
        handlers
            .map(|handler| handler["requestHook"]["hook"].as_str().expect("a hook").to_owned())
            .collect()
    }
}

fn ours() -> World {
    World {
        releases: vec![CLASS],
        ..World::default()
    }
}

/// What a call of a hook about what [`upgrade`] wants leaves behind.
fn note_of(hook: &str) -> Value {
    json!({ "clusterstack.x-k8s.io/hook-called": format!("{hook}@{VERSION}@{CLASS}") })
}

fn with_addon(annotations: &Value) -> World {
    World {
        addons: vec![addon(annotations)],
        ..ours()
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_is_not_ready_before_it_knows_all_cluster_addons_and_all_releases() {
    for unlisted in ["clusteraddons", "clusterstackreleases"] {
        let world = World {
            unlisted: Some(unlisted),
            ..with_addon(&json!({}))
        };
        let (client, readiness, stop) = (world.client(), Readiness::default(), CancellationToken::new());
        let seen = ClusterSight::start(&client, Keeps::Facts, &Readiness::default(), &stop);
        let sight = Sight::start(&client, &seen, "", &readiness, &stop);
        // By then the list of the others has ended.
        time::sleep(Duration::from_mins(1)).await;
        let looked = sight.look(&ClusterSeen::of(&cluster(12, CLASS), None));
        assert_eq!(looked.addon.is_some(), unlisted != "clusteraddons");
        let has_release = looked.listed().release == ReleaseListed::Present;
        assert_eq!(has_release, unlisted != "clusterstackreleases");
        assert_eq!(
            readiness.missing(),
            ["ClusterAddons and ClusterStackReleases for the hooks"],
            "without {unlisted}"
        );
        stop.cancel();
    }
}

#[tokio::test]
async fn cluster_api_is_told_the_hooks_that_it_knows() {
    for (is_of_1_12, chosen, count) in [
        (Some(false), None, 6),
        (Some(true), None, 9),
        (Some(true), Some(HookSet::V1_10), 6),
        (None, Some(HookSet::V1_12), 9),
    ] {
        let world = World {
            is_of_1_12,
            ..World::default()
        };
        let replica = Replica::with(&world, "", chosen).await;
        assert_eq!(replica.handlers().await.len(), count, "{is_of_1_12:?} {chosen:?}");
    }
    let replica = Replica::new(&World::default()).await;
    let answer = replica.ask("discovery", &json!({})).await;
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(
        answer["status"] == "Failure" && message.contains("clusterclasses"),
        "{answer}"
    );
}

#[tokio::test]
async fn every_handler_that_is_told_is_served_under_its_name() {
    let replica = Replica::with(&ours(), "", Some(HookSet::V1_12)).await;
    let discovery = replica.ask("discovery", &json!({})).await;
    for handler in discovery["handlers"].as_array().expect("handlers") {
        let hook = handler["requestHook"]["hook"].as_str().expect("a hook");
        let path = format!("{}/{}", hook.to_lowercase(), handler["name"].as_str().expect("a name"));
        let request = json!({ "cluster": cluster(14, "quick-start") });
        let answer = replica.ask(&path, &request).await;
        assert_eq!(answer["kind"], format!("{hook}Response"));
        let may_hold = answer.get("retryAfterSeconds").is_some();
        assert_eq!(may_hold, hook != "AfterControlPlaneInitialized", "{answer}");
    }
}

#[tokio::test]
async fn every_minor_is_answered_alike_whatever_it_leaves_out() {
    let replica = Replica::new(&with_addon(&json!({}))).await;
    for minor in [10, 11, 12, 13, 14] {
        let foreign = replica.upgrade(&upgrade(minor, "quick-start")).await;
        assert_eq!(
            (&foreign["status"], &foreign["retryAfterSeconds"]),
            (&json!("Success"), &json!(0))
        );
        let held = replica.upgrade(&upgrade(minor, CLASS)).await;
        assert_eq!(
            (&held["status"], &held["retryAfterSeconds"]),
            (&json!("Success"), &json!(5)),
            "{held}"
        );
        let message = held["message"].as_str().unwrap_or_default();
        for words in [
            "cni",
            "x.status.ready is 0",
            "since 2026-01-01T00:00:10Z",
            "skip-hook=BeforeClusterUpgrade@",
        ] {
            assert!(message.contains(words), "{message}");
        }
    }
    let mut page = String::new();
    text::encode(&mut page, &replica.registry).expect("metrics");
    for series in [
        "stackwright_hook_answers_total{hook=\"BeforeClusterUpgrade\",answer=\"go-on\"} 5",
        "stackwright_hook_answers_total{hook=\"BeforeClusterUpgrade\",answer=\"hold\"} 5",
        "stackwright_hook_duration_seconds_count{hook=\"BeforeClusterUpgrade\"} 10",
    ] {
        assert!(page.contains(series), "{page}");
    }
}

#[tokio::test]
async fn a_cluster_of_ours_waits_for_its_add_on_and_goes_on_without_it_when_somebody_says_so() {
    let create = json!({ "cluster": cluster(14, CLASS) });
    let path = "beforeclustercreate/before-cluster-create";
    let unmade = Replica::new(&ours()).await;
    let held = unmade.ask(path, &create).await;
    let message = held["message"].as_str().unwrap_or_default();
    assert!(
        held["retryAfterSeconds"] == 2 && message.contains("has not been made yet"),
        "{held}"
    );
    let elsewhere = Replica::with(&ours(), "other", None).await;
    assert_eq!(
        elsewhere.ask(path, &create).await["retryAfterSeconds"],
        0,
        "another operator's"
    );
    let unknown = Replica::new(&World::default()).await;
    assert_eq!(
        unknown.ask(path, &create).await["retryAfterSeconds"],
        0,
        "another tool's"
    );

    let mut unseen = addon(&json!({}));
    unseen["status"] = Value::Null;
    let skipped = "BeforeClusterCreate@docker-harbor-1-34-v1";
    for (annotations, retry) in [
        (json!({}), 2),
        (json!({ "clusterstack.x-k8s.io/skip-hook": skipped }), 0),
    ] {
        let mut addon = unseen.clone();
        addon["metadata"]["annotations"] = annotations;
        let world = World {
            addons: vec![addon],
            ..ours()
        };
        let answer = Replica::new(&world).await.ask(path, &create).await;
        assert_eq!(answer["retryAfterSeconds"], retry, "{answer}");
    }
}

/// However often it is asked, and whichever replica: Cluster API writes the answer into the Cluster.
#[tokio::test]
async fn a_cluster_that_nobody_has_looked_at_is_told_since_when_it_waits() {
    let mut waiting = cluster(10, CLASS);
    let since = "2026-01-01T08:00:00Z";
    waiting["status"]["v1beta2"] = json!({ "conditions": [{
        "type": "TopologyReconciled", "status": "False", "reason": "HookBlocking", "lastTransitionTime": since,
    }] });
    let world = World {
        clusters: vec![waiting],
        ..ours()
    };
    for _ in 0..2 {
        let replica = Replica::new(&world).await;
        let held = replica.upgrade(&upgrade(14, CLASS)).await;
        let message = held["message"].as_str().unwrap_or_default();
        assert!(
            message.contains(&format!("(since {since}, deadline none); to go on without it:")),
            "{held}"
        );
    }
}

/// Where this process makes them; the others say where to look.
#[tokio::test]
async fn a_cluster_whose_add_on_is_refused_is_told_the_words_of_the_api_server() {
    let replica = Replica::new(&ours()).await;
    let path = "beforeclustercreate/before-cluster-create";
    let create = json!({ "cluster": cluster(14, CLASS) });
    let place = ("team".to_owned(), "web".to_owned());
    for (why, words) in [
        (Some("exceeded quota: few"), "is tried again: exceeded quota: few"),
        (None, "has not been made yet"),
    ] {
        let unmade = why.map(|why: &str| Unmade {
            why: why.to_owned(),
            namespace_ends: false,
        });
        replica.clusters.note_unmade(&place, unmade);
        let held = replica.ask(path, &create).await;
        let message = held["message"].as_str().unwrap_or_default();
        assert!(held["retryAfterSeconds"] == 2 && message.contains(words), "{held}");
    }
}

/// Somebody has deleted the ClusterAddon right before the Cluster.
#[tokio::test]
async fn a_cluster_that_goes_waits_for_another_add_on_unless_it_never_came_up_or_none_can_be_made() {
    let path = "beforeclusterdelete/before-cluster-delete";
    let mut going = cluster(14, CLASS);
    going["metadata"]["deletionTimestamp"] = json!(Timestamp::now().to_string());
    let request = json!({ "cluster": going });
    let shown = |initialized: bool| {
        let mut shown = cluster(14, CLASS);
        shown["status"] = json!({ "initialization": { "controlPlaneInitialized": initialized } });
        World {
            clusters: vec![shown],
            ..ours()
        }
    };
    for (world, retry) in [(ours(), 2), (shown(true), 2), (shown(false), 0)] {
        let answer = Replica::new(&world).await.ask(path, &request).await;
        assert_eq!(answer["retryAfterSeconds"], retry, "{answer}");
    }
    let replica = Replica::new(&shown(true)).await;
    let place = ("team".to_owned(), "web".to_owned());
    for (namespace_ends, retry) in [(false, 2), (true, 0)] {
        let why = "is forbidden".to_owned();
        replica
            .clusters
            .note_unmade(&place, Some(Unmade { why, namespace_ends }));
        let answer = replica.ask(path, &request).await;
        assert_eq!(answer["retryAfterSeconds"], retry, "{answer}");
    }
}

/// They are made of what Cluster API makes once it may.
#[tokio::test]
async fn the_making_of_a_cluster_whose_values_cannot_be_made_yet_waits_for_its_release_alone() {
    let create = json!({ "cluster": cluster(14, CLASS) });
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    for (downloaded, retry) in [("True", 0), ("False", 5)] {
        let mut addon = addon(&json!({}));
        addon["status"]["target"] = Value::Null;
        addon["status"]["conditions"] = json!([
            condition("Ready", "False"),
            condition("ClusterStackReleaseDownloaded", downloaded),
            condition("ClusterAddonConfigValidated", "True"),
            condition("HelmChartTemplated", "False"),
        ]);
        let world = World {
            addons: vec![addon],
            ..ours()
        };
        let replica = Replica::new(&world).await;
        let answer = replica.ask("beforeclustercreate/before-cluster-create", &create).await;
        assert_eq!(answer["retryAfterSeconds"], retry, "{answer}");
    }
}

/// Cluster API asks whichever replica the Service gives it.
#[tokio::test]
async fn all_replicas_give_the_same_answers() {
    let mut done = addon(&json!({}));
    done["status"]["stages"][0]["phase"] = json!("done");
    let worlds = [
        World::default(),
        ours(),
        with_addon(&json!({})),
        World {
            addons: vec![done],
            ..ours()
        },
    ];
    let deleted = Timestamp::now().to_string();
    for world in worlds {
        let replicas = [
            Replica::new(&world).await,
            Replica::new(&world).await,
            Replica::new(&world).await,
        ];
        for hook in Hook::ALL {
            for class in [CLASS, "quick-start"] {
                for minor in [10, 12, 14] {
                    let path = format!("{}/{}", hook.name().to_lowercase(), Handler::of(hook).name);
                    let mut request = json!({ "cluster": cluster(minor, class), "kubernetesVersion": VERSION });
                    if hook == Hook::BeforeClusterDelete {
                        request["cluster"]["metadata"]["deletionTimestamp"] = json!(deleted);
                    }
                    let mut answers = Vec::new();
                    for replica in &replicas {
                        // Twice, as Cluster API asks before 1.12 whenever it looks at the Cluster.
                        answers.push(replica.ask(&path, &request).await);
                        answers.push(replica.ask(&path, &request).await);
                    }
                    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_noted_beside_its_answer_however_long_that_takes() {
    let world = World {
        hangs: true,
        ..with_addon(&json!({}))
    };
    let replica = Replica::new(&world).await;
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(replica.upgrade(&upgrade(12, CLASS)).await["retryAfterSeconds"], 5);
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    while world.written().is_empty() {
        tokio::task::yield_now().await;
    }
    time::sleep(Duration::from_secs(1)).await;
    let patch = json!({ "metadata": { "uid": "uid-7", "annotations": note_of("BeforeClusterUpgrade") } });
    assert_eq!(
        world.written(),
        [(name_for("web"), patch)],
        "once, although nobody has answered"
    );
    // It was given up, and the next call begins anew.
    time::sleep(Duration::from_secs(10)).await;
    replica.upgrade(&upgrade(12, CLASS)).await;
    while world.written().len() < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_where_it_would_change_nothing() {
    let noted = with_addon(&note_of("BeforeClusterUpgrade"));
    let replica = Replica::new(&noted).await;
    replica.upgrade(&upgrade(12, CLASS)).await;
    replica.upgrade(&upgrade(12, "quick-start")).await;
    let request = json!({ "cluster": cluster(12, CLASS), "kubernetesVersion": VERSION });
    let path = "aftercontrolplaneupgrade/after-control-plane-upgrade";
    assert_eq!(replica.ask(path, &request).await["retryAfterSeconds"], 5);
    time::sleep(Duration::from_mins(1)).await;
    assert_eq!(noted.written(), []);
}

/// Whoever reaches the port, without any login, says what he likes.
#[tokio::test(start_paused = true)]
async fn forged_calls_write_no_more_than_what_cluster_api_would_have_had_written() {
    let world = with_addon(&note_of("AfterWorkersUpgrade"));
    let replica = Replica::new(&world).await;
    let large = format!("v1.34.0-{}", "x".repeat(200_000));
    for version in ["v1.33.0", "v1.35.0", "", &large, VERSION] {
        for uid in [json!("uid-1"), json!(""), json!("uid-0"), Value::Null] {
            let mut request = upgrade(12, CLASS);
            request["cluster"]["metadata"]["uid"] = uid;
            request["cluster"]["spec"]["topology"]["version"] = json!(version);
            replica.upgrade(&request).await;
        }
    }
    time::sleep(Duration::from_mins(1)).await;
    assert_eq!(world.written(), []);
}

#[tokio::test(start_paused = true)]
async fn hostile_calls_are_refused_within_bounds() {
    let replica = Replica::new(&ours()).await;
    let path = "beforeclusterupgrade/before-cluster-upgrade";
    let deep = "[".repeat(1 << 20);
    for body in [
        "",
        "{}",
        "[]",
        r#"{"cluster":{"metadata":{"name":"web"}}}"#,
        "\u{0}",
        &deep,
    ] {
        let (status, answer) = replica.post(path, body.to_owned()).await;
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!((status, &answer["status"]), (StatusCode::OK, &json!("Failure")));
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(message.contains("no request of BeforeClusterUpgrade"), "{message}");
    }
    let (status, _) = replica.post(path, vec![b' '; BODY_LIMIT + 1]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let begun = stream::once(async { Ok::<_, Infallible>(vec![b' ']) });
    let endless = Body::from_stream(begun.chain(stream::pending()));
    let (status, _) = replica.post(path, endless).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    for unknown in [
        "beforeclusterupgrade/else",
        "generatepatches/before-cluster-upgrade",
        "nothing",
    ] {
        let (status, _) = replica.post(unknown, "{}").await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{unknown}");
    }
}

/// A Cluster of 1.5 MiB is as large as etcd takes one.
#[tokio::test]
async fn a_cluster_as_large_as_it_can_be_is_answered() {
    let replica = Replica::new(&ours()).await;
    let mut request = upgrade(10, CLASS);
    request["cluster"]["spec"]["topology"]["variables"] = json!([{ "name": "large", "value": "x".repeat(3 << 19) }]);
    assert_eq!(replica.upgrade(&request).await["retryAfterSeconds"], 2);
}

/// A certificate for localhost in a folder, and who signed it.
fn certificate(folder: &std::path::Path) -> RootCertStore {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("an authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("an authority");
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a certificate");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate");
    fs::write(folder.join("tls.crt"), certificate.pem()).expect("a file");
    fs::write(folder.join("tls.key"), key.serialize_pem()).expect("a file");
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).expect("a root");
    roots
}

/// Asks over TLS, and keeps the thread from everything else until there is an answer.
fn ask_and_block(address: SocketAddr, roots: RootCertStore, path: &str, body: &str) -> String {
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    let stream = TcpStream::connect(("127.0.0.1", address.port())).expect("a stream");
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a deadline");
    let mut stream = StreamOwned::new(connection, stream);
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("a head");
    stream.write_all(body.as_bytes()).expect("a body");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8(answer).expect("text")
}

/// Rendering may keep all threads of the others.
#[tokio::test]
async fn hooks_are_answered_over_tls_while_everything_else_stands_still_and_until_the_end() {
    install_crypto();
    let replica = Replica::new(&with_addon(&json!({}))).await;
    let folder = tempfile::tempdir().expect("a folder");
    let roots = certificate(folder.path());
    let (readiness, stop) = (Readiness::default(), CancellationToken::new());
    let gate = readiness.gate("certificate");
    let options = ServerOptions {
        address: ([127, 0, 0, 1], 0).into(),
        certificates: follow(
            "hooks",
            folder.path().to_owned(),
            gate,
            &Expiries::default(),
            stop.clone(),
        ),
    };
    let served = apart::serve(options, replica.router.clone(), stop.clone()).await;
    let (address, serving) = served.expect("a server");
    while !readiness.missing().is_empty() {
        time::sleep(Duration::from_millis(10)).await;
    }
    let path = format!("/{API_VERSION}/beforeclusterupgrade/before-cluster-upgrade");
    // The runtime of this test has this thread alone.
    let answer = ask_and_block(address, roots, &path, &upgrade(14, CLASS).to_string());
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"retryAfterSeconds\":5"),
        "{answer}"
    );
    stop.cancel();
    serving.await.expect("an end");
    assert!(
        TcpStream::connect(("127.0.0.1", address.port())).is_err(),
        "it listens on"
    );
}

#[tokio::test]
async fn a_port_that_somebody_has_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let stop = CancellationToken::new();
    let gate = Readiness::default().gate("certificate");
    let options = ServerOptions {
        address: taken.local_addr().expect("an address"),
        certificates: follow("hooks", "/nowhere".into(), gate, &Expiries::default(), stop.clone()),
    };
    let refused = apart::serve(options, Router::new(), stop).await.expect_err("refused");
    assert!(chain(&refused).contains("unable to listen on 127.0.0.1"), "{refused}");
}
