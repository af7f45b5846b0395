//! Reviews before an API server of which each answer is known.

use std::collections::BTreeSet;
use std::convert::Infallible;

use axum::body::to_bytes;
use futures::{StreamExt, stream};
use http::Method;
use kube::Client;
use kube::client::Body;
use operator_kit::https::{Expiries, LARGE_AT_ONCE, USUAL_BODY};
use operator_kit::telemetry::Readiness;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;
use tower::{ServiceExt, service_fn};

use super::*;
use crate::clusters::{ClusterSight, Keeps};

/// As many as the server takes at once.
const CONNECTIONS: usize = 256;

/// What the API server has. What a read finds may be newer than what the watch told.
#[derive(Clone, Default)]
struct World {
    /// By name, with the class, in the namespace fleet.
    listed: Vec<(&'static str, &'static str)>,
    found: Vec<(&'static str, &'static str)>,
    /// So many Clusters more are listed, with a class of ours.
    crowd: usize,
    /// Every release has this version, if there are any.
    version: Option<&'static str>,
    /// Every release is being deleted, if there are any.
    deleting: bool,
    /// Reads of single objects are never answered.
    hangs: bool,
}

fn cluster((name, class): (&str, &str)) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": { "name": name, "namespace": "fleet", "resourceVersion": "4" },
        "spec": { "topology": { "class": class, "version": "v1.34.2" } },
    })
}

impl World {
    async fn answer(self, path: &str, query: &str) -> (u16, Value) {
        let kind = |group: &str, version: &str, kind: &str, plural: &str| {
            let resource = json!({
                "resource": plural, "scope": "Namespaced", "verbs": [], "responseKind": { "group": "", "version": "", "kind": kind },
            });
            json!({ "metadata": { "name": group }, "versions": [{ "version": version, "resources": [resource] }] })
        };
        let absent = || {
            (
                404,
                json!({ "kind": "Status", "status": "Failure", "code": 404, "message": "not found", "reason": "NotFound" }),
            )
        };
        let groups = [
            kind("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters"),
            kind(
                crds::GROUP,
                crds::VERSION,
                "ClusterStackRelease",
                "clusterstackreleases",
            ),
        ];
        match path.rsplit_once('/').unwrap_or_default() {
            (_, "api") => (200, json!({ "kind": "APIGroupDiscoveryList", "items": [] })),
            (_, "apis") => (200, json!({ "kind": "APIGroupDiscoveryList", "items": groups })),
            (_, "clusters") if !query.contains("watch=") => {
                let crowd = (0..self.crowd).map(|number| cluster((&format!("cluster-{number}"), CLASS)));
                let items: Vec<Value> = self.listed.iter().copied().map(cluster).chain(crowd).collect();
                (
                    200,
                    json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "5" }, "items": items }),
                )
            }
            (parent, name) if !self.hangs && parent.ends_with("/clusters") => {
                let found = self.found.iter().find(|(found, _)| *found == name);
                found.map_or_else(absent, |found| (200, cluster(*found)))
            }
            (parent, name) if !self.hangs && parent.ends_with("/clusterstackreleases") => match self.version {
                Some(version) => {
                    let since = self.deleting.then_some("2026-01-01T00:00:00Z");
                    let release = json!({
                        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
                        "metadata": { "name": name, "namespace": "fleet", "deletionTimestamp": since },
                        "status": { "kubernetesVersion": version },
                    });
                    (200, release)
                }
                None => absent(),
            },
            _ => std::future::pending().await,
        }
    }

    fn client(&self) -> Client {
        let world = self.clone();
        let service = service_fn(move |request: http::Request<Body>| {
            let world = world.clone();
            async move {
                let uri = request.uri();
                let (status, body) = world.answer(uri.path(), uri.query().unwrap_or_default()).await;
                let mut response = http::Response::new(Body::from(body.to_string().into_bytes()));
                *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                Ok::<_, Infallible>(response)
            }
        });
        Client::new(service, "default")
    }
}

/// The webhooks of an operator in this world.
struct Operator {
    router: Router,
    registry: Registry,
    _stop: tokio_util::sync::DropGuard,
}

impl Operator {
    async fn new(world: &World) -> Self {
        let stop = CancellationToken::new();
        let client = world.client();
        let mut sight = ClusterSight::start(&client, Keeps::Classes, &Readiness::default(), &stop);
        // All Clusters were listed when the last of the news is out.
        while sight.clusters.used_by("fleet").is_none() {
            let _ = sight.notices.recv().await;
        }
        let mut registry = Registry::default();
        let router = router(
            Facts::new(client, &sight),
            Tally::register(&mut registry, Expiries::default()),
        );
        Self {
            router,
            registry,
            _stop: stop.drop_guard(),
        }
    }

    async fn post(&self, path: &str, body: impl Into<axum::body::Body>) -> (StatusCode, Vec<u8>) {
        let answer = self.sent(path, body.into()).await;
        let status = answer.status();
        (
            status,
            to_bytes(answer.into_body(), BODY_LIMIT).await.expect("a body").to_vec(),
        )
    }

    fn sent(&self, path: &str, body: axum::body::Body) -> impl Future<Output = Response> + Send + use<> {
        let request = http::Request::builder().method(Method::POST).uri(path);
        let request = request.body(body).expect("a request");
        let answer = self.router.clone().oneshot(request);
        async { answer.await.expect("an answer") }
    }

    /// The response within the review.
    async fn review(&self, path: &str, operation: &str, before: Option<&Value>, after: Option<&Value>) -> Value {
        let kind = json!({ "group": "", "version": "", "kind": "" });
        let resource = json!({ "group": "", "version": "", "resource": "" });
        let object = after.or(before).expect("an object");
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "42", "kind": kind, "resource": resource, "operation": operation, "userInfo": {},
                "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"],
                "object": after, "oldObject": before,
            },
        });
        let (status, body) = self.post(path, review.to_string().into_bytes()).await;
        let mut answer: Value = serde_json::from_slice(&body).expect("a review");
        assert_eq!(
            (status, &answer["apiVersion"]),
            (StatusCode::OK, &json!("admission.k8s.io/v1"))
        );
        assert_eq!(answer["response"]["uid"], "42", "{answer}");
        answer["response"].take()
    }
}

const CLASS: &str = "docker-ferrol-1-34-v1";

fn stack() -> Value {
    json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": { "name": "ferrol", "namespace": "fleet" },
        "spec": { "provider": "docker", "name": "ferrol", "kubernetesVersion": "1.34", "noProvider": true },
    })
}

fn release() -> Value {
    json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease", "metadata": { "name": CLASS, "namespace": "fleet" },
    })
}

#[tokio::test]
async fn verdicts_reach_the_api_server_with_code_reason_and_words() {
    let world = World {
        version: Some("v1.34.9"),
        ..World::default()
    };
    let operator = Operator::new(&world).await;
    let answer = operator
        .review(CLUSTER_PATH, "CREATE", None, Some(&cluster(("web", CLASS))))
        .await;
    let words = "spec.topology.version: Invalid value: \"v1.34.2\": clusterClass docker-ferrol-1-34-v1 expects Kubernetes version v1.34.9, \
                 but got v1.34.2";
    assert_eq!(answer["allowed"], false);
    let expected = json!({ "status": "Failure", "code": 403, "reason": "Forbidden", "message": words });
    assert_eq!(answer["status"], expected);

    let foreign = operator
        .review(CLUSTER_PATH, "CREATE", None, Some(&cluster(("web", "quick-start"))))
        .await;
    assert_eq!(
        (&foreign["allowed"], &foreign["warnings"]),
        (&json!(true), &Value::Null)
    );

    let addon = |namespace: &str| {
        json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterAddon", "metadata": { "name": "addon", "namespace": "fleet" },
            "spec": { "clusterRef": { "kind": "Cluster", "name": "web", "namespace": namespace } },
        })
    };
    let moved = operator
        .review(
            CLUSTER_ADDON_PATH,
            "UPDATE",
            Some(&addon("fleet")),
            Some(&addon("team")),
        )
        .await;
    assert_eq!(
        (&moved["allowed"], &moved["status"]["code"]),
        (&json!(false), &json!(422))
    );

    let mut page = String::new();
    text::encode(&mut page, &operator.registry).expect("metrics");
    for series in [
        "kind=\"Cluster\",verdict=\"refused\"} 1",
        "kind=\"Cluster\",verdict=\"allowed\"} 1",
    ] {
        assert!(
            page.contains(&format!("stackwright_admission_requests_total{{{series}")),
            "{page}"
        );
    }
}

#[tokio::test]
async fn a_class_that_goes_with_its_release_is_refused_to_those_who_do_not_have_it() {
    let world = World {
        version: Some("v1.34.2"),
        deleting: true,
        ..World::default()
    };
    let operator = Operator::new(&world).await;
    let new = cluster(("web", CLASS));
    let refused = operator.review(CLUSTER_PATH, "CREATE", None, Some(&new)).await;
    let words = "spec.topology.class: Invalid value: \"docker-ferrol-1-34-v1\": clusterClass docker-ferrol-1-34-v1 comes from \
                 clusterStackRelease fleet/docker-ferrol-1-34-v1, which is being deleted. Take a class of another release, or try again when \
                 this one has been deleted and is there anew";
    let expected = json!({ "status": "Failure", "code": 403, "reason": "Forbidden", "message": words });
    assert_eq!((&refused["allowed"], &refused["status"]), (&json!(false), &expected));

    let mut before = new.clone();
    before["spec"]["topology"]["version"] = json!("v1.34.1");
    let passes = operator.review(CLUSTER_PATH, "UPDATE", Some(&before), Some(&new)).await;
    assert_eq!(passes["allowed"], true, "{passes}");
}

#[tokio::test]
async fn what_clusters_use_is_protected_and_what_they_left_is_not() {
    let (web, other) = (("web", CLASS), ("other", "quick-start"));
    let used = Operator::new(&World {
        listed: vec![web, other],
        found: vec![web, other],
        ..World::default()
    })
    .await;
    let refused = used.review(CLUSTER_STACK_PATH, "DELETE", Some(&stack()), None).await;
    let words = "can't delete ClusterStack as there are clusters using it: [\"web\"]";
    assert_eq!(refused["status"]["message"], words, "{refused}");
    let refused = used
        .review(CLUSTER_STACK_RELEASE_PATH, "DELETE", Some(&release()), None)
        .await;
    assert_eq!(refused["status"]["code"], 400, "{refused}");
    // The configuration of the Go operator asks about these too.
    let created = used.review(CLUSTER_STACK_PATH, "CREATE", None, Some(&stack())).await;
    assert_eq!(created["allowed"], true);

    for found in [vec![], vec![("web", "docker-ferrol-1-34-v2")]] {
        let left = Operator::new(&World {
            listed: vec![web],
            found,
            ..World::default()
        })
        .await;
        let allowed = left
            .review(CLUSTER_STACK_RELEASE_PATH, "DELETE", Some(&release()), None)
            .await;
        assert_eq!(allowed["allowed"], true, "the watch has not told it yet: {allowed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_costs_two_seconds_and_nobody_the_cluster() {
    let world = World {
        listed: vec![("web", CLASS)],
        hangs: true,
        ..World::default()
    };
    let operator = Operator::new(&world).await;
    let begun = Instant::now();
    let answer = operator
        .review(CLUSTER_PATH, "CREATE", None, Some(&cluster(("web", CLASS))))
        .await;
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    let warning = answer["warnings"][0].as_str().unwrap_or_default();
    assert!(
        warning.contains("no answer within 2s to reading ClusterStackRelease"),
        "{answer}"
    );
    assert_eq!(answer["allowed"], true);
    let kept = operator
        .review(CLUSTER_STACK_PATH, "DELETE", Some(&stack()), None)
        .await;
    assert_eq!(kept["allowed"], false, "what was seen last counts: {kept}");
}

#[tokio::test]
async fn news_that_a_standby_does_not_act_on_do_not_stop_its_watch() {
    let stop = CancellationToken::new();
    // More than a watch tells before it waits for its reader.
    let world = World {
        crowd: 1_000,
        ..World::default()
    };
    let mut sight = ClusterSight::start(&world.client(), Keeps::Classes, &Readiness::default(), &stop);
    let clusters = Arc::clone(&sight.clusters);
    let known = async {
        while clusters.used_by("fleet").is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = sight.stand_by() => panic!("there is always more to come"),
        () = known => {}
        () = time::sleep(Duration::from_mins(1)) => panic!("the watch waits for its reader"),
    }
    let used = clusters.used_by("fleet").expect("known");
    assert_eq!(used.values().map(BTreeSet::len).sum::<usize>(), world.crowd);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn hostile_bodies_are_refused_within_bounds() {
    let operator = Operator::new(&World::default()).await;
    for body in [
        "",
        "{}",
        "[]",
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#,
        "\u{0}",
    ] {
        let (status, _) = operator.post(CLUSTER_PATH, body.as_bytes().to_vec()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?}");
    }
    let (status, words) = operator.post(CLUSTER_PATH, vec![b' '; BODY_LIMIT + 1]).await;
    let expected = "the review has more than 7340032 bytes; make the object smaller\n";
    assert_eq!(
        (status, words),
        (StatusCode::PAYLOAD_TOO_LARGE, expected.as_bytes().to_vec())
    );
    let deep = "[".repeat(1 << 20);
    let (status, _) = operator.post(CLUSTER_PATH, deep.into_bytes()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);

    let (status, _) = operator.post(CLUSTER_PATH, beginning(0)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn a_cluster_as_large_as_the_api_server_takes_it_is_judged_before_and_after() {
    let operator = Operator::new(&World::default()).await;
    let mut before = cluster(("web", CLASS));
    before["spec"]["topology"]["variables"] = json!([{ "name": "large", "value": "x".repeat(3 << 20) }]);
    let mut after = before.clone();
    after["spec"]["topology"]["class"] = json!("docker-other-1-34-v1");
    let refused = operator
        .review(CLUSTER_PATH, "UPDATE", Some(&before), Some(&after))
        .await;
    assert_eq!(refused["status"]["code"], 422, "{refused}");
}

/// So many bytes of a review, of which the rest does not come.
fn beginning(length: usize) -> axum::body::Body {
    let sent = stream::once(async move { Ok::<_, Infallible>(vec![b' '; length]) });
    axum::body::Body::from_stream(sent.chain(stream::pending()))
}

/// A large review without end, of which there are so many bytes more every quarter of a second.
fn trickle(length: usize) -> axum::body::Body {
    let more = stream::repeat(()).then(move |()| async move {
        time::sleep(Duration::from_millis(250)).await;
        Ok(vec![b' '; length])
    });
    let begun = stream::once(async { Ok::<_, Infallible>(vec![b' '; USUAL_BODY + 1]) });
    axum::body::Body::from_stream(begun.chain(more))
}

/// A Cluster of another class, with more bytes than usual.
fn large() -> Value {
    let mut large = cluster(("web", "quick-start"));
    large["metadata"]["annotations"] = json!({ "note": "x".repeat(USUAL_BODY) });
    large
}

#[tokio::test(start_paused = true)]
async fn whoever_sends_slowly_keeps_nobody_else_waiting() {
    let operator = Operator::new(&World::default()).await;
    for length in [1, USUAL_BODY, USUAL_BODY + 1] {
        let mut slow = JoinSet::new();
        for _ in 0..CONNECTIONS {
            slow.spawn(operator.sent(CLUSTER_PATH, beginning(length)));
        }
        // Each has its turn to send what it does.
        time::sleep(Duration::from_secs(1)).await;
        let begun = Instant::now();
        let foreign = cluster(("web", "quick-start"));
        let answer = operator.review(CLUSTER_PATH, "CREATE", None, Some(&foreign)).await;
        assert_eq!(answer["allowed"], true);
        assert_eq!(begun.elapsed(), Duration::ZERO, "beside beginnings of {length} bytes");
        while let Some(answer) = slow.join_next().await {
            let status = answer.expect("an answer").status();
            let expected = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::REQUEST_TIMEOUT];
            assert!(expected.contains(&status), "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_sends_a_large_review_slowly_gives_his_place_to_others() {
    let operator = Operator::new(&World::default()).await;
    let bodies: [&dyn Fn() -> axum::body::Body; 2] = [&|| beginning(USUAL_BODY + 1), &|| trickle(1)];
    for body in bodies {
        let mut slow = JoinSet::new();
        for _ in 0..LARGE_AT_ONCE {
            slow.spawn(operator.sent(CLUSTER_PATH, body()));
        }
        let begun = Instant::now();
        // They have all places.
        time::sleep(Duration::from_millis(100)).await;
        let answer = operator.review(CLUSTER_PATH, "CREATE", None, Some(&large())).await;
        assert_eq!(answer["allowed"], true);
        assert_eq!(begun.elapsed(), Duration::from_millis(500));
        while let Some(answer) = slow.join_next().await {
            assert_eq!(answer.expect("an answer").status(), StatusCode::REQUEST_TIMEOUT);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_large_reviews_than_there_may_be_are_here_at_once() {
    let operator = Operator::new(&World::default()).await;
    let mut others = JoinSet::new();
    for _ in 0..LARGE_AT_ONCE {
        others.spawn(operator.sent(CLUSTER_PATH, trickle(USUAL_BODY)));
    }
    let begun = Instant::now();
    time::sleep(Duration::from_millis(100)).await;
    let answer = operator.review(CLUSTER_PATH, "CREATE", None, Some(&large())).await;
    assert_eq!(answer["allowed"], true);
    assert_eq!(begun.elapsed(), ANSWER_DEADLINE, "it waits for one of them to end");
    while let Some(answer) = others.join_next().await {
        assert_eq!(answer.expect("an answer").status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
