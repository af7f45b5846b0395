use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::failure::chain;
use crate::stub::{self, refusal};

const READ: Version<'_> = Version {
    uid: "u",
    resource_version: "7",
};

async fn deleted(answer: (u16, Value)) -> Result<Deletion, DeleteError> {
    deleted_while(answer, refusal(404, "NotFound", "not found", &json!({}))).await
}

/// The same where the object is read so afterwards.
async fn deleted_while(answer: (u16, Value), now: (u16, Value)) -> Result<Deletion, DeleteError> {
    let wanted = json!({ "uid": "u", "resourceVersion": "7" });
    let client = stub::client(move |asked| {
        stub::discovery(asked).unwrap_or_else(|| {
            if asked.method == Method::GET {
                return now.clone();
            }
            assert_eq!(asked.method.as_str(), "DELETE");
            assert_eq!(asked.body["preconditions"], wanted);
            assert_eq!(asked.body["propagationPolicy"], "Background");
            answer.clone()
        })
    });
    let key = ObjectKey::new("apps", "Deployment", "fleet", "web");
    delete(
        &client,
        &Discovery::new(client.clone()),
        &CrdWatch::of_none(),
        &key,
        READ,
    )
    .await
}

#[tokio::test]
async fn the_answer_tells_what_is_true_now() {
    let success = (
        200,
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Success", "details": { "uid": "u" } }),
    );
    let lingering = (
        200,
        json!({ "kind": "Deployment", "apiVersion": "apps/v1", "metadata": { "name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
    );
    let cases = [
        (success, Deletion::Deleted),
        (lingering, Deletion::Terminating),
        (refusal(404, "NotFound", "not found", &json!({})), Deletion::Gone),
        (refusal(409, "Conflict", "uid differs", &json!({})), Deletion::Gone),
    ];
    for (answer, expected) in cases {
        let text = answer.1.to_string();
        assert_eq!(deleted(answer).await.unwrap(), expected, "{text}");
    }
}

#[tokio::test]
async fn a_refusal_is_an_error_with_its_class() {
    let error = deleted(refusal(403, "Forbidden", "no", &json!({}))).await.unwrap_err();
    assert_eq!(error.class(), Class::Transient);
    assert_eq!(error.to_string(), "failed to delete Deployment.apps fleet/web");
}

#[tokio::test]
async fn a_conflict_is_a_refusal_where_the_object_is_still_the_one_that_was_read() {
    let told = async |uid: &str, version: &str| {
        let metadata = json!({ "name": "web", "uid": uid, "resourceVersion": version });
        let now = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata });
        let answer = refusal(409, "Conflict", "in use by x", &json!({}));
        chain(&deleted_while(answer, (200, now)).await.unwrap_err())
    };
    assert_eq!(
        told("u", "7").await,
        "failed to delete Deployment.apps fleet/web: in use by x"
    );
    for (uid, version) in [("u", "8"), ("v", "7")] {
        assert_eq!(
            told(uid, version).await,
            "failed to delete Deployment.apps fleet/web: it changed in between"
        );
    }
}

#[tokio::test]
async fn an_object_of_a_kind_that_is_not_served_is_gone() {
    let client = stub::client(|asked| stub::discovery(asked).expect("only discovery is asked"));
    let key = ObjectKey::new("example.org", "Missing", "fleet", "web");
    assert_eq!(
        delete(
            &client,
            &Discovery::new(client.clone()),
            &CrdWatch::of_none(),
            &key,
            READ
        )
        .await
        .unwrap(),
        Deletion::Gone
    );
}

#[tokio::test]
async fn an_object_that_no_address_leads_to_is_gone() {
    let client = stub::client(|asked| -> (u16, Value) { unreachable!("{asked:?}") });
    let discovery = Discovery::new(client.clone());
    for (namespace, name) in [("fleet", "../../secrets/x"), ("fleet", "a?b"), ("a/b", "web")] {
        let key = ObjectKey::new("apps", "Deployment", namespace, name);
        assert_eq!(
            delete(&client, &discovery, &CrdWatch::of_none(), &key, READ)
                .await
                .unwrap(),
            Deletion::Gone
        );
    }
}
