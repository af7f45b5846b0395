//! Two processes that share the work: the add-ons of a Cluster are in the hands of one of them, its class may be in those of the other.
//! And what a process forgets that loses a shard.

use std::sync::Arc;

use operator_kit::in_memory::journey::{beside, paused};
use operator_kit::lease::Tenure;
use operator_kit::telemetry::registry;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::super::{args, tidings_of, until};
use super::lives::predecessors;
use super::*;
use crate::clusters::ClusterSight;
use crate::operator::operate;

const CLUSTERS: [&str; 6] = ["wharf", "reef", "pier", "cove", "quay", "mole"];

/// What comes of a journey while two operators have a shard each.
fn shared<T>(server: &Server, journey: impl AsyncFnOnce() -> T) -> T {
    install_crypto();
    paused().block_on(async {
        let caches = [(); 2].map(|()| TempDir::new().expect("a folder"));
        let flags = ["--shards=2"];
        let [one, two] = [0, 1].map(|shard| {
            let args = args(RELEASES.path(), caches[usize::from(shard)].path(), &flags);
            let tidings = tidings_of(&mut registry(), Tenure::of_these(&[shard], 2));
            (args, tidings)
        });
        let stop = CancellationToken::new();
        let operating = async {
            let (first, second) = tokio::join!(
                Box::pin(operate(&one.0, server.client(), one.1, None, stop.clone())),
                Box::pin(operate(&two.0, server.client(), two.1, None, stop.clone()))
            );
            first.and(second)
        };
        beside(operating, &stop, journey()).await
    })
}

#[test]
fn each_cluster_is_looked_after_by_one_process_whichever_has_its_class() {
    let server = begin(None);
    shared(&server, async || {
        with_class(&server);
        for name in CLUSTERS {
            server.apply(&cluster(name, TAG));
        }
        // Long enough that what nobody needs any more is ended.
        sleep(3 * LONG).await;
        let creations = server
            .objects()
            .into_iter()
            .filter(|(key, event)| key.0 == "Event" && event["reason"] == "ClusterAddonCreated");
        assert_eq!(creations.count(), CLUSTERS.len());
        for name in CLUSTERS {
            let name = format!("cluster-addon-{name}");
            // The release is known to both: what is waited for is the cluster.
            assert_eq!(told(&server, &name, "Ready"), "False/ControlPlaneNotReady");
        }
        for name in CLUSTERS {
            server.delete(ADDON, &format!("cluster-addon-{name}"));
        }
        sleep(LONG).await;
        for name in CLUSTERS {
            let addon = server.find(ADDON, &format!("cluster-addon-{name}"));
            assert_eq!(addon.pointer("/metadata/deletionTimestamp"), None);
            assert!(!addon.is_null(), "{name}");
        }
    });
}

#[test]
fn the_shards_of_these_clusters_are_not_all_the_same() {
    let shards = CLUSTERS.map(|name| crate::addon::shard_of_addons("fleet", name, 2));
    assert!(shards.contains(&0) && shards.contains(&1), "{shards:?}");
}

/// It would go on telling Cluster API what nobody here tries any more.
#[test]
fn what_was_in_the_way_of_a_cluster_addon_is_forgotten_by_a_process_that_loses_its_shard() {
    install_crypto();
    let (server, cache) = (begin(None), TempDir::new().expect("a folder"));
    let args = args(RELEASES.path(), cache.path(), &[]);
    paused().block_on(async {
        let (tenure, stop) = (Tenure::of_these(&[0], 1), CancellationToken::new());
        let tidings = tidings_of(&mut registry(), tenure.clone());
        let sight = ClusterSight::start(&server.client(), args.keeps(), &tidings.readiness, &stop);
        let clusters = Arc::clone(&sight.clusters);
        let operating = Box::pin(operate(&args, server.client(), tidings, Some(sight), stop.clone()));
        let journey = async {
            with_class(&server);
            // By then everything is listed.
            sleep(Duration::from_secs(10)).await;
            // There is a ClusterAddon that is not in sight.
            server.stall(ADDON);
            server.apply(&cluster("wharf", TAG));
            server.create(ADDON, &predecessors(&server, "wharf"));
            until(|| clusters.unmade("fleet", "wharf").is_some()).await;
            tenure.lose(0);
            until(|| clusters.unmade("fleet", "wharf").is_none()).await;
        };
        beside(operating, &stop, journey).await;
    });
}
