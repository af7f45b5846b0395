use serde_json::{Value, json};

use super::*;
use crate::stub::{self, Answer, Asked, refusal};

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

/// An API server whose Deployments answer one after the other; `crds` are the events of its watch of CRDs.
fn start(
    mut deployments: Vec<Answer>,
    mut crds: Vec<Value>,
    mut discover: impl FnMut(&Asked) -> Option<(u16, Value)> + Send + 'static,
) -> (ProjectedWatch<i64>, mpsc::Receiver<Notice<i64>>) {
    deployments.reverse();
    let client = stub::client(move |asked| {
        let is_watch = asked.query.contains("watch=true");
        match (discover(asked), asked.path.ends_with("customresourcedefinitions")) {
            (Some(answer), _) => answer.into(),
            (None, true) if is_watch => Answer::Watch(std::mem::take(&mut crds)),
            (None, true) => list("PartialObjectMetadataList", &[]),
            (None, false) => deployments.pop().unwrap_or(Answer::Watch(Vec::new())),
        }
    });
    let discovery = Discovery::new(client.clone());
    let crds = CrdWatch::start(client.clone(), discovery.clone(), CancellationToken::new());
    let kind = GroupKind::new("apps", "Deployment");
    ProjectedWatch::start(client, discovery, &crds, kind, replicas, CancellationToken::new())
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
    let (watch, mut notices) = start(answers, Vec::new(), stub::discovery);
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
    let mut readings = 0;
    let discover = move |asked: &Asked| {
        let (code, mut answer) = stub::discovery(asked)?;
        if asked.path == "/apis" {
            readings += 1;
            if readings == 1 {
                answer["items"] = json!([]);
            }
        }
        Some((code, answer))
    };
    let (watch, mut notices) = start(
        vec![list("DeploymentList", &[deployment("a", 1, Some(1))])],
        vec![crd],
        discover,
    );
    assert_eq!(told(&mut notices, 2).await, ["synced", "a None -> Some(1)"]);
    assert_eq!(watch.snapshot(), [(("fleet".to_owned(), "a".to_owned()), Arc::new(1))]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_kind_that_is_no_longer_served() {
    let expired = refusal(410, "Expired", "too old resource version", &json!({})).1;
    let answers = vec![
        list("DeploymentList", &[deployment("a", 1, Some(1))]),
        Answer::Watch(vec![json!({ "type": "ERROR", "object": expired })]),
        refusal(
            404,
            "NotFound",
            "the server could not find the requested resource",
            &json!({}),
        )
        .into(),
    ];
    let (watch, mut notices) = start(answers, Vec::new(), stub::discovery);
    assert_eq!(
        told(&mut notices, 3).await,
        ["a None -> Some(1)", "synced", "a Some(1) -> None"]
    );
    assert!(watch.synced() && watch.snapshot().is_empty());
}
