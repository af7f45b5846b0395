//! The provider's objects: what others made of them before, and how much of them is taken.

use serde_json::{Value, json};
use tokio::time::sleep;

use super::kinds::PROVIDER_KIND;
use super::{LONG, begin, operated, stack, template};
use operator_kit::in_memory::{MOST, Server};

const TAG: &str = "docker-harbor-1-34-v1";

/// An object that somebody made by an update, as the Go operator and clusterctl do.
fn made_by(manager: &str, spec: &Value) -> Value {
    let fields = |value: &Value| -> Value {
        let names = value.as_object().expect("a map").keys();
        names.map(|name| (format!("f:{name}"), json!({}))).collect()
    };
    let annotations = json!({ "kubectl.kubernetes.io/last-applied-configuration": "{}" });
    json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": PROVIDER_KIND,
        "metadata": {
            "name": TAG, "namespace": "fleet", "annotations": annotations, "finalizers": ["example.org/theirs"],
            "managedFields": [{
                "manager": manager, "operation": "Update", "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": { "f:annotations": fields(&annotations), "f:finalizers": { "v:\"example.org/theirs\"": {} } },
                    "f:spec": fields(spec),
                },
            }],
        },
        "spec": spec,
    })
}

#[test]
fn what_others_wrote_into_an_object_of_a_provider_goes_when_the_template_does_not_have_it() {
    operator_kit::client::install_crypto();
    for manager in ["manager", "clusterctl"] {
        let server = begin(None);
        operated(&server, async |_| {
            server.create(
                PROVIDER_KIND,
                &made_by(manager, &json!({ "size": "small", "colour": "blue" })),
            );
            server.apply(&template("small"));
            server.apply(&stack(&["v1"]));
            sleep(LONG).await;
            let live = server.find(PROVIDER_KIND, TAG);
            assert_eq!(live["spec"], json!({ "size": "small" }), "{manager}: {live:#}");
            let left = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
            assert_eq!(live.pointer(left), None, "{manager}: {live:#}");
            assert_eq!(
                live["metadata"]["finalizers"],
                json!(["example.org/theirs"]),
                "{manager}"
            );
        });
        assert!(server.calls() < MOST, "the operator asks for ever");
    }
}

/// The message of the stack about its provider.
fn told(server: &Server) -> String {
    let stack = server.find("ClusterStack", "harbor");
    let conditions = stack["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let about = |condition: &&Value| condition["type"] == "ProviderClusterStackReleasesSynced";
    let message = conditions
        .iter()
        .find(about)
        .and_then(|found| found["message"].as_str());
    message.unwrap_or_default().to_owned()
}

#[test]
fn a_template_that_is_too_large_is_told_and_not_applied() {
    operator_kit::client::install_crypto();
    let server = begin(None);
    operated(&server, async |_| {
        server.apply(&template(&"x".repeat(100_000)));
        server.apply(&stack(&["v1"]));
        sleep(LONG).await;
        assert!(told(&server).contains("is too large"), "{}", told(&server));
        assert_eq!(server.find(PROVIDER_KIND, TAG), Value::Null);

        server.apply(&template("small"));
        sleep(LONG).await;
        assert_eq!(told(&server), "");
        assert_eq!(server.find(PROVIDER_KIND, TAG)["spec"]["size"], "small");

        // What others add to an object that was made of it, of whatever size, is no reason to write for ever.
        let added = json!({ "metadata": { "annotations": { "example.org/notes": "x".repeat(100_000) } } });
        server.merge(PROVIDER_KIND, TAG, &added);
        sleep(LONG).await;
        server.apply(&template("large"));
        sleep(LONG).await;
        assert_eq!(server.find(PROVIDER_KIND, TAG)["spec"]["size"], "large");
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}
