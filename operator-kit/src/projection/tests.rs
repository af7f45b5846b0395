use futures::{future, stream};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::client::OBJECT_LIMIT;
use crate::stub::{self, Answer, Asked, refusal};
use crate::telemetry::Readiness;

/// Replicas of Deployments: a change of anything else is no change.
fn replicas(object: &DynamicObject) -> Option<i64> {
    object.data.pointer("/spec/replicas")?.as_i64()
}

fn deployment(name: &str, version: u32, replicas: Option<i64>) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": "fleet", "resourceVersion": version.to_string() },
        "spec": { "replicas": replicas }
    })
}

fn list(kind: &str, items: &[Value]) -> Answer {
    (
        200,
        json!({ "kind": kind, "apiVersion": "v1", "metadata": { "resourceVersion": "5" }, "items": items }),
    )
        .into()
}

/// An API server whose Deployments answer one after the other; it has no CRDs.
fn start(
    mut deployments: Vec<Answer>,
    mut discover: impl FnMut(&Asked) -> Option<(u16, Value)> + Send + 'static,
) -> (ProjectedWatch<i64>, mpsc::Receiver<Notice<i64>>) {
    deployments.reverse();
    start_with(move |asked| match discover(asked) {
        Some(answer) => answer.into(),
        None if asked.path.ends_with("customresourcedefinitions") => crds(asked, &[]),
        None => deployments.pop().unwrap_or(Answer::Watch(Vec::new())),
    })
}

fn start_with(
    answer: impl FnMut(&Asked) -> Answer + Send + 'static,
) -> (ProjectedWatch<i64>, mpsc::Receiver<Notice<i64>>) {
    let client = stub::bounded_client(answer);
    let discovery = Discovery::new(client.clone());
    let crds = CrdWatch::start(
        client.clone(),
        discovery.clone(),
        &Readiness::default(),
        CancellationToken::new(),
    );
    let kind = GroupKind::new("apps", "Deployment");
    ProjectedWatch::start(
        client,
        discovery,
        &crds,
        kind,
        |object| replicas(object),
        CancellationToken::new(),
    )
}

/// The watch of CRDs while it has these names.
fn crds(asked: &Asked, names: &[&str]) -> Answer {
    let crd = |name: &&str| {
        json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": { "name": name, "resourceVersion": "6" },
        })
    };
    if is_watch(asked) {
        return Answer::Watch(Vec::new());
    }
    list("PartialObjectMetadataList", &names.iter().map(crd).collect::<Vec<_>>())
}

fn is_watch(asked: &Asked) -> bool {
    asked.query.contains("watch=true")
}

/// Discovery of Deployments in one version of their group, or in none.
fn discovery_of(asked: &Asked, version: Option<&str>) -> Option<(u16, Value)> {
    let (code, mut answer) = stub::discovery(asked)?;
    if asked.path == "/apis" {
        match version {
            Some(version) => answer["items"][0]["versions"][0]["version"] = json!(version),
            None => answer["items"] = json!([]),
        }
    }
    Some((code, answer))
}

fn not_served() -> Answer {
    let message = "the server could not find the requested resource";
    refusal(404, "NotFound", message, &json!({})).into()
}

/// The end of a watch that must list again.
fn expired() -> Answer {
    let status = refusal(410, "Expired", "too old resource version", &json!({})).1;
    Answer::Watch(vec![json!({ "type": "ERROR", "object": status })])
}

async fn told(notices: &mut mpsc::Receiver<Notice<i64>>, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..count {
        told.push(match notices.recv().await.unwrap() {
            Notice::Synced => "synced".to_owned(),
            Notice::Changed { place, before, after } => format!("{} {before:?} -> {after:?}", place.1),
        });
    }
    told
}

#[tokio::test(start_paused = true)]
async fn only_changes_of_the_projection_are_told() {
    let event = |kind: &str, object: Value| json!({ "type": kind, "object": object });
    let answers = vec![
        list(
            "DeploymentList",
            &[deployment("a", 1, Some(1)), deployment("b", 1, None)],
        ),
        Answer::Watch(vec![
            event("MODIFIED", deployment("a", 6, Some(1))),
            event("MODIFIED", deployment("b", 7, Some(2))),
            event("MODIFIED", deployment("a", 8, None)),
            event("DELETED", deployment("b", 9, Some(2))),
        ]),
    ];
    let (watch, mut notices) = start(answers, stub::discovery);
    assert_eq!(
        told(&mut notices, 5).await,
        [
            "a None -> Some(1)",
            "synced",
            "b None -> Some(2)",
            "a Some(1) -> None",
            "b Some(2) -> None"
        ]
    );
    assert!(watch.synced());
    assert!(watch.snapshot().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_later_is_watched_then() {
    let crd = json!({ "type": "ADDED", "object": {
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": { "name": "deployments.apps", "resourceVersion": "6" },
    } });
    let (install, installed) = watch::channel(false);
    let (watch, mut notices) = start_with(move |asked| {
        let served = installed.borrow().then_some("v1");
        match discovery_of(asked, served) {
            Some(answer) => answer.into(),
            None if asked.path.ends_with("customresourcedefinitions") && is_watch(asked) => {
                let (mut installed, crd) = (installed.clone(), crd.clone());
                let added = async move { installed.wait_for(|installed| *installed).await.map(|_| crd).ok() };
                Answer::Live(stream::once(added).filter_map(future::ready).boxed())
            }
            None if asked.path.ends_with("customresourcedefinitions") => crds(asked, &[]),
            None if is_watch(asked) => Answer::Watch(Vec::new()),
            None => list("DeploymentList", &[deployment("a", 1, Some(1))]),
        }
    });
    assert_eq!(told(&mut notices, 1).await, ["synced"]);
    install.send_replace(true);
    assert_eq!(told(&mut notices, 2).await, ["a None -> Some(1)", "synced"]);
    assert_eq!(watch.snapshot(), [(("fleet".to_owned(), "a".to_owned()), Arc::new(1))]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_kind_that_is_no_longer_served() {
    let mut served = Some("v1");
    let mut answers = vec![
        not_served(),
        expired(),
        list("DeploymentList", &[deployment("a", 1, Some(1))]),
    ];
    let (watch, mut notices) = start_with(move |asked| match discovery_of(asked, served) {
        Some(answer) => answer.into(),
        None if asked.path.ends_with("customresourcedefinitions") => crds(asked, &["others.example.org"]),
        None => {
            let answer = answers.pop().unwrap_or_else(not_served);
            served = served.filter(|_| !answers.is_empty());
            answer
        }
    });
    assert_eq!(
        told(&mut notices, 4).await,
        ["a None -> Some(1)", "synced", "a Some(1) -> None", "synced"]
    );
    assert!(watch.synced() && watch.snapshot().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_goes_on_in_another_version_is_not_forgotten_while_that_is_listed() {
    let (list_v2, listable) = watch::channel(false);
    let (asks, mut asked_for_v2) = mpsc::unbounded_channel();
    let mut served = "v1";
    let mut first = true;
    let (watch, mut notices) = start_with(move |asked| match discovery_of(asked, Some(served)) {
        Some(answer) => answer.into(),
        None if asked.path.ends_with("customresourcedefinitions") => crds(asked, &["deployments.apps"]),
        None if asked.path.starts_with("/apis/apps/v1/") => {
            if is_watch(asked) {
                served = "v2";
                expired()
            } else if std::mem::take(&mut first) {
                list(
                    "DeploymentList",
                    &[deployment("a", 1, Some(1)), deployment("b", 1, Some(1))],
                )
            } else {
                not_served()
            }
        }
        None if is_watch(asked) => Answer::Watch(Vec::new()),
        None if *listable.borrow() => list("DeploymentList", &[deployment("a", 1, Some(1))]),
        None => {
            asks.send(()).unwrap();
            refusal(503, "ServiceUnavailable", "storage is (re)initializing", &json!({})).into()
        }
    });
    assert_eq!(
        told(&mut notices, 3).await,
        ["a None -> Some(1)", "b None -> Some(1)", "synced"]
    );
    for _ in 0..3 {
        asked_for_v2.recv().await.unwrap();
        assert!(!watch.synced());
        assert_eq!(watch.snapshot().len(), 2);
        assert!(notices.is_empty());
    }
    list_v2.send_replace(true);
    assert_eq!(told(&mut notices, 2).await, ["b Some(1) -> None", "synced"]);
    assert!(watch.synced());
}

#[tokio::test(start_paused = true)]
async fn discovery_without_a_kind_whose_crd_is_there_is_not_believed() {
    // As an API server that starts: first without the group, then with it; and the same once more later.
    let mut readings = 0;
    let mut answers = vec![
        list("DeploymentList", &[deployment("a", 1, Some(1))]),
        not_served(),
        expired(),
        list("DeploymentList", &[deployment("a", 1, Some(1))]),
    ];
    let (watch, mut notices) = start_with(move |asked| {
        readings += usize::from(asked.path == "/apis");
        let served = matches!(readings, 4 | 8..).then_some("v1");
        match discovery_of(asked, served) {
            Some(answer) => answer.into(),
            None if asked.path.ends_with("customresourcedefinitions") => crds(asked, &["deployments.apps"]),
            None => answers.pop().unwrap_or(Answer::Watch(Vec::new())),
        }
    });
    assert_eq!(told(&mut notices, 3).await, ["a None -> Some(1)", "synced", "synced"]);
    assert!(watch.synced());
}

#[tokio::test(start_paused = true)]
async fn of_an_object_that_became_too_large_is_known_what_was_seen_last() {
    let small = [deployment("a", 1, Some(1))];
    let mut large = deployment("a", 6, Some(2));
    large["spec"]["text"] = json!("x".repeat(OBJECT_LIMIT));
    let now = [large, deployment("b", 6, Some(3))];
    let mut watches = 0;
    let (watch, mut notices) = start_with(move |asked| match stub::discovery(asked) {
        Some(answer) => answer.into(),
        None if asked.path.ends_with("customresourcedefinitions") => crds(asked, &[]),
        None if is_watch(asked) => {
            watches += 1;
            if watches == 1 {
                expired()
            } else {
                Answer::Watch(Vec::new())
            }
        }
        None => stub::page(asked, if watches == 0 { &small } else { &now }).into(),
    });
    assert_eq!(
        told(&mut notices, 3).await,
        ["a None -> Some(1)", "synced", "b None -> Some(3)"]
    );
    assert_eq!(watch.get("fleet", "a").as_deref(), Some(&1));
}

#[tokio::test(start_paused = true)]
async fn why_nothing_was_listed_is_known_until_it_is() {
    let (allow, allowed) = watch::channel(false);
    let (refuse, mut refused) = watch::channel(());
    let (watch, mut notices) = start_with(move |asked| match stub::discovery(asked) {
        Some(answer) => answer.into(),
        None if asked.path.ends_with("customresourcedefinitions") => crds(asked, &[]),
        None if is_watch(asked) => Answer::Watch(Vec::new()),
        None if *allowed.borrow() => list("DeploymentList", &[]),
        None => {
            refuse.send_replace(());
            refusal(403, "Forbidden", "nobody may list them", &json!({})).into()
        }
    });
    let known = || watch.unlisted().map(|unlisted| unlisted.error);
    assert_eq!(known(), Some(None));
    // The second time it has heard of the first.
    for _ in 0..2 {
        refused.changed().await.unwrap();
    }
    assert_eq!(known(), Some(Some("nobody may list them".to_owned())));
    allow.send_replace(true);
    assert_eq!(told(&mut notices, 1).await, ["synced"]);
    assert_eq!(known(), None);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_nested_deeper_than_anybody_reads_is_seen_and_followed_as_others_are() {
    let deep = |version: u32, replicas: i64| {
        let mut object = deployment("deep", version, Some(replicas));
        object["spec"]["template"] = (0..500).fold(json!("leaf"), |inner, _| json!([inner]));
        object
    };
    let event = |object: Value| json!({ "type": "MODIFIED", "object": object });
    let answers = vec![
        list("DeploymentList", &[deep(1, 1), deployment("other", 1, Some(1))]),
        Answer::Watch(vec![event(deep(6, 2)), event(deployment("other", 7, Some(2)))]),
    ];
    let (_watch, mut notices) = start(answers, |asked| discovery_of(asked, Some("v1")));
    assert_eq!(
        told(&mut notices, 5).await,
        [
            "deep None -> Some(1)",
            "other None -> Some(1)",
            "synced",
            "deep Some(1) -> Some(2)",
            "other Some(1) -> Some(2)"
        ]
    );
}
