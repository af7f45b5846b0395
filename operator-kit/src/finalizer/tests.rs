use k8s_openapi::api::apps::v1::Deployment;
use kube::client::Client;

use super::*;
use crate::failure::words_of;
use crate::stub::{self, refusal};

const OURS: &str = "example.org/ours";
const THEIRS: &str = "example.org/theirs";

fn deployment(finalizers: &[&str]) -> Deployment {
    let metadata = json!({ "name": "web", "namespace": "fleet", "resourceVersion": "7", "finalizers": finalizers });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

/// An API server that expects this patch of the metadata, and stores what `stored` makes of it.
fn server(expected: Value, stored: impl Fn(&mut Value) + Send + 'static) -> Api<Deployment> {
    let client = stub::client(move |asked| {
        assert_eq!(
            (asked.method.as_str(), asked.path.as_str()),
            ("PATCH", "/apis/apps/v1/namespaces/fleet/deployments/web")
        );
        assert!(asked.query.contains("fieldManager=us"), "{}", asked.query);
        assert_eq!(asked.body, json!({ "metadata": expected }));
        let mut object = asked.body.clone();
        object["metadata"]["name"] = json!("web");
        object["metadata"]["resourceVersion"] = json!("8");
        stored(&mut object["metadata"]);
        (200, object)
    });
    Api::namespaced(client, "fleet")
}

#[tokio::test]
async fn finalizer_and_notes_are_written_at_once_at_the_version_that_was_read_and_others_stay() {
    for before in [&[THEIRS][..], &[THEIRS, OURS]] {
        let expected = json!({ "resourceVersion": "7", "finalizers": [THEIRS, OURS], "annotations": { "example.org/owner": "me" } });
        let api = server(expected, |_| {});
        let marked = mark(&api, &deployment(before), OURS, &[("example.org/owner", "me")], "us").await;
        let Marking::Kept(marked) = marked.unwrap() else {
            panic!("nothing was changed");
        };
        assert_eq!(marked.metadata.resource_version.as_deref(), Some("8"));
    }
}

#[tokio::test]
async fn without_notes_annotations_are_not_mentioned() {
    let api = server(json!({ "resourceVersion": "7", "finalizers": [OURS] }), |_| {});
    let marked = mark(&api, &deployment(&[]), OURS, &[], "us").await.unwrap();
    assert!(matches!(marked, Marking::Kept(_)), "{marked:?}");
}

#[tokio::test]
async fn what_the_api_server_took_and_did_not_keep_is_told() {
    type Change = fn(&mut Value);
    let changes: [Change; 3] = [
        |metadata| metadata["finalizers"] = json!([THEIRS]),
        |metadata| metadata["annotations"] = Value::Null,
        |metadata| metadata["annotations"]["example.org/owner"] = json!("another"),
    ];
    for change in changes {
        let expected = json!({ "resourceVersion": "7", "finalizers": [THEIRS, OURS], "annotations": { "example.org/owner": "me" } });
        let notes = [("example.org/owner", "me")];
        let marked = mark(&server(expected, change), &deployment(&[THEIRS]), OURS, &notes, "us").await;
        let marked = marked.unwrap();
        assert!(matches!(marked, Marking::Changed(_)), "{marked:?}");
    }
}

#[tokio::test]
async fn taking_it_away_leaves_those_of_others() {
    let api = server(json!({ "resourceVersion": "7", "finalizers": [THEIRS] }), |_| {});
    let left = remove(&api, &deployment(&[OURS, THEIRS]), OURS, "us").await.unwrap();
    assert_eq!(left.finalizers(), [THEIRS]);
    let api = server(json!({ "resourceVersion": "7", "finalizers": [] }), |_| {});
    let left = remove(&api, &deployment(&[OURS]), OURS, "us").await.unwrap();
    assert!(left.finalizers().is_empty());
}

#[tokio::test]
async fn a_late_writer_is_refused_in_the_words_of_the_api_server() {
    let late = |code, reason, message| {
        let answer = refusal(code, reason, message, &json!({}));
        let client: Client = stub::client(move |_| answer.clone());
        Api::namespaced(client, "fleet")
    };
    for (api, class) in [
        (late(409, "Conflict", "modified"), Class::Transient),
        (late(404, "NotFound", "modified"), Class::Waiting),
        (late(422, "Invalid", "modified"), Class::Terminal),
    ] {
        let FinalizerError::Patch { source, .. } = remove(&api, &deployment(&[OURS]), OURS, "us").await.unwrap_err();
        assert_eq!(words_of(&source), "modified");
        let error = mark(&api, &deployment(&[]), OURS, &[], "us").await.unwrap_err();
        assert_eq!(error.class(), class);
        assert_eq!(error.to_string(), "failed to write the finalizers of \"web\"");
    }
}
