//! Objects of others with more levels than clients read of JSON. The API server takes them.

use std::sync::Arc;

use operator_kit::telemetry::Readiness;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::kinds::KINDS;
use super::{LONG, begin, cluster, definition, namespace, operated, stack, template};
use crate::clusters::{ClusterSight, Keeps};
use operator_kit::in_memory::Server;

const TAG: &str = "docker-harbor-1-34-v1";

fn nested() -> Value {
    (0..500).fold(json!("leaf"), |inner, _| json!({ "a": inner }))
}

/// A cluster of the class with a variable that nobody reads.
fn nested_cluster() -> Value {
    let mut cluster = cluster(TAG);
    cluster["metadata"]["name"] = json!("reef");
    cluster["spec"]["topology"]["variables"] = json!([{ "name": "depth", "value": nested() }]);
    cluster
}

#[tokio::test(start_paused = true)]
async fn who_uses_a_release_is_known_also_of_clusters_that_are_nested_as_deep_as_anybody_likes() {
    let server = Server::new(&KINDS, None);
    server.apply(&namespace("fleet"));
    for kind in KINDS.iter().filter(|kind| kind.group == "cluster.x-k8s.io") {
        server.apply(&definition(kind));
    }
    server.apply(&nested_cluster());
    let mut sight = ClusterSight::start(
        &server.client(),
        Keeps::Classes,
        &Readiness::default(),
        &CancellationToken::new(),
    );
    let clusters = Arc::clone(&sight.clusters);
    let tag = TAG.parse().expect("a tag");
    let look = async {
        sleep(LONG).await;
        let now = clusters.users_now("fleet", &tag).await.expect("an answer");
        assert!(now.iter().eq(["fleet/reef"]), "{now:?}");
        assert_eq!(clusters.used_by("fleet").expect("all are listed")[&tag], now);
        // What happens to others is heard.
        server.apply(&cluster(TAG));
        let mut changed = nested_cluster();
        changed["spec"]["topology"]["class"] = json!("docker-harbor-1-34-v2");
        server.apply(&changed);
        sleep(LONG).await;
        let now = clusters.users_now("fleet", &tag).await.expect("an answer");
        assert!(now.iter().eq(["fleet/wharf"]), "{now:?}");
        assert_eq!(clusters.used_by("fleet").expect("all are listed")[&tag], now);
    };
    tokio::select! {
        () = sight.stand_by() => {}
        () = look => {}
    }
}

#[test]
fn of_a_template_that_is_nested_too_deep_nothing_is_made() {
    operator_kit::client::install_crypto();
    let server = begin(None);
    let mut deep = template("small");
    deep["spec"]["template"]["spec"]["deep"] = nested();
    operated(&server, async |_| {
        server.apply(&deep);
        server.apply(&stack(&["v1"]));
        sleep(LONG).await;
        let status = server.find("ClusterStack", "harbor")["status"].to_string();
        assert!(
            status.contains("more levels of lists and maps than can be read"),
            "{status}"
        );
        assert_eq!(server.find("DockerClusterStackRelease", TAG), Value::Null);
        let flat = json!({ "spec": { "template": { "spec": { "deep": null } } } });
        server.merge("DockerClusterStackReleaseTemplate", "images", &flat);
        sleep(LONG).await;
    });
    assert_ne!(server.find("DockerClusterStackRelease", TAG), Value::Null);
}
