use k8s_openapi::api::apps::v1::Deployment;
use kube::client::Client;
use serde_json::json;

use super::*;
use crate::stub::{self, refusal};

fn deployment(status: &Value) -> Deployment {
    serde_json::from_value(
        json!({ "metadata": { "name": "web", "namespace": "fleet", "resourceVersion": "7" }, "status": status }),
    )
    .unwrap()
}

async fn written(client: Client, wanted: Value) -> Result<StatusWrite<Deployment>, StatusError> {
    let read = deployment(&json!({ "replicas": 1 }));
    replace_status(&Api::namespaced(client, "fleet"), &read, &deployment(&wanted), "us").await
}

#[tokio::test]
async fn a_status_that_says_nothing_new_is_not_sent() {
    let client = stub::client(|asked| -> (u16, Value) { unreachable!("{asked:?}") });
    assert_eq!(
        written(client, json!({ "replicas": 1, "readyReplicas": null }))
            .await
            .unwrap(),
        StatusWrite::Unchanged
    );
}

#[tokio::test]
async fn a_new_status_is_put_with_the_version_that_was_read() {
    let client = stub::client(|asked| {
        assert_eq!(
            (asked.method.as_str(), asked.path.as_str()),
            ("PUT", "/apis/apps/v1/namespaces/fleet/deployments/web/status")
        );
        assert!(asked.query.contains("fieldManager=us"), "{}", asked.query);
        assert_eq!(asked.body["metadata"]["resourceVersion"], "7");
        let mut stored = asked.body.clone();
        stored["metadata"]["resourceVersion"] = json!("8");
        (200, stored)
    });
    let StatusWrite::Written(stored) = written(client, json!({ "replicas": 2 })).await.unwrap() else {
        panic!("not written")
    };
    assert_eq!(stored.metadata.resource_version.as_deref(), Some("8"));
}

#[tokio::test]
async fn a_late_writer_and_a_gone_object_are_no_errors() {
    for (answer, expected) in [
        (refusal(409, "Conflict", "modified", &json!({})), StatusWrite::Conflict),
        (refusal(404, "NotFound", "gone", &json!({})), StatusWrite::Gone),
    ] {
        let client = stub::client(move |_| answer.clone());
        assert_eq!(written(client, json!({ "replicas": 2 })).await.unwrap(), expected);
    }
    let client = stub::client(|_| refusal(422, "Invalid", "status.replicas: too many", &json!({})));
    assert_eq!(
        written(client, json!({ "replicas": 2 })).await.unwrap_err().class(),
        Class::Terminal
    );
}
