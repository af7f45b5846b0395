use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response, header};
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;
use crate::stub;

/// A client that counts the readings of `/apis`, and a switch that makes it serve Deployments.
fn counting() -> (Client, Arc<AtomicUsize>) {
    let readings = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&readings);
    let client = stub::client(move |asked| {
        if asked.path == "/apis" {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        stub::discovery(asked).expect("only discovery is asked")
    });
    (client, readings)
}

fn gvk(group: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::gvk(group, "v1", kind)
}

#[tokio::test]
async fn kinds_resolve_with_their_scope_and_subresources() {
    let discovery = Discovery::new(counting().0);
    let deployment = discovery.resolve(&gvk("apps", "Deployment")).await.unwrap().unwrap();
    assert_eq!(deployment.resource.plural, "deployments");
    assert_eq!((deployment.scope, deployment.has_status), (Scope::Namespaced, true));
    let namespace = discovery
        .resolve_kind(&GroupKind::new("", "Namespace"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(namespace.resource.api_version, "v1");
    assert_eq!((namespace.scope, namespace.has_status), (Scope::Cluster, false));
    assert!(
        discovery
            .resolve(&GroupVersionKind::gvk("apps", "v2", "Deployment"))
            .await
            .unwrap()
            .is_none()
    );
    assert!(discovery.knows_resource("deployments", "apps"));
    assert!(!discovery.knows_resource("deployments", ""));
    assert!(discovery.knows_resource("secrets", ""));
    assert!(!discovery.knows_resource("secrets", "apps"));
}

#[tokio::test]
async fn a_missing_kind_is_asked_for_once_until_something_changed() {
    let (client, readings) = counting();
    let discovery = Discovery::new(client);
    for _ in 0..5 {
        assert!(
            discovery
                .resolve(&gvk("example.org", "Missing"))
                .await
                .unwrap()
                .is_none()
        );
    }
    assert_eq!(readings.load(Ordering::SeqCst), 1);
    discovery.invalidate();
    discovery.resolve(&gvk("apps", "Deployment")).await.unwrap();
    assert_eq!(readings.load(Ordering::SeqCst), 1, "what is known is not asked for");
    discovery.resolve(&gvk("example.org", "Missing")).await.unwrap();
    assert_eq!(readings.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn f34_many_askers_share_one_reading() {
    let (client, readings) = counting();
    let discovery = Discovery::new(client);
    let kind = gvk("example.org", "Missing");
    let askers = (0..20).map(|_| discovery.resolve(&kind));
    futures::future::try_join_all(askers).await.unwrap();
    assert_eq!(readings.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_groups_of_which_a_reading_says_something_else_are_gathered_whoever_reads() {
    let mut groups = 0;
    let client = stub::client(move |asked| {
        let (code, mut answer) = stub::discovery(asked).expect("only discovery is asked");
        if asked.path == "/apis" {
            groups += 1;
            if groups > 2 {
                answer["items"] = json!([]);
            }
        }
        (code, answer)
    });
    let discovery = Discovery::new(client);
    let groups = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<String>>()
    };
    discovery.refresh().await.unwrap();
    discovery.refresh().await.unwrap();
    assert_eq!(discovery.take_differences(), groups(&[]));
    discovery.invalidate();
    discovery.clone().resolve(&gvk("example.org", "Missing")).await.unwrap();
    assert_eq!(discovery.take_differences(), groups(&["apps"]));
    assert_eq!(discovery.take_differences(), groups(&[]), "they are told once");
    assert!(!discovery.knows_resource("deployments", "apps"));
}

#[tokio::test]
async fn an_unreachable_api_server_is_an_error_and_not_a_missing_kind() {
    let client = stub::client(|_| stub::refusal(503, "ServiceUnavailable", "starting", &serde_json::json!({})));
    let error = Discovery::new(client)
        .resolve(&gvk("apps", "Deployment"))
        .await
        .unwrap_err();
    assert_eq!(error.class(), Class::Transient);
}

/// What an API server without aggregated discovery answers to the same questions; the group `away.example.org` is that of a server that is away.
fn unaggregated(asked: &stub::Asked) -> (u16, Value) {
    let resource = |name: &str, kind: &str, namespaced: bool| json!({ "name": name, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": ["get"] });
    let list = |version: &str, resources: Value| json!({ "kind": "APIResourceList", "groupVersion": version, "resources": resources });
    let group = |name: &str| {
        let version = json!({ "groupVersion": format!("{name}/v1"), "version": "v1" });
        json!({ "name": name, "versions": [version], "preferredVersion": version })
    };
    let answer = match asked.path.as_str() {
        "/api" => json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
        "/api/v1" => list("v1", json!([resource("namespaces", "Namespace", false)])),
        "/apis" => {
            json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group("apps"), group("away.example.org")] })
        }
        "/apis/apps/v1" => {
            let status = resource("deployments/status", "Deployment", true);
            list("apps/v1", json!([resource("deployments", "Deployment", true), status]))
        }
        _ => return stub::refusal(503, "ServiceUnavailable", "it is away", &json!({})),
    };
    (200, answer)
}

#[tokio::test]
async fn an_api_server_without_aggregated_discovery_is_asked_for_each_group() {
    let discovery = Discovery::new(stub::client(unaggregated));
    let deployment = discovery.resolve(&gvk("apps", "Deployment")).await.unwrap().unwrap();
    assert_eq!(deployment.resource.plural, "deployments");
    assert_eq!((deployment.scope, deployment.has_status), (Scope::Namespaced, true));
    let namespace = discovery.resolve(&gvk("", "Namespace")).await.unwrap().unwrap();
    assert_eq!(namespace.resource.api_version, "v1");
    assert_eq!((namespace.scope, namespace.has_status), (Scope::Cluster, false));
    assert_eq!(discovery.resolve(&gvk("apps", "Missing")).await.unwrap(), None);
    let away = discovery.resolve(&gvk("away.example.org", "Gauge")).await.unwrap_err();
    assert!(matches!(away, DiscoveryError::Stale { .. }), "{away}");
}

/// An API server with this group beside others.
fn with_group(group: Value) -> Client {
    stub::client(move |asked| {
        let (code, mut answer) = stub::discovery(asked).expect("only discovery is asked");
        if asked.path == "/apis" {
            answer["items"].as_array_mut().unwrap().push(group.clone());
        }
        (code, answer)
    })
}

/// A group with so many kinds.
fn group_of(name: &str, kinds: usize) -> Value {
    let resources: Vec<Value> = (0..kinds)
        .map(|kind| {
            let response = json!({ "group": "", "version": "", "kind": format!("Kind{kind}") });
            json!({ "resource": format!("kind{kind}s"), "scope": "Namespaced", "verbs": [], "responseKind": response })
        })
        .collect();
    json!({ "metadata": { "name": name }, "versions": [{ "version": "v1", "resources": resources }] })
}

#[tokio::test]
async fn so_many_kinds_are_remembered_and_no_name_that_is_none() {
    let all = Discovery::new(with_group(group_of("example.org", MOST - 10)));
    let last = gvk("example.org", &format!("Kind{}", MOST - 11));
    assert!(all.resolve(&last).await.unwrap().is_some());
    let long = "x".repeat(LONGEST + 1);
    let mut one_kind = group_of("example.org", 1);
    one_kind["versions"][0]["resources"][0]["resource"] = json!(long);
    for group in [group_of("example.org", MOST), group_of(&long, 1), one_kind] {
        let discovery = Discovery::new(with_group(group));
        let error = discovery.resolve(&gvk("apps", "Deployment")).await.unwrap_err();
        assert!(matches!(error, DiscoveryError::Excessive), "{error}");
        assert!(discovery.catalogue().is_none(), "nothing of it is kept");
    }
}

#[tokio::test]
async fn an_api_server_that_names_versions_without_end_is_asked_for_none_of_them() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let client = stub::client(move |asked| {
        let (code, mut answer) = unaggregated(asked);
        match asked.path.as_str() {
            "/api" => answer["versions"] = vec!["v1"; MOST + 1].into(),
            "/apis" => {}
            _ => drop(counter.fetch_add(1, Ordering::SeqCst)),
        }
        (code, answer)
    });
    let error = Discovery::new(client).refresh().await.unwrap_err();
    assert!(matches!(error, DiscoveryError::Excessive), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

/// An API server whose aggregated API `metrics.example.org` is away, with the kinds that were known of it last.
fn with_stale_group(resources: &Value) -> Client {
    with_group(json!({
        "metadata": { "name": "metrics.example.org" },
        "versions": [{ "version": "v1", "freshness": "Stale", "resources": resources }],
    }))
}

#[tokio::test]
async fn a_kind_of_an_api_that_is_away_is_unknown_and_not_missing() {
    let discovery = Discovery::new(with_stale_group(&json!([])));
    let kind = GroupKind::new("metrics.example.org", "Gauge");
    let error = discovery.resolve_kind(&kind).await.unwrap_err();
    assert!(
        matches!(&error, DiscoveryError::Stale { kind: of } if *of == kind),
        "{error}"
    );
    assert_eq!(error.class(), Class::Transient);
    assert!(discovery.resolve(&gvk("metrics.example.org", "Gauge")).await.is_err());
    let elsewhere = discovery.resolve(&gvk("apps", "Missing")).await;
    assert_eq!(elsewhere.unwrap(), None, "other groups are as sure as ever");
}

#[tokio::test]
async fn what_was_known_of_an_api_that_is_away_still_holds() {
    let gauges = json!([{
        "resource": "gauges", "scope": "Namespaced", "verbs": ["get"],
        "responseKind": { "group": "", "version": "", "kind": "Gauge" },
    }]);
    let discovery = Discovery::new(with_stale_group(&gauges));
    let found = discovery.resolve(&gvk("metrics.example.org", "Gauge")).await.unwrap();
    assert_eq!(found.unwrap().resource.plural, "gauges");
}

/// An API server that knows what it said by tags, with a switch that makes it say something else, and the codes of its answers.
fn tagging() -> (Client, Arc<AtomicUsize>, Arc<Mutex<Vec<u16>>>) {
    let (says, codes) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (version, told) = (Arc::clone(&says), Arc::clone(&codes));
    let service = service_fn(move |request: Request<Body>| {
        let path = request.uri().path();
        let says = if path == "/apis" {
            version.load(Ordering::SeqCst)
        } else {
            0
        };
        let tag = format!("\"{path} {says}\"");
        let is_known = request
            .headers()
            .get(header::IF_NONE_MATCH)
            .is_some_and(|known| *known == *tag);
        let items = if says == 0 {
            json!([])
        } else {
            json!([{ "metadata": { "name": "apps" }, "versions": [{
            "version": "v1", "resources": [{ "resource": "deployments", "scope": "Namespaced", "responseKind": { "kind": "Deployment" }, "verbs": ["get"] }],
        }] }])
        };
        let core_items = json!([{ "versions": [{ "version": "v1", "resources": [] }] }]);
        let document = json!({ "kind": "APIGroupDiscoveryList", "metadata": {}, "items": if path == "/apis" { items } else { core_items } });
        let (code, body) = if is_known {
            (304, String::new())
        } else {
            (200, document.to_string())
        };
        told.lock().unwrap().push(code);
        let answer = Response::builder().status(code).header(header::ETAG, tag);
        let answer = answer.body(Body::from(body.into_bytes())).unwrap();
        async move { Ok::<_, Infallible>(answer) }
    });
    (Client::new(service, "default"), says, codes)
}

#[tokio::test]
async fn what_an_api_server_says_just_as_before_is_not_read_again() {
    let (client, says, codes) = tagging();
    let discovery = Discovery::new(client);
    let told = || std::mem::take(&mut *codes.lock().unwrap());
    discovery.refresh().await.unwrap();
    assert_eq!(told(), [200, 200]);
    let first = discovery.catalogue().unwrap();
    discovery.refresh().await.unwrap();
    assert_eq!(told(), [304, 304]);
    assert!(Arc::ptr_eq(&first, &discovery.catalogue().unwrap()));
    says.store(1, Ordering::SeqCst);
    discovery.refresh().await.unwrap();
    assert_eq!(told(), [304, 200, 200], "one document alone says nothing");
    assert!(discovery.knows_resource("deployments", "apps"));
    assert_eq!(discovery.take_differences().len(), 1);
    discovery.refresh().await.unwrap();
    assert_eq!(told(), [304, 304]);
}

#[tokio::test]
async fn nobody_is_asked_by_the_tags_that_another_api_server_gave() {
    let catalogues = Catalogues::default();
    let (one, _, _) = tagging();
    let one = Discovery::sharing(one, &catalogues);
    one.refresh().await.unwrap();
    let (two, _, codes) = tagging();
    Discovery::sharing(two, &catalogues).refresh().await.unwrap();
    assert_eq!(*codes.lock().unwrap(), [200, 200]);
}

#[tokio::test]
async fn what_several_api_servers_say_alike_is_kept_once_and_as_long_as_somebody_needs_it() {
    let catalogues = Catalogues::default();
    let read = async |client: Client| {
        let discovery = Discovery::sharing(client, &catalogues);
        discovery.refresh().await.unwrap();
        discovery
    };
    let usual = || stub::client(|asked| stub::discovery(asked).expect("only discovery is asked"));
    let (one, two, other) = (
        read(usual()).await,
        read(usual()).await,
        read(with_stale_group(&json!([]))).await,
    );
    let [first, second, third] = [&one, &two, &other].map(|discovery| discovery.catalogue().unwrap());
    assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &third));
    drop((one, two, other, first, second, third));
    let _again = read(usual()).await;
    assert_eq!(catalogues.0.lock().unwrap().len(), 1);
}
