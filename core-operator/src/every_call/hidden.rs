//! Discovery that leaves out a group, as that of an API server does that has only just started.

use std::time::Duration;

use operator_kit::telemetry::Readiness;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::kinds::KINDS;
use super::{LONG, begin, definition, operated, stack, template};
use crate::clusters::{ClusterSight, Keeps};
use operator_kit::in_memory::Server;

const GROUP: &str = "cluster.x-k8s.io";
const TAG: &str = "docker-harbor-1-34-v1";

fn definitions() -> impl Iterator<Item = Value> {
    let of_group = KINDS.iter().filter(|kind| kind.group == GROUP);
    of_group.map(definition)
}

fn is_there(server: &Server, kind: &str) -> bool {
    let objects = server.objects().into_iter();
    objects.map(|(key, _)| key).any(|key| key.0 == kind && key.2 == TAG)
}

#[test]
fn a_release_goes_after_its_objects_though_discovery_leaves_them_out_for_a_while() {
    operator_kit::client::install_crypto();
    let server = begin(None);
    operated(&server, async |_| {
        server.apply(&template("small"));
        server.apply(&stack(&["v1"]));
        sleep(LONG).await;
        assert!(is_there(&server, "ClusterClass"));
        server.hide(Some(GROUP));
        // A change of a definition makes everybody read discovery.
        for mut definition in definitions() {
            definition["metadata"]["labels"] = json!({ "changed": "yes" });
            server.apply(&definition);
        }
        sleep(Duration::from_secs(1)).await;
        server.delete("ClusterStack", "harbor");
        sleep(Duration::from_secs(10)).await;
        assert!(
            is_there(&server, "ClusterStackRelease"),
            "the release has gone before its class"
        );
        server.hide(None);
        sleep(LONG).await;
    });
    assert!(!is_there(&server, "ClusterStackRelease"));
    assert!(!is_there(&server, "ClusterClass"));
}

#[tokio::test(start_paused = true)]
async fn nobody_says_that_a_release_is_unused_while_discovery_leaves_out_clusters() {
    let server = Server::new(&KINDS, None);
    for definition in definitions() {
        server.apply(&definition);
    }
    server.hide(Some(GROUP));
    let sight = ClusterSight::start(
        &server.client(),
        Keeps::Classes,
        &Readiness::default(),
        &CancellationToken::new(),
    );
    let tag = TAG.parse().expect("a tag");
    for _ in 0..2 {
        let users = sight.clusters.users_now("fleet", &tag).await;
        assert!(users.is_err(), "{users:?}");
        // By then all definitions are listed.
        sleep(Duration::from_secs(1)).await;
    }
    server.hide(None);
    sleep(LONG).await;
    assert_eq!(
        sight.clusters.users_now("fleet", &tag).await.expect("an answer").len(),
        0
    );
}
