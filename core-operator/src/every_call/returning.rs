//! An object that leaves the rendering of its release and comes back.

use std::sync::LazyLock;

use http::Method;
use operator_kit::client::install_crypto;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::sleep;

use super::kinds::KINDS;
use super::{LONG, STACK, begin, definition, operated_with, publish};
use operator_kit::in_memory::MOST;

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
    let image = KINDS.iter().find(|kind| kind.kind == IMAGE).expect("the kind");
    server.apply(&definition(image));
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
        sleep(2 * LONG).await;
        let release = server.find(RELEASE, TAG);
        assert!(!server.find(IMAGE, NODES).is_null(), "{release:#}");
        assert_eq!(release["status"]["ready"], true, "{release:#}");
    });
    assert!(server.calls() < MOST, "the operator asks for ever");
}
