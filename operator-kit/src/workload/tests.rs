use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::stream;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::client::{Body, Client};
use kube::core::GroupVersionKind;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::{Service, service_fn};

use super::kubeconfig::{Access, SECRET_TYPE};
use super::*;
use crate::lease::{Clock, Fence};
use crate::object::GroupKind;
use crate::objects::Notice;
use crate::stub::{self, Answer, Asked, discovery, page};

const LABEL: &str = "example.org/part-of";

/// How long a cluster takes for an answer.
const USUAL: Duration = Duration::from_millis(100);

/// The clusters, by their hosts, and the Secrets with their kubeconfigs, by their names.
#[derive(Clone, Default)]
struct World(Arc<Inner>);

#[derive(Default)]
struct Inner {
    authority: Mutex<String>,
    secrets: Mutex<HashMap<String, (u32, Value)>>,
    secret_reads: AtomicUsize,
    clusters: Mutex<HashMap<String, Behaviour>>,
    /// Method, path and query of what reached a cluster.
    asked: Mutex<Vec<String>>,
    /// What the next watch of Secrets tells, and how it was asked for.
    written: Mutex<Option<UnboundedReceiver<Value>>>,
    secrets_watched: Mutex<Vec<Asked>>,
    may_not_watch: AtomicBool,
    /// How many reads of Secrets fail from now on.
    unreadable: AtomicUsize,
    /// As many as there are wires that somebody holds.
    wires: Arc<()>,
}

/// What a cluster does.
#[derive(Clone, Debug, PartialEq)]
enum Behaviour {
    Answers,
    /// Answers after so long.
    Late(Duration),
    Hangs,
    /// Says its version, and nothing else.
    HangsBehind,
    /// Says everything else.
    KeepsVersion,
    /// Nobody trusts its certificate.
    Untrusted,
    /// Nobody listens.
    Refuses,
    /// Takes this token and no other.
    Wants(&'static str),
}

impl World {
    fn new() -> Self {
        let world = Self::default();
        let key = KeyPair::generate().unwrap();
        let authority = CertificateParams::default().self_signed(&key).unwrap();
        *world.0.authority.lock().unwrap() = STANDARD.encode(authority.pem());
        world
    }

    /// There is a Secret of this version, whose kubeconfig has this token.
    fn secret(&self, cluster: &str, version: u32, token: &str) {
        let authority = self.0.authority.lock().unwrap().clone();
        let kubeconfig = json!({
            "clusters": [{ "name": "c", "cluster": {
                "server": format!("https://{cluster}.example.org:6443"), "certificate-authority-data": authority,
            } }],
            "users": [{ "name": "u", "user": { "token": token } }],
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
        });
        let name = format!("{cluster}-kubeconfig");
        self.0.secrets.lock().unwrap().insert(name, (version, kubeconfig));
    }

    fn behave(&self, cluster: &str, behaviour: Behaviour) {
        let host = format!("{cluster}.example.org");
        self.0.clusters.lock().unwrap().insert(host, behaviour);
    }

    fn management(&self) -> Client {
        let world = self.clone();
        stub::client(move |asked: &Asked| {
            if asked.path.ends_with("/secrets") {
                return world.secrets(asked);
            }
            world.0.secret_reads.fetch_add(1, Ordering::SeqCst);
            let fails = |left: usize| left.checked_sub(1);
            let unreadable = &world.0.unreadable;
            if unreadable
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails)
                .is_ok()
            {
                return stub::refusal(403, "Forbidden", "not now", &json!({})).into();
            }
            let name = asked.path.rsplit('/').next().unwrap_or_default();
            match world.0.secrets.lock().unwrap().get(name) {
                Some((version, kubeconfig)) => {
                    let value = STANDARD.encode(kubeconfig.to_string());
                    let secret = json!({
                        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "data": { "value": value },
                        "metadata": { "name": name, "namespace": "fleet", "resourceVersion": version.to_string() },
                    });
                    (200, secret).into()
                }
                None => stub::refusal(404, "NotFound", "there is none", &json!({})).into(),
            }
        })
    }

    fn secrets(&self, asked: &Asked) -> Answer {
        self.0.secrets_watched.lock().unwrap().push(asked.clone());
        if self.0.may_not_watch.load(Ordering::SeqCst) {
            return stub::refusal(403, "Forbidden", "you may not", &json!({})).into();
        }
        if asked.parameter("watch") != "true" {
            return page(asked, &[]).into();
        }
        let events = self.0.written.lock().unwrap().take();
        Answer::Live(events.map_or_else(|| stream::pending().boxed(), StreamExt::boxed))
    }

    fn secret_reads(&self) -> usize {
        self.0.secret_reads.load(Ordering::SeqCst)
    }

    /// What reached a cluster of what has this in it.
    fn asked(&self, what: &str) -> Vec<String> {
        let asked = self.0.asked.lock().unwrap();
        asked.iter().filter(|asked| asked.contains(what)).cloned().collect()
    }

    /// Wires that somebody holds.
    fn wires(&self) -> usize {
        Arc::strong_count(&self.0.wires) - 1
    }

    fn settings() -> Settings {
        let user_agent = HeaderValue::from_static("operator/1");
        Settings::new(Fence::default(), user_agent, LABEL)
    }

    fn clusters(&self, settings: Settings) -> (WorkloadClusters, mpsc::Receiver<News>) {
        let dial = Arc::new(self.clone());
        WorkloadClusters::dialling(
            self.management(),
            settings,
            WorkloadMetrics::default(),
            dial,
            CancellationToken::new(),
        )
    }
}

impl Dial for World {
    fn dial(&self, access: &Access) -> Result<Transport, DialError> {
        let world = self.clone();
        let wire = Arc::clone(&self.0.wires);
        let host = access.server().host().unwrap().to_owned();
        let token = access.config().auth_info.token.unwrap();
        let mut api = stub::service(answer);
        Ok(transport(service_fn(move |request: Request<Body>| {
            let asked = format!("{} {}", request.method(), request.uri());
            let noting = world.clone();
            let behaviour = world.0.clusters.lock().unwrap().get(&host).cloned();
            let accepted = match &behaviour {
                Some(Behaviour::Wants(wanted)) => *wanted == secrecy::ExposeSecret::expose_secret(&token),
                _ => true,
            };
            let is_version = request.uri().path() == "/version";
            let answer = api.call(request);
            let wire = Arc::clone(&wire);
            async move {
                // What is not waited for is not sent.
                noting.0.asked.lock().unwrap().push(asked);
                match behaviour.unwrap_or(Behaviour::Answers) {
                    Behaviour::Hangs => std::future::pending().await,
                    Behaviour::HangsBehind if !is_version => std::future::pending().await,
                    Behaviour::KeepsVersion if is_version => std::future::pending().await,
                    Behaviour::Late(time) => sleep(time).await,
                    Behaviour::Untrusted => {
                        let error = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
                        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                    }
                    Behaviour::Refuses => return Err(io::ErrorKind::ConnectionRefused.into()),
                    Behaviour::Answers | Behaviour::HangsBehind | Behaviour::KeepsVersion | Behaviour::Wants(_) => {
                        sleep(USUAL).await;
                    }
                }
                let Ok(mut answer) = answer.await;
                if !accepted {
                    *answer.status_mut() = http::StatusCode::UNAUTHORIZED;
                }
                // It is held until there is an answer, or nobody waits for one any more.
                drop(wire);
                Ok(answer)
            }
        })))
    }
}

/// What an API server with one Deployment of ours answers. Its watches say every minute how far they are.
fn answer(asked: &Asked) -> Answer {
    if let Some(answer) = discovery(asked) {
        return answer.into();
    }
    if asked.parameter("watch") == "true" {
        let mark = json!({ "type": "BOOKMARK", "object": {
            "apiVersion": "v1", "kind": "PartialObjectMetadata", "metadata": { "resourceVersion": "6" },
        } });
        if asked.path.ends_with("/customresourcedefinitions") {
            return Answer::Live(stream::pending().boxed());
        }
        let marks = stream::repeat(mark).then(|mark| async move {
            sleep(Duration::from_mins(1)).await;
            mark
        });
        return Answer::Live(marks.boxed());
    }
    if asked.path.ends_with("/version") {
        return (200, json!({ "gitVersion": "v1.36.0" })).into();
    }
    let object = json!({ "metadata": {
        "name": "one", "namespace": "n", "uid": "u", "resourceVersion": "5", "labels": { LABEL: "owner" },
    } });
    page(asked, &[object]).into()
}

fn workload(cluster: &str) -> Workload {
    Workload {
        namespace: "fleet".to_owned(),
        name: cluster.to_owned(),
        owner: "owner".to_owned(),
    }
}

fn deployments() -> GroupVersionKind {
    GroupVersionKind::gvk("apps", "v1", "Deployment")
}

/// Follows a kind in the cluster `u`.
async fn ensure(clusters: &WorkloadClusters, kind: &GroupVersionKind) {
    let objects = clusters.get("u").connection().unwrap().objects.clone();
    assert!(objects.ensure(kind).await.unwrap(), "{kind:?} is served");
}

/// Reads the news until one is this, and says what the others were.
async fn news(news: &mut mpsc::Receiver<News>, is_it: impl Fn(&News) -> bool) -> Vec<News> {
    let mut others = Vec::new();
    let reading = async {
        loop {
            let next = news.recv().await.expect("news");
            if is_it(&next) {
                return;
            }
            others.push(next);
        }
    };
    let came = timeout(Duration::from_hours(1), reading).await;
    assert!(came.is_ok(), "there was only {others:?}");
    others
}

fn connected(news: &News) -> bool {
    matches!(news, News::Connected { .. })
}

fn lost(news: &News) -> bool {
    matches!(news, News::Lost { .. })
}

fn reason(clusters: &WorkloadClusters, uid: &str) -> Reason {
    match clusters.get(uid) {
        State::Suspect(suspicion) => suspicion.reason,
        other => panic!("{uid} is {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_a_slow_and_an_untrusted_cluster_delay_nobody() {
    let world = World::new();
    let names: Vec<String> = (0..100).map(|number| format!("c{number}")).collect();
    for name in &names {
        world.secret(name, 1, "t");
    }
    world.behave("c10", Behaviour::Hangs);
    world.behave("c20", Behaviour::Late(Duration::from_secs(30)));
    world.behave("c30", Behaviour::Untrusted);
    let (clusters, mut news) = world.clusters(World::settings());
    let begun = Instant::now();
    for name in &names {
        clusters.follow(name, &workload(name));
    }
    let mut healthy = 0;
    while healthy < 97 {
        if connected(&news.recv().await.unwrap()) {
            healthy += 1;
        }
    }
    assert!(begun.elapsed() < USUAL * 2, "{:?}", begun.elapsed());
    assert!(matches!(clusters.get("c10"), State::Connecting));
    assert!(matches!(reason(&clusters, "c30"), Reason::Secure { .. }));
    sleep(Duration::from_mins(10)).await;
    assert_eq!(reason(&clusters, "c10"), Reason::Wait { seconds: 10 });
    assert_eq!(reason(&clusters, "c20"), Reason::Wait { seconds: 10 });
    assert!(matches!(reason(&clusters, "c30"), Reason::Secure { .. }));
    for name in names
        .iter()
        .filter(|name| !["c10", "c20", "c30"].contains(&name.as_str()))
    {
        assert!(clusters.get(name).connection().is_some(), "{name}");
    }
    let metrics = &clusters.owner_metrics();
    assert_eq!(
        (
            metrics.count("healthy"),
            metrics.count("suspect"),
            metrics.count("connecting")
        ),
        (97, 3, 0)
    );
    // What was slow may become quick.
    world.behave("c20", Behaviour::Answers);
    world.behave("c10", Behaviour::Answers);
    sleep(Duration::from_mins(1)).await;
    assert!(clusters.get("c10").connection().is_some() && clusters.get("c20").connection().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_says_something_else_connects_anew_and_one_that_says_the_same_does_not() {
    let world = World::new();
    world.secret("one", 1, "old");
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    let first = clusters.get("u").connection().unwrap().client.clone();
    let reads = world.secret_reads();
    clusters.kubeconfig_written(("fleet", "one"), "1");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.secret_reads(), reads, "it was read in this version");
    world.secret("one", 2, "old");
    clusters.kubeconfig_written(("fleet", "one"), "2");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.secret_reads(), reads + 1);
    assert!(told.try_recv().is_err(), "only a label changed");
    world.secret("one", 3, "new");
    world.behave("one", Behaviour::Wants("new"));
    clusters.kubeconfig_written(("fleet", "one"), "3");
    assert_eq!(news(&mut told, connected).await, []);
    assert!(clusters.get("u").connection().is_some());
    drop(first);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.wires(), 1, "the connection of the old kubeconfig has gone");
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_was_written_and_could_not_be_read_is_read_again_though_the_old_one_is_accepted() {
    let world = World::new();
    world.secret("one", 1, "old");
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    world.secret("one", 2, "new");
    let reads = world.secret_reads();
    world.0.unreadable.store(3, Ordering::SeqCst);
    let begun = Instant::now();
    clusters.kubeconfig_written(("fleet", "one"), "2");
    assert_eq!(news(&mut told, connected).await, [], "it was never given up");
    let took = begun.elapsed();
    assert!(
        took > Duration::from_secs(5) && took < Duration::from_secs(10),
        "ever later: {took:?}"
    );
    assert_eq!(
        world.secret_reads(),
        reads + 5,
        "three in vain, one to see it, and one to connect"
    );
    sleep(Duration::from_mins(10)).await;
    assert_eq!(world.secret_reads(), reads + 5, "nobody asks for what is told");
    // What nobody can use is read once: the next version is told of.
    world
        .0
        .secrets
        .lock()
        .unwrap()
        .insert("one-kubeconfig".to_owned(), (3, json!({})));
    clusters.kubeconfig_written(("fleet", "one"), "3");
    sleep(Duration::from_mins(10)).await;
    assert_eq!(world.secret_reads(), reads + 6);
    assert!(clusters.get("u").connection().is_some());
}

#[tokio::test(start_paused = true)]
async fn who_lost_his_lease_writes_into_no_cluster() {
    let world = World::new();
    world.secret("one", 1, "t");
    let seconds = Arc::new(AtomicU64::new(0));
    let time = Arc::clone(&seconds);
    let clock = Clock::of(move || Duration::from_secs(time.load(Ordering::Relaxed)));
    let fence = Fence::shut(clock);
    fence.set(Some(Duration::from_secs(10)));
    let (clusters, mut told) = world.clusters(Settings {
        fence,
        ..World::settings()
    });
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    let client = clusters.get("u").connection().unwrap().client.clone();
    let api: Api<ConfigMap> = Api::namespaced(client, "n");
    let write = async || {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } });
        api.patch("c", &PatchParams::apply("operator"), &Patch::Apply(&object))
            .await
    };
    let _ = write().await;
    assert_eq!(world.asked("PATCH").len(), 1);
    seconds.store(10, Ordering::Relaxed);
    let error = write().await.unwrap_err();
    assert!(error.to_string().contains("holds no Lease"), "{error}");
    assert_eq!(world.asked("PATCH").len(), 1);
    let _ = api.get_opt("c").await;
    let reads = world.asked("GET ");
    assert!(
        reads.iter().any(|read| read.ends_with("/configmaps/c")),
        "reads pass: {reads:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_not_accepted_any_more_are_read_again_once() {
    let world = World::new();
    world.secret("one", 1, "old");
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    let client = clusters.get("u").connection().unwrap().client.clone();
    // Nobody told of another version, and there is one.
    world.secret("one", 2, "new");
    world.behave("one", Behaviour::Wants("new"));
    let reads = world.secret_reads();
    sleep(Duration::from_secs(6)).await;
    let _ = Api::<ConfigMap>::namespaced(client, "n").get("c").await;
    assert_eq!(news(&mut told, connected).await, [], "it was never given up");
    assert_eq!(world.secret_reads(), reads + 2, "once to see it, and once to connect");
    // And now there is none.
    world.behave("one", Behaviour::Wants("other"));
    let reads = world.secret_reads();
    let client = clusters.get("u").connection().unwrap().client.clone();
    sleep(Duration::from_secs(6)).await;
    let _ = Api::<ConfigMap>::namespaced(client, "n").get("c").await;
    assert_eq!(news(&mut told, lost).await, []);
    assert_eq!(reason(&clusters, "u"), Reason::Authenticate);
    assert_eq!(world.secret_reads(), reads + 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_cluster_that_is_forgotten_nothing_is_left() {
    let world = World::new();
    world.secret("one", 1, "t");
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    ensure(&clusters, &deployments()).await;
    let synced = |news: &News| {
        matches!(
            news,
            News::Objects {
                notice: Notice::Synced(_),
                ..
            }
        )
    };
    news(&mut told, synced).await;
    assert!(world.wires() > 0);
    assert_eq!(clusters.owner_metrics().watched(), 2, "that of CRDs is one");
    clusters.forget("u");
    assert!(matches!(clusters.get("u"), State::Disconnected) && clusters.is_empty());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.wires(), 0);
    assert_eq!(clusters.owner_metrics().watched(), 0);
    assert_eq!(
        clusters.owner_metrics().count("healthy") + clusters.owner_metrics().count("disconnected"),
        0
    );
    let asked = world.asked("").len();
    sleep(Duration::from_hours(1)).await;
    assert_eq!(world.asked("").len(), asked);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_control_plane_is_ready_is_asked_at_once() {
    let world = World::new();
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    sleep(Duration::from_mins(3)).await;
    assert!(
        matches!(clusters.get("u"), State::Disconnected),
        "there is no kubeconfig yet"
    );
    assert_eq!(news(&mut told, lost).await, [], "somebody has looked");
    world.secret("one", 1, "t");
    world.behave("one", Behaviour::Hangs);
    clusters.kubeconfig_written(("fleet", "one"), "1");
    sleep(Duration::from_secs(185)).await;
    assert!(matches!(clusters.get("u"), State::Suspect(_)));
    for behaviour in [Behaviour::Refuses, Behaviour::Hangs] {
        world.behave("one", behaviour.clone());
        clusters.hurry("u");
        // Into a pause, and into an attempt.
        sleep(Duration::from_secs(5)).await;
        world.behave("one", Behaviour::Answers);
        while told.try_recv().is_ok() {}
        let begun = Instant::now();
        clusters.hurry("u");
        news(&mut told, connected).await;
        assert!(begun.elapsed() < USUAL * 2, "{behaviour:?}: {:?}", begun.elapsed());
        world.behave("one", Behaviour::Hangs);
        news(&mut told, lost).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_is_written_is_heard_of_at_once_and_nothing_is_seen_of_secrets_but_their_names() {
    let world = World::new();
    let (written, events) = unbounded();
    *world.0.written.lock().unwrap() = Some(events);
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    sleep(Duration::from_mins(3)).await;
    let write = |name: &str, version: u32| {
        let event = json!({ "type": "ADDED", "object": { "metadata": {
            "name": name, "namespace": "fleet", "resourceVersion": version.to_string(),
        } } });
        written.unbounded_send(event).unwrap();
    };
    let reads = world.secret_reads();
    assert_eq!(reads, 1, "nobody asks for what is told");
    world.secret("one", 7, "t");
    let begun = Instant::now();
    write("other-kubeconfig", 6);
    write("one-ca", 6);
    write("one-kubeconfig", 7);
    news(&mut told, connected).await;
    assert!(begun.elapsed() < USUAL * 2, "{:?}", begun.elapsed());
    assert_eq!(world.secret_reads(), reads + 1);
    let watched = world.0.secrets_watched.lock().unwrap().clone();
    assert_eq!(watched.len(), 2, "a list and a watch");
    for asked in watched {
        assert!(
            asked.metadata_only && asked.path == "/api/v1/namespaces/fleet/secrets",
            "{asked:?}"
        );
        assert_eq!(asked.parameter("fieldSelector"), "type%3Dcluster.x-k8s.io%2Fsecret");
    }
    clusters.follow("v", &workload("two"));
    clusters.forget("u");
    sleep(Duration::from_mins(3)).await;
    assert!(!written.is_closed(), "another cluster is there");
    clusters.forget("v");
    sleep(Duration::from_mins(3)).await;
    assert!(written.is_closed(), "nobody is left whose kubeconfig it may be");
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_nobody_would_tell_of_is_looked_for() {
    let world = World::new();
    world.0.may_not_watch.store(true, Ordering::SeqCst);
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    sleep(Duration::from_mins(3)).await;
    world.secret("one", 1, "t");
    let begun = Instant::now();
    news(&mut told, connected).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_says_its_version_and_nothing_else_is_none_that_can_be_worked_on() {
    let world = World::new();
    world.secret("one", 1, "t");
    world.behave("one", Behaviour::HangsBehind);
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    assert_eq!(news(&mut told, lost).await, []);
    assert_eq!(reason(&clusters, "u"), Reason::Wait { seconds: 20 });
    world.behave("one", Behaviour::Answers);
    news(&mut told, connected).await;
}

#[tokio::test(start_paused = true)]
async fn kinds_beyond_the_budget_are_listed_now_and_then() {
    let world = World::new();
    world.secret("one", 1, "t");
    let settings = Settings {
        watches: 2,
        matters: |kind| kind.kind == "Namespace",
        ..World::settings()
    };
    let (clusters, mut told) = world.clusters(settings);
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    let namespaces = GroupVersionKind::gvk("", "v1", "Namespace");
    let secrets = GroupVersionKind::gvk("", "v1", "Secret");
    for kind in [&deployments(), &secrets] {
        ensure(&clusters, kind).await;
    }
    sleep(Duration::from_secs(5)).await;
    let objects = clusters.get("u").connection().unwrap().objects.clone();
    assert_eq!(objects.len(), 2, "both kinds were listed");
    assert_eq!(clusters.owner_metrics().watched(), 2);
    sleep(Duration::from_mins(70)).await;
    let lists = |plural: &str| {
        world
            .asked(plural)
            .iter()
            .filter(|asked| !asked.contains("watch="))
            .count()
    };
    assert_eq!(lists("/deployments?"), 1);
    assert!((6..=9).contains(&lists("/secrets?")), "{}", lists("/secrets?"));
    let watches = |plural: &str| {
        let asked = world.asked(plural);
        asked.iter().filter(|asked| asked.contains("watch=true")).count()
    };
    assert_eq!(watches("/secrets?"), 0);
    // What is ours alone.
    let selected = world.asked("labelSelector=");
    assert!(
        selected.iter().all(|asked| asked.contains("part-of%3Downer")),
        "{selected:?}"
    );
    // One that matters takes the watch of one that does not.
    while told.try_recv().is_ok() {}
    let before = watches("/deployments?");
    ensure(&clusters, &namespaces).await;
    assert!(
        objects.synced(&GroupKind::new("apps", "Deployment")),
        "what is known stays"
    );
    sleep(Duration::from_secs(5)).await;
    assert_eq!((watches("/namespaces?"), lists("/deployments?")), (1, 2));
    assert_eq!((objects.len(), clusters.owner_metrics().watched()), (3, 2));
    for kind in [&secrets, &deployments()] {
        ensure(&clusters, kind).await;
    }
    sleep(Duration::from_mins(30)).await;
    assert_eq!((watches("/secrets?"), watches("/deployments?")), (0, before));
    // It is no longer needed: what is left over goes to who asks first.
    objects.keep(|kind, _| kind.kind != "Namespace");
    ensure(&clusters, &secrets).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!((watches("/secrets?"), clusters.owner_metrics().watched()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_says_something_is_not_asked_whether_it_is_there() {
    let world = World::new();
    world.secret("one", 1, "t");
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    sleep(Duration::from_hours(1)).await;
    let questions = world.asked("/version").len();
    assert!(
        (30..=50).contains(&questions),
        "{questions}: nothing else is heard of it"
    );
    ensure(&clusters, &deployments()).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(world.asked("/version").len(), questions);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_goes_is_lost_by_its_own_silence_and_found_again() {
    let world = World::new();
    world.secret("one", 1, "t");
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    world.behave("one", Behaviour::Refuses);
    let begun = Instant::now();
    news(&mut told, lost).await;
    assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
    assert!(matches!(reason(&clusters, "u"), Reason::Reach { .. }));
    let State::Suspect(first) = clusters.get("u") else {
        panic!("it is suspect")
    };
    sleep(Duration::from_mins(20)).await;
    let State::Suspect(later) = clusters.get("u") else {
        panic!("it is suspect")
    };
    assert_eq!(first.since, later.since);
    assert!(later.next_attempt > Instant::now());
    assert!(told.try_recv().is_err(), "the same is said once");
    let questions = world.asked("/version").len();
    sleep(Duration::from_mins(20)).await;
    assert!(world.asked("/version").len() - questions <= 25);
    world.behave("one", Behaviour::Answers);
    let begun = Instant::now();
    news(&mut told, connected).await;
    assert!(begun.elapsed() < Duration::from_secs(70), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_moment_is_looked_into_at_once_and_is_no_loss() {
    let world = World::new();
    world.secret("one", 1, "t");
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    sleep(Duration::from_secs(10)).await;
    let client = clusters.get("u").connection().unwrap().client.clone();
    let api: Api<ConfigMap> = Api::namespaced(client, "n");
    let questions = world.asked("/version").len();
    world.behave("one", Behaviour::Refuses);
    let _ = api.get("c").await;
    // Until the first question has failed, too.
    sleep(Duration::from_millis(500)).await;
    assert!(world.asked("/version").len() > questions);
    world.behave("one", Behaviour::Answers);
    sleep(Duration::from_secs(3)).await;
    assert!(clusters.get("u").connection().is_some());
    assert!(told.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_answers_others_is_not_lost_by_a_question_that_is_not_answered() {
    let world = World::new();
    world.secret("one", 1, "t");
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, connected).await;
    sleep(Duration::from_secs(10)).await;
    let client = clusters.get("u").connection().unwrap().client.clone();
    let api: Api<ConfigMap> = Api::namespaced(client, "n");
    let questions = world.asked("/version").len();
    world.behave("one", Behaviour::Refuses);
    let _ = api.get("c").await;
    world.behave("one", Behaviour::KeepsVersion);
    // Until both questions have been given up.
    for _ in 0..25 {
        sleep(Duration::from_secs(1)).await;
        let _ = api.get("c").await;
    }
    assert!(world.asked("/version").len() >= questions + 2);
    assert!(clusters.get("u").connection().is_some());
    assert!(told.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_is_refused_leads_nowhere_and_is_told_by_its_field() {
    let world = World::new();
    world.secret("one", 1, "t");
    let name = "one-kubeconfig".to_owned();
    let refused = |kubeconfig: &mut Value| kubeconfig["users"][0]["user"] = json!({ "exec": { "command": "sh" } });
    refused(&mut world.0.secrets.lock().unwrap().get_mut(&name).unwrap().1);
    let (clusters, mut told) = world.clusters(World::settings());
    clusters.follow("u", &workload("one"));
    news(&mut told, lost).await;
    let Reason::Refuse(refusal) = reason(&clusters, "u") else {
        panic!("it is refused")
    };
    assert!(refusal.to_string().contains("exec"), "{refusal}");
    sleep(Duration::from_hours(1)).await;
    assert!(world.asked("").is_empty());
    let reads = world.secret_reads();
    // Once every five minutes, a tenth sooner by chance, and some more at the beginning, when the pauses are short.
    assert!(
        reads <= 12 * 2,
        "{reads}: nothing mends it but another one, which is told"
    );
    assert!(told.try_recv().is_err(), "the same is said once");
    world.secret("one", 2, "t");
    clusters.kubeconfig_written(("fleet", "one"), "2");
    news(&mut told, connected).await;
}

/// So that what is behind the wires is what the tests think.
#[tokio::test]
async fn a_wire_leads_to_what_answers() {
    let answer = |_: Request<Body>| async { Ok::<_, io::Error>(Response::new(Full::new(bytes::Bytes::from("{}")))) };
    let answer = transport(service_fn(answer)).call(Request::get("/").body(Body::empty()).unwrap());
    assert!(answer.await.unwrap().status().is_success());
}
