use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use http::Response;
use kube::client::Body;
use operator_kit::crd_watch::Serving;
use operator_kit::in_memory::{Server, WORKLOAD};
use operator_kit::object::GroupKind;
use operator_kit::objects::Notice;
use operator_kit::workload::kubeconfig::Access;
use operator_kit::workload::{DialError, Transport, transport};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tower::service_fn;

use super::*;
use crate::args::Args;

const UID: &str = "uid of wharf";

/// The wires to the only cluster.
pub(crate) struct Wires {
    cluster: Server,
    /// It takes requests and answers none.
    pub(crate) hangs: Arc<AtomicBool>,
    /// It says its version, and refuses all else with this code, each time in other words. Not with 0.
    pub(crate) refuses: Arc<AtomicU16>,
}

impl Wires {
    pub(crate) fn to(cluster: &Server) -> Self {
        Self {
            cluster: cluster.clone(),
            hangs: Arc::default(),
            refuses: Arc::default(),
        }
    }
}

/// A refusal as an API server writes it, in words of its own.
fn refusal(code: u16) -> Response<Body> {
    static REFUSALS: AtomicUsize = AtomicUsize::new(0);
    let number = REFUSALS.fetch_add(1, Ordering::SeqCst);
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": format!("not now, request {number}"),
    });
    let answer = Response::builder().status(code);
    answer
        .body(Body::from(status.to_string().into_bytes()))
        .expect("an answer")
}

impl Dial for Wires {
    fn dial(&self, _: &Access) -> Result<Transport, DialError> {
        let (client, hangs, refuses) = (
            self.cluster.client(),
            Arc::clone(&self.hangs),
            Arc::clone(&self.refuses),
        );
        Ok(transport(service_fn(move |request: http::Request<Body>| {
            let (client, hangs) = (client.clone(), Arc::clone(&hangs));
            let code = refuses.load(Ordering::SeqCst);
            async move {
                if code != 0 && request.uri().path() != "/version" {
                    return Ok(refusal(code));
                }
                if hangs.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                client.send(request).await
            }
        })))
    }
}

/// A management cluster, a cluster, and the way between them.
struct World {
    management: Server,
    cluster: Server,
    hangs: Arc<AtomicBool>,
    workloads: Workloads,
    news: mpsc::Receiver<News>,
    now: Timestamp,
}

impl World {
    fn new(flags: &[&str]) -> Self {
        operator_kit::client::install_crypto();
        let (management, cluster) = (Server::new(&WORKLOAD, None), Server::new(&WORKLOAD, None));
        for (server, name) in [(&management, "fleet"), (&cluster, "default")] {
            server.apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
        }
        let wires = Wires::to(&cluster);
        let hangs = Arc::clone(&wires.hangs);
        let outside = Outside {
            fence: Fence::default(),
            metrics: WorkloadMetrics::default(),
            wires: Some(Arc::new(wires)),
        };
        let flags = ["core-operator"].iter().chain(flags);
        let args = Args::try_parse_from(flags).expect("flags").workloads;
        let made = Workloads::new(management.client(), &args, outside, &CancellationToken::new());
        let (workloads, news) = made.expect("ways");
        Self {
            management,
            cluster,
            hangs,
            workloads,
            news,
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
        }
    }

    /// There is a kubeconfig with this server and this user.
    fn kubeconfig(&self, server: &str, user: &Value) {
        self.management.apply(&kubeconfig(server, user));
    }

    fn good(&self, token: &str) {
        self.management.apply(&good_kubeconfig(token));
    }

    /// So long after the beginning.
    fn reach_after(&self, seconds: i64) -> (Connection, Option<Place>) {
        let now = self.now + SignedDuration::from_secs(seconds);
        self.workloads.reach("fleet", "wharf", UID, "mark of wharf", now)
    }

    fn reach(&self) -> (Connection, Option<Place>) {
        self.reach_after(0)
    }

    async fn hear(&mut self, is_it: impl Fn(&News) -> bool) {
        let hearing = async { while !is_it(&self.news.recv().await.expect("news")) {} };
        timeout(Duration::from_hours(1), hearing).await.expect("it is told");
    }
}

/// The Secret with a kubeconfig of the Cluster `wharf` that has this server and this user.
fn kubeconfig(server: &str, user: &Value) -> Value {
    let key = KeyPair::generate().expect("a key");
    let authority = CertificateParams::default().self_signed(&key).expect("a certificate");
    let kubeconfig = json!({
        "clusters": [{ "name": "c", "cluster": {
            "server": server, "certificate-authority-data": STANDARD.encode(authority.pem()),
        } }],
        "users": [{ "name": "u", "user": user }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
    });
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": { "name": "wharf-kubeconfig", "namespace": "fleet" },
        "data": { "value": STANDARD.encode(kubeconfig.to_string()) },
    })
}

/// One that leads to the cluster.
pub(crate) fn good_kubeconfig(token: &str) -> Value {
    kubeconfig("https://wharf.example.org:6443", &json!({ "token": token }))
}

fn connected(news: &News) -> bool {
    matches!(news, News::Connected { .. })
}

fn lost(news: &News) -> bool {
    matches!(news, News::Lost { .. })
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_cluster_and_how_long_it_has_not_answered_stays_the_same() {
    let mut world = World::new(&[]);
    assert_eq!(
        world.reach().0,
        Connection::Connecting { since: world.now },
        "nobody has looked"
    );
    world.hear(lost).await;
    assert!(
        matches!(world.reach(), (Connection::Disconnected, None)),
        "there is no kubeconfig"
    );
    world.hangs.store(true, Ordering::SeqCst);
    world.good("a");
    // The kubeconfig is there, and is heard of.
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    let since = world.now + SignedDuration::from_secs(7);
    assert_eq!(world.reach_after(7).0, Connection::Connecting { since });
    assert_eq!(world.reach_after(9).0, Connection::Connecting { since });
    assert_eq!(begun.elapsed(), Duration::ZERO);
    world.hear(lost).await;
    let (first, place) = world.reach_after(60);
    assert!(place.is_none());
    let Connection::Suspect { since, message } = &first else {
        panic!("it is {first:?}")
    };
    assert!(message.contains("did not answer within"), "{message}");
    assert!(*since <= world.now + SignedDuration::from_secs(60));
    sleep(Duration::from_mins(10)).await;
    assert_eq!(world.reach_after(661).0, first);
    world.hangs.store(false, Ordering::SeqCst);
    world.workloads.hurry(UID);
    world.hear(connected).await;
    assert!(matches!(world.reach(), (Connection::Healthy, Some(_))));
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_would_run_a_program_or_lead_to_this_machine_is_refused() {
    let mut world = World::new(&[]);
    world.kubeconfig(
        "https://wharf.example.org:6443",
        &json!({ "exec": { "command": "sh" } }),
    );
    world.reach();
    world.hear(lost).await;
    let (Connection::Refused { message }, None) = world.reach() else {
        panic!("it is {:?}", world.reach().0)
    };
    assert!(message.contains("exec"), "{message}");
    world.kubeconfig("https://127.0.0.1:1", &json!({ "token": "t" }));
    world.hear(lost).await;
    assert!(
        matches!(world.reach().0, Connection::Refused { .. }),
        "{:?}",
        world.reach().0
    );
    // With the flag that is a way like any other.
    let mut world = World::new(&["--allow-workload-loopback"]);
    world.kubeconfig("https://127.0.0.1:1", &json!({ "token": "t" }));
    world.reach();
    world.hear(connected).await;
    assert_eq!(world.reach().0, Connection::Healthy);
}

#[tokio::test(start_paused = true)]
async fn the_place_of_objects_is_that_of_one_connection() {
    let mut world = World::new(&[]);
    world.good("a");
    world.reach();
    world.hear(connected).await;
    let place = || world.reach().1.expect("a place");
    let config_maps = GroupKind::new("", "ConfigMap");
    place().kind(&config_maps).await;
    sleep(Duration::from_secs(5)).await;
    assert!(
        place().objects.synced(&config_maps),
        "what one has learned the next one knows"
    );
    let before = place();
    world.good("b");
    world.hear(connected).await;
    let after = world.reach().1.expect("a place");
    assert!(!after.objects.synced(&config_maps), "it is another one");
    sleep(Duration::from_secs(5)).await;
    // Nothing of the old one goes on.
    world.cluster.apply(&config_map());
    sleep(Duration::from_secs(5)).await;
    assert!(before.objects.is_empty());
    world.workloads.forget(UID);
    assert!(world.workloads.concerned(UID).is_none());
}

#[tokio::test(start_paused = true)]
async fn of_a_cluster_that_another_one_of_its_name_takes_the_place_of_nothing_is_left() {
    let mut world = World::new(&[]);
    world.good("a");
    world.reach();
    world.hear(connected).await;
    let earlier = world.reach().1.expect("a place");
    let reach = |uid: &str, cluster: &str| {
        let workloads = &world.workloads;
        workloads.reach("fleet", cluster, uid, "mark of wharf", world.now).0
    };
    assert_eq!(
        reach("another uid", "wharf"),
        Connection::Connecting { since: world.now }
    );
    assert!(world.workloads.concerned(UID).is_none());
    reach("uid of quay", "quay");
    assert!(
        world.workloads.concerned("another uid").is_some(),
        "one of another name is none that it takes the place of"
    );
    sleep(Duration::from_secs(5)).await;
    assert!(earlier.objects.is_empty());
    let clusters = world.workloads.places().into_iter().map(|(cluster, _)| cluster);
    assert_eq!(
        clusters.collect::<Vec<_>>(),
        [("fleet".to_owned(), "wharf".to_owned())],
        "there is one way to it"
    );
}

#[tokio::test(start_paused = true)]
async fn objects_say_themselves_which_chart_they_come_from() {
    let mut world = World::new(&[]);
    world.good("a");
    let named = |name: &str, mark: &str, chart: Option<&str>| {
        let mut object = config_map();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["labels"][labels::PART_OF] = json!(mark);
        if let Some(chart) = chart {
            object["metadata"]["annotations"] = json!({ labels::STAGE: chart, "other": "x" });
        }
        world.cluster.apply(&object);
    };
    named("one", "mark of wharf", Some("network"));
    named("two", "mark of wharf", None);
    named("three", "mark of another", Some("storage"));
    world.reach();
    world.hear(connected).await;
    let place = world.reach().1.expect("a place");
    place.kind(&GroupKind::new("", "ConfigMap")).await;
    sleep(Duration::from_secs(5)).await;
    let origins = place.origins("mark of wharf").into_iter();
    let origins: Vec<_> = origins.map(|(key, chart)| (key.name, chart)).collect();
    assert_eq!(origins, [("one".to_owned(), "network".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_budget_of_watches_a_kind_is_listed_and_counts_as_seen() {
    let mut world = World::new(&["--workload-watches=1"]);
    world.good("a");
    world.cluster.apply(&config_map());
    world.reach();
    world.hear(connected).await;
    let place = world.reach().1.expect("a place");
    let config_maps = GroupKind::new("", "ConfigMap");
    assert!(place.kind(&config_maps).await.maybe_served());
    world
        .hear(|news| {
            matches!(
                news,
                News::Objects {
                    notice: Notice::Synced(_),
                    ..
                }
            )
        })
        .await;
    assert!(place.objects.synced(&config_maps));
    assert_eq!(place.objects.len(), 1);
    assert!(
        !world.cluster.is_watched("ConfigMap", labels::PART_OF),
        "the only watch is that of CRDs"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_a_cluster_begins_to_serve_is_told() {
    let mut world = World::new(&[]);
    world.cluster.hide(Some("example.org"));
    world.cluster.apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "lathes.example.org" },
    }));
    world.good("a");
    world.reach();
    world.hear(connected).await;
    let place = world.reach().1.expect("a place");
    let serving = async |kind| {
        let kind = GroupKind::new("example.org", kind);
        let serving = place.crds.serving(&place.discovery, &kind).await;
        serving.expect("discovery")
    };
    assert_eq!(serving("Lathe").await, Serving::Unsure, "there is a CRD of the group");
    sleep(Duration::from_secs(1)).await;
    world.cluster.hide(None);
    world.hear(|news| matches!(news, News::Served { .. })).await;
    assert!(matches!(serving("Lathe").await, Serving::Served(_)));
    assert_eq!(serving("Drill").await, Serving::NotServed);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_asked_and_says_nothing_is_known_before_it_is_lost() {
    let mut world = World::new(&[]);
    world.good("a");
    world.reach();
    world.hear(connected).await;
    let place = world.reach().1.expect("a place");
    let cluster = ("fleet".to_owned(), "wharf".to_owned());
    // Its watches stand.
    sleep(Duration::from_secs(5)).await;
    world.hangs.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(1)).await;
    assert!(!world.workloads.keeps_silent(&cluster), "nobody asks it");
    let asking = tokio::spawn(async move { place.discovery.refresh().await });
    sleep(Duration::from_secs(1)).await;
    assert!(world.workloads.keeps_silent(&cluster));
    let another = ("fleet".to_owned(), "another".to_owned());
    assert!(!world.workloads.keeps_silent(&another));
    assert_eq!(world.reach().0, Connection::Healthy);
    asking.abort();
    assert!(asking.await.is_err_and(|error| error.is_cancelled()));
    assert!(!world.workloads.keeps_silent(&cluster), "nobody waits any more");
}

fn config_map() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "one", "namespace": "default", "labels": { labels::PART_OF: "mark of wharf" },
    } })
}
