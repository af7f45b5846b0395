//! The watches of providers before an API server that answers slowly.

use std::convert::Infallible;

use http::{Request, Response};
use kube::client::Body;
use operator_kit::telemetry::Readiness;
use serde_json::json;
use tokio::sync::watch;
use tower::service_fn;

use super::*;

const KIND: &str = "FakeClusterStackRelease";

/// An API server with one kind and one object of it, which lists the object when it is told to.
fn client(listable: watch::Receiver<bool>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let mut listable = listable.clone();
        async move {
            let body = match request.uri().path() {
                "/api" => json!({ "kind": "APIGroupDiscoveryList", "items": [] }),
                "/apis" => {
                    let resource = json!({
                        "resource": "fakes", "scope": "Namespaced", "verbs": [], "responseKind": { "group": "", "version": "", "kind": KIND },
                    });
                    let versions = json!([{ "version": "v1", "resources": [resource] }]);
                    let group = json!({ "metadata": { "name": crds::PROVIDER_GROUP }, "versions": versions });
                    json!({ "kind": "APIGroupDiscoveryList", "items": [group] })
                }
                path if path.ends_with("/fakes")
                    && request.uri().query().is_some_and(|query| !query.contains("watch=")) =>
                {
                    let _ = listable.wait_for(|listable| *listable).await;
                    let object = json!({
                        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": KIND,
                        "metadata": { "name": "one", "namespace": "fleet" },
                    });
                    json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "5" }, "items": [object] })
                }
                _ => std::future::pending().await,
            };
            Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn objects_that_were_not_listed_yet_do_not_count_as_missing() {
    let (list, listable) = watch::channel(false);
    let client = client(listable);
    let discovery = Discovery::new(client.clone());
    let cancel = CancellationToken::new();
    let crds = CrdWatch::start(client.clone(), discovery.clone(), &Readiness::default(), cancel.clone());
    let (providers, mut changes) = Providers::new(client, discovery, crds, "", cancel);
    let kind = GroupKind::new(crds::PROVIDER_GROUP, KIND);
    assert!(providers.within(&kind, "fleet").is_err());
    list.send_replace(true);
    while changes.recv().await.expect("the watch goes on").name.is_some() {}
    let known = providers.within(&kind, "fleet").expect("all were listed");
    assert_eq!(known.into_keys().collect::<Vec<_>>(), ["one"]);
    let elsewhere = providers.within(&kind, "elsewhere").expect("all were listed");
    assert_eq!(elsewhere, BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn kinds_that_nobody_names_any_more_are_not_followed() {
    let client = client(watch::channel(true).1);
    let discovery = Discovery::new(client.clone());
    let cancel = CancellationToken::new();
    let crds = CrdWatch::start(client.clone(), discovery.clone(), &Readiness::default(), cancel.clone());
    let (providers, _changes) = Providers::new(client, discovery, crds, "", cancel);
    let reference =
        |kind: &str| json!({ "apiVersion": format!("{}/v1", crds::PROVIDER_GROUP), "kind": kind, "name": "images" });
    let stack = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
        "metadata": { "name": "harbor", "namespace": "fleet" },
        "spec": {
            "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34",
            "providerRef": reference("AClusterStackReleaseTemplate"),
        },
    });
    let stacks = [Arc::new(serde_json::from_value(stack).expect("a stack"))];
    let release = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
        "metadata": { "name": "docker-harbor-1-34-v1", "namespace": "fleet" },
        "spec": { "providerRef": reference("BClusterStackRelease") },
    });
    let releases = [Arc::new(serde_json::from_value(release).expect("a release"))];
    let named = [
        "AClusterStackRelease",
        "AClusterStackReleaseTemplate",
        "BClusterStackRelease",
    ];
    for kind in [&named[..], &["InventedClusterStackRelease"]].concat() {
        providers.follow(&GroupKind::new(crds::PROVIDER_GROUP, kind));
    }
    let followed = || {
        let kinds = providers.watches.followed().into_iter();
        let mut kinds: Vec<String> = kinds.map(|kind| kind.kind).collect();
        kinds.sort();
        kinds
    };
    providers.follow_only(&stacks, &releases);
    assert_eq!(
        followed().len(),
        4,
        "somebody may have named it since the list was made"
    );
    tokio::time::advance(std::time::Duration::from_mins(2)).await;
    providers.follow_only(&stacks, &releases);
    assert_eq!(followed(), named);
}

fn told(status: &Value) -> ProviderState {
    let object = json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": KIND,
        "metadata": { "name": "one", "namespace": "fleet" }, "status": status,
    });
    project(&serde_json::from_value(object).expect("an object"))
}

#[test]
fn what_a_provider_tells_of_its_progress_is_kept_as_far_as_it_can_be_repeated() {
    let state = told(&json!({
        "phase": "Importing\n", "message": format!("image\u{1b}[2J {}", "x".repeat(1 << 16)),
        "progress": { "done": 600, "total": 1000, "unit": "MiB\r\n" },
    }));
    let message = state.message.expect("a message");
    assert_eq!(
        (state.phase.as_deref(), message.len()),
        (Some("Importing"), MESSAGE_BYTES)
    );
    assert!(message.starts_with("image [2J xxx"), "{message}");
    let progress = |done, total, unit: &str| {
        let unit = unit.to_owned();
        Some(ProviderProgress { done, total, unit })
    };
    assert_eq!(state.progress, progress(600, Some(1000), "MiB"));
    for (status, expected) in [
        (json!({ "progress": { "done": 3 } }), progress(3, None, "")),
        (json!({ "progress": { "done": -3, "total": 5 } }), None),
        (
            json!({ "progress": { "done": 3, "total": "five", "unit": 7 } }),
            progress(3, None, ""),
        ),
        (json!({ "progress": "60%" }), None),
        (json!({ "progress": { "total": 5 } }), None),
        (json!(null), None),
    ] {
        assert_eq!(told(&status).progress, expected, "{status}");
    }
}

#[test]
fn a_provider_without_a_message_of_its_own_is_heard_through_its_condition() {
    let ready =
        |condition: Value| told(&json!({ "conditions": [{ "type": "Other", "message": "no" }, condition] })).message;
    let table = [
        (
            json!({ "type": "Ready", "message": "waits", "reason": "Why" }),
            Some("waits"),
        ),
        (json!({ "type": "Ready", "message": "", "reason": "Why" }), Some("Why")),
        (json!({ "type": "Ready" }), None),
    ];
    for (condition, expected) in table {
        assert_eq!(ready(condition.clone()).as_deref(), expected, "{condition}");
    }
}

#[test]
fn of_what_is_too_large_a_digest_is_kept() {
    let object = |size: usize| -> DynamicObject {
        let large = "x".repeat(size);
        serde_json::from_value(json!({
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": KIND,
            "metadata": {
                "name": "one", "namespace": "fleet", "uid": "a",
                "annotations": { LAST_APPLIED: large, "example.org/notes": large }, "labels": { "team": "blue" },
                "ownerReferences": [{ "apiVersion": "v1", "kind": large, "name": "a", "uid": large, "controller": true }],
            },
            "spec": { "size": large, "template": { "size": large } }, "status": { "ready": true, "message": large },
        }))
        .expect("an object")
    };
    let small = project(&object(10));
    assert_eq!(small.spec["size"], "x".repeat(10));
    assert!(small.annotations.keys().eq(["example.org/notes"]));
    let whole = |state: &ProviderState| format!("{state:?}").len();
    for project in [project, project_template] {
        let (large, larger) = (project(&object(100_000)), project(&object(100_001)));
        assert!(whole(&large) < 4_096, "{} bytes are kept", whole(&large));
        assert!(large.bytes > MOST_BYTES && large.ready, "{large:?}");
        assert_ne!(large.spec, larger.spec, "a change shows");
    }
    let template = project_template(&object(10));
    assert_eq!(template.spec, json!({ "template": { "size": "x".repeat(10) } }));
}

#[test]
fn who_writes_what_a_stack_writes_is_known_besides_us() {
    let entry = |manager: &str, fields: Value| json!({ "manager": manager, "operation": "Update", "fieldsV1": fields });
    let object = json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": KIND,
        "metadata": { "name": "one", "namespace": "fleet", "managedFields": [
            entry("kubectl", json!({ "f:spec": { "f:size": {} } })),
            entry("argocd", json!({ "f:metadata": { "f:labels": { "f:team": {} } } })),
            entry("provider", json!({ "f:status": {}, "f:metadata": { "f:finalizers": {} } })),
            entry(labels::FIELD_MANAGER, json!({ "f:spec": { "f:size": {} } })),
        ] },
    });
    let state = project(&serde_json::from_value(object).expect("an object"));
    assert_eq!(state.managers, ["argocd", "kubectl"]);
}
