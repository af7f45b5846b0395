//! An object that leaves the rendering of its release and comes back.

use std::sync::LazyLock;

use http::Method;
use operator_kit::client::install_crypto;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use super::kinds::KINDS;
use super::{LONG, STACK, begin, definition, operated_with, publish};
use operator_kit::in_memory::{MOST, Server};

const TAG: &str = "docker-harbor-1-34-v1";
const RELEASE: &str = "ClusterStackRelease";
const IMAGE: &str = "Image";
const NODES: &str = "nodes";

/// A release with an image for those who render as Helm 3 does.
static RELEASES: LazyLock<TempDir> = LazyLock::new(|| {
    let root = TempDir::new().expect("a folder");
    let image = "{{ if semverCompare \"<4\" .Capabilities.HelmVersion.Version }}\n\
        apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Image\nmetadata: {name: nodes}\nspec: {managementPolicy: managed}\n\
        {{ end }}\n";
    let image = ("cluster-class/templates/image.yaml", image);
    let files: Vec<_> = STACK.into_iter().chain([image]).collect();
    publish(root.path(), "docker-harbor-1-34", &files, &["v1"]);
    root
});

fn stack(profile: &str) -> Value {
    json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": { "name": "harbor", "namespace": "fleet" },
        "spec": {
            "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "autoSubscribe": false, "noProvider": true,
            "versions": ["v1"], "drift": "Warn", "helmProfile": profile,
        },
    })
}

#[test]
fn an_object_that_its_release_dropped_and_wants_again_is_made_whatever_the_drift_policy() {
    install_crypto();
    let server = begin(None);
    serve_images(&server);
    operated_with(&server, RELEASES.path(), &[], async |_| {
        for (profile, is_there) in [("v3.19", true), ("v4.1", false)] {
            server.apply(&stack(profile));
            sleep(LONG).await;
            assert_eq!(!server.find(IMAGE, NODES).is_null(), is_there, "{profile}");
        }
        // The inventory names it again before it is there.
        server.refuse(Method::PATCH, IMAGE, Some("not today"));
        server.apply(&stack("v3.19"));
        sleep(LONG).await;
        assert!(server.find(RELEASE, TAG)["status"].to_string().contains("not today"));

        server.refuse(Method::PATCH, IMAGE, None);
        is_made(&server).await;
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}

#[test]
fn an_object_that_somebody_else_deleted_after_its_release_dropped_it_is_made_when_the_release_wants_it_again() {
    install_crypto();
    let server = begin(None);
    serve_images(&server);
    operated_with(&server, RELEASES.path(), &[], async |_| {
        server.apply(&stack("v3.19"));
        sleep(LONG).await;
        assert!(!server.find(IMAGE, NODES).is_null());
        // The operator may not delete it for a while, and a person does.
        server.refuse(Method::DELETE, IMAGE, Some("not today"));
        server.apply(&stack("v4.1"));
        sleep(LONG).await;
        assert!(!server.find(IMAGE, NODES).is_null());
        server.delete(IMAGE, NODES);
        sleep(2 * LONG).await;
        let release = server.find(RELEASE, TAG);
        let resources = release["status"]["resources"].to_string();
        assert!(!resources.contains(NODES), "{release:#}");
        server.refuse(Method::DELETE, IMAGE, None);

        server.refuse(Method::PATCH, IMAGE, Some("not today"));
        server.apply(&stack("v3.19"));
        sleep(LONG).await;
        assert!(server.find(RELEASE, TAG)["status"].to_string().contains("not today"));
        server.refuse(Method::PATCH, IMAGE, None);
        is_made(&server).await;
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}

#[test]
fn an_object_that_is_still_going_when_its_release_wants_it_again_is_made_when_it_is_gone() {
    install_crypto();
    for by_somebody_else in [false, true] {
        let server = begin(None);
        serve_images(&server);
        operated_with(&server, RELEASES.path(), &[], async |_| {
            server.apply(&stack("v3.19"));
            sleep(LONG).await;
            // As its own operator has it.
            let kept = json!({ "metadata": { "finalizers": ["openstack.k-orc.cloud/image"] } });
            server.merge(IMAGE, NODES, &kept);
            sleep(LONG).await;
            let refusal = by_somebody_else.then_some("not today");
            server.refuse(Method::DELETE, IMAGE, refusal);
            server.apply(&stack("v4.1"));
            sleep(LONG).await;
            if by_somebody_else {
                server.delete(IMAGE, NODES);
                sleep(LONG).await;
            }
            let going = server.find(IMAGE, NODES);
            assert!(!going["metadata"]["deletionTimestamp"].is_null(), "{going:#}");
            server.apply(&stack("v3.19"));
            sleep(LONG).await;
            server.merge(IMAGE, NODES, &json!({ "metadata": { "finalizers": null } }));
            is_made(&server).await;
        });
        assert!(server.calls() < MOST, "the operator asks for ever");
    }
}

fn serve_images(server: &Server) {
    let image = KINDS.iter().find(|kind| kind.kind == IMAGE).expect("the kind");
    server.apply(&definition(image));
}

/// After a while the object is there, and its release ready.
async fn is_made(server: &Server) {
    sleep(2 * LONG).await;
    let release = server.find(RELEASE, TAG);
    assert!(!server.find(IMAGE, NODES).is_null(), "{release:#}");
    assert_eq!(release["status"]["ready"], true, "{release:#}");
}
